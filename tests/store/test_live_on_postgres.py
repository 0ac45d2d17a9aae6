"""A living gallery on PostgreSQL: the same verbs, several processes may write."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holue
from holue.errors import InvalidParameterError
from holue.store.windows import search_files


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


def test_templates_are_kept_with_the_local_copy_and_go_when_somebody_is_erased(
    postgres: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLUE_CACHE", str(tmp_path))
    monkeypatch.setattr("holue.live.follower.SMALLEST", 2)
    url = postgres.url(f"g{uuid.uuid4().hex[:12]}")
    X = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)
    with holue.open(f"{url}&copy=keep", create=True, dim=64, method="galue", threshold=0.8) as gallery:
        gallery.enroll(X, ["ann", "bob", "cay"])
    assert list(tmp_path.glob("copies/*/*/derived/templates"))
    monkeypatch.setattr("holue.live.follower.built", None)  # nothing is pooled again
    with holue.open(f"{url}&copy=keep") as gallery:
        assert gallery.identify(X).subject.tolist() == ["ann", "bob", "cay"]
    monkeypatch.undo()
    monkeypatch.setenv("HOLUE_CACHE", str(tmp_path))
    with holue.open(f"{url}&copy=keep") as gallery, holue.open(url) as other:
        other.erase(["ann"])
        gallery.refresh()
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert not sum(entry.found for entry in search_files(files, tmp_path, X[:1]))
        assert gallery.identify(X).subject.tolist() == [holue.UNKNOWN, "bob", "cay"]
