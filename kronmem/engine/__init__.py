"""The embedded memory engine: service → engine → store."""
