"""Storage: bytes below an address, on disk and in memory."""
