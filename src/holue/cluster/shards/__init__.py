"""What runs on a node: a shard, its file, and how rows reach it."""
