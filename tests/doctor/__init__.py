"""Tables with one trouble each, and what the log doctor says about them."""
