"""A shard gives the evidence of its subjects in any version it holds, and finds its rows again on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from holue.cluster.shards.absent import Absent
from holue.cluster.shards.message import pieces
from holue.cluster.shards.shard import KEPT, Shard
from holue.cluster.shards.shard_file import ShardFile
from holue.cluster.shards.stripes import of_shard
from holue.evidence.evidence import Evidence, merge
from holue.evidence.ivf.index import SMALLEST_GALLERY
from holue.evidence.link import cosine_link
from holue.evidence.scan import scan
from holue.gallery.gallery import Gallery
from holue.recognition.search.gallery_search import GallerySearch
from holue.recognition.search.search import SearchKind

D = 12
NONE = np.empty(0, np.int64)


def gallery_of(n: int, seed: int = 0) -> Gallery:
    X = np.random.default_rng(seed).standard_normal((n, D)).astype(np.float32)
    return Gallery.from_samples(X, np.arange(n))


def tell(shard: Shard, gallery: Gallery, base: str | None, version: str, gone=NONE, numbers=None, erased=False) -> None:
    chosen = gallery.numbers if numbers is None else numbers
    for message in pieces(f"{base} {version}", base, version, gone, chosen, gallery, erased=erased):
        shard.receive(message)


def ask(shard: Shard, version: str) -> Evidence | Absent:
    probes = gallery_of(7, seed=3).directions
    return shard.scan(version, "exact", probes, np.array([4.0]), 3, cosine_link)


def assert_same(found: Evidence | Absent, gallery: Gallery) -> None:
    assert isinstance(found, Evidence)
    wanted = scan(gallery_of(7, seed=3).directions, gallery, [4.0], top_k=3)
    for name in ("top_scores", "top_index", "log_mass", "mean_score", "n_subjects"):
        assert np.array_equal(getattr(found, name), getattr(wanted, name)), name


@pytest.fixture
def file(tmp_path: Path) -> ShardFile:
    return ShardFile(tmp_path, "0-node")


def test_all_rows_come_in_many_pieces(file: ShardFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holue.cluster.shards.message.LARGEST", 5 * D * 4)
    gallery, shard = gallery_of(53), Shard(file)
    assert ask(shard, "1@0") == Absent(())
    tell(shard, gallery, None, "1@0")
    assert_same(ask(shard, "1@0"), gallery)


def test_several_threads_give_the_bits_of_one(file: ShardFile) -> None:
    gallery, shard = gallery_of(3000), Shard(file, threads=3)
    tell(shard, gallery, None, "1@0")
    assert_same(ask(shard, "1@0"), gallery)


def test_a_change_makes_a_version_and_the_one_before_stays(file: ShardFile) -> None:
    before, shard = gallery_of(40), Shard(file)
    tell(shard, before, None, "1@0")
    after = before.remove([3, 4]).enroll(gallery_of(2, seed=8).directions, [100, 101])
    tell(shard, after, "1@0", "2@0", gone=np.array([3, 4, 40, 41]), numbers=np.array([40, 41]))
    assert_same(ask(shard, "1@0"), before)
    assert_same(ask(shard, "2@0"), after)


def test_a_version_can_be_told_from_a_later_one(file: ShardFile) -> None:
    first, shard = gallery_of(20), Shard(file)
    later = first.remove([5])
    tell(shard, later, None, "2@0")
    tell(shard, first, "2@0", "1@0", gone=np.array([5]), numbers=np.array([5]))
    assert_same(ask(shard, "1@0"), first)


def test_only_the_last_versions_are_kept(file: ShardFile) -> None:
    gallery, shard = gallery_of(30), Shard(file)
    tell(shard, gallery, None, "0@0")
    for n in range(1, KEPT + 3):
        gallery = gallery.remove([n])
        tell(shard, gallery, f"{n - 1}@0", f"{n}@0", gone=np.array([n]), numbers=NONE)
    assert len(shard.known) == KEPT
    assert ask(shard, "0@0") == Absent(shard.known)
    assert_same(ask(shard, shard.known[-1]), gallery)


def test_the_next_process_finds_the_rows_on_disk(file: ShardFile) -> None:
    gallery, shard = gallery_of(25), Shard(file)
    tell(shard, gallery, None, "7@1.5")
    assert_same(ask(Shard(file), "7@1.5"), gallery)


@pytest.mark.parametrize("place", [200, -5])
def test_a_file_with_a_changed_byte_is_not_used(file: ShardFile, tmp_path: Path, place: int) -> None:
    tell(Shard(file), gallery_of(25), None, "7@0")
    path = tmp_path / "0-node" / "directions.npy"
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    assert Shard(file).known == ()


def test_pieces_of_a_step_whose_beginning_was_lost_change_nothing(
    file: ShardFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holue.cluster.shards.message.LARGEST", 5 * D * 4)
    messages = list(pieces("s", None, "1@0", NONE, np.arange(20), gallery_of(20)))
    shard = Shard(file)
    for message in messages[1:]:
        assert shard.receive(message) == ()


def test_after_an_erasure_no_byte_of_the_row_is_on_disk_and_no_earlier_version_is_taken(
    file: ShardFile, tmp_path: Path
) -> None:
    before, shard = gallery_of(40), Shard(file)
    tell(shard, before, None, "1@0")
    row = before.rows(np.array([9]))[0].tobytes()
    assert any(row in path.read_bytes() for path in tmp_path.rglob("*.npy"))
    tell(shard, before.remove([9]), "1@0", "2@0", gone=np.array([9]), numbers=NONE, erased=True)
    assert not any(row in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for again in (shard, Shard(file)):
        tell(again, before, None, "1@0")
        assert again.known == ("2@0",)


def test_a_shard_may_be_empty_and_fill_again(file: ShardFile) -> None:
    gallery, shard = gallery_of(10), Shard(file)
    tell(shard, gallery, None, "1@0", numbers=NONE)
    found = ask(shard, "1@0")
    assert isinstance(found, Evidence)
    assert found.n_subjects == 0
    tell(shard, gallery, "1@0", "2@0", gone=gallery.numbers)
    assert_same(ask(shard, "2@0"), gallery)
    tell(shard, gallery, "2@0", "3@0", gone=gallery.numbers, numbers=NONE)
    assert ask(shard, "3@0").n_subjects == 0  # type: ignore[union-attr]
    assert Shard(file).known == ("1@0",)


def test_many_changes_are_written_to_disk(file: ShardFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holue.cluster.shards.shard.REWRITTEN_FROM", 3)
    gallery, shard = gallery_of(10), Shard(file)
    tell(shard, gallery, None, "1@0")
    later = gallery.enroll(gallery_of(6, seed=5).directions, np.arange(50, 56))
    tell(shard, later, "1@0", "2@0", gone=later.numbers[10:], numbers=later.numbers[10:])
    assert Shard(file).known == ("2@0",)
    assert_same(ask(shard, "2@0"), later)
    assert_same(ask(shard, "1@0"), gallery)


def test_rows_left_by_a_node_that_is_no_more_are_deleted(tmp_path: Path) -> None:
    old = ShardFile(tmp_path, "0-old")
    tell(Shard(old), gallery_of(10), None, "1@0")
    other = ShardFile(tmp_path, "1-new")
    assert (tmp_path / "0-old").is_dir()  # its process lives
    old.close()
    other.close()
    ShardFile(tmp_path, "1-new")
    assert not (tmp_path / "0-old").exists()


@pytest.mark.parametrize("kind", ["float16", "int8", "approximate"])
def test_compressed_and_approximate_shards_together_keep_their_bounds(tmp_path: Path, kind: SearchKind) -> None:
    gallery = gallery_of(2 * SMALLEST_GALLERY)
    probes = gallery_of(7, seed=3).directions
    exact = GallerySearch.exact(gallery).scan(probes, [6.0], top_k=3)
    seen = []
    for number in (0, 1):
        shard = Shard(ShardFile(tmp_path, f"{number}-node"))
        tell(shard, gallery, None, "1@0", numbers=of_shard(gallery.numbers, number, 2))
        assert shard.prepare("1@0", kind)
        seen.append(shard.scan("1@0", kind, probes, np.array([6.0]), 3, cosine_link))
    found = merge(*seen)  # type: ignore[arg-type]
    assert found.n_subjects == exact.n_subjects
    assert found.precision is not None
    off = np.abs(found.log_mass - exact.log_mass)
    if kind == "approximate":
        assert (found.precision.log_mass_error > 0).all()
        assert (off <= 5 * found.precision.log_mass_error).all()
    else:
        assert np.array_equal(found.top_index, exact.top_index)
        assert (found.precision.log_mass_bound > 0).all()
        assert (off <= found.precision.log_mass_bound).all()
