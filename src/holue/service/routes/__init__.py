"""Routes: one file per noun of the API."""
