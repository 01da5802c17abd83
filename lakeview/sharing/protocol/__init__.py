"""The Delta Sharing protocol as both ends speak it: messages, profiles and predicate hints."""
