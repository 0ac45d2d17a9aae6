"""The service: a living gallery for others, over HTTP; keys, roles, the log and the reviews below it."""
