"""The tests. Beside the code they mirror: golden tables by other writers, import contracts, pages and the browser."""
