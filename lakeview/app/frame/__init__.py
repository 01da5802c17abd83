"""The frame around every page: navigation, header, sidebar, and what a server settles at its start."""
