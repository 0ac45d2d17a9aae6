"""A gallery spread over the machines of a Ray cluster: shards, their replicas, and a search that merges their evidence."""
