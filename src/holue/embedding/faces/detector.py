"""FaceDetector: YuNet, which finds faces and five points of each, run by OpenCV."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.embedding.faces.face import Face
from holue.embedding.faces.opencv import opencv
from holue.embedding.models.specification import models_directory
from holue.errors import InvalidFileError, InvalidParameterError

YUNET = "yunet"
"""The name of the model in the folder of the presets."""
FINE, COARSE = 1280, 480
"""The longest sides in pixels at which a photograph is searched. YuNet finds faces of some 25 to 500 pixels: the fine size is for
small faces, the coarse one for faces that fill a large photograph."""
OVERLAP = 0.3
"""Two boxes that share more of their union than this are one face."""
MOST_FACES = 5000


@dataclass(frozen=True)
class FaceDetector:
    """A YuNet model in an ONNX file; faces with a score below ``least_score`` are not reported.

    It can be used by several threads at once.
    """

    path: Path
    least_score: float = 0.6

    @classmethod
    def open(cls, model: str | Path = YUNET, *, least_score: float = 0.6) -> FaceDetector:
        """The detector in an ONNX file; ``yunet`` is ``yunet.onnx`` in the folder ``HOLUE_MODELS``."""
        if not 0 < least_score < 1:
            raise InvalidParameterError(f"least_score must lie between 0 and 1, got {least_score}")
        path = models_directory() / f"{YUNET}.onnx" if str(model) == YUNET else Path(model)
        if not path.is_file():
            raise InvalidFileError(
                f"{path}: no such face detector; name the ONNX file of YuNet (2023mar, from OpenCV's model zoo), or put it there"
            )
        detector = cls(path, least_score)
        detector._network()
        return detector

    def find(self, pixels: npt.NDArray[np.uint8]) -> list[Face]:
        """The faces in a photograph (H, W, 3), RGB and upright, from left to right.

        A photograph larger than ``FINE`` is made smaller for the search, and searched a second time at ``COARSE``. Of two boxes
        of one face the one with the higher score is kept.
        """
        cv2 = opencv()
        bgr = cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR)
        longest = max(bgr.shape[:2])
        rows = self._search(bgr, min(1.0, FINE / longest))
        if longest > COARSE:
            rows = np.concatenate([rows, self._search(bgr, COARSE / longest)])
            kept = cv2.dnn.NMSBoxes(rows[:, :4].tolist(), rows[:, 14].tolist(), self.least_score, OVERLAP)
            rows = rows[np.asarray(kept, dtype=np.int64).ravel()]
        faces = [Face(row[:4], row[4:14].reshape(5, 2), float(row[14])) for row in rows]
        return sorted(faces, key=lambda face: tuple(face.centre))

    def _search(self, bgr: npt.NDArray[np.uint8], scale: float) -> npt.NDArray[np.float64]:
        """Rows of 15 numbers: box, points and score, in pixels of ``bgr``."""
        cv2 = opencv()
        if scale < 1:
            smaller = [max(1, round(scale * edge)) for edge in (bgr.shape[1], bgr.shape[0])]
            bgr = cv2.resize(bgr, smaller, interpolation=cv2.INTER_AREA)
        network = self._network()
        network.setInputSize((bgr.shape[1], bgr.shape[0]))
        found = network.detect(bgr)[1]
        if found is None:
            return np.zeros((0, 15))
        rows: npt.NDArray[np.float64] = found.astype(np.float64)
        rows[:, :14] /= scale
        return rows

    def _network(self) -> Any:
        """The network of this thread: it keeps the size of its input, so that threads cannot share one."""
        if not hasattr(self._of_thread, "network"):
            cv2 = opencv()
            try:
                network = cv2.FaceDetectorYN.create(str(self.path), "", (32, 32), self.least_score, OVERLAP, MOST_FACES)
                network.detect(np.zeros((32, 32, 3), np.uint8))  # a model of another kind fails only when it runs
            except cv2.error as error:
                raise InvalidFileError(
                    f"{self.path}: not a YuNet face detector that OpenCV can run ({error})"
                ) from error
            self._of_thread.network = network
        return self._of_thread.network

    @cached_property
    def _of_thread(self) -> threading.local:
        return threading.local()
