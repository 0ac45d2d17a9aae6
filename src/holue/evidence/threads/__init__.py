"""Threads of a scan: the thread pool, and the matrix library held to one thread."""
