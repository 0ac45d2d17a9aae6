"""Why PRR has the level that it has: one thing of a made-up world varied at a time."""
