"""A benchmark with [exam]: the demo's judge, whose blindness the scenario sets, is found out; scores and their tables stay."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import salon
from benchmarks.simulations.exam import paint
from demo.running import running_judge
from flows.commands.explaining import explain
from flows.commands.probing import exam as exam_command
from flows.commands.reading import table
from flows.observability.progress import Reporter, RunSummary
from flows.run.context import RunContext, open_run
from flows.run.pipeline import run_pipeline
from flows.run.preview import preview
from flows.verification.verifying import verify
from schemas.benchmark.exam import EXAM as EXAM_MODEL
from schemas.benchmark.exam import FAULTS
from schemas.benchmark.file import load_benchmark
from schemas.errors import InputError
from schemas.tables.nights import EXAM
from schemas.tables.published import BENCHMARK_LONG
from schemas.tables.stored import JUDGEMENTS, SAMPLES
from tasks.ingest.rating_matching import rated_samples
from tasks.lake.pictures import StoredDataset
from tasks.lake.reading import Lake
from tasks.publish.exporters.figures import read_figures
from tasks.publish.machine_tables import runs as rows_of_runs
from tasks.publish.reading import publications
from tests.flows.flow_support import Said
from tests.flows.runs.rubrics.own_rubric import own_rubric, write_rubric
from tests.flows.runs.rubrics.test_items import PLAIN

SEEN = ("swapped_prompt", "erased", "recoloured")
_SCENARIO = 'seed = 1\n[exam]\nlake = "lake"\nnoticed = {{ {} }}\n'.format(", ".join(f"{fault} = 1" for fault in SEEN))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("exam")
    paint(home, 100)
    (home / "scenario.toml").write_text(_SCENARIO)
    file = home / "b.toml"
    plain, _, _ = file.read_text().partition("[exam]")
    (home / "plain.toml").write_text(plain)
    file.write_text(f"{plain}[exam]\nshare = 0.9\nfloor = 0.8\n")
    return home


@pytest.fixture(scope="module")
def runs(home: Path) -> tuple[RunSummary, RunSummary, RunSummary]:
    """Without an exam, with it, and the same once more."""
    with running_judge(home / "scenario.toml") as url:
        files = ("plain.toml", "b.toml", "b.toml")
        plain, examined, again = (run_pipeline(RunContext.of(open_run(home / name, judge_url=url))) for name in files)
    return plain, examined, again


@pytest.fixture(scope="module")
def found(runs: tuple[RunSummary, RunSummary, RunSummary]) -> pl.DataFrame:
    return pl.read_parquet(runs[1].published.folder / f"{EXAM.name}.parquet")


def test_the_set_blindness_is_measured(found: pl.DataFrame) -> None:
    assert set(found["fault"]) == set(FAULTS)
    shares = dict(found.select("fault", "noticed").iter_rows())
    assert shares == {fault: float(fault in SEEN) for fault in FAULTS}
    assert set(found["false_notices"]) == {0.0}
    assert found["n_lost"].sum() == 0
    verdicts = dict(found.filter(pl.col("n_samples") >= 9).select("fault", "verdict").iter_rows())
    assert all(verdicts[fault] != "blind" for fault in SEEN if fault in verdicts)
    assert verdicts["doubled"] == "blind"


def test_twins_are_at_most_the_share_and_nothing_is_asked_twice(
    home: Path, runs: tuple[RunSummary, RunSummary, RunSummary]
) -> None:
    plain, examined, again = runs
    n_of_twins = preview(home / "b.toml", None, Reporter()).n_of_exam
    assert 0 < n_of_twins == examined.n_requests - plain.n_requests <= 0.9 * plain.n_requests
    assert examined.asked.n_asked == examined.n_requests - plain.n_requests  # the untouched samples had their replies
    assert (again.asked.n_asked, again.published.is_new) == (0, False)


def test_a_share_that_is_no_two_twins_is_told(home: Path, runs: tuple[RunSummary, RunSummary, RunSummary]) -> None:
    few = home / "few.toml"
    few.write_text((home / "b.toml").read_text().replace("share = 0.9", "share = 0.015"))
    (told,) = [note for note in preview(few, None, Reporter()).found.notes if "exam" in note]
    assert "in a source with fewer than 134 usable samples; the first: " in told
    assert not [note for note in preview(home / "b.toml", None, Reporter()).found.notes if "exam" in note]


def test_nothing_else_in_the_scores_changes(runs: tuple[RunSummary, RunSummary, RunSummary]) -> None:
    own = ("publication_id", "dataset_id")
    cells = [pl.read_parquet(run.published.folder / f"{BENCHMARK_LONG.name}.parquet").drop(own) for run in runs[:2]]
    assert cells[0].equals(cells[1])
    assert EXAM_MODEL not in set(cells[1]["model"])


def test_the_mark_stands_where_the_numbers_stand(
    home: Path, runs: tuple[RunSummary, RunSummary, RunSummary], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = runs[1].published.folder
    mark = "doubled, mirrored, misspelt text"
    assert f"blind to {mark}" in (folder / "leaderboard.md").read_text()
    assert f"blind to {mark}" in (folder / "leaderboard.tex").read_text()
    assert f"blind to {mark}" in (folder / "report.html").read_text()
    assert "corrected for 7 such looks" in (folder / "report.html").read_text()  # of what it is to notice, not of blurred ones
    assert f"blind to {mark}" in (home / "lake/publish/v1/index.html").read_text()
    assert table(lake=str(home / "lake"), publication=folder.name) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"blind to {mark}" in said
    assert "The exam of salon-demo-judge in alignment" in said
    assert "blurred" not in said  # it is not among what the dimension is to notice
    opened = salon.open(home / "lake", publication=folder.name)
    assert set(opened.standings()["blind_to"]) == {mark}
    assert f"blind to {mark}" in opened._repr_html_()
    exported = read_figures(next(one for one in publications(home / "lake") if one.publication_id == folder.name))
    assert {exported.words(one)["blind"] for one in exported.contestants} == {f"salon-demo-judge is blind to {mark} in score"}
    plain = runs[0].published.folder
    assert salon.open(home / "lake", publication=plain.name).standings().get_column("blind_to", default=None) is None
    assert "blind" not in (plain / "leaderboard.md").read_text()


def test_the_publication_is_verified_and_a_row_explained(
    home: Path, runs: tuple[RunSummary, RunSummary, RunSummary], found: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = runs[1].published.folder
    assert verify(folder, Lake(home / "lake"), Reporter(), home / "b.toml").differences == []
    row = found.filter(fault="swapped_prompt").row(0, named=True)
    assert explain(row["exam_id"], lake=str(home / "lake"), publication=folder.name, limit=2, as_json=True) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["n_samples"], len(said["samples"])) == (row["n_samples"], 2)
    assert [[one["score"] for one in sample["judgements"]] for sample in said["samples"]] == [[5.0, 5.0, 1.0]] * 2


def test_only_what_a_rubric_shows_is_asked_on_an_occasion_of_its_own(
    home: Path, runs: tuple[RunSummary, RunSummary, RunSummary]
) -> None:
    lake = Lake(home / "lake")
    ids = json.loads((runs[1].published.folder / "provenance.json").read_text())["identities"]
    samples = lake.scan(SAMPLES, ids["dataset_id"]).filter(model=EXAM_MODEL).collect()
    asked = lake.scan(JUDGEMENTS, ids["plan_id"]).filter(occasion="exam").collect()
    assert set(asked["sample_id"]) == set(samples["sample_id"])
    assert set(lake.scan(JUDGEMENTS, ids["plan_id"]).filter(occasion="").collect()["model"]) == {"painter"}


def test_a_rating_of_a_sample_is_not_of_its_twins(home: Path, runs: tuple[RunSummary, RunSummary, RunSummary]) -> None:
    ids = json.loads((runs[1].published.folder / "provenance.json").read_text())["identities"]
    rated = rated_samples(StoredDataset(Lake(home / "lake"), ids["dataset_id"]), load_benchmark(home / "b.toml"), ())
    assert (rated.height, rated["source_key"].n_unique()) == (100, 100)


def test_the_command_prints_and_publishes_nothing(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running_judge(home / "scenario.toml") as url:
        text = (home / "b.toml").read_text()
        (home / "c.toml").write_text(text.replace("[[judges]]", f'[[judges]]\nbase_url = "{url}"'))
        before = sorted((home / "lake/publish/v1/exam").iterdir())
        capsys.readouterr()
        assert exam_command(home / "c.toml", samples=6, faults="erased,misspelt_text", as_json=True) == 0
    rows = {row["fault"]: row for row in json.loads(capsys.readouterr().out)}
    noticed = {fault: (row["n_samples"], row["noticed"]) for fault, row in rows.items()}
    assert noticed == {"erased": (6, 1.0), "misspelt_text": (6, 0.0)}
    n_asked, n_cached = rows["erased"]["n_asked"], rows["erased"]["n_cached"]
    bought = rows_of_runs(Lake(home / "lake")).filter(asked_by="exam").select("outcome", "n_asked")
    assert bought.rows() == ([("judged", n_asked)] if n_asked else [])
    assert exam_command(home / "c.toml", samples=6, faults="erased,misspelt_text") == 0
    said = capsys.readouterr().out
    assert f"requests: {n_asked + n_cached} stored already, 0 sent" in said
    assert "misspelt text" in said
    assert "Nothing was published" in said
    assert sorted((home / "lake/publish/v1/exam").iterdir()) == before
    with pytest.raises(InputError, match="mirrored"):
        exam_command(home / "c.toml", faults="upside_down")


def test_pairs_are_not_examined_and_alone_are_refused(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = '[[rubrics]]\nid = "preference"\n'
    plain = (home / "plain.toml").read_text()
    with running_judge(home / "scenario.toml") as url:
        served = plain.replace("[[judges]]", f'[[judges]]\nbase_url = "{url}"')
        (home / "mixed.toml").write_text(served + pairs)
        assert exam_command(home / "mixed.toml", samples=6, faults="erased") == 0
        assert "Not examined, because they are rubrics of pairs: preference." in capsys.readouterr().out
        before, _, rest = served.partition("[[rubrics]]")
        (home / "pairs.toml").write_text(before + pairs + rest[rest.index("[", 1) :])
        with pytest.raises(
            InputError, match=r"every rubric of this benchmark judges pairs, which cannot be examined \(preference\)"
        ):
            exam_command(home / "pairs.toml", samples=6)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        pytest.param("share = 0", "greater than 0", id="share"),
        pytest.param('faults = ["harmless"]', "is not a fault", id="harmless"),
        pytest.param('faults = ["upside_down"]', "'swapped_prompt'", id="unknown"),
        pytest.param('meant = { beauty = ["blurred"] }', "no rubric of this file has 'beauty'", id="dimension"),
    ],
)
def test_a_wrong_key_is_named_with_its_line(home: Path, said: str, why: str) -> None:
    file = home / "wrong.toml"
    file.write_text((home / "plain.toml").read_text() + f"[exam]\n{said}\n")
    with pytest.raises(InputError, match=why) as refused:
        open_run(file)
    assert "exam" in str(refused.value)


@pytest.mark.parametrize(("faults", "n_twins"), [('["swapped_prompt"]', 0), ('["swapped_prompt", "blurred"]', 4)])
def test_only_faults_that_some_judge_is_shown_have_twins(
    faults: str, n_twins: int, tmp_path: Path, provider: Any, salon: Callable[..., Said]
) -> None:
    """The rubric asks of a picture without its prompt."""
    write_rubric(tmp_path, "plain", PLAIN, "Good?")
    paint(tmp_path, 4)
    pictures = sorted(tmp_path.rglob("*.png"))[:4]
    rows = [{"image": str(one.relative_to(tmp_path)), "prompt": f"a cup, number {n}"} for n, one in enumerate(pictures)]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    exam = f"[exam]\nshare = 1.0\nfaults = {faults}\n"
    (tmp_path / "b.toml").write_text(own_rubric("seen", "plain", 'model = "painter"', exam).format(url=provider.url))
    provider.answers = lambda _: "yes"
    said = salon("run", "b.toml", "--run-date", "2026-01-02")
    assert said.code == 0, said
    assert "[exam] asks no twins of swapped_prompt: under these rubrics, no judge is shown" in " ".join(said.err.split())
    assert f"samples     4, usable {4 + n_twins}" in said.out.replace(f"samples     {4 + n_twins},", "samples     4,")
    assert len(provider.seen) == 4 + n_twins
