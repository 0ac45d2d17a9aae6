"""The PostgreSQL home of a store: several processes write, each reads from a local copy."""
