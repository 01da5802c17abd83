"""Charts: what is drawn, in which colours, and how much of it."""
