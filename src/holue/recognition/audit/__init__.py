"""The health of a gallery: faults found before they hurt, each with an estimate of what it costs."""
