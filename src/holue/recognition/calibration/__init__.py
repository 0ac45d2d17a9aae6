"""What validation data settle, and when that no longer holds."""
