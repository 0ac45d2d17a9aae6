"""Cells: many labelled points as few weighted ones, so that the time of full-batch training does not grow with their number."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np
import numpy.typing as npt

from holue.gallery.embeddings import Float64Array

Rows = npt.NDArray[np.int64]


def merge_points(
    features: Float64Array, correct: npt.NDArray[np.bool_], max_points: int
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Points, targets and weights of at most ``max_points`` merged probes; weights balance right and wrong.

    Probes of one label that share a cell become their mean. Again and again the cell that loses most by that (its weight times
    the variance along its widest coordinate) is cut at its mean. A smooth loss loses its curvature times that variance:
    3600 face probes in 384 cells moved the trained P(correct) by 0.004 on average, another random start by 0.010.

    >>> points, target, weight = merge_points(np.array([[0.0], [0.2], [5.0], [1.0]]), np.array([True, True, True, False]), 3)
    >>> points.ravel().tolist(), target.tolist(), weight.round(3).tolist()
    ([0.1, 1.0, 5.0], [1.0, 0.0, 1.0], [0.333, 0.5, 0.167])
    """
    balance = np.where(correct, 0.5 / max(correct.sum(), 1), 0.5 / max((~correct).sum(), 1))
    if len(features) <= max_points:
        return features, correct.astype(np.float64), balance
    member = np.empty(len(features), dtype=np.int64)
    for number, rows in enumerate(_cut(features, correct, balance, max_points)):
        member[rows] = number
    count = np.bincount(member)
    means = np.column_stack([np.bincount(member, column) / count for column in features.T])
    return means, np.bincount(member, correct) / count, np.bincount(member, balance).astype(np.float64)


def _cut(features: Float64Array, correct: npt.NDArray[np.bool_], balance: Float64Array, max_points: int) -> list[Rows]:
    cells = [rows for rows in (np.flatnonzero(correct), np.flatnonzero(~correct)) if len(rows)]

    def loss(number: int) -> tuple[float, int]:
        rows = cells[number]
        # The least first is what a heap gives.
        return -float(features[rows].var(axis=0).max() * balance[rows].sum()), number

    heap = [loss(number) for number in range(len(cells))]
    heapify(heap)
    while len(cells) < max_points and heap and heap[0][0] < 0:
        _, number = heappop(heap)
        rows = cells[number]
        widest = features[rows, int(features[rows].var(axis=0).argmax())]
        low = widest <= widest.mean()
        if low.all():
            continue  # the mean of nearly equal numbers was rounded to the greatest of them
        cells[number] = rows[low]
        cells.append(rows[~low])
        heappush(heap, loss(number))
        heappush(heap, loss(len(cells) - 1))
    return cells
