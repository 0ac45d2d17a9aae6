"""The page: screens for people who decide, made from templates on the server."""
