"""Scores asked look by look: a checkpoint is left once its comparisons are decided, and what is left is not missing."""

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from PIL import Image

from schemas.benchmark.file import load_benchmark
from schemas.tables.published import BENCHMARK_LONG, COMPARISONS
from schemas.tables.stored import JUDGEMENTS, REPLIES, REQUESTS, SAMPLES
from tasks.publish.reading import current
from tests.flows.flow_support import Said, runs_of
from tests.flows.runs.judges.test_without_a_network import answered, lines_of, write
from tests.support.painting import paint

FILE = """\
name = "looks"
[[sources]]
name = "scenes"
reader = "geneval"
path = "scenes/{{model}}/{{checkpoint}}"
[[rubrics]]
id = "composition"
[[judges]]
model = "salon-demo-judge"
base_url = "{url}"
parameters = {{ temperature = 0, max_tokens = 600 }}
price = {{ input_usd_per_million = 1, output_usd_per_million = 4 }}
[nightly]
baseline = "demo-painter/{baseline}"
[statistics]
min_paired_prompts = 2
[statistics.stopping]
{stopping}
"""
STOPPING = 'looks = [0.25, 0.5, 0.75, 1.0]\ndecide = ["baseline"]\nfutility = 0.4'


@pytest.fixture
def world(tmp_path: Path, judge_url: str) -> Callable[..., Path]:
    """A benchmark file beside the painter's scenes."""
    paint(tmp_path)

    def write(stopping: str = STOPPING, baseline: str = "step-1000") -> Path:
        (tmp_path / "b.toml").write_text(FILE.format(url=judge_url, stopping=stopping, baseline=baseline))
        return tmp_path

    return write


def table(folder: Path, name: str) -> pl.DataFrame:
    found = pl.read_parquet(current(folder / "lake").folder / f"{name}.parquet")
    return found.filter(pl.col("category") == "__macro__", pl.col("dimension") == "overall_score")


def test_a_checkpoint_is_left_once_decided_and_a_run_cut_short_decides_the_same(
    world: Callable[..., Path], salon: Callable[..., Said]
) -> None:
    folder = world()
    cut = salon("run", "b.toml", "--run-date", "2026-01-01", "--max-usd", "0.2")
    assert (cut.code, "is reached" in cut.err, "after round 2" in cut.err) == (1, True, False), cut.err
    cells = table(folder, BENCHMARK_LONG.name).filter(estimand="prompts_like_these")
    assert cells["look"].to_list() == [2] * 3, "nobody was left, and nobody asked to the end"
    assert "blocked" in set(cells["status"]), "whose requests the money did not reach is by chance: one may be over the floor"
    assert salon("gate").code == 1
    said = salon("run", "b.toml", "--run-date", "2026-01-02")
    assert said.code == 0, said.err
    assert "after round 3 of 4: 1 of 3 checkpoints need no more prompts" in " ".join(said.err.split())
    cells = table(folder, BENCHMARK_LONG.name).filter(estimand="prompts_like_these").sort("checkpoint")
    assert cells.select("checkpoint", "look", "n_looks").rows() == [("step-1000", 4, 4), ("step-2000", 4, 4), ("step-3000", 3, 4)]
    assert cells["n_failed"].to_list() == [0, 0, 0], "what was left is no failure"
    assert cells["n_prompts"][2] < 60
    held = table(folder, COMPARISONS.name).filter(comparison="baseline").sort("checkpoint_a")
    assert held.select("checkpoint_a", "verdict", "look").rows() == [("step-2000", "open", 4), ("step-3000", "higher", 3)]
    assert "step-3000: asked up to look 3 of 4" in said.out
    assert salon("run", "b.toml", "--run-date", "2026-01-03").code == 0
    first, rest, again = runs_of(folder / "lake").sort("started_at")["n_asked"]
    assert first > 0
    assert (first + rest, again) == (int(cells["n_judgements"].sum()), 0)
    verified = salon("verify", current(folder / "lake").folder, "--file", "b.toml")
    assert verified.code == 0, verified.out
    assert salon("export", "--to", "bundle", "--out", "sent", "--with-pictures").code == 0
    sent = salon("verify", "sent")
    assert (sent.code, "reply       360 of 360 replies derived again, all the same" in sent.out) == (0, True), sent.out

    world("")
    assert salon("run", "b.toml", "--run-date", "2026-01-04").code == 0
    assert runs_of(folder / "lake").sort("started_at")["n_asked"][3] == 360 - first - rest, "the rest, and no reply twice"
    world()
    counted = salon("run", "b.toml", "--run-date", "2026-01-05").out
    assert "360 stored already, 0 sent" in counted, "also what it would not ask again"


def test_a_look_that_lacks_a_category_leaves_nobody(world: Callable[..., Path], salon: Callable[..., Said]) -> None:
    """As above, but all prompts of one category stand behind the last look but one: nothing is decided before it."""
    folder = world()
    assert salon("plan", "b.toml").code == 0
    planned = pl.concat(pl.read_parquet(path) for path in (folder / "lake" / JUDGEMENTS.name).glob("**/*.parquet"))
    samples = pl.concat(pl.read_parquet(path) for path in (folder / "lake" / SAMPLES.name).glob("**/*.parquet"))
    late = planned.filter(first_look=4).group_by("category").agg(n=pl.col("prompt_id").n_unique()).filter(pl.col("n") > 1)
    category = late["category"].sort()[0]
    early = planned.filter(pl.col("first_look") < 4, category=category)
    for item in samples.join(early, on="sample_id", how="semi")["item_id"].unique():
        for scene in (folder / "scenes" / "demo-painter").glob(f"*/{item.split('/')[0]}"):
            shutil.rmtree(scene, ignore_errors=True)
    said = salon("run", "b.toml", "--run-date", "2026-01-02")
    assert said.code == 0, said.err
    assert "after round 3 of 4: 0 of 3 checkpoints need no more prompts" in " ".join(said.err.split())
    cells = table(folder, BENCHMARK_LONG.name).filter(estimand="prompts_like_these")
    assert cells.select("look", "status").rows() == [(4, "ok")] * 3
    held = table(folder, COMPARISONS.name).filter(comparison="baseline").sort("checkpoint_a")
    assert held["verdict"].to_list() == ["open", "higher"]


@pytest.mark.parametrize("n_failed", [0, 2], ids=["all answered", "two of them never"])
def test_by_files_it_is_asked_look_by_look(
    world: Callable[..., Path], salon: Callable[..., Said], judge_url: str, n_failed: int
) -> None:
    """What fails is asked again beside each later look, and holds none back."""
    folder, n_lines, failing = world(), list[int](), dict[str, None]()
    while len(n_lines) < 4 and "next" in (said := salon("export", "b.toml", "--batch-files", "asked")).out:
        assert f"round {len(n_lines) + 1} of 4" in said.err
        lines = lines_of(folder / "asked")
        failing = failing or dict.fromkeys(line["custom_id"] for line in lines[:n_failed])
        down = {"response": {"status_code": 500, "body": {}}, "error": None}
        said_of = [
            down | {"custom_id": one["custom_id"]} if one["custom_id"] in failing else answered(judge_url, one) for one in lines
        ]
        results = write(folder / "out" / "r.jsonl", said_of)
        imported = salon("import", "b.toml", "--batch-results", results, "--run-date", f"2026-01-0{1 + len(n_lines)}")
        assert imported.code in (0, 1), imported.err
        shutil.rmtree(folder / "asked")
        n_lines.append(len(lines))
    cells = table(folder, BENCHMARK_LONG.name).filter(estimand="prompts_like_these").sort("checkpoint")
    assert cells.select("checkpoint", "look", "n_looks").rows() == [("step-1000", 4, 4), ("step-2000", 4, 4), ("step-3000", 3, 4)]
    assert sum(n_lines) - 3 * n_failed == int(cells["n_judgements"].sum()), "as online"
    assert int(cells["n_failed"].sum()) == n_failed


def test_an_exam_takes_no_money_from_looks(world: Callable[..., Path], salon: Callable[..., Said]) -> None:
    folder = world(STOPPING + "\n[exam]\nshare = 0.1")
    assert "is reached" in salon("run", "b.toml", "--run-date", "2026-01-01", "--max-usd", "0.1").err
    assert replies_of_twins(folder / "lake") == 0
    assert salon("run", "b.toml", "--run-date", "2026-01-02").code == 0
    assert 0 < replies_of_twins(folder / "lake") <= 36  # a tenth of 360


def replies_of_twins(lake: Path) -> int:
    asked = pl.concat(pl.read_parquet(path) for path in (lake / JUDGEMENTS.name).glob("**/*.parquet")).filter(occasion="exam")
    replies = pl.concat(pl.read_parquet(path) for path in (lake / REPLIES.name).glob("**/*.parquet"))
    mine = replies.filter(pl.col("reply_text").is_not_null(), pl.col("request_key").is_in(asked["request_key"].to_list()))
    return mine["request_key"].n_unique()


def test_what_an_open_checkpoint_asks_is_asked_where_it_stands_in_a_part_of_one_that_is_left(
    world: Callable[..., Path], salon: Callable[..., Said]
) -> None:
    """An eighth of step-2000's pictures are step-1000's: their questions stand in parts of step-1000, which are asked whole."""
    folder = world(baseline="step-3000")
    scenes = folder / "scenes" / "demo-painter"
    for picture in sorted(scenes.glob("step-1000/**/*.png"))[::8]:
        shutil.copyfile(picture, scenes / "step-2000" / picture.relative_to(scenes / "step-1000"))
    said = salon("run", "b.toml", "--run-date", "2026-01-02")
    assert said.code == 0, said.err
    cells = table(folder, BENCHMARK_LONG.name).filter(estimand="prompts_like_these").sort("checkpoint")
    assert cells["n_failed"].to_list() == [0, 0, 0]
    assert "after round 3 of 4: 1 of 3" in " ".join(said.err.split()), "step-1000 is left by its own comparison"
    requests = pl.concat([pl.read_parquet(path) for path in (folder / "lake" / REQUESTS.name).glob("**/*.parquet")])
    assert requests["request_key"].is_unique().all()


def test_a_checkpoint_that_was_left_has_no_scores_of_pictures_that_another_shares_with_it(
    world: Callable[..., Path], salon: Callable[..., Said]
) -> None:
    """Of the last look's pictures of step-3000, which is left before it, two thirds are those of step-2000, which is asked on."""
    folder = world()
    scenes = folder / "scenes" / "demo-painter"
    assert salon("plan", "b.toml").code == 0
    planned = pl.concat(pl.read_parquet(path) for path in (folder / "lake" / JUDGEMENTS.name).glob("**/*.parquet"))
    samples = pl.concat(pl.read_parquet(path) for path in (folder / "lake" / SAMPLES.name).glob("**/*.parquet"))
    late = samples.join(planned.filter(first_look=4, checkpoint="step-3000"), on="sample_id", how="semi")
    of_late = sorted({item.split("/")[0] for item in late["item_id"]})
    for scene in of_late[: len(of_late) * 2 // 3]:
        shutil.rmtree(scenes / "step-3000" / scene)
        shutil.copytree(scenes / "step-2000" / scene, scenes / "step-3000" / scene)
    said = salon("run", "b.toml", "--run-date", "2026-01-02")
    assert said.code == 0, said.err
    assert "after round 3 of 4: 1 of 3 checkpoints need no more prompts" in " ".join(said.err.split())
    cells = table(folder, BENCHMARK_LONG.name).filter(estimand="prompts_like_these").sort("checkpoint")
    assert cells.select("look", "n_failed").rows() == [(4, 0), (4, 0), (3, 0)]
    assert cells["n_judgements"].sum() == runs_of(folder / "lake")["n_asked"].sum()
    verified = salon("verify", current(folder / "lake").folder, "--file", "b.toml")
    assert verified.code == 0, verified.out


@pytest.mark.parametrize(
    ("stopping", "told"),
    [
        ("looks = [0.5]", "give two to ten increasing shares, above 0 and up to 1"),
        ("looks = [0.5, 0.5, 1.0]", "give two to ten increasing shares, above 0 and up to 1"),
        ("looks = [0.5, 0.9]", "give two to ten increasing shares, above 0 and up to 1"),
        ('looks = [0.5, 1.0]\ndecide = ["all"]', "'baseline', 'predecessor' or 'each_other'"),
        ("futility = 0.9", "less than 0.5"),
    ],
    ids=["one", "equal", "not to the whole", "unknown", "hasty"],
)
def test_looks_that_make_no_sense_are_refused_with_their_line(
    stopping: str, told: str, world: Callable[..., Path], salon: Callable[..., Said]
) -> None:
    world(stopping)
    said = salon("plan", "b.toml")
    assert said.code == 2
    assert told in said.err
    assert "b.toml, line" in said.err


def test_what_looks_spared_is_missing_in_no_later_night_and_bought_by_no_backfill(
    world: Callable[..., Path], salon: Callable[..., Said]
) -> None:
    """The third checkpoint, which looks left early, is done: the fourth is held against it, and a backfill asks nothing."""
    folder = world()
    assert salon("run", "b.toml", "--run-date", "2026-01-02").code == 0
    n_asked = runs_of(folder / "lake")["n_asked"].sum()
    assert n_asked < 360
    listed = json.loads(salon("backfill", "b.toml", "--list", "--json").out)["partitions"]
    assert {(one["state"], one["n_left"]) for one in listed} == {("done", 0)}
    assert sum(one["n_requests"] for one in listed) == n_asked
    backfill = salon("backfill", "b.toml", "--all", "--run-date", "2026-01-03")
    assert (backfill.code, runs_of(folder / "lake")["n_asked"].sum()) == (0, n_asked), backfill.err
    shutil.copytree(folder / "scenes/demo-painter/step-1000", folder / "scenes/demo-painter/step-500")
    for path in (folder / "scenes/demo-painter/step-500").glob("**/*.png"):
        with Image.open(path) as picture:
            picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(path)
    due = load_benchmark(folder / "b.toml").nightly.newest_due(datetime.now(UTC)).date()
    backfill = salon("backfill", "b.toml", "--all", "--run-date", f"{due}")
    assert f"{n_asked} stored already, 120 sent" in backfill.out, "what a look left unasked is not stored"
    ran = runs_of(folder / "lake").sort("started_at").row(-1, named=True)
    assert (ran["n_requests"], ran["n_cached"], ran["n_asked"]) == (n_asked + 120, n_asked, 120)
    shutil.copytree(folder / "scenes/demo-painter/step-2000", folder / "scenes/demo-painter/step-4000")
    night = salon("nightly", "b.toml")
    assert night.code == 0, night.err
    held = table(folder, COMPARISONS.name).filter(comparison="predecessor", checkpoint_a="step-4000")
    assert held.select("checkpoint_b", "verdict").rows() == [("step-3000", "open")]
