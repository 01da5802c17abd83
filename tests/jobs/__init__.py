"""Jobs in a process of their own, without Spark."""
