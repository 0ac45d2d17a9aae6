"""The domain: embeddings, templates, and who is enrolled."""
