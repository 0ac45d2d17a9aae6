"""Replicas are on different nodes, nodes carry the same, and what runs is not moved without need."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from holue.cluster.placement import placed

nodes = st.lists(st.sampled_from("abcdefg"), unique=True, min_size=1)
present = st.dictionaries(st.integers(0, 6), st.lists(st.sampled_from("abcdefgxyz"), unique=True), max_size=7)


def after(plan, now):
    places = {(shard, node) for shard, some in now.items() for node in some}
    return (places | set(plan.start)) - set(plan.stop)


@given(nodes, st.integers(1, 7), st.integers(1, 3), present, st.booleans())
def test_every_shard_is_on_as_many_different_nodes_as_it_should_be(usable, n_shards, replicas, now, level) -> None:
    now = {shard: some for shard, some in now.items() if shard < n_shards}
    places = after(placed(n_shards, usable, now, replicas, level=level), now)
    each = Counter(shard for shard, _ in places)
    assert each == dict.fromkeys(range(n_shards), min(replicas, len(usable)))
    assert {node for _, node in places} <= set(usable)


@given(nodes, st.integers(1, 7), present)
def test_levelled_nodes_differ_by_one_replica_at_most(usable, n_shards, now) -> None:
    now = {shard: some for shard, some in now.items() if shard < n_shards}
    load = Counter(dict.fromkeys(usable, 0))
    load.update(node for _, node in after(placed(n_shards, usable, now, 2, level=True), now))
    assert max(load.values()) - min(load.values()) <= 1


@given(nodes, st.integers(1, 7), st.booleans())
def test_a_placement_that_was_carried_out_needs_nothing_more(usable, n_shards, level) -> None:
    places: dict[int, list[str]] = {}
    for shard, node in placed(n_shards, usable, {}).start:
        places.setdefault(shard, []).append(node)
    again = placed(n_shards, usable, places, level=level)
    assert not again.start
    assert not again.stop


@settings(max_examples=30)
@given(st.integers(2, 7), st.integers(1, 7))
def test_a_lost_node_moves_only_what_was_on_it(n_nodes, n_shards) -> None:
    usable = list("abcdefg"[:n_nodes])
    places: dict[int, list[str]] = {}
    for shard, node in placed(n_shards, usable, {}).start:
        places.setdefault(shard, []).append(node)
    left = {shard: [node for node in some if node != "a"] for shard, some in places.items()}
    plan = placed(n_shards, usable[1:], left)
    assert {shard for shard, _ in plan.start} <= {shard for shard, some in places.items() if "a" in some}
    assert not plan.stop
