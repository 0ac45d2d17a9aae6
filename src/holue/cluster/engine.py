"""Engine: Ray, imported when it is first needed, and the connection of this process to it."""

from __future__ import annotations

import logging
import os
from typing import Any

from holue.errors import InvalidParameterError, MissingDependencyError, StoreUnavailableError


def ray() -> Any:
    """The package."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Else a call after the connection is closed would start a Ray of its own.
    os.environ["RAY_ENABLE_AUTO_CONNECT"] = "0"
    # Ray warns of a later default that concerns graphics processors; shards use none.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray as package
    except ImportError as error:
        raise MissingDependencyError("ray", "cluster") from error
    return package


def connect(address: str) -> None:
    """Connect this process to a running Ray; one that is connected to it already stays so."""
    engine = ray()
    if engine.is_initialized():
        return
    try:
        # Ray's default of killing the driver's tasks with it does not concern shards: they are detached.
        engine.init(
            address=address,
            log_to_driver=False,
            logging_level=logging.WARNING,
            namespace="holue",
            ignore_reinit_error=True,
        )
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        if isinstance(error, ValueError):
            raise InvalidParameterError(
                f"cluster={address!r} is no address of a Ray cluster ({error}); give 'local', 'auto', HOST:PORT or ray://HOST:PORT"
            ) from error
        raise StoreUnavailableError(
            f"no Ray cluster answers at {address} ({error}); start one with `ray start --head`, or take cluster='local'"
        ) from error


def disconnect() -> None:
    """Leave Ray; what is detached stays there."""
    ray().shutdown()
