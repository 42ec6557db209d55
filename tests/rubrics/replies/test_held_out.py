"""Replies in wordings that no pattern was written for: how many are read as a careful person reads them, not one by one.

`is_fitted` ones were looked at once, and patterns widened for them; of the others none was. A share that falls is looked at.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from rubrics.loading import find_rubrics
from rubrics.replies.read import parse_reply

FILE = Path(__file__).parents[2] / "data" / "replies" / "held_out.jsonl"
LINES = [json.loads(line) for line in FILE.read_bytes().splitlines()]
# (kind, whether looked at) -> the least share that is read as a careful person reads it
LEAST = {
    ("saw_nothing", True): 0.95, ("taken_back", True): 0.93, ("other_scale", True): 0.90, ("benign", True): 0.98,
    ("saw_nothing", False): 0.75, ("taken_back", False): 0.75, ("other_scale", False): 0.75, ("benign", False): 1.0,
}  # fmt: skip


@pytest.fixture(scope="module")
def shares() -> dict[tuple[str, bool], float]:
    rubrics = find_rubrics(["alignment", "caption", "image_aspects"])
    n_all: Counter[tuple[str, bool]] = Counter()
    n_right: Counter[tuple[str, bool]] = Counter()
    for line in LINES:
        read = parse_reply(rubrics[line["rubric"]], line["raw"], {}).as_dict().get("error", "scores")
        n_all[line["kind"], line["is_fitted"]] += 1
        n_right[line["kind"], line["is_fitted"]] += read == line["careful"]
    return {key: n_right[key] / n_all[key] for key in n_all}


@pytest.mark.parametrize("key", LEAST, ids=lambda key: f"{key[0]}, {'looked at' if key[1] else 'held out'}")
def test_the_share_read_as_a_careful_person_does(shares: dict[tuple[str, bool], float], key: tuple[str, bool]) -> None:
    assert shares[key] >= LEAST[key]


def test_every_kind_has_a_floor(shares: dict[tuple[str, bool], float]) -> None:
    assert set(shares) == set(LEAST)
