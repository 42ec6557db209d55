"""Kinds of items: their mean is over items, whoever is asked twice, and a picture that is broken loses each item it has."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.flows.flow_support import Said, cells_of
from tests.flows.runs.rubrics.own_rubric import own_rubric, write_rubric
from tests.flows.runs.rubrics.test_items import PROMPT, RUBRIC
from tests.support.painting import paint

ONCE_AND_TWICE = '[[judges]]\nmodel = "judge-2026-02-02"\nrepeats = 2\nbase_url = "{url}"\n[gate]\nmin_coverage = 0.1\n'


def items(kind: str, n: int, word: str) -> list[dict[str, str]]:
    return [{"id": f"{kind}{place}", "question": f"{word} {kind} {place}?", "kind": kind} for place in range(n)]


SAMPLES = {
    "nine yes": items("thing", 9, "yes") + items("colour", 1, "yes"),
    "one no": items("thing", 1, "no"),
    "broken, of three things": items("thing", 3, "yes"),
    "broken, of two colours": items("colour", 2, "yes"),
}
"""Each picture is its own prompt, and the kind `sign` is nobody's."""


@pytest.mark.parametrize(("asked", "reply"), [("each", "answer"), ("together", "lines")])
def test_a_kind_is_counted_by_its_items_for_every_judge(
    asked: str, reply: str, tmp_path: Path, provider: Any, salon: Callable[..., Said]
) -> None:
    write_rubric(tmp_path, asked, RUBRIC.format(asked=asked, reply=reply), PROMPT)
    paint(tmp_path)
    pictures = sorted((tmp_path / "scenes").rglob("*.png"))
    rows = []
    for (name, listed), picture in zip(SAMPLES.items(), pictures, strict=False):
        if name.startswith("broken"):
            picture.write_bytes(b"no picture")
        rows.append({"image": str(picture.relative_to(tmp_path)), "items": listed})
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "b.toml").write_text(own_rubric("kinds", asked, 'model = "painter"', ONCE_AND_TWICE).format(url=provider.url))
    provider.answers = lambda texts: "\n".join(line.split()[0] for line in texts.splitlines()[1:])
    said = salon("run", "b.toml", "--run-date", "2026-01-02")
    assert said.code == 0, said.err
    cells = cells_of(tmp_path / "lake").filter(category="__micro__", estimand="prompts_like_these", metric="mean")
    for judge, n_asks in (("judge-2026-01-01", 1), ("judge-2026-02-02", 2)):
        told = {row["dimension"]: row for row in cells.filter(judge_model=judge).to_dicts()}
        assert told["things"]["estimate"] == pytest.approx(9 / 10), "over items: the mean over samples is a half"
        counts = {name: tuple(told[name][count] for count in ("n_images", "n_judgements", "n_failed")) for name in told}
        assert counts == {
            "things": (10, 13 * n_asks, 3 * n_asks),
            "colours": (1, 3 * n_asks, 2 * n_asks),
            "score": (2, 4 * n_asks, 2 * n_asks),
        }
        assert (told["things"]["bound_low"], told["things"]["bound_high"]) == pytest.approx((9 / 13, 12 / 13))
        for row in told.values():
            explained = salon("explain", row["cell_id"])
            assert (explained.code, "not agree" in explained.out) == (0, False), explained.out
    (publication,) = (path for path in (tmp_path / "lake" / "publish" / "v1" / "kinds").iterdir() if path.is_dir())
    verified = salon("verify", publication, "--file", "b.toml")
    assert verified.code == 0, verified.out
