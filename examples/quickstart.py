"""Enrol, calibrate, identify: the shortest complete use of holue, in a simulated world. Run: python examples/quickstart.py."""

import numpy as np

from holue import OpenSetRecognizer
from holue.datasets.simulated import simulate


def main() -> None:
    rng = np.random.default_rng(0)
    # Put your own arrays here: X (samples, dimension), y (subjects), and for strangers y = holue.UNKNOWN.
    known = simulate(concentration=120, rng=rng)
    others = simulate(concentration=120, first_subject=1000, rng=rng)

    recognizer = OpenSetRecognizer(target_fpir=0.05)
    recognizer.fit(known.gallery.X, known.gallery.y)
    recognizer.calibrate(
        others.probes.X, others.probes.y, others.probes.concentration, gallery=(others.gallery.X, others.gallery.y)
    )
    print(recognizer.operating_point_, end="\n\n")

    answers = recognizer.identify(known.probes.X, known.probes.concentration)
    right = answers.subject == known.probes.y
    print("truth    answer   uncertainty  reason")
    for row in (8, 401, 4, 6, 400):
        answer = answers[row]
        print(f"{known.probes.y[row]!s:8} {answer.subject!s:8} {answer.uncertainty:11.2f}  {answer.reason}")

    print(f"\n{right.mean():.0%} of {len(answers)} answers are right. The least certain tenth, next tenth, and so on:")
    least_certain_first = np.argsort(-answers.uncertainty, kind="stable")
    print("  ".join(f"{right[tenth].mean():.0%}" for tenth in np.array_split(least_certain_first, 10)))


if __name__ == "__main__":
    main()
