"""The glyph world: a recognition task that every machine can draw, where identities are characters and samples renderings."""
