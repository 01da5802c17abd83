"""What a table is, free of formats: schema, frames, snapshot, the Table class, findings, errors."""
