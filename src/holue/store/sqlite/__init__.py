"""The embedded home of a store: a directory with a SQLite database and append-only segment files."""
