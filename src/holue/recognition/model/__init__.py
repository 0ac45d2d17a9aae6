"""The model of the world: how subjects and strangers are spread, and the operating point that follows."""
