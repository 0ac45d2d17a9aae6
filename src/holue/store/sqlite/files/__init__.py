"""The files beside the database: segments of rows, the newest version once more, the lock of the writer."""
