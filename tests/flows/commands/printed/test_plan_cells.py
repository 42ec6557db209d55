"""What `salon plan` says of the cells a run will have, before it is paid: held against what the run then publishes."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from demo.drawing import draw_png
from demo.painter import painted_scenes
from schemas.statuses.cells import Total
from tests.flows.flow_support import Said, cells_of

pytestmark = pytest.mark.slow

BENCHMARK = """\
name = "cells"
lake = "lake"
[[sources]]
name = "set"
reader = "manifest"
path = "m.jsonl"
model = "m"
[[rubrics]]
id = "{rubric}"
[[judges]]
model = "salon-demo-judge"
base_url = "{url}"
{more}
"""
NOWHERE = "http://127.0.0.1:1/v1"
Row = dict[str, Any]


def made(checkpoint: str, category: str | None, numbers: Iterable[int], **changes: object) -> list[Row]:
    """Rows of a checkpoint in a category, one for each number of a prompt."""
    return [{"checkpoint": checkpoint, "category": category, "number": number} | changes for number in numbers]


def write(folder: Path, rows: Sequence[Row], more: str = "", rubric: str = "alignment", url: str = NOWHERE) -> Path:
    """A benchmark file of these rows, each with a picture of its own and the prompt of its number, unless it says another."""
    scenes = list(painted_scenes(seed=1))
    prompts = list(dict.fromkeys(one.prompt for one in scenes))
    lines = []
    for place, row in enumerate(rows):
        picture = folder / f"{place}.png"
        picture.write_bytes(draw_png(scenes[place].scene))
        number = row.pop("number")
        lines.append(json.dumps({"image": picture.name, "prompt": prompts[number], "item_id": str(place)} | row))
    (folder / "m.jsonl").write_text("\n".join(lines))
    (folder / "b.toml").write_text(BENCHMARK.format(rubric=rubric, url=url, more=more))
    return folder / "b.toml"


def both(category: str | None, numbers: Iterable[int]) -> list[Row]:
    listed = list(numbers)
    return made("1", category, listed) + made("2", category, listed)


WELL = both("cats", range(10)) + both("dogs", range(10, 15))
LACKING = made("3", None, range(15), prompt=None)
REPEATED = [row | {"item_id": str(row["number"] % 4)} for row in both("cats", range(12))]
NEEDED = "5 needed for a rank (statistics.min_paired_prompts)"
DEAR = '[[judges]]\nname = "dear"\nmodel = "dear"\nbase_url = "http://127.0.0.1:1/v1"\nshare = {}'
SMALL_SHARE = "is asked under alignment about {} prompts, {} of them in category dogs"
RANK, AGREEMENT = "5 in each category needed for a rank", "10 in all needed for agreement"
LARGER = "with a larger share nothing is asked twice"
TOLD: dict[str, tuple[list[Row], str, str, list[str]]] = {
    "all is well": (WELL, "", "alignment", []),
    "one checkpoint of few prompts has nobody to be compared with": (made("1", "cats", range(3)), "", "alignment", []),
    "a folder without prompts beside the table of the same checkpoint": (
        WELL + made("3", "cats", range(10)) + made("3", "dogs", range(10, 15)) + LACKING,
        "",
        "alignment",
        [
            "15 of 60 samples are not asked under alignment: missing:prompt; the first: set, m.jsonl#46",
            "3 will be blocked under alignment: 50 % of 30 can be asked, 80 % needed (gate.min_coverage)",
            "1 and 2 will have no mean over categories under alignment: no sample without a category, which others have",
        ],
    ),
    "the floor of the file": (
        made("1", "cats", range(7)) + made("1", "cats", range(7, 10), prompt=None),
        "[gate]\nmin_coverage = 0.7",
        "alignment",
        ["3 of 10 samples are not asked under alignment: missing:prompt; the first: set, m.jsonl#8"],
    ),
    "enough in all, and none of a category": (
        both("cats", range(20)) + made("1", "dogs", [20, 21], prompt=None),
        "",
        "alignment",
        [
            "2 of 42 samples are not asked under alignment: missing:prompt; the first: set, m.jsonl#41",
            "1 will be blocked under alignment: none of 2 in category dogs can be asked",
            "2 will have no mean over categories under alignment: no sample of category dogs, which others have",
        ],
    ),
    "rows that are unusable are listed above, what they block is not": (
        REPEATED,
        "",
        "alignment",
        [
            "1 and 2 will be blocked under alignment: 33 % of 12 can be asked, 80 % needed (gate.min_coverage)",
            f"4 prompts in all under alignment, {NEEDED}",
        ],
    ),
    "categories of one's own under a rubric that has others": (
        both("colors", range(5)) + both("[red]portrait", range(5, 10)),
        "",
        "composition",
        [
            "10 of 20 samples are not asked under composition: no_prompt (category '[red]portrait'); the first: set, m.jsonl#11",
            "1 and 2 will be blocked under composition: 50 % of 10 can be asked, 80 % needed (gate.min_coverage)",
        ],
    ),
    "a mistyped category": (
        both("cats", range(10)) + both("Catz", [10]),
        "",
        "alignment",
        [f"category Catz has 1 prompt under alignment, {NEEDED}; Catz: did you mean cats?"],
    ),
    "small categories like no other": (
        both("cats", range(10)) + both("food", [10, 11]) + both("text | {0}", [12]),
        "",
        "alignment",
        [f"category text | {{0}} has 1 prompt and food has 2 prompts under alignment, {NEEDED}"],
    ),
    "what is one prompt, where it is not the prompt": (
        [row for one in "12" for row in made(one, None, range(2), caption_type="brief", reference="a", output="b")],
        "",
        "caption",
        [f"4 prompts in all under caption, {NEEDED}; what has the same image is one prompt (the rubric's unit)"],
    ),
    "fewer are needed": (
        both("cats", range(10)) + both("food", [10, 11]),
        "[statistics]\nmin_paired_prompts = 2",
        "alignment",
        [],
    ),
    "a share too small for a category, of the only judge": (
        both("cats", range(25)) + both("dogs", range(25, 30)),
        "share = 0.6",
        "alignment",
        [f"judge salon-demo-judge, share = 0.6, {SMALL_SHARE.format(19, 2)}: {RANK}; {LARGER}"],
    ),
    "a share too small for a category, beside a judge of all": (
        both("cats", range(25)) + both("dogs", range(25, 30)),
        DEAR.format(0.6),
        "alignment",
        [f"judge dear, share = 0.6, {SMALL_SHARE.format(19, 2)}: {RANK}; {LARGER}"],
    ),
    "a share too small for agreement, of a category too small for all": (
        both("cats", range(25)) + both("dogs", range(25, 28)),
        DEAR.format(0.3),
        "alignment",
        [
            (
                "1 and 2 will have no mean over categories under alignment, judged by dear: "
                "no sample of category dogs, which others have"
            ),
            f"category dogs has 3 prompts under alignment, {NEEDED}",
            f"judge dear, share = 0.3, is asked under alignment about 9 prompts: {AGREEMENT}; {LARGER}",
        ],
    ),
    "a share that is enough": (both("cats", range(40)), DEAR.format(0.6), "alignment", []),
}


@pytest.mark.parametrize(("rows", "more", "rubric", "sentences"), TOLD.values(), ids=TOLD.keys())
def test_what_is_known_of_the_cells_is_told(
    rows: list[Row], more: str, rubric: str, sentences: list[str], tmp_path: Path, salon: Callable[..., Said]
) -> None:
    file = write(tmp_path, [dict(row) for row in rows], more, rubric)
    told = salon("plan", file, "--json")
    assert told.code == 0, told.err
    assert json.loads(told.out)["warnings"] == sentences
    printed = " ".join(salon("plan", file).out.split())
    assert [one for one in sentences if one not in printed] == []


def test_the_categories_are_listed_with_their_prompts_the_smallest_first(tmp_path: Path, salon: Callable[..., Said]) -> None:
    rows = both("b", range(5)) + both("a", range(5, 10)) + both(None, range(10, 12)) + both("[red]c", range(12, 20))
    file = write(tmp_path, rows)
    assert "categories 4, by prompts: (no category) 2, a 5, b 5, [red]c 8 " in " ".join(salon("plan", file).out.split())
    sizes = [(Total.UNNAMED.value, 2), ("a", 5), ("b", 5), ("[red]c", 8)]
    expected = [
        {"rubric_id": "alignment", "judge_model": "salon-demo-judge", "category": name, "n_prompts": n} for name, n in sizes
    ]
    assert json.loads(salon("plan", file, "--json").out)["categories"] == expected
    many = [row for number in range(12) for row in both(f"c{number:02}", [number])] + both("large", range(12, 20))
    said = " ".join(salon("plan", write(tmp_path, many)).out.split())
    assert "categories 13, by prompts: c00 1, c01 1, c02 1, c03 1, c04 1, c05 1, c06 1, c07 1 … the largest large 8" in said
    assert "category c00 has 1 prompt, c01 has 1 prompt, c02 has 1 prompt, c03 has 1 prompt, c04 has 1 prompt and 7 more" in said
    assert "categories" not in salon("plan", write(tmp_path, both("one", range(6)))).out


def test_rubrics_that_have_other_categories_are_told_apart(tmp_path: Path, salon: Callable[..., Said]) -> None:
    rows = both("colors", range(5)) + both("counting", range(5, 10)) + both("food", range(10, 15))
    file = write(tmp_path, rows)
    file.write_text(file.read_text().replace("[[judges]]", '[[rubrics]]\nid = "composition"\n[[judges]]', 1))
    said = " ".join(salon("plan", file).out.split())
    assert (
        "categories under alignment 3, by prompts: colors 5, counting 5, food 5 categories under composition 2, by prompts"
        in said
    )


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("a folder without prompts beside the table of the same checkpoint", {"1": "null", "2": "null", "3": "blocked"}),
        ("enough in all, and none of a category", {"1": "blocked", "2": "null"}),
    ],
)
def test_what_is_foretold_is_published(
    name: str, published: dict[str, str], tmp_path: Path, salon: Callable[..., Said], judge_url: str
) -> None:
    rows, more, rubric, _ = TOLD[name]
    assert (
        salon("run", write(tmp_path, [dict(row) for row in rows], more, rubric, judge_url), "--run-date", "2026-01-02").code == 1
    )
    totals = cells_of(tmp_path / "lake").filter(category=Total.MACRO.value, metric="mean", estimand="prompts_like_these")
    assert dict(totals.select("checkpoint", "status").iter_rows()) == published
    assert set(totals.filter(status="null")["reason"]) == {"category_missing"}
