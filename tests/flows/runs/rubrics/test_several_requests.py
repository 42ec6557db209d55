"""A rubric of two fixed requests about each sample, from the source to the published figures over both."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rubrics.linting import lint
from rubrics.loading import load_rubric
from schemas.benchmark.judges import Judge
from schemas.errors import RubricError
from schemas.records import SAMPLE_TEXTS
from schemas.tables.stored import JUDGEMENTS, REQUESTS, SCORES
from tasks.lake.reading import Lake
from tasks.plan.questions import Questions
from tests.flows.flow_support import Said
from tests.flows.runs.rubrics.own_rubric import own_rubric, shown_items
from tests.support.painting import paint

WHOLE = """\
id = "both"
version = "1"
title = "An edit, by two requests"
source = "written for the tests"
requests = ["done", "natural"]
unit = ["instruction", "source"]
[[figures]]
key = "done_and_kept"
form = "minimum"
of = ["done", "kept"]
[[figures]]
key = "overall"
form = "sqrt_product"
of = ["done_and_kept", "natural"]
"""
DONE = """\
id = "done"
version = "1"
title = "t"
source = "s"
prompt = "prompt.txt"
reply = "json"
needs = ["instruction"]
pictures = ["source", "image"]
unit = ["instruction"]
scale = { min = 0, max = 10 }
[[dimensions]]
key = "done"
[[dimensions]]
key = "kept"
[[messages]]
role = "user"
parts = [{ kind = "image", value = "source" }, { kind = "image" }, { kind = "template" }]
"""
NATURAL = """\
id = "natural"
version = "1"
title = "t"
source = "s"
prompt = "prompt.txt"
reply = "label"
needs = ["image"]
unit = ["image"]
scale = { min = 0, max = 10 }
[[dimensions]]
key = "natural"
[[messages]]
role = "user"
parts = [{ kind = "image" }, { kind = "prompt" }]
"""
BENCHMARK = own_rubric(
    "edits", "both", 'model = "editor"\npictures = {{ image = "edited", source = "input" }}', "[gate]\nmin_coverage = 0.3"
)
PROMPTS = {"done": "Was it done: {instruction}? JSON: done, kept.", "natural": "How natural is it? natural: n"}
REPLIES = {"red": '{"done": 8, "kept": 4}', "blue": '{"done": 9, "kept": 9}', "green": "I cannot say."}


def write_rubric(folder: Path, *changes: tuple[str, str]) -> Path:
    for name, declared in (("", WHOLE), ("done", DONE), ("natural", NATURAL)):
        (folder / "both" / name).mkdir(parents=True, exist_ok=True)
        text = declared
        for old, new in changes:
            text = text.replace(old, new)
        (folder / "both" / name / "rubric.toml").write_text(text)
        if name:
            (folder / "both" / name / "prompt.txt").write_text(PROMPTS[name])
    return folder / "both"


def write_edits(folder: Path, provider: Any) -> None:
    """Three edits that are judged, and one without its source; what the judge answers."""
    paint(folder)
    pictures = [str(path.relative_to(folder)) for path in sorted((folder / "scenes").rglob("*.png"))]
    rows: list[dict[str, Any]] = [
        {"edited": pictures[place], "input": pictures[3], "instruction": f"make it {colour}"}
        for place, colour in enumerate(REPLIES)
    ]
    rows.append({"edited": pictures[4], "input": None, "instruction": "make it red"})
    (folder / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "b.toml").write_text(BENCHMARK.format(url=provider.url))
    provider.answers = lambda texts: (
        "natural: 9" if "natural" in texts else next(reply for colour, reply in REPLIES.items() if colour in texts)
    )


def means_of(lake: Path) -> tuple[Path, dict[str, dict[str, Any]]]:
    """The publication's folder, and by dimension its mean over all images."""
    (folder,) = (path for path in (lake / "publish/v1/edits").iterdir() if path.is_dir())
    cells = pl.read_parquet(folder / "benchmark_long.parquet").filter(
        category="__micro__", estimand="prompts_like_these", metric="mean"
    )
    return folder, {row["dimension"]: row for row in cells.to_dicts()}


TURNED = (
    ('key = "natural"\n[[messages]]', 'key = "natural"\nbetter = "lower"\n[[messages]]'),
    (
        '[[figures]]\nkey = "overall"',
        '[[figures]]\nkey = "unnatural"\nform = "turned"\nof = ["natural"]\n[[figures]]\nkey = "overall"',
    ),
    ('["done_and_kept", "natural"]', '["done_and_kept", "unnatural"]'),
)


def test_a_figure_turns_what_is_better_when_lower_in_one_of_the_requests(
    tmp_path: Path, provider: Any, salon: Callable[..., Said]
) -> None:
    write_rubric(tmp_path / "mine", *TURNED)
    write_edits(tmp_path, provider)
    said = salon("run", "b.toml", "--run-date", "2026-01-02")
    assert said.code == 0, said.err
    folder, table = means_of(tmp_path / "lake")
    assert {key: row["estimate"] for key, row in table.items()} == {"done_and_kept": 6.5, "unnatural": 1.0, "overall": 2.5}
    assert salon("verify", folder, "--file", "b.toml").code == 0
    assert "turned of natural: 9" in salon("explain", table["unnatural"]["cell_id"]).out


def test_figures_are_made_over_the_answers_to_both(tmp_path: Path, provider: Any, salon: Callable[..., Said]) -> None:
    write_rubric(tmp_path / "mine")
    write_edits(tmp_path, provider)
    said = salon("run", "b.toml", "--run-date", "2026-01-02")
    assert said.code == 0, said.err

    lake = Lake(tmp_path / "lake")
    ids = {table: next((lake.root / "complete" / table.name).iterdir()).stem for table in (JUDGEMENTS, REQUESTS, SCORES)}
    judgements, requests, scores = (lake.scan(table, name).collect() for table, name in ids.items())
    assert judgements.select("status", "reason").rows() == [("planned", None)] * 3 + [("missing_column", "missing:source")]
    assert sorted(requests["variant"].to_list()) == ["request:done"] * 3 + ["request:natural"] * 3
    n_shown = {row["variant"]: row["messages_json"].count('"type":"image"') for row in requests.to_dicts()}
    assert n_shown == {"request:done": 2, "request:natural": 1}
    found = judgements.join(scores, on="request_key", how="left", maintain_order="left").filter(pl.col("dimension").is_not_null())
    by = {key: mine["score"].to_list() for (key,), mine in found.group_by("dimension")}
    assert by == {"done_and_kept": [4.0, 9.0, None], "overall": [6.0, 9.0, None]}
    folder, table = means_of(lake.root)
    assert {key: (row["estimate"], row["n_judgements"], row["n_failed"]) for key, row in table.items()} == {
        "done_and_kept": (6.5, 4, 2), "overall": (7.5, 4, 2),
    }  # fmt: skip
    assert salon("verify", folder, "--file", "b.toml").code == 0
    explained = salon("explain", table["overall"]["cell_id"]).out
    assert "sqrt_product of done_and_kept: 4, natural: 9" in explained
    assert "does not agree" not in explained
    page = (folder / "pictures-001.html").read_text()
    assert ["done done 8 kept 4 {&#34;done&#34;: 8, &#34;kept&#34;: 4}", "natural natural 9 natural: 9"] in shown_items(page)
    n_asked = len(provider.seen)
    assert salon("run", "b.toml", "--run-date", "2026-01-03").code == 0
    assert len(provider.seen) == n_asked, "nothing is asked again"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"done", "natural"]', '"done"]'), "is made of 'natural', which is neither a dimension nor an earlier figure"),
        (('requests = ["done", "natural"]', 'requests = ["done", "nothing"]'), "does not exist"),
        (('key = "natural"', 'key = "done"'), "two requests have the dimension 'done'"),
        (('unit = ["instruction", "source"]', 'unit = ["model"]'), "unit: 'model' identifies a sample or its model"),
        (('requests = ["done", "natural"]', 'reply = "json"\nrequests = ["done", "natural"]'), "reply belongs in the folder"),
        (
            ('key = "kept"', 'key = "kept"\n[[dimensions]]\nkey = "harm"\nbetter = "lower"'),
            r"both/rubric\.toml: dimension 'harm' has better = 'lower'.*; add \[\[figures\]\] with a new key, form = 'turned'",
        ),
        (('reply = "label"', 'reply = "label"\ndispatch = "category"'), "variants and dispatch go together"),
    ],
    ids=["a figure of nothing", "no such folder", "one key twice", "a unit that is none", "a reply at the top",
         "lower in no figure", "by category"],
)  # fmt: skip
def test_requests_that_cannot_be_meant(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    with pytest.raises(RubricError, match=message):
        load_rubric(write_rubric(tmp_path, change))


@pytest.mark.parametrize(
    ("what", "one", "other"), [("words", '["red"]', '["red", "blue"]'), ("value_maps", '{ r = "red" }', '{ r = "rose" }')]
)
def test_two_requests_have_the_same_words_for_a_column(tmp_path: Path, what: str, one: str, other: str) -> None:
    """The later ones were silently the whole rubric's."""
    rubric = write_rubric(tmp_path)
    for name, words in (("done", one), ("natural", other)):
        with (rubric / name / "rubric.toml").open("a") as declared:
            declared.write(f"[{what}]\ncategory = {words}\n")
    with pytest.raises(RubricError, match=f"requests done and natural have different {what} of 'category'; give both the same"):
        load_rubric(rubric)


def test_each_request_but_the_first_has_its_name_in_its_key(tmp_path: Path) -> None:
    """Texts may make one sample's request what another's is, and each is read by its own dimensions."""
    rubric = write_rubric(tmp_path)
    (rubric / "natural/rubric.toml").write_text(DONE.replace('"done"', '"natural"').replace('"kept"', '"x"'))
    (rubric / "natural/prompt.txt").write_text(PROMPTS["done"])
    questions = Questions(load_rubric(rubric), Judge(model="judge"))
    texts = (*(None for _ in SAMPLE_TEXTS), '{"instruction": "make it red"}')
    parts = questions.of("ok", texts, ("image", "source")).parts
    assert [part.facts for part in parts] == [b"{}", b'{"request":"request:natural"}']
    assert len({part.templates for part in parts}) == 2


def test_requests_that_the_same_picture_makes_one_are_each_asked_and_read(
    tmp_path: Path, provider: Any, salon: Callable[..., Said]
) -> None:
    """One asks of the source what the other asks of the image: an edit that changed nothing, and one made of an edit."""
    natural = NATURAL.replace('"label"', '"json"')
    done = natural.replace('"natural"', '"done"').replace(
        'needs = ["image"]\nunit = ["image"]', 'pictures = ["source"]\nunit = ["source"]'
    )
    done = done.replace('{ kind = "image" }', '{ kind = "image", value = "source" }')
    whole = WHOLE.replace('"instruction", "source"', '"source"').replace('["done", "kept"]', '["done"]')
    rubric = write_rubric(tmp_path / "mine", (WHOLE, whole), (DONE, done), (NATURAL, natural))
    for name in PROMPTS:
        (rubric / name / "prompt.txt").write_text('How natural is it? JSON: "done" and "natural".')
    write_edits(tmp_path, provider)
    pictures = [json.loads(line)["edited"] for line in (tmp_path / "m.jsonl").read_text().splitlines()]
    rows = [{"edited": pictures[edited], "input": pictures[source]} for edited, source in ((0, 1), (1, 2), (3, 3))]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    provider.answers = lambda _: '{"done": 8, "natural": 2}'
    said = salon("run", "b.toml", "--run-date", "2026-01-02")
    assert said.code == 0, said.err
    assert {key: row["estimate"] for key, row in means_of(tmp_path / "lake")[1].items()} == {"done_and_kept": 8.0, "overall": 4.0}


def test_each_request_is_linted_and_changes_the_digest(tmp_path: Path) -> None:
    good = load_rubric(write_rubric(tmp_path / "a"))
    assert lint(good) == []
    other = load_rubric(write_rubric(tmp_path / "b", ('"source" }, { kind = "image" }', '"source" }')))
    assert [problem for problem in lint(other) if problem.startswith("request done: ")]
    assert good.digest != other.digest
