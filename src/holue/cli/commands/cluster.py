"""``holue cluster``: the shards of a gallery on a Ray cluster."""

from __future__ import annotations

import dataclasses
import time
from enum import StrEnum
from typing import Annotated, Any

import typer

import holue
from holue.cli.output import Json, print_json, say
from holue.errors import InvalidParameterError
from holue.progress import working

PATIENCE = 600.0


class Action(StrEnum):
    """What to do."""

    status = "status"
    up = "up"
    down = "down"
    rebalance = "rebalance"
    drain = "drain"


def cluster(
    action: Annotated[Action, typer.Argument(help="What to do.")],
    gallery: Annotated[str, typer.Argument(metavar="GALLERY", help="A directory or a postgresql:// URL.")],
    node: Annotated[str | None, typer.Argument(metavar="[NODE]", help="drain: a node's address or id.")] = None,
    address: Annotated[
        str, typer.Option(help="The Ray cluster: HOST:PORT, ray://HOST:PORT, or auto for the one of this machine.")
    ] = "auto",
    shards: Annotated[
        int | None, typer.Option(help="up: parts of the gallery; default: one for each processor of the nodes.", min=1)
    ] = None,
    replicas: Annotated[int, typer.Option(help="Nodes that hold each shard.", min=1)] = 2,
    json: Json = False,
) -> None:
    """Spread a gallery over the nodes of a Ray cluster, and look after it.

    `up` starts shards and fills them; they stay until `down`, which deletes their rows from the nodes. `status` asks every
    replica. `rebalance` levels the nodes after some have joined. `drain` empties a node, so that it can be shut down.
    Example: `holue cluster up office --address auto --shards 4`
    """
    from holue.live.clustered import ClusterAddress
    from holue.live.opening import shards_of

    if (node is None) == (action is Action.drain):
        raise InvalidParameterError(
            "NODE goes with drain, and drain needs one: an address or an id of holue cluster status"
        )
    where = ClusterAddress(address, shards, replicas)
    done: dict[str, Any] = {}
    if action in (Action.status, Action.down):
        with shards_of(gallery, where) as found:
            rows = found.status()
            if action is Action.down:
                done["ended"] = found.down()
    else:
        with working(f"{action.value}", quiet=json), holue.open(gallery, cluster=where) as opened:
            assert opened.clustered is not None
            spread = opened.clustered.cluster
            if action is Action.drain:
                done["drained"] = spread.drain(str(node))
            moved = spread.settle(level=action is Action.rebalance, timeout=PATIENCE)
            done |= {"started": len(moved.start), "stopped": len(moved.stop), "version": opened.version}
            rows = spread.status()
    if json:
        print_json({**done, "at": time.time(), "replicas": [dataclasses.asdict(row) for row in rows]})
        return
    for row in rows:
        state = f"version {row.version.partition('@')[0]}, {row.subjects} subjects" if row.version else "not filled"
        state += f", {row.behind} behind" if row.behind else ""
        failures = f", {row.failures} failures, the last {row.last_failure}" if row.failures else ""
        say(f"shard {row.shard} on {row.address} ({row.node[:8]}): {state if row.answers else 'no answer'}{failures}")
    said = ", ".join(f"{name} {value}" for name, value in done.items())
    say(said or f"{len(rows)} replicas")
