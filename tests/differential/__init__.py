"""Generated histories, read by lakeview and by engines that share nothing with it."""
