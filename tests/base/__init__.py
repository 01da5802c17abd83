"""What everything may know: errors, configuration, schemas, expressions, snapshots; and discovery."""
