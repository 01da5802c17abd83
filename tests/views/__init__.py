"""Views, on small literal frames and on told stories."""
