"""The commands from images and recordings to embeddings."""
