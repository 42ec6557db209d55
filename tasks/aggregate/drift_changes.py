"""When a series changed, and by how much: the most likely night of one step. Whether it changed at all is drift_limits.py."""

from dataclasses import dataclass

import numpy as np

from tasks.aggregate.drift_limits import Floats


@dataclass(frozen=True, slots=True)
class Change:
    """`index` is the first night after the step; `shift` the mean after it less the mean before."""

    index: int
    shift: float
    shift_se: float


def change(values: Floats, n_baseline: int, sd: float) -> Change:
    """The step that makes the nights most likely, behind the baseline, for normal nights of one variance.

    Both means unknown: Hinkley, Biometrika 57 (1970); as a follow-up to control charts Samuel, Pignatiello & Calvin, Quality
    Engineering 10 (1998). Of equally likely nights the first. `values` holds more than `n_baseline` nights.
    """
    sums = np.cumsum(values - values[:n_baseline].mean())
    before = np.arange(n_baseline, len(values))
    after = len(values) - before
    mean_before = sums[before - 1] / before
    mean_after = (sums[-1] - sums[before - 1]) / after
    weight = before * after / len(values)
    best = int(np.argmax(weight * (mean_after - mean_before) ** 2))
    shift = float(mean_after[best] - mean_before[best])
    return Change(int(before[best]), shift, sd * float(1 / np.sqrt(weight[best])))
