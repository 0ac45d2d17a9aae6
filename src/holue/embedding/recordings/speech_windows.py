"""Speech windows: the stretches of a recording in which somebody speaks, none of them long."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from holue.embedding.inputs.model_input import Float32Array
from holue.embedding.recordings.speech_detector import FRAME, SAMPLE_RATE
from holue.gallery.embeddings import Float64Array

SPEECH = 0.4
"""P(speech) from which a frame is speech."""
LONGEST_PAUSE, MARGIN = 0.4, 0.1
"""Seconds: speech goes on over such a pause, and a window begins and ends so much outside of it."""
SHORTEST, LONGEST = 1.2, 4.0
"""Seconds of a window: shorter speech is left out, longer speech is cut into equal parts."""


def speech_windows(probabilities: Float32Array, seconds: float) -> Float64Array:
    """The windows (n, 2) of speech in a recording of ``seconds``, each from its start to its end in seconds.

    >>> speech_windows(np.repeat(np.float32([0, 1, 0]), [50, 100, 50]), 6.4).round(2).tolist()
    [[1.5, 4.9]]
    """
    speaking = np.concatenate([[False], probabilities >= SPEECH, [False]])
    edges = np.flatnonzero(speaking[1:] != speaking[:-1]).reshape(-1, 2) * (FRAME / SAMPLE_RATE)
    if len(edges) == 0:
        return np.zeros((0, 2))
    apart = np.flatnonzero(edges[1:, 0] - edges[:-1, 1] > LONGEST_PAUSE)
    starts = np.concatenate([edges[:1, 0], edges[apart + 1, 0]])
    ends = np.concatenate([edges[apart, 1], edges[-1:, 1]])
    windows = []
    for start, end in zip(np.maximum(starts - MARGIN, 0), np.minimum(ends + MARGIN, seconds), strict=True):
        if end - start >= SHORTEST:
            cuts = np.linspace(start, end, int(np.ceil((end - start) / LONGEST)) + 1)
            windows += list(pairwise(cuts))
    return np.array(windows, dtype=np.float64).reshape(-1, 2)
