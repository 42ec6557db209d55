"""What changes a publication's identity, and what must not; runs; the data dictionary."""

import json
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from schemas.benchmark.file import Benchmark
from schemas.identities import RunIds
from schemas.lineage import Lineage
from schemas.tables.agreement import RATINGS, VOTES
from schemas.tables.catalogue import TABLES
from tasks.context import Reference, StageContext
from tasks.lake.reading import Lake
from tasks.publish.agreement import agreement_id
from tasks.publish.identity import (
    PACKAGES,
    added_or_dropped,
    asked_otherwise,
    benchmark_digest,
    code_version,
    provenance,
    publication_id,
    renamed_judges,
    replaced_judges,
)
from tasks.publish.machine_tables import record_run, runs
from tests.support.data_dictionary import data_dictionary

ROOT = Path(__file__).resolve().parents[2]
DAY = date(2026, 11, 3)
FILE = {
    "name": "nightly",
    "sources": [{"reader": "geneval", "path": "outputs", "columns": {"prompt": "caption"}}],
    "rubrics": [{"id": "small"}],
    "judges": [{"model": "eye-2026-01-01", "parameters": {"temperature": 0}}],
}


def changed(**sections):
    return Benchmark.model_validate(FILE | sections)


def in_source(**keys):
    return changed(sources=[FILE["sources"][0] | keys])


def in_judge(**keys):
    return changed(judges=[FILE["judges"][0] | keys])


@pytest.mark.parametrize(
    "other",
    [
        changed(lake="s3://elsewhere"), changed(ledger="postgresql://db"),
        changed(limits={"requests_per_minute": 5, "shard_size": 7}),
        changed(rubric_folders=["mine"]), in_source(path="/data/elsewhere"), in_source(follow_links=True), in_judge(base_url="http://localhost:1"),
        in_judge(api_key_env="OTHER"), changed(nightly={"schedule": "0 5 * * *", "timezone": "Asia/Tokyo"}),
    ],
    ids=["lake", "ledger", "limits", "rubric_folders", "path", "follow_links", "base_url", "api_key_env", "schedule"],
)  # fmt: skip
def test_where_and_how_fast_is_no_part_of_the_identity(other):
    assert benchmark_digest(other) == benchmark_digest(changed())


@pytest.mark.parametrize(
    "other",
    [
        changed(name="weekly"), in_source(columns={"prompt": "text"}), in_source(where={"split": "test"}),
        in_source(checkpoint="7"), in_judge(repeats=2), in_judge(parameters={"temperature": 1}),
        changed(gate={"min_coverage": 0.9}), changed(nightly={"baseline": "sdxl/base"}), changed(recorded={"template": "x"}),
    ],
    ids=["name", "columns", "where", "checkpoint", "repeats", "parameters", "floor", "baseline", "template"],
)  # fmt: skip
def test_what_can_change_a_number_or_a_cell_is(other):
    assert benchmark_digest(other) != benchmark_digest(changed())


IDS = RunIds("a", "b", "c", "d", "e")


@pytest.mark.parametrize(
    "other",
    [
        (changed(), replace(IDS, dataset_id="z"), DAY, Lineage()), (changed(), replace(IDS, plan_id="z"), DAY, Lineage()),
        (changed(), replace(IDS, reading_id="z"), DAY, Lineage()), (changed(), replace(IDS, code_version="z"), DAY, Lineage()),
        (changed(name="weekly"), IDS, DAY, Lineage()), (changed(), IDS, date(2026, 11, 4), Lineage()),
        (changed(), IDS, DAY, Lineage({"sdxl": ("b", "a")})),
    ],
    ids=["dataset", "plan", "reading", "code", "file", "date", "lineage"],
)  # fmt: skip
def test_each_input_changes_the_publication_id(other):
    first = publication_id(changed(), IDS, DAY, Lineage())
    assert len(first) == 64
    assert first == publication_id(changed(), IDS, DAY, Lineage())
    assert publication_id(*other) != first


@pytest.mark.parametrize(
    "other",
    [
        changed(gate={"min_coverage": 1.0}), changed(statistics={"correction": "benjamini_hochberg"}),
        changed(statistics={"primary": ["small.score"]}), changed(nightly={"baseline": "sdxl/base"}),
    ],
    ids=["floor", "correction", "primary", "baseline"],
)  # fmt: skip
def test_each_setting_that_corrected_tables_hang_on_changes_the_id_of_an_agreement(other):
    people = Reference(RATINGS.empty(), VOTES.empty(), None)
    first = agreement_id(changed(), people, IDS, DAY, Lineage())
    assert first == agreement_id(changed(lake="s3://elsewhere"), people, IDS, DAY, Lineage())
    assert agreement_id(other, people, IDS, DAY, Lineage()) != first


def test_provenance_names_instruments_and_judges_and_no_place(small_lake):
    benchmark = in_judge(base_url="http://secret.example/v1", api_key_env="SECRET")
    context = StageContext(benchmark, {"small": small_lake.rubric}, small_lake.lake, "sqlite://", DAY, IDS)
    said = provenance(context, ratings_sha256="f")
    assert said["rubrics"]["small"]["digest"] == small_lake.rubric.digest
    assert said["identities"] == {
        "code_version": "e", "dataset_id": "a", "plan_id": "b", "reading_id": "d", "snapshot_id": "c", "ratings_sha256": "f",
    }  # fmt: skip
    assert said["judges"][0]["model"] == "eye-2026-01-01"
    assert "secret" not in str(said).lower()


RUBRIC = {"version": "1", "digest": "a"}
JUDGE = {"model": "m", "parameters": {"temperature": 0}}


def said_of(rubrics, **judge):
    """A provenance, its judge as a file has it; read from a file, as the earlier one is."""
    return json.loads(json.dumps({"rubrics": rubrics} | {"settings": settings_of(changed(judges=[JUDGE | judge]))}))


def one_digest(_, one, other, *, but_for_version=False):
    """Whether digests are of rubrics that ask the same: here each asks something of its own, but for one of another version."""
    return one == other or (but_for_version and other == "a raised")


def settings_of(benchmark):
    context = StageContext(benchmark.model_copy(update={"rubrics": []}), {}, None, "sqlite://", DAY, IDS)
    return provenance(context)["settings"]


@pytest.mark.parametrize(
    ("rubric", "judge", "told"),
    [
        pytest.param({}, {}, [], id="nothing"),
        pytest.param({"digest": "b"}, {}, ["rubric r (same version; its text or rules changed)"], id="a text"),
        pytest.param(
            {"digest": "b", "version": "2"},
            {},
            ["rubric r (version 1, now 2; its text or rules changed)"],
            id="a text, and its version",
        ),
        pytest.param({"digest": "a raised", "version": "2"}, {}, ["rubric r (version 1, now 2)"], id="its version alone"),
        pytest.param({}, {"parameters": {}, "repeats": 2}, ["judge m (parameters)"], id="a parameter"),
        pytest.param({}, {"detail": "low", "max_side_px": 512}, ["judge m (detail, max_side_px)"], id="how pictures are shown"),
        pytest.param(
            {}, {"deployment": "int4", "structured_output": True}, ["judge m (deployment, structured_output)"], id="how"
        ),
        pytest.param({}, {"provider": "gemini", "recorded": True}, ["judge m (provider, recorded)"], id="who answers"),
        pytest.param({}, {"name": "other", "parameters": {}}, [], id="another judge"),
        pytest.param(
            {},
            {"base_url": "http://h/v1", "accept_models": ["n"], "mode": "batch", "share": 0.5},
            [],
            id="what asks the same",
        ),
    ],
)
def test_what_asks_otherwise_under_the_same_name_is_named(rubric, judge, told):
    before = said_of({"r": RUBRIC, "gone": RUBRIC})
    assert asked_otherwise(before, said_of({"r": RUBRIC | rubric, "new": RUBRIC}, **judge), one_digest) == told


def test_a_rubric_of_another_digest_that_asks_the_same_is_not_named():
    before, now = said_of({"r": RUBRIC}), said_of({"r": RUBRIC | {"digest": "b"}})
    assert asked_otherwise(before, now, lambda *of, **_: of == ("r", "a", "b")) == []


SAYS_NOTHING = [
    {}, {"rubrics": [1], "settings": 1}, {"rubrics": {"r": 1}}, {"settings": {"judges": [{}]}}, {"settings": {"judges": [1]}},
    {"settings": {"judges": 1}}, {"settings": {"judges": None}}, {"judges": [{"model": "m"}]}, {"settings": [1]},
    {"settings": {"judges": [{"model": ["m"]}]}}, {"settings": {"judges": [{"model": "m"}]}},
]  # fmt: skip


@pytest.mark.parametrize("before", SAYS_NOTHING, ids=str)
def test_a_provenance_that_says_nothing_usable_changes_nothing(before):
    assert asked_otherwise(before, said_of({"r": RUBRIC}), one_digest) == []
    assert added_or_dropped(before, said_of({"r": RUBRIC})) == []
    assert renamed_judges(before, said_of({"r": RUBRIC}, name="other")) in ({}, {"m": "other"})


def test_what_only_one_of_two_provenances_has_is_named():
    before, now = said_of({"r": RUBRIC, "gone": RUBRIC}), said_of({"r": RUBRIC, "new": RUBRIC}, model="other")
    told = ["rubric new (added)", "judge other (added)", "rubric gone (dropped)", "judge m (dropped)"]
    assert added_or_dropped(before, now) == told
    assert added_or_dropped(before, before) == []


@pytest.mark.parametrize(
    ("was", "now", "renamed", "replaced"),
    [
        ({}, {"name": "other"}, {"m": "other"}, []),
        ({"name": "other"}, {}, {"other": "m"}, []),
        ({"name": "one"}, {"name": "other", "base_url": "http://h/v1", "mode": "batch", "repeats": 2}, {"one": "other"}, []),
        ({}, {"name": "other", "detail": "low"}, {}, ["judge other (in place of m)"]),
        ({}, {"model": "other"}, {}, ["judge other (in place of m)"]),
        ({}, {}, {}, []),
    ],
    ids=["gets a name", "loses it", "changes it", "and is shown pictures otherwise", "another model", "keeps it"],
)
def test_a_judge_of_the_same_requests_under_another_name_is_renamed_and_not_replaced(was, now, renamed, replaced):
    before, after = said_of({}, **was), said_of({}, **now)
    assert renamed_judges(before, after) == renamed
    assert replaced_judges(before, after) == replaced
    assert bool(added_or_dropped(before, after)) == bool(replaced)


def test_code_version_sees_every_change_of_the_code_and_nothing_else(tmp_path):
    for package in PACKAGES:
        (tmp_path / package / "inner").mkdir(parents=True)
        (tmp_path / package / "inner" / "a.py").write_text("x = 1\n")
    first = read(tmp_path)
    (tmp_path / "tasks" / "notes.txt").write_text("not code")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text("")
    assert read(tmp_path) == first
    (tmp_path / "flows" / "inner" / "a.py").rename(tmp_path / "flows" / "inner" / "b.py")
    moved = read(tmp_path)
    (tmp_path / "flows" / "inner" / "b.py").write_text("x = 2\n")
    assert len({first, moved, read(tmp_path)}) == 3
    assert code_version() == read(ROOT)


def read(root):
    code_version.cache_clear()
    return code_version(root)


def test_the_data_dictionary_is_up_to_date():
    page = data_dictionary()
    assert (ROOT / "docs" / "tables.md").read_text(encoding="utf-8") == page, (
        'docs/tables.md is old; write it anew: python -c "from pathlib import Path; from tests.support import data_dictionary; '
        "Path('docs/tables.md').write_text(data_dictionary.data_dictionary())\""
    )
    for table in TABLES.values():
        for column in table.columns:
            assert f"| `{column}` |" in page.split(f"\n## {table.name}\n")[1].split("\n## ")[0]


def test_runs_are_appended_and_never_share_a_file(tmp_path):
    lake = Lake(tmp_path)
    row = {
        "started_at": datetime(2026, 11, 3, 2, 0, 0, 123456, tzinfo=UTC),
        "finished_at": datetime(2026, 11, 3, 2, 5, tzinfo=UTC), "benchmark": "nightly", "run_date": date(2026, 11, 3),
        "publication_id": None, "outcome": "blocked", "dataset_id": "d" * 64, "n_samples": 3, "n_samples_ok": 2, "n_requests": 2,
        "n_cached": 0, "n_asked": 2, "cost_usd": None, "code_version": "c" * 64,
    }  # fmt: skip
    assert runs(lake).height == 0
    paths = {record_run(lake, row) for _ in range(3)}
    assert len(paths) == 3
    assert all(path.name.startswith("20261103T020000123456-") for path in paths)
    assert runs(lake)["started_at"].to_list() == [row["started_at"]] * 3
