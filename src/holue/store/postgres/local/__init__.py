"""The local copy of a gallery on a server, and how it follows."""
