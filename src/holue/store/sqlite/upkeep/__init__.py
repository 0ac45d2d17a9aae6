"""What is done to a whole home: compaction, erasure, snapshots, verification, recovery."""
