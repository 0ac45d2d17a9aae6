"""Degradations are seeded, stay what their label says, and leave the original alone."""

import numpy as np
import pytest

from holue.datasets.degradation import (
    FACE_LEVELS,
    SECONDS,
    ImageDegradation,
    SpeechDegradation,
    draw_image_degradation,
    draw_speech_degradation,
    sample_generator,
)
from holue.errors import InvalidParameterError


def face() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (112, 112, 3)).astype(np.uint8)


def test_an_image_at_its_own_size_is_left_as_it_is() -> None:
    image = face()
    assert (ImageDegradation(112).apply(image, np.random.default_rng(0)) == image).all()


def test_smaller_sizes_lose_more_detail() -> None:
    image = face()
    spread = [ImageDegradation(size).apply(image, np.random.default_rng(0)).std() for size in sorted(FACE_LEVELS.sizes)]
    assert spread == sorted(spread)


@pytest.mark.parametrize("kind", [{"blur": 2.0}, {"noise": 30.0}, {"occlusion": 0.3}])
def test_every_kind_changes_the_image_and_not_the_original(kind: dict[str, float]) -> None:
    image = face()
    before = image.copy()
    damaged = ImageDegradation(112, **kind).apply(image, np.random.default_rng(0))
    assert damaged.shape == image.shape
    assert (damaged != image).any()
    assert (image == before).all()


def test_an_occlusion_hides_its_share_of_the_image() -> None:
    white = np.full((100, 100), 255, np.uint8)
    shares = []
    for seed in range(40):
        damaged = ImageDegradation(112, occlusion=0.3).apply(white, np.random.default_rng(seed))
        shares.append((damaged != 255).mean())
    # An occlusion may be white itself (1 in 256); the edges are rounded to pixels.
    assert np.median(shares) == pytest.approx(0.3, abs=0.01)


def test_what_happens_to_a_sample_depends_on_its_name_seed_and_version_alone() -> None:
    def label(seed: int, version: int, name: str) -> str:
        return draw_image_degradation(sample_generator(seed, version, name)).label

    assert label(1, 0, "ann") == label(1, 0, "ann")
    others = {label(1, version, name) for version in range(4) for name in ("ann", "bob", "cid")}
    assert len(others) > 3


def test_labels_name_every_level() -> None:
    rng = np.random.default_rng(0)
    drawn = {part for _ in range(600) for part in draw_image_degradation(rng).label.split(", ")}
    assert {f"{size} px" for size in FACE_LEVELS.sizes} < drawn
    assert {"blur 1.5", "blur 3", "noise 15", "noise 35", "occlusion 0.15", "occlusion 0.3"} < drawn
    spoken = {part for _ in range(200) for part in draw_speech_degradation(rng).label.split(", ")}
    assert spoken == {*(f"{seconds:g} s" for seconds in SECONDS), "no noise", "20 dB", "10 dB", "5 dB"}


def test_noise_is_as_loud_as_it_says() -> None:
    speech = np.sin(np.arange(32_000) / 7).astype(np.float32)
    noisy = SpeechDegradation(10.0, signal_to_noise=10.0).apply(speech, np.random.default_rng(0))
    noise = noisy - speech
    # 32 000 draws: the power of the noise is known within a few per cent.
    assert 10 * np.log10(np.mean(speech**2) / np.mean(noise**2)) == pytest.approx(10, abs=0.3)


def test_a_cut_is_no_longer_than_the_utterance() -> None:
    short = np.ones(4_000, np.float32)
    assert len(SpeechDegradation(1.0).apply(short, np.random.default_rng(0))) == 4_000


@pytest.mark.parametrize("wrong", [{"size": 0}, {"size": 20, "occlusion": 1.0}])
def test_impossible_degradations_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidParameterError):
        ImageDegradation(**wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameterError, match="seconds"):
        SpeechDegradation(0.0)
