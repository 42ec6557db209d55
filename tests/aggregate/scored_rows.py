"""Rows for the fixtures of the aggregate tests: checkpoints of one model, a score for each prompt. No tests."""

import random

PROMPTS = [f"p{n:02}" for n in range(30)]
FAILS = ("unreadable", "empty", None, 0.0, 10.0)


def scored(checkpoint, scores, **more):
    """One row for each prompt."""
    where = {"checkpoint": checkpoint, **more}
    return [where | {"prompt": p, "sample": p, "scores": {"q": score}} for p, score in zip(PROMPTS, scores, strict=False)]


def drawn(seed, *levels, n=30):
    """Checkpoints 0, 1, … whose scores spread around the levels."""
    draw = random.Random(seed)
    return [
        row
        for number, level in enumerate(levels)
        for row in scored(str(number), [round(min(10, max(0, draw.gauss(level, 1))), 2) for _ in range(n)])
    ]
