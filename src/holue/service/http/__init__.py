"""What every request passes: limits, keys, strict bodies, problems, metrics, logs."""
