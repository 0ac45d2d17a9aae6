"""Wrong keys: an address that sends them has to wait, longer each time, and only so many addresses are remembered."""

from __future__ import annotations

import ipaddress
import threading
import time as clock
from collections import OrderedDict
from collections.abc import Callable

from holue.errors import TooManyWrongKeysError

FREE = 5
"""Wrong keys that cost nothing: somebody pasted the wrong one."""
FIRST_WAIT = 0.5
LONGEST_WAIT = 60.0
FORGET_AFTER = 900.0
"""Seconds without a wrong key after which an address starts anew."""
ADDRESSES = 10_000


class WrongKeys:
    """After ``FREE`` wrong keys each further one doubles the wait, up to a minute; a right key is not tried meanwhile.

    >>> wrong = WrongKeys()
    >>> for _ in range(6):
    ...     wrong.check("192.0.2.7")
    ...     wrong.note("192.0.2.7")
    >>> wrong.check("192.0.2.7")
    Traceback (most recent call last):
    holue.errors.TooManyWrongKeysError: wrong keys came from this address; try again in 0.5 seconds
    """

    def __init__(self, now: Callable[[], float] = clock.monotonic, addresses: int = ADDRESSES) -> None:
        self._now, self._limit = now, addresses
        self._seen: OrderedDict[str, tuple[int, float]] = (
            OrderedDict()
        )  # network: wrong keys, and when the last one came
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._seen)

    def check(self, address: str) -> None:
        """An error where this address has to wait."""
        if not self._seen:
            return
        with self._lock:
            count, last = self._seen.get(_network(address), (0, 0.0))
        left = last + wait_after(count) - self._now()
        if left > 0:
            raise TooManyWrongKeysError(left)

    def note(self, address: str) -> None:
        """This address has sent a wrong key."""
        network, now = _network(address), self._now()
        with self._lock:
            count, last = self._seen.pop(network, (0, now))
            self._seen[network] = (1 if now - last > FORGET_AFTER else count + 1, now)
            while len(self._seen) > self._limit:
                self._seen.popitem(last=False)


def wait_after(count: int) -> float:
    """Seconds to wait after so many wrong keys.

    >>> [wait_after(count) for count in (5, 6, 7, 99)]
    [0.0, 0.5, 1.0, 60.0]
    """
    return 0.0 if count <= FREE else min(FIRST_WAIT * 2.0 ** min(count - FREE - 1, 30), LONGEST_WAIT)


def _network(address: str) -> str:
    """One subscriber has 2⁶⁴ addresses of IPv6, so they count as one; what is no address counts as itself."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((int(parsed) >> 64 << 64, 64)))
    return str(parsed)
