"""Faces in photographs: found, aligned, measured and embedded."""
