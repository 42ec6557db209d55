"""A benchmark in which a picture stands twice: asked once, counted twice, explained, verified; and as older releases left it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from schemas.tables.stored import JUDGEMENTS, REPLIES, REQUESTS, SAMPLES, SCORES
from tasks.lake.reading import Lake
from tasks.publish.explain.cells import members_of
from tasks.verify.partitions import adopt, compare_parts
from tests.flows.flow_support import Said, cells_of
from tests.support.painting import COUNTING, paint, scenes

BENCHMARK = """\
name = "twins"
[[sources]]
reader = "manifest"
path = "m.jsonl"
model = "lab"
checkpoint = "1"
[[rubrics]]
id = "alignment"
[[judges]]
model = "salon-demo-judge"
base_url = "{url}"
[limits]
shard_size = 2
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, judge_url: str) -> Path:
    """A folder with three pictures of two prompts, one of them copied to another name in a shard of its own, and a run of it."""
    folder = tmp_path_factory.mktemp("twins")
    paint(folder)
    some, other = sorted((folder / "scenes").rglob("metadata.jsonl"))[:2]
    (one, another), (first, second, *_) = (
        (json.loads(one.read_text())["prompt"] for one in (some, other)),
        sorted(some.parent.rglob("*.png")),
    )
    third = next(other.parent.rglob("*.png"))
    (folder / "copy.png").write_bytes(first.read_bytes())
    rows = [(first, one), (second, one), (third, another), (folder / "copy.png", one)]
    listed = [{"image": str(path.relative_to(folder)), "prompt": prompt} for path, prompt in rows]
    (folder / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in listed))
    (folder / "b.toml").write_text(BENCHMARK.format(url=judge_url))
    return folder


@pytest.fixture
def ran(home: Path, tmp_path: Path, salon: Callable[..., Said]) -> tuple[Path, Said]:
    shutil.copytree(home, tmp_path, dirs_exist_ok=True)
    said = salon("run", "b.toml", "--run-date", "2026-01-02")
    assert said.code == 0, said.err
    return tmp_path, said


def _rows(folder: Path, table: object) -> pl.DataFrame:
    (marker,) = (folder / "lake" / "complete" / table.name).iterdir()  # type: ignore[attr-defined]
    return Lake(folder / "lake").scan(table, marker.stem).collect()  # type: ignore[arg-type]


def _publication(folder: Path) -> Path:
    (found,) = (path for path in (folder / "lake" / "publish" / "v1" / "twins").iterdir() if path.is_dir())
    return found


def test_it_is_asked_once_counted_twice_explained_and_verified(ran: tuple[Path, Said], salon: Callable[..., Said]) -> None:
    folder, said = ran
    assert "samples     4, usable 3, duplicates 1 (the first one's judgement counts for both)" in said.out
    assert "requests    3: 0 stored already, 3 sent" in said.out
    judgements, requests, replies, scores = (_rows(folder, table) for table in (JUDGEMENTS, REQUESTS, REPLIES, SCORES))
    assert (judgements.height, requests.height, replies.height) == (4, 3, 3)
    assert judgements["status"].to_list() == ["planned"] * 4
    copy = judgements.row(3, named=True)
    assert (copy["duplicate_of_sample_id"], copy["request_key"]) == judgements.select("sample_id", "request_key").row(0)

    by_key = dict(scores.select("request_key", "score").rows())
    values = [by_key[key] for key in judgements["request_key"]]
    cell = (
        cells_of(folder / "lake")
        .filter(category="__micro__", dimension="score", metric="mean", estimand="prompts_like_these")
        .row(0, named=True)
    )
    assert (cell["n_judgements"], cell["n_images"], cell["n_prompts"], cell["n_failed"]) == (4, 4, 2, 0)
    assert cell["estimate"] == pytest.approx(sum(values) / 4, abs=1e-12)

    explained = salon("explain", cell["cell_id"])
    assert explained.code == 0, explained.err
    assert explained.out.count(copy["sample_id"][:12]) >= 1
    of_copy = salon("explain", copy["sample_id"])
    assert of_copy.code == 0, of_copy.err
    assert replies.filter(request_key=copy["request_key"])["reply_text"][0][:20] in of_copy.out
    verified = salon("verify", _publication(folder), "--file", "b.toml")
    assert verified.code == 0, verified.out + verified.err
    page = (_publication(folder) / "report.html").read_text()
    assert (
        "1 of the judgements are of samples that are earlier ones again, asked once: the earlier one's judgement counts" in page
    )
    gate = json.loads(salon("gate", "--baseline", "lab", "--allow-unknown", "--format", "json").out or '{"n_again": 1}')
    assert gate["n_again"] == 1


def test_nothing_is_asked_or_planned_anew_when_it_is_run_again(ran: tuple[Path, Said], salon: Callable[..., Said]) -> None:
    said = salon("run", "b.toml", "--run-date", "2026-01-02")
    assert "3 stored already, 0 sent" in said.out
    assert "unchanged" in said.out
    assert _rows(ran[0], SAMPLES)["status"].to_list() == ["ok", "ok", "ok", "duplicate"]


def test_what_an_older_release_planned_is_read_as_it_planned_it(ran: tuple[Path, Said], tmp_path: Path) -> None:
    """Its judgements lack the column, which is no difference; its duplicates have no request, and stand in no figure."""
    folder, _ = ran
    ids = json.loads((_publication(folder) / "provenance.json").read_text())["identities"]
    lake, old, derived = Lake(folder / "lake"), Lake(tmp_path / "old"), Lake(tmp_path / "derived")
    adopt(lake, old, SCORES, ids["reading_id"])
    adopt(lake, derived, JUDGEMENTS, ids["plan_id"])
    shutil.copytree(folder / "lake", tmp_path / "stored", copy_function=shutil.copyfile)
    stored = Lake(tmp_path / "stored")
    (part,) = stored.parts(JUDGEMENTS, ids["plan_id"])
    rows = pl.read_parquet(part).drop("duplicate_of_sample_id")
    rows.write_parquet(part)
    as_it_is = Lake(tmp_path / "as it is")
    adopt(stored, as_it_is, JUDGEMENTS, ids["plan_id"])
    found = list(compare_parts(JUDGEMENTS, as_it_is, ids["plan_id"], derived, ids["plan_id"]))
    assert [(one.column, one.published) for one in found] == [("duplicate_of_sample_id", "null")], "of the one row that has it"

    is_again = pl.int_range(pl.len()) == 3
    said = {"status": "duplicate", "request_key": None, "reason": "same_sample"}
    changes = [pl.when(is_again).then(pl.lit(value, pl.String)).otherwise(name).alias(name) for name, value in said.items()]
    rows.with_columns(changes).write_parquet(part)
    adopt(stored, old, JUDGEMENTS, ids["plan_id"])
    cells = cells_of(folder / "lake")
    members = members_of(old, ids, cells.filter(category="__micro__", dimension="score").row(0, named=True), cells)
    assert members["sample_id"].sort().to_list() == rows["sample_id"].head(3).sort().to_list()


def test_the_recorded_reply_to_the_first_counts_for_both_and_the_copys_own_is_left_out(
    home: Path, tmp_path: Path, salon: Callable[..., Said]
) -> None:
    """Two replies to one request would cost both: the copy's row is said, and no score is lost."""
    shutil.copytree(home, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "b.toml"
    file.write_text(file.read_text().partition("base_url")[0] + "recorded = true\n")
    images = [json.loads(line)["image"] for line in (tmp_path / "m.jsonl").read_text().splitlines()]
    said = [{"image": image, "reply": f"It fits.\nScore: {n}"} for n, image in enumerate(images, 1)]
    (tmp_path / "replies.jsonl").write_text("".join(json.dumps(row) + "\n" for row in said))
    imported = salon("import", "b.toml", "--replies", "replies.jsonl")
    assert imported.code in (0, 1), imported.err
    assert "duplicates an earlier one; the reply to that one" in " ".join(imported.out.split())
    cell = cells_of(tmp_path / "lake").filter(category="__micro__", dimension="score", metric="mean").row(0, named=True)
    assert (cell["n_judgements"], cell["n_failed"], cell["estimate"]) == (4, 0, (1 + 2 + 3 + 1) / 4)


VERY_SAME = {
    "none": (0, ""),
    "three of ten": (3, "For 3 of 10 prompts, step-3000 and step-2000 show the judge the very same: the difference is 0 there"),
    "all": (10, "For all 10 prompts, step-3000 and step-2000 show the judge the very same: no judge can tell them apart."),
}


@pytest.mark.parametrize(("n_prompts", "says"), VERY_SAME.values(), ids=VERY_SAME.keys())
def test_a_checkpoint_with_pictures_of_the_one_before_is_told(
    n_prompts: int, says: str, tmp_path: Path, salon: Callable[..., Said], judge_url: str
) -> None:
    """Both pictures of each of the prompts are copied, as where a folder is exported twice, and one picture more."""
    paint(tmp_path)
    home = tmp_path / "scenes" / "demo-painter"
    counting = [one for one in sorted((home / "step-2000").glob("*/")) if '"counting"' in (one / "metadata.jsonl").read_text()]
    pictures = [one for folder in counting for one in sorted(folder.rglob("*.png"))]
    for path in pictures[: 2 * n_prompts + 1]:
        shutil.copyfile(path, home / "step-3000" / path.relative_to(home / "step-2000"))
    (tmp_path / "b.toml").write_text(scenes("copied", where=COUNTING).format(url=judge_url))
    said = salon("run", "b.toml", "--run-date", "2026-01-02")
    assert ("very same" in said.out, says in " ".join(said.out.split())) == (bool(n_prompts), True), said
    (folder,) = (path for path in (tmp_path / "lake" / "publish" / "v1" / "copied").iterdir() if path.is_dir())
    counted = pl.read_parquet(folder / "comparisons.parquet").filter(category="__macro__")
    found = {(row["checkpoint_a"], row["checkpoint_b"]): row["n_prompts_identical"] for row in counted.to_dicts()}
    assert found.pop(("step-2000", "step-1000")) == 0
    assert set(found.values()) <= {n_prompts, 0}
    assert says in (folder / "report.html").read_text()
