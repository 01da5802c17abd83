"""Reading rows on request: the budget, the process that reads, and its sandbox."""
