"""TrainingImages: labelled images of one size, in memory, to train a network from scratch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from holue.embedding.inputs.images import ImageInput
from holue.embedding.inputs.samples import find_samples
from holue.embedding.models.embedding_file import Names
from holue.errors import InvalidSubjectsError
from holue.progress import Progress


@dataclass(frozen=True, eq=False)
class TrainingImages:
    """Images (n, H, W, 3), or (n, H, W) where grey, of bytes, and who they show."""

    images: npt.NDArray[np.uint8]
    subject_id: Names
    sample_id: Names

    @classmethod
    def read(
        cls,
        inputs: Iterable[str | Path],
        *,
        size: int = 64,
        colour: str = "rgb",
        labels: Mapping[str, str] | None = None,
        progress: Progress | None = None,
    ) -> TrainingImages:
        """The images of folders, zips, lists and files, each made ``size`` × ``size``.

        The subject is the folder an image is in, or ``labels[sample_id]``, where images without a label are left out.
        """
        image_input = ImageInput(size, size, colour, mean=0.0, scale=1.0, resize=True)
        samples = find_samples(inputs, image_input)
        if labels is not None:
            samples = [sample for sample in samples if sample.sample_id in labels]
        names = [sample.subject_id if labels is None else str(labels[sample.sample_id]) for sample in samples]
        if not samples or not all(names):
            raise InvalidSubjectsError(
                "every training image needs a subject: put each subject's images into a folder of its own, "
                "or give labels by sample id"
            )
        images = []
        for done, sample in enumerate(samples, start=1):
            content = sample.load()
            raw = image_input.decode(content, sample.origin) if isinstance(content, bytes) else content
            prepared = image_input.prepare(raw, sample.origin).astype(np.uint8)
            images.append(prepared.transpose(1, 2, 0) if len(prepared) == 3 else prepared[0])
            if progress is not None:
                progress(done, len(samples), sample.sample_id)
        ids = np.array([sample.sample_id for sample in samples])
        return cls(np.stack(images), np.array(names), ids)
