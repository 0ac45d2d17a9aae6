"""Commands on a living gallery."""
