"""VoxBlink: the open-set speaker identification lists of VoxBlink2, such as VB-Eval-L-5 and VB-Eval-M-5.

The lists as they are published (``data/ossi`` of ScriptsForVoxBlink2): a folder for each size and number of
enrolment utterances, each with two lists of "utterance label" lines:

    small|medium|large / perspk1|perspk3|perspk5 / gallery      VB-Eval-L-5 is large/perspk5
    small|medium|large / perspk1|perspk3|perspk5 / probe

Labels number the enrolled speakers 0..K−1; in ``probe`` the label K, which nobody enrolled has, marks every
unknown speaker. Labels start from 0 in each list, so they do not tell whether two lists share speakers.
Utterance names that start with the speaker (``id000123/...`` or ``id000123-...``) do: speakers are then
named by them. Otherwise speaker 7 of a list is ``large-perspk5 7``, and each utterance of an unknown
speaker counts as a speaker of its own.

Embeddings are samples in the format of :mod:`holue.datasets.formats.samples` with ``sample_id`` = utterance. The
published example is a pickled dictionary, which is never loaded; if you trust it, convert it once:

    table = np.load("example.npy", allow_pickle=True).item()
    np.savez("voxblink.npz", embeddings=np.concatenate(list(table.values())), sample_id=list(table))
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from holue.datasets.formats.lists import PartLists, ProtocolLists, TemplateList
from holue.datasets.formats.table import Strings, read_fields
from holue.datasets.protocols.ijb import read_embs
from holue.errors import InvalidFileError
from holue.evaluation.protocol import IdentificationProtocol, listed

SOURCE = "voxblink2"

_SPEAKER = re.compile(r"(id\d+)[/_-]")


def load_voxblink(
    folder: str | Path,
    embeddings: str | Path,
    *,
    development: str = "medium",
    evaluation: str = "large",
    utterances: int = 5,
    drop_shared: bool = False,
    weighting: str = "uniform",
) -> IdentificationProtocol:
    """Lists and embeddings → protocol; the paper evaluates on VB-Eval-L-5 and develops on VB-Eval-M-5."""
    lists = read_voxblink(
        folder,
        development=development,
        evaluation=evaluation,
        utterances=utterances,
        drop_shared=drop_shared,
    )
    return lists.with_samples(read_embs(embeddings), weighting=weighting)


def read_voxblink(
    folder: str | Path,
    *,
    development: str = "medium",
    evaluation: str = "large",
    utterances: int = 5,
    drop_shared: bool = False,
) -> ProtocolLists:
    """The lists of two sizes; speakers of both are an error or, with ``drop_shared``, leave development."""
    dev, test = (
        read_voxblink_part(Path(folder) / size / f"perspk{utterances}", utterances=utterances)
        for size in (development, evaluation)
    )
    settings: dict[str, int | float | str] = {"utterances": utterances}
    if drop_shared and dev.source == test.source:
        shared = np.intersect1d(dev.subjects, test.subjects)
        dev = dev.without(shared)
        settings["speakers dropped from development"] = len(shared)
    name = f"voxblink {evaluation} {utterances}"
    return ProtocolLists(name, dev, test, settings)


def read_voxblink_part(folder: str | Path, *, utterances: int = 5) -> PartLists:
    """One folder with ``gallery`` and ``probe``; each enrolled speaker must have exactly ``utterances``."""
    folder = Path(folder)
    gallery, probe = (read_fields(folder / name, fields=("utterance", "label")) for name in ("gallery", "probe"))
    labels, counts = np.unique(gallery["label"], return_counts=True)
    odd = counts != utterances
    if odd.any():
        raise InvalidFileError(
            f"{folder / 'gallery'}: {utterances} enrolment utterances per speaker are expected; "
            f"label {labels[odd][0].item()!r} has {counts[odd][0]}"
        )
    mated = np.isin(probe["label"], labels)
    unknown = np.unique(probe["label"][~mated])
    if len(unknown) > 1:
        raise InvalidFileError(
            f"{folder / 'probe'}: one label marks all unknown speakers, but {listed(unknown)} are not in "
            f"{folder / 'gallery'}"
        )
    speakers = [_speakers(table["utterance"], folder) for table in (gallery, probe)]
    if speakers[0] is None or speakers[1] is None:
        list_name = f"{folder.parent.name}-{folder.name}"
        enrolled = np.char.add(f"{list_name} ", gallery["label"])
        searched = np.where(mated, np.char.add(f"{list_name} ", probe["label"]), probe["utterance"])
        source = f"{SOURCE} {list_name}"
    else:
        enrolled, searched = speakers[0], speakers[1]
        _check_labels(gallery["label"], enrolled, probe["label"], searched, mated, folder)
        source = SOURCE
    return PartLists(
        TemplateList(enrolled, enrolled, gallery["utterance"], origin=str(folder / "gallery")),
        TemplateList(probe["utterance"], searched, probe["utterance"], origin=str(folder / "probe")),
        source,
    )


def _speakers(utterances: Strings, folder: Path) -> Strings | None:
    """The speaker each name starts with, or None where names do not tell."""
    found = [_SPEAKER.match(name) for name in utterances.tolist()]
    if not any(found):
        return None
    unnamed = [name for name, match in zip(utterances.tolist(), found, strict=True) if match is None]
    if unnamed:
        raise InvalidFileError(
            f"{folder}: some utterances start with their speaker (id000123/...) and {listed(unnamed)} do not"
        )
    return np.array([match[1] for match in found if match is not None])


def _check_labels(
    gallery_label: Strings,
    gallery_speaker: Strings,
    probe_label: Strings,
    probe_speaker: Strings,
    mated: npt.NDArray[np.bool_],
    folder: Path,
) -> None:
    """Labels and names must agree: one speaker per label, and nobody enrolled among the unknown."""
    labels, first = np.unique(gallery_label, return_index=True)
    by_label = gallery_speaker[first]
    if len(np.unique(by_label)) != len(labels):
        raise InvalidFileError(f"{folder / 'gallery'}: two labels name the same speaker")
    for name, label, speaker in (
        ("gallery", gallery_label, gallery_speaker),
        ("probe", probe_label[mated], probe_speaker[mated]),
    ):
        wrong = by_label[np.searchsorted(labels, label)] != speaker
        if wrong.any():
            at = int(wrong.argmax())
            raise InvalidFileError(
                f"{folder / name}: label {label[at].item()!r} is speaker "
                f"{by_label[np.searchsorted(labels, label[at])].item()!r}, but an utterance of "
                f"{speaker[at].item()!r} has it"
            )
    enrolled = np.isin(probe_speaker[~mated], by_label)
    if enrolled.any():
        raise InvalidFileError(
            f"{folder / 'probe'}: marked unknown but enrolled: {listed(np.unique(probe_speaker[~mated][enrolled]))}"
        )
