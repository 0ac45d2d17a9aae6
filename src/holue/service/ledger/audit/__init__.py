"""The audit log: a chain of hashes, its rows, and what a crash left to add."""
