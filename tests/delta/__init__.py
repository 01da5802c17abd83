"""The Delta reader and writer on small tables whose history is told in words."""
