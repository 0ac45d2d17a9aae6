"""What a deployment would see: certified risks, groups, growing galleries."""
