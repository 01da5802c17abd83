"""Delta Sharing: tables that others share over HTTP, and what client and server of the protocol have in common."""
