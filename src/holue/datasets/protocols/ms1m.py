"""MS1MV2 validation: the paper's development part for faces, read from its files or built anew.

The construction (paper, appendix "MS1MV2 validation set"): 3531 subjects with more than 30 images are drawn
at random, the first 1772 in the order of their ids are known. The images of each subject are shuffled and
cut into five templates; of a known subject four are mated probes and the last, which takes the remainder,
is enrolled; of the others four are non-mated probes and the last is left out. That makes 1772 enrolled
subjects, 7088 mated and 7036 non-mated probes, and is how the paper's own files are laid out:

    ms1m_face_1N_gallery_G1.csv      columns TEMPLATE_ID, SUBJECT_ID, FILENAME; one row per image
    ms1m_face_1N_probe_mixed.csv     the same columns
    ms1m_face_tid_mid.txt            one line per image: image_name template_id media_id, as in IJB

``FILENAME`` is 0 throughout, so that the image list is needed to join embeddings; without it templates can
be counted.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from holue.datasets.formats.lists import PartLists, TemplateList
from holue.datasets.protocols.ijb import find_file, join_lists, read_embs
from holue.errors import InvalidFileError, InvalidParameterError
from holue.evaluation.protocol import ProtocolPart
from holue.gallery.subjects import Subjects, as_subjects

N_SUBJECTS, N_KNOWN, MORE_THAN, N_TEMPLATES = 3531, 1772, 30, 5
SOURCE = "ms1mv2"

_IMAGE_LIST = "ms1m_face_tid_mid.txt"


def load_ms1m(folder: str | Path, embeddings: str | Path, *, weighting: str = "uniform") -> ProtocolPart:
    """The paper's files and embeddings in the order of the image list → one part."""
    find_file(folder, _IMAGE_LIST)
    return read_ms1m(folder).with_samples(read_embs(embeddings), weighting=weighting)


def read_ms1m(folder: str | Path) -> PartLists:
    """The template lists of the paper's files; countable without the image list."""
    try:
        image_list = find_file(folder, _IMAGE_LIST)
    except InvalidFileError:
        image_list = None
    gallery = find_file(folder, "ms1m_face_1N_gallery_G1.csv", "ms1m_1N_gallery_G1.csv")
    probes = find_file(folder, "ms1m_face_1N_probe_mixed.csv", "ms1m_1N_probe_mixed.csv")
    return join_lists([gallery], probes, image_list, source=SOURCE)


def build_ms1m(
    subject_id: object,
    rng: np.random.Generator,
    *,
    sample: Subjects | None = None,
    n_subjects: int = N_SUBJECTS,
    n_known: int = N_KNOWN,
    more_than: int = MORE_THAN,
) -> PartLists:
    """The construction above from the subject of every image; ``sample`` names the images, else rows do.

    >>> ids = np.repeat(np.arange(10), 31)
    >>> build_ms1m(ids, np.random.default_rng(0), n_subjects=6, n_known=4).counts["non_mated_probes"]
    8
    """
    if not 0 < n_known < n_subjects:
        raise InvalidParameterError(f"n_known must lie between 0 and n_subjects={n_subjects}, got {n_known}")
    if more_than < N_TEMPLATES - 1:
        raise InvalidParameterError(f"more_than must be at least {N_TEMPLATES - 1}, got {more_than}")
    owner = as_subjects(subject_id, field="subject_id")
    names = np.arange(len(owner)) if sample is None else as_subjects(sample, len(owner), field="sample")
    subjects, counts = np.unique(owner, return_counts=True)
    eligible = np.flatnonzero(counts > more_than)
    if len(eligible) < n_subjects:
        raise InvalidParameterError(
            f"{n_subjects} subjects with more than {more_than} images are needed, the table has "
            f"{len(eligible)}; lower n_subjects or more_than"
        )
    chosen = subjects[np.sort(rng.choice(eligible, n_subjects, replace=False))]

    rows = np.flatnonzero(np.isin(owner, chosen))
    place = np.searchsorted(chosen, owner[rows])
    order = np.lexsort((rng.random(len(rows)), place))
    rows, place = rows[order], place[order]
    first = np.searchsorted(place, place)
    size = np.bincount(place)[place] // N_TEMPLATES
    cut = np.minimum((np.arange(len(rows)) - first) // size, N_TEMPLATES - 1)
    template = place * N_TEMPLATES + cut

    table = TemplateList(template, owner[rows], names[rows], origin="MS1MV2 construction")
    last, known = cut == N_TEMPLATES - 1, place < n_known
    n_samples = len(owner) if sample is None else None
    return PartLists(table.where(last & known), table.where(~last), SOURCE, n_samples)
