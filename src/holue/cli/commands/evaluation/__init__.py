"""The commands on anyone's embeddings."""
