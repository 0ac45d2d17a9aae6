"""Threads of a scan: how many processors there are, the thread pool, and the matrix library held to one thread."""
