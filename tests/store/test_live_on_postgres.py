"""A living gallery on PostgreSQL: the same verbs, several processes may write."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pytest

import holue
from holue.errors import InvalidParameterError


def test_a_living_gallery_on_a_server_answers_and_is_followed_by_another_opening(postgres: Any) -> None:
    url = postgres.url(f"g{uuid.uuid4().hex[:12]}")
    with pytest.raises(InvalidParameterError, match="dim"):
        holue.open(url, create=True)
    with holue.open(url, create=True, dim=4, method="galue", threshold=0.8) as gallery:
        gallery.enroll(np.eye(4)[:2], ["ann", "bob"])
        with holue.open(url) as other:
            assert other.identify(np.eye(4)[:3]).subject.tolist() == ["ann", "bob", holue.UNKNOWN]
            other.enroll(np.eye(4)[2:3], ["cay"])
        gallery.refresh()
        assert gallery.identify(np.eye(4)[:3]).subject.tolist() == ["ann", "bob", "cay"]
        gallery.remove(["ann"])
    with holue.open(url, create=True, dim=4) as gallery:
        assert gallery.identify(np.eye(4)[:3]).subject.tolist() == [holue.UNKNOWN, "bob", "cay"]
