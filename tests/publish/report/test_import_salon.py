"""`import salon` over small publications: what it reads, what it refuses, and that nothing hostile leaves it unescaped.

The demo's publication, read by the installed package beside another project, is tests/contract/test_demo_run.py.
"""

import html
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import polars.selectors as cs
import pytest

import salon
from flows.cli import run
from schemas.tables.published import BENCHMARK_LONG, COMPARISONS, STANDINGS
from schemas.tables.stored import JUDGEMENTS, RUNS, SAMPLES, SCORES
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tasks.publish.folders import PublicationName, Published
from tasks.publish.machine_tables import record_run
from tasks.publish.publication import Draft, publish
from tasks.publish.withdrawn import Withdrawal, note_withdrawn
from tests.flows.commands.printed.test_table_command import cell, tables_of, tables_of_pairs
from tests.publish.report.conftest import IDS, Made, digest
from tests.support.small_lake import filled_row

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def published(hostile: Made, publish_one: Callable[..., Published]) -> Path:
    """A lake with the hostile publication as that of the benchmark `nightly`."""
    publish_one(hostile.lake.root, hostile, 1)
    return hostile.lake.root


@pytest.mark.parametrize("inside", ["", "publish", "publish/v1"])
def test_it_reads_wherever_the_tables_are(published: Path, inside: str, hostile: Made, tmp_path: Path) -> None:
    shutil.copytree(published / "publish", tmp_path / "elsewhere" / "publish")
    p = salon.open(tmp_path / "elsewhere" / inside)
    assert p.is_current
    for table in (BENCHMARK_LONG, STANDINGS, COMPARISONS):
        assert p.table(table.name).equals(hostile.tables[table].select(table.columns))
    ranked = p.standings(is_all=True).filter(pl.col("rank_low").is_not_null())
    assert ranked["estimate"].is_sorted(descending=True) or ranked["dimension"].n_unique() > 1


def test_a_value_is_held_against_all_rankings_before_those_that_are_left(
    small: Made, publish_one: Callable[..., Published], tmp_path: Path
) -> None:
    totals = small.tables[STANDINGS]
    rows = totals.filter("is_headline").with_columns(category=pl.lit("counting"), is_headline=pl.lit(value=False))
    publish_one(tmp_path, replace(small, tables=small.tables | {STANDINGS: pl.concat([totals, rows])}), 1)
    p = salon.open(tmp_path)
    assert p.standings("small", category="counting", is_all=True).height == p.standings().height == 3
    for named, said in (
        ({"rubric": "small", "category": "counting"}, "the headline rankings have __macro__ alone; is_all=True shows the cat"),
        ({"rubric": "small", "category": "countng"}, "no category 'countng' here; available: __macro__, counting"),
        ({"category": "countng"}, "no category 'countng' here; available: __macro__, counting"),
        (
            {"dimension": "accuracy", "category": "counting"},
            "no category 'counting' of dimension 'accuracy' here; available: __m",
        ),
    ):
        with pytest.raises(salon.SalonError, match=said):
            p.standings(**named)


def test_a_comparison_seen_from_the_other_side_is_the_same_comparison(published: Path, hostile: Made) -> None:
    p = salon.open(published)
    pairs = hostile.tables[COMPARISONS].select("model_a", "checkpoint_a", "model_b", "checkpoint_b").unique().rows()
    for model_a, checkpoint_a, model_b, checkpoint_b in pairs:
        a, b = f"{model_a}/{checkpoint_a}", f"{model_b}/{checkpoint_b}"
        one, other = p.compare(a, b), p.compare(b, a)
        assert one.height == other.height > 0
        assert one["delta"].to_list() == [None if value is None else -value for value in other["delta"]]
        assert one["ci_low_adjusted"].to_list() == [None if value is None else -value for value in other["ci_high_adjusted"]]
        turned = [None if value is None else -value for value in other["delta_bound_ci_high"]]
        assert one["delta_bound_ci_low"].to_list() == turned
        numbers = one.select(cs.float()).unpivot()["value"].drop_nulls()
        assert "-0.0" not in map(str, numbers)
        assert one["win"].to_list() == other["loss"].to_list()
        assert set(one["checkpoint_a"]) == {checkpoint_a}
        verdicts = set(zip(one["verdict"], other["verdict"], strict=True))
        assert verdicts <= {("higher", "lower"), ("lower", "higher"), ("open", "open"), (None, None)} | {
            ("failures_could_turn_it", "failures_could_turn_it")
        }


def test_samples_hold_every_score_and_every_reason_for_none(published: Path, hostile: Made) -> None:
    samples = salon.open(published).samples()
    assert len(samples) == 90
    assert samples.frame["score"].null_count() == samples.frame.filter(reason="refusal").height == 6
    pictures = samples.pictures()
    assert pictures.keys() == set(samples.frame["sample_id"])
    assert all(content.startswith(b"\x89PNG") for content in pictures.values())
    assert (
        len(salon.open(published).samples(prompt="ᚠ田")) == len(samples.frame.filter(pl.col("prompt").str.contains("ᚠ田"))) // 2
    )


def test_nothing_hostile_leaves_it_unescaped(published: Path) -> None:
    p = salon.open(published)
    shown = p._repr_html_() + p.samples()._repr_html_()
    assert set(re.findall(r"<(/?\w+)", shown)) == {
        tag for name in ("p", "b", "code", "table", "thead", "tbody", "tr", "th", "td", "div") for tag in (name, f"/{name}")
    } | {"img"}
    assert "window.pwned" in shown


def _spoiled(root: Path, name: str, content: bytes | None = None) -> salon.Publication:
    """The publication, one of its files changed."""
    (folder,) = (path for path in root.glob("publish/v1/nightly/*") if path.is_dir())
    (folder / name).write_bytes((folder / name).read_bytes() + b" " if content is None else content)
    return salon.open(root)


def _without_whole_pictures(root: Path) -> salon.Samples:
    """The samples of a lake whose files of pictures were cut off since."""
    samples = salon.open(root).samples()
    for path in [*root.glob("pictures/**/*.parquet"), *root.glob("samples/**/*.parquet")]:
        path.chmod(0o644)
        path.write_bytes(path.read_bytes()[:-9])
    return samples


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        pytest.param(lambda root: salon.open(root / "nowhere"), "is not a folder", id="no folder"),
        pytest.param(lambda root: salon.open(root / "samples"), "contains no publication", id="no lake"),
        pytest.param(lambda _: salon.open("s3://no bucket"), "s3://bucket/prefix", id="no address"),
        pytest.param(lambda root: salon.open(root, "weekly"), "nightly  2026-01-02", id="no such benchmark"),
        pytest.param(lambda root: salon.open(root, publication="ffffffff"), "no publication", id="no such publication"),
        pytest.param(lambda root: salon.open(root).table("nonesuch"), "available: benchmark_long", id="no such table"),
        pytest.param(lambda root: salon.open(root).standings("nonesuch"), "available: small", id="no such rubric"),
        pytest.param(
            lambda root: salon.open(root).standings("small", "accuracy", "nonesuch"), "category 'nonesuch'", id="no such category"
        ),
        pytest.param(lambda root: salon.open(root).samples("cube", rubric="nonesuch"), "available: small", id="samples: rubric"),
        pytest.param(lambda root: salon.open(root).samples(category="nonesuch"), "available: ", id="samples: category"),
        pytest.param(lambda root: salon.open(root).samples(checkpoint="nonesuch"), "available: ", id="samples: checkpoint"),
        pytest.param(
            lambda root: salon.open(root).compare("x", "y"), "no published checkpoint is called", id="no such checkpoint"
        ),
        pytest.param(lambda root: salon.open(root).report(), "has no file 'report.html'", id="no page"),
        pytest.param(lambda root: _without_whole_pictures(root).pictures(), "cannot be read (", id="pictures"),
        pytest.param(lambda root: _spoiled(root, "standings.parquet").standings(), "not the file that was", id="another table"),
        pytest.param(lambda root: _spoiled(root, "manifest.json"), "does not match latest.json", id="another manifest"),
        pytest.param(
            lambda root: _spoiled(root, "../latest.json", b"{}"), "is not a pointer written by Salon", id="another pointer"
        ),
        pytest.param(lambda root: salon.run(root / "none.toml"), "none.toml does not exist; salon new ", id="no file"),
        pytest.param(lambda _: salon.parse("nonesuch", ["4"]), "rubric 'nonesuch' does not exist", id="a command's own sentence"),
    ],
)
def test_what_goes_wrong_is_said_in_a_sentence(published: Path, tmp_path: Path, ask: Callable[[Path], object], said: str) -> None:
    root = tmp_path / "lake"
    shutil.copytree(published, root)
    with pytest.raises(salon.SalonError, match=re.escape(said)):
        ask(root)


def test_an_error_is_the_sentence_also_where_operators_have_lines_of_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SALON_LOG_FORMAT", "json")
    with pytest.raises(salon.SalonError, match=r"^rubric 'nonesuch' does not exist"):
        salon.parse("nonesuch", ["4"])


def test_a_path_that_reads_like_the_start_of_a_sentence_cuts_none(tmp_path: Path) -> None:
    with pytest.raises(salon.SalonError, match=f"^the benchmark file {tmp_path}/a salon: b/none.toml does not exist"):
        salon.plan(tmp_path / "a salon: b" / "none.toml")


def test_a_sentence_is_read_whatever_the_environment_says_texts_are_written_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    with pytest.raises(salon.SalonError, match=r"n\u00e9\.toml does not exist"):
        salon.plan("n\u00e9.toml")


def test_a_run_from_python_gives_back_its_publication_also_a_blocked_one(
    tmp_path: Path, drawn: Callable[..., bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a judge whose replies are to be imported, none of which is there yet: nobody is asked."""
    (tmp_path / "pics").mkdir()
    for number, name in enumerate(("a.png", "b.png")):
        (tmp_path / "pics" / name).write_bytes(drawn(number))
    row = '{"image": "./pics/a.png", "before": ["pics/b.png", "pics/a.png"], "prompt": "a cube", "model": "m", "checkpoint": "c"}'
    (tmp_path / "m.jsonl").write_text(f"{row}\n{row}\n")
    (tmp_path / "b.toml").write_text(
        """\
name = "mine"
[[sources]]
reader = "manifest"
path = "m.jsonl"
pictures = { source = "before" }
[[rubrics]]
id = "alignment"
[[judges]]
model = "gpt-4o"
recorded = true
""",
        encoding="utf-8-sig",
    )  # as editors of Windows write it
    plan = salon.plan(tmp_path / "b.toml")
    assert (plan.n_samples, plan.n_usable, plan.n_requests, plan.n_to_ask, plan.online_usd) == (2, 1, 1, 0, 0)
    assert [(one.rubric_id, one.judge_model, one.n_requests) for one in plan.rubrics] == [("alignment", "gpt-4o", 1)]
    assert [(one.status, one.source_key) for one in plan.unusable] == [("duplicate", "m.jsonl#2")]
    assert [(one.checkpoint, one.n_usable) for one in plan.checkpoints] == [("c", 1)]
    assert plan.notes == ()
    assert "nothing was sent" in str(plan)
    assert str(plan) in html.unescape(plan._repr_html_())
    p = salon.run(tmp_path / "b.toml", "--run-date", "2026-11-03")
    assert (p.benchmark, p.run_date, p.is_current) == ("mine", "2026-11-03", False)
    assert p.standings(is_all=True).select("state", "n_judgements", "n_failed").rows() == [
        ("blocked", 2, 2)
    ]  # the row twice: asked about once, and counted twice
    assert salon.publications(tmp_path / "lake")["publication_id"].to_list() == [p.publication_id]
    assert p.samples().frame["image_path"].unique().to_list() == ["pics/a.png"]
    assert run(["explain", p.samples().frame["sample_id"][0], "--lake", str(tmp_path / "lake")]) == 0
    explained = capsys.readouterr().out
    assert "  source_key: m.jsonl#1\n" in explained
    assert "  image_path: pics/a.png\n  source_path: pics/b.png, pics/a.png\n" in explained
    assert len(p.samples().pictures()) == 2  # a duplicate shows the picture of its twin
    with duckdb.connect(tmp_path / "lake/publish/v1/mine/salon.duckdb", read_only=True) as database:
        found = database.execute("SELECT status, reason FROM salon_judged(?)", [str(tmp_path / "lake")]).fetchall()
    assert found == [("no_reply", "not_asked")] * 2
    assert "a duplicate of m.jsonl#1 (sample " in p.content("pictures-001.html").decode()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("drift", "; it covers all publications: read it from salon.duckdb"),
        ("scorse", "no table 'scorse'; available: benchmark_long"),
    ],
)
def test_a_table_that_is_not_there_is_said_to_be_elsewhere(published: Path, name: str, said: str) -> None:
    with pytest.raises(salon.SalonError) as raised:
        salon.open(published).table(name)
    assert said in str(raised.value)
    assert ("salon.duckdb" in str(raised.value)) == (name == "drift")


def test_dates_join_those_of_tables(published: Path) -> None:
    """Other types are an error there."""
    names = ["publication_id", "run_date"]
    assert salon.publications(published).select(names).schema == salon.open(published).table("standings").select(names).schema


def test_of_several_current_publications_each_is_marked(
    small: Made, publish_one: Callable[..., Published], tmp_path: Path
) -> None:
    old, new = (publish_one(tmp_path, small, number) for number in (1, 2))
    home = old.folder.parent
    shutil.copytree(home, home.parent / "weekly")
    with pytest.raises(salon.SalonError, match=r"^2 publications in .* are current; choose one") as raised:
        salon.open(tmp_path)
    marked = [line.split() for line in str(raised.value).splitlines()[1:]]
    assert sorted((one, *kinds) for _, _, one, *kinds in marked) == sorted(
        (one.publication_id[:12], *(["current"] if one is new else [])) for one in (old, new, old, new)
    )


@pytest.mark.parametrize("content", ["{", '{"files": []}'])
def test_a_publication_that_is_not_whole_hides_no_other(
    small: Made, publish_one: Callable[..., Published], tmp_path: Path, content: str
) -> None:
    whole, broken = (publish_one(tmp_path, small, number) for number in (2, 1))
    (broken.folder / "manifest.json").write_text(content)
    listed = {row[1]: row[2:] for row in salon.publications(tmp_path).iter_rows()}
    assert listed == {whole.publication_id: (date(2026, 1, 3), True), broken.publication_id: (None, False)}
    with pytest.raises(salon.SalonError, match=f"nightly  not whole  {broken.publication_id[:12]}"):
        salon.open(tmp_path, publication="zzzz")
    with pytest.raises(salon.SalonError, match="has no complete manifest"):
        salon.open(tmp_path, publication=broken.publication_id)


def test_the_newer_one_that_did_not_become_current_is_found_when_asked_for(tmp_path: Path) -> None:
    whole = tables_of([cell("north", 7.0)])
    lacking = tables_of([cell("north", 7.0, n_failed=9, why={"server_error": 9})])
    for id_, day, tables in (("a", 2, whole), ("b", 1, whole), ("c", 2, lacking), ("d", 2, lacking), ("e", 3, lacking)):
        publish(tmp_path, Draft(PublicationName("nightly", id_ * 64, date(2026, 3, day)), tables, {}))
    for hour, id_ in enumerate("cad"):
        ended = datetime(2026, 3, 2, hour, tzinfo=UTC)
        row = filled_row(RUNS, benchmark="nightly", publication_id=id_ * 64, started_at=ended, finished_at=ended)
        record_run(Lake(tmp_path), row)

    def found(id_: str | None = None) -> str | None:
        newer = salon.open(tmp_path, publication=id_).newer
        return newer and newer.publication_id[:1]

    assert (found(), found("bbbb"), found("eeee")) == ("e", None, None)
    note_withdrawn(tmp_path, Withdrawal("e" * 64, "nightly", "2026-03-03", "2026-03-04", "host", "a clock was ahead", 0))
    assert found() == "d", "of its date, and made later"
    home, run = tmp_path / "publish" / "v1", next((tmp_path / "publish" / "v1" / "tables" / "runs").rglob("*.parquet"))
    of_d = home / "nightly" / ("d" * 64) / "manifest.json"
    for path, says in (
        (tmp_path / "withdrawn" / f"{'e' * 64}.json", "withdrawn/e"),
        (run, "/runs/"),
        (of_d, "no complete manifest"),
    ):
        path.write_text("{")
        with pytest.raises(salon.SalonError, match=says):
            found()
    assert salon.open(tmp_path).table("benchmark_long").height == 1, "it is opened nevertheless"


def test_what_was_taken_back_says_so_until_a_run_makes_it_again(
    small: Made, publish_one: Callable[..., Published], tmp_path: Path
) -> None:
    gone, _ = (publish_one(tmp_path, small, number) for number in (1, 2))
    id_ = gone.publication_id
    assert salon.open(tmp_path, publication=id_).withdrawn is None
    note_withdrawn(
        tmp_path, Withdrawal(id_, "nightly", "2026-01-02", "2026-01-03T08:09:10+00:00", "host", "a <clock> was ahead", 0)
    )
    with pytest.warns(UserWarning, match=f"^nightly {id_[:12]} was taken back on 2026-01-03 08:09 UTC: a <clock> was ahead$"):
        p = salon.open(tmp_path, publication=id_)
    assert repr(p).endswith(f"{id_[:12]}, taken back on 2026-01-03 08:09 UTC: a <clock> was ahead)")
    assert "<b>taken back on 2026-01-03 08:09 UTC: a &lt;clock&gt; was ahead</b>" in p._repr_html_()
    assert salon.open(tmp_path).withdrawn is None
    ended = datetime(2026, 1, 4, tzinfo=UTC)
    record_run(Lake(tmp_path), filled_row(RUNS, benchmark="nightly", publication_id=id_, started_at=ended, finished_at=ended))
    assert salon.open(tmp_path, publication=id_).withdrawn is None


def test_a_run_that_publishes_nothing_gives_back_no_older_publication(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command ends with 1 as for blocked cells, and names no publication."""
    (tmp_path / "b.toml").write_text(f'name = "nightly"\nlake = "{published}"\n')
    command = tmp_path / "command.py"
    monkeypatch.setattr("salon.running._COMMAND", command)
    command.write_text("import sys; print('read: 1 done\\nsalon: nothing was published: a check', file=sys.stderr); sys.exit(1)")
    with pytest.raises(salon.SalonError, match=r"^nothing was published: a check$") as raised:
        salon.run(tmp_path / "b.toml")
    assert raised.value.exit_code == 1
    there = salon.open(published).publication_id
    command.write_text(f"print(' publication 0 (new)\\npublication {there[:16]} (new)'); raise SystemExit(1)")
    assert salon.run(tmp_path / "b.toml").publication_id == there


@pytest.fixture
def paired(tmp_path: Path) -> Path:
    """A lake with one publication: two checkpoints of a model, compared in both orders and in nothing else."""
    lake = Lake(tmp_path / "lake")
    ids = {"3": digest("3"), "2": digest("2"), "1": digest("1")}
    samples = [
        filled_row(SAMPLES, sample_id=one, model="m", checkpoint=name, prompt="a cube", status="ok", image_sha256=None)
        for name, one in ids.items()
    ]
    orders = [(a, b) for a in ids for b in ids if a != b]
    common = {"rubric_id": "pairs", "judge_model": "eye", "repeat": 0, "occasion": "", "status": "planned", "model": "m"}
    asked = [
        common
        | {"sample_id": ids[a], "checkpoint": a, "second_sample_id": ids[b], "second_model": "m", "second_checkpoint": b}
        | {"request_key": digest(a + b)}
        for a, b in orders
    ]
    read = [
        filled_row(SCORES, request_key=digest(a + b), dimension="better", score=float(a > b), status="scored") for a, b in orders
    ]
    rows = {SAMPLES: samples, JUDGEMENTS: [filled_row(JUDGEMENTS, **row) for row in asked], SCORES: read}
    for table, key in ((SAMPLES, "dataset_id"), (JUDGEMENTS, "plan_id"), (SCORES, "reading_id")):
        staging = stage(lake, table)
        staging.write_part(0, table.frame(rows[table]))
        staging.commit(IDS[key])
    draft = Draft(PublicationName("nightly", "f" * 64, date(2026, 11, 3)), tables_of_pairs(), {"identities": IDS})
    publish(lake.root, draft)
    return lake.root


def test_what_was_compared_in_pairs_says_with_which_and_shows_who_won(paired: Path) -> None:
    p = salon.open(paired)
    samples = p.samples().frame
    assert samples.height == 6
    assert not samples.select("sample_id", "second_sample_id", "dimension").is_duplicated().any()
    assert samples.filter(checkpoint="3").select("second_checkpoint", "score").sort("second_checkpoint").rows() == [
        ("1", 1.0), ("2", 1.0),
    ]  # fmt: skip
    assert "better, before m / 1: 1<" in p.samples(checkpoint="3")._repr_html_()
    with pytest.raises(salon.SalonError, match=r"compared only in pairs: see p.table\('preferences'\)"):
        p.compare("3", "2")
    (rubric,) = set(p.table("preferences")["rubric_id"])
    for ask in (p.standings, lambda rubric: p.compare("3", "2", rubric)):
        with pytest.raises(salon.SalonError, match=r"asks which of two is better: see p.table\('preferences'\)"):
            ask(rubric=rubric)
    with pytest.raises(salon.SalonError, match=r"write one of: m/1, m/2, m/3$"):
        p.compare("4", "2")
    with pytest.raises(salon.SalonError, match=r"'3' and 'm/3' are the same checkpoint"):
        p.compare("3", "m/3")
    card = p._repr_html_()
    rates = p.table("preferences").filter(category="__macro__")["win_rate"]
    assert card.count("<td>m / ") == 6
    assert all(f"<td>{100 * rate:.2f}" in card for rate in rates)


def test_importing_it_loads_nothing_heavy() -> None:
    heavy = ("polars", "pyarrow", "prefect", "sqlalchemy", "openai")
    code = f"import salon, sys; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize(
    ("replies", "words"),
    [("Score: 3", r"parse\(rubric, \[reply\]\)"), ({"raw": "x"}, r"\[reply\]"), (["x", 5], "reply 1 has type int")],
    ids=["one text", "one line", "a number among them"],
)
def test_what_is_no_list_of_replies_is_not_read_letter_by_letter(replies: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        salon.parse("alignment", replies)
