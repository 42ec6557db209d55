"""What `salon verify` prints of differences: in the order of the steps, the cause first, and no line above it sounds fine."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tasks.verify.rows import Values, count_values
from tests.flows.flow_support import Said

BENCHMARK = """\
name = "shades"
[[sources]]
reader = "manifest"
path = "m.jsonl"
[[rubrics]]
id = "alignment"
[[judges]]
model = "gpt-4o"
recorded = true
"""


@pytest.fixture
def publication(tmp_path: Path, salon: Callable[..., Said]) -> str:
    """The id of a publication of one recorded reply."""
    Image.new("RGB", (8, 8), (80, 0, 0)).save(tmp_path / "a.png")
    (tmp_path / "m.jsonl").write_text('{"image": "a.png", "prompt": "a dark red", "model": "m", "checkpoint": "c"}\n')
    (tmp_path / "replies.jsonl").write_text('{"prompt": "a dark red", "reply": "Score: 4"}\n')
    (tmp_path / "b.toml").write_text(BENCHMARK)
    said = salon("import", "b.toml", "--replies", "replies.jsonl")
    assert said.code == 0, said.err
    return said.out.partition("publication ")[2][:16]


def _reply_changed(lake: Path) -> None:
    (path,) = lake.glob("replies/*/part-*.parquet")
    table = pq.read_table(path)
    place = table.schema.get_field_index("reply_text")
    pq.write_table(table.set_column(place, table.schema.field(place), pa.array(["Score: 3"], pa.string())), path)


def _identity_changed(lake: Path) -> None:
    (path,) = lake.glob("publish/v1/shades/*/provenance.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"run_date": "2025-01-01"}))


def _replies_broken(lake: Path) -> None:
    (path,) = lake.glob("replies/*/part-*.parquet")
    path.write_bytes(b"no Parquet")


@pytest.mark.parametrize(
    ("change", "first", "differing"),
    [
        (_reply_changed, "lake, replies", ["lake", "replies", "scores", "tables"]),
        (_identity_changed, "manifest, manifest.json", ["manifest", "provenance", "tables"]),
        (_replies_broken, "lake, replies", ["lake", "replies"]),
    ],
    ids=["a reply", "what it was made from", "a step that cannot be done"],
)
def test_the_cause_stands_first(
    publication: str, salon: Callable[..., Said], tmp_path: Path, change: Callable[[Path], None], first: str, differing: list[str]
) -> None:
    change(tmp_path / "lake")
    said = salon("verify", publication, "--limit", "1")
    assert said.code == 1
    lines = said.out.splitlines()
    assert lines[-1].startswith("not verified: ")
    assert lines[-1].endswith(f" differences, the first in: {first}")
    summary = [line.split()[0] for line in lines[1 : lines.index("")] if re.search("differences?: ", line)]
    assert [step for step in summary if step in differing] == differing
    headings = [line.rpartition(": ")[0] for line in lines if line.endswith((" difference", " differences"))]
    assert headings[0] == first.rpartition(", ")[2]
    assert len(headings) == len(set(headings))

    whole = json.loads(salon("verify", publication, "--json").out)
    assert f"not verified: {len(whole['differences']):,} differences" in lines[-1]
    places = list(dict.fromkeys(one["place"] for one in whole["differences"]))
    assert places == headings


@pytest.mark.parametrize("parts", [["x"], [{}], [None], {"a": 1}, 5])
def test_a_broken_marker_is_one_difference_and_the_other_partitions_are_looked_at(
    publication: str, salon: Callable[..., Said], tmp_path: Path, parts: object
) -> None:
    (marker,) = tmp_path.glob("lake/complete/samples/*")
    marker.write_text(json.dumps({"parts": parts}))
    whole = json.loads(salon("verify", publication, "--json").out)
    found = [(one["place"], one["derived"]) for one in whole["differences"]]
    assert ("samples", "it is not in the lake, or its marker is broken") in found
    assert {place for place, _ in found}.isdisjoint({"lake", "judgements", "requests", "replies"})


@pytest.mark.parametrize("forged", ["tables", "salon.duckdb"])
def test_what_was_forged_is_called_published(publication: str, salon: Callable[..., Said], tmp_path: Path, forged: str) -> None:
    """Beside a figure that was changed in one place the same stands unchanged in others: those are not named."""
    home = tmp_path / "lake" / "publish" / "v1"
    if forged == "tables":
        (path,) = home.glob("tables/standings/**/*.parquet")
        pq.write_table(pl.read_parquet(path, hive_partitioning=False).with_columns(estimate=pl.lit(9.99)).to_arrow(), path)
    else:
        with duckdb.connect(str(home / "shades" / "salon.duckdb")) as database:
            database.execute("UPDATE standings SET estimate = 9.99")
    found = [one for one in json.loads(salon("verify", publication, "--json").out)["differences"] if one["column"] == "estimate"]
    assert [(one["published"], one["derived"]) for one in found] == [("9.99", "4.0")]
    assert ("duckdb" in found[0]["place"]) == (forged == "salon.duckdb")


def _of_other_code(lake: Path, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    """The publication as if another version had made it, whose table had other columns."""
    (path,) = lake.glob("publish/v1/shades/*/provenance.json")
    said = json.loads(path.read_text())
    path.write_text(json.dumps(said | {"identities": said["identities"] | {"code_version": "0" * 64}}))
    table = path.with_name("benchmark_long.parquet")
    pq.write_table(change(pl.read_parquet(table, hive_partitioning=False)).to_arrow(), table)


@pytest.mark.parametrize(
    ("change", "n_differing", "ends"),
    [
        (lambda cells: cells.drop("ci_low"), 0, "rebuilt tables share, none differs"),
        (lambda cells: cells.with_columns(own=pl.lit(1)), 0, "rebuilt tables share, none differs"),
        (lambda cells: cells.drop("ci_low").with_columns(estimate=pl.lit(9.99)), 1, "rebuilt tables share, 1 differ"),
        (lambda cells: cells.with_columns(n_images=pl.col("n_images").cast(pl.String)), 1, "rebuilt tables share, 1 differ"),
    ],
    ids=["a column came since", "a column went since", "a number differs", "a type differs"],
)
def test_of_another_version_it_is_said_first_whether_the_numbers_hold(
    publication: str,
    salon: Callable[..., Said],
    tmp_path: Path,
    change: Callable[[pl.DataFrame], pl.DataFrame],
    n_differing: int,
    ends: str,
) -> None:
    assert json.loads(salon("verify", publication, "--json").out)["values"] is None, "made by the code at hand"
    _of_other_code(tmp_path / "lake", change)
    n_rows = len(pl.read_parquet(next((tmp_path / "lake").glob("publish/v1/shades/*/benchmark_long.parquet"))))
    said = salon("verify", publication)
    lines = said.out.splitlines()
    (line,) = (line for line in lines if line.startswith("values "))
    assert said.code == 1
    assert lines.index(line) < lines.index("")
    values = json.loads(salon("verify", publication, "--json").out)["values"]
    assert values["n_differing"] == n_differing * n_rows
    assert f"of the {values['n']:,} values" in line
    assert line.endswith(ends.replace("1 differ", f"{n_rows} differ"))


def test_what_is_the_same_is_said_without_differences(publication: str, salon: Callable[..., Said]) -> None:
    said = salon("verify", publication)
    assert said.code == 0
    assert "differences" not in said.out


def test_without_an_argument_the_current_publication_is_verified(publication: str, salon: Callable[..., Said]) -> None:
    said = salon("verify", "--json")
    assert said.code == 0, said.err
    assert json.loads(said.out)["publication"].startswith(publication)
    nothing = salon("verify", "--lake", "elsewhere")
    assert (nothing.code, "there is no publication in the lake elsewhere" in nothing.err) == (2, True)


def test_of_a_row_that_was_not_made_again_every_value_differs() -> None:
    published = pl.DataFrame({"key": ["a", "b", "c"], "number": [1, 2, 3], "word": ["x", "y", None]})
    derived = pl.DataFrame({"key": ["a", "b"], "number": [1, 5], "word": ["x", "y"]})
    assert count_values(published, derived, ["key"]) == Values(9, 4)
