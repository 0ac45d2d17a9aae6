"""Peers: holue beside other stores of embeddings, with the same vectors, in one run on one processor."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

from holue.bench.peers.comparison import PEERS, absent, on_one_processor
from holue.bench.sections.section import Result, Step
from holue.bench.worlds.sizes import Sizes

SLOW = {"Chroma": 20_000}
"""Subjects beyond which a peer is left out: adding 100 000 to Chroma's index takes longer than everything else together."""


def peer_steps(result: Result, sizes: Sizes, rounds: int, seed: int) -> Iterator[Step]:
    """One step per size."""
    result["peers"] = {"rows": [], "skipped": {name: why for name in PEERS if (why := absent(name)) is not None}}
    for subjects in sizes.peer_subjects:
        note = f"peers: K = {subjects}, d = {sizes.peer_dim}"
        yield note, partial(_measure, result, subjects, sizes.peer_dim, rounds, seed)


def _measure(result: Result, subjects: int, dim: int, rounds: int, seed: int) -> None:
    names = [name for name in PEERS if name not in result["peers"]["skipped"] and subjects <= SLOW.get(name, subjects)]
    asked = {"names": names, "subjects": subjects, "dim": dim, "rounds": rounds, "seed": seed}
    result["peers"]["rows"] += on_one_processor([json.dumps(asked)])
