"""Commands on a gallery on disk."""
