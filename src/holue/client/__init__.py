"""Client: a gallery of a service, with the verbs of :func:`holue.open`."""

from holue.client.client import AsyncClient, Client

__all__ = ["AsyncClient", "Client"]
