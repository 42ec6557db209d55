"""What every receiver is given of a publication: a checkpoint's cells, each figure under a name that stays from night to night.

A receiver's form is a file of its own beside this one.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import urlopen

import polars as pl

from schemas.errors import StoreError
from schemas.lineage import natural_order, placed_in
from schemas.metrics import BOARD, CELL_ORDER
from schemas.records import UNNAMED
from schemas.statuses.cells import CellStatus, Estimand
from schemas.tables.nights import EXAM
from schemas.tables.published import BENCHMARK_LONG, STANDINGS
from tasks.publish.reading import Publication, checked_file
from tasks.publish.standings.exam import marks

FIGURES = (
    "estimate", "se", "ci_low", "ci_high", "bound_low", "bound_high", "coverage", "n_prompts", "n_images", "n_judgements",
    "n_scored", "n_failed", "n_not_applicable", "n_rule_violations",
)  # fmt: skip
"""Columns of benchmark_long. A null is left out: no receiver is told a number that was not published."""

_MAX_FOLDER_NAME = 200  # bytes: it is ASCII

_NAME = ("rubric_id", "judge_model", "dimension", "category", "metric")

Numbers = Mapping[tuple[str, str], Mapping[str, float]]
"""By (model, checkpoint), and by the figure's name."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One row of benchmark_long, and the name under which receivers know it: rubric/judge/dimension/category/metric."""

    name: str
    row: Mapping[str, Any]

    @property
    def blind(self) -> str:
        """What the judge's exam found it blind to in the dimension, as a clause; empty where nothing."""
        row = self.row
        return f"{row['judge_model']} is blind to {row['blind_to']} in {row['dimension']}" if row["blind_to"] else ""

    def numbers(self, columns: Sequence[str]) -> dict[str, float]:
        """Its figures by `name/column`."""
        return {f"{self.name}/{column}": float(self.row[column]) for column in columns if self.row.get(column) is not None}


@dataclass(frozen=True, slots=True)
class Contestant:
    """A checkpoint and its cells, in the table's order."""

    model: str
    checkpoint: str
    cells: Sequence[Cell]

    @property
    def name(self) -> str:
        """Model and checkpoint; the model alone where its checkpoint has no name."""
        return self.model if self.checkpoint == UNNAMED else f"{self.model}/{self.checkpoint}"

    @property
    def n_blocked(self) -> int:
        """Cells that were published without a figure because too much is missing."""
        return sum(cell.row["status"] == CellStatus.BLOCKED.value for cell in self.cells)

    def numbers(self) -> dict[str, float]:
        """All its figures by name."""
        return {name: value for cell in self.cells for name, value in cell.numbers(FIGURES).items()}

    @property
    def estimated(self) -> list[Cell]:
        """The cells with an estimate."""
        return [cell for cell in self.cells if cell.row["estimate"] is not None]


@dataclass(frozen=True, slots=True)
class Exported:
    """A publication as receivers are given it. `name`: what the user calls it there."""

    publication: Publication
    provenance: Mapping[str, Any]
    contestants: Sequence[Contestant]
    name: str | None = None

    def words(self, contestant: Contestant) -> dict[str, str]:
        """What says where a checkpoint's figures come from, as texts."""
        rubrics = self.provenance.get("rubrics") or {}
        said = {
            "benchmark": self.publication.benchmark,
            "publication_id": self.publication.publication_id,
            "run_date": self.publication.run_date,
            "model": contestant.model,
            "checkpoint": contestant.checkpoint,
            "judges": ", ".join(sorted({cell.row["judge_model"] for cell in contestant.cells})),
            "rubrics": ", ".join(f"{name} {of['version']}" for name, of in sorted(rubrics.items())),
            "code_version": str((self.provenance.get("identities") or {}).get("code_version", "")),
            "blind": "; ".join(sorted({cell.blind for cell in contestant.cells} - {""})),
            "n_cells": str(len(contestant.cells)),
            "n_blocked_cells": str(contestant.n_blocked),
        }
        return {name: text for name, text in said.items() if text}


class Exporter(Protocol):
    """What writes a publication in one receiver's form, reads it back with the receiver's own client, and sends it there."""

    columns: Sequence[str]
    """The figures that it keeps of a cell with an estimate; of one without, its counts where it keeps all of FIGURES."""
    checked_by: str
    """What held the folder against the receiver's form, for people."""

    def check(self, exported: Exported, *, is_push: bool) -> None:
        """Raise InputError for what is missing: the package, a name, an address."""

    def write(self, exported: Exported, folder: Path) -> None:
        """Write the folder; nothing is sent."""

    def read(self, folder: Path) -> Numbers:
        """Every figure in a folder, by the receiver's own client."""

    def push(self, exported: Exported, folder: Path) -> str:
        """Send what was written; where it is now, for people. Raises StoreError."""


def read_figures(publication: Publication, name: str | None = None) -> Exported:
    """The cells of benchmark_long that speak for prompts like these, by checkpoint. Raises CorruptLakeError."""
    cells = pl.read_parquet(checked_file(publication, f"{BENCHMARK_LONG.name}.parquet"))
    there = [table for table in (EXAM,) if f"{table.name}.parquet" in publication.files]  # none before there was an exam
    exam = {table: pl.read_parquet(checked_file(publication, f"{table.name}.parquet")) for table in there}
    cells = cells.join(marks(exam), on=list(BOARD), how="left", maintain_order="left")
    mine = cells.filter(pl.col("estimand") == Estimand.PROMPTS_LIKE_THESE.value).sort(CELL_ORDER)
    by_contestant: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in mine.iter_rows(named=True):
        by_contestant.setdefault((row["model"], row["checkpoint"]), []).append(row)
    standing = f"{STANDINGS.name}.parquet"  # older publications have none
    oldest_first = placed_in(pl.read_parquet(checked_file(publication, standing))) if standing in publication.files else []
    places = {one: place for place, one in enumerate(oldest_first)}
    ordered = sorted(by_contestant, key=lambda of: (of[0], places.get(of, -1), natural_order(of)))
    contestants = [Contestant(*of, _named(by_contestant[of])) for of in ordered]
    return Exported(publication, publication.provenance(), contestants, name)


def _named(rows: Sequence[Mapping[str, Any]]) -> list[Cell]:
    """Names of letters, digits and what trackers take beside them; where two would be one, each has its cell's id behind it."""
    names = ["/".join(_plain(row[part]) for part in _NAME) for row in rows]
    n_of = Counter(names)
    return [Cell(name if n_of[name] == 1 else f"{name}-{row['cell_id']}", row) for name, row in zip(names, rows, strict=True)]


def _plain(text: str) -> str:
    """At most 40 characters, so that five of them and a column's name fit into the 250 that MLflow takes."""
    return re.sub(r"[^A-Za-z0-9_.\- ]", "_", text)[:40].strip(" .") or "_"


def folder_name(text: str) -> str:
    """A model's or a checkpoint's name as the name of a folder; `urllib.parse.unquote` gives it back, unless it was too long.

    File systems take 255 bytes, and a sign beyond ASCII becomes nine: what is longer is cut, and ends in a digest of the whole.
    """
    quoted = quote(text, safe=" ")
    quoted = f"%2E{quoted[1:]}" if quoted.startswith(".") else quoted
    if len(quoted) <= _MAX_FOLDER_NAME:
        return quoted
    kept = re.sub(r"%.?$", "", quoted[: _MAX_FOLDER_NAME - 17])
    return f"{kept}-{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:16]}"


def check_reachable(url: str) -> None:
    """Raise StoreError where nobody answers there: a receiver's client would try for minutes and say nothing.

    A login in the address is that client's to use: it is neither sent nor shown.
    """
    parts = urlsplit(url)
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    try:
        urlopen(bare, timeout=20).close()  # noqa: S310 - the address that the user's own settings name
    except HTTPError:
        return  # an answer
    except (OSError, ValueError) as error:
        raise StoreError(f"{bare} does not answer ({error})") from error
