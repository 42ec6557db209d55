"""One publication: its tables as polars frames, each held against the digest it was published with. It computes no number.

An agreement with people is one too, of other tables. Which there are: finding.py.
"""

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from salon.errors import SalonError
from salon.notebook import Report, as_html
from salon.places import Place
from salon.rows import given, headlines, in_order, is_of, narrowed, sides, turned_round, with_blindness
from salon.samples import Samples

if TYPE_CHECKING:
    import polars as pl

MACRO = "__macro__"
_CONTESTANT = ("model", "checkpoint")
_OF_ALL = ("drift", "runs")  # tables that go on from night to night


@dataclass(frozen=True)
class Publication:
    """A published folder. `folder` is below the place; `is_current` says whether its benchmark's pointer names it."""

    place: Place
    folder: str
    benchmark: str
    publication_id: str
    run_date: str
    is_current: bool
    files: Mapping[str, str]  # name -> sha256, as the manifest says

    @cached_property
    def newer(self) -> "Publication | None":
        """The newest publication that did not become current, of the current one; None where there is none, or it was taken back.

        A copy of `publish` alone does not know what was taken back. Raises SalonError where one cannot be read.
        """
        from salon.finding import newer

        return newer(self)

    @cached_property
    def withdrawn(self) -> str | None:
        """When and why it was taken back (`salon withdraw`); None where it was not, or a run has made it again since.

        A copy of `publish` alone does not know. Raises SalonError where that cannot be read.
        """
        from salon.finding import withdrawn

        return withdrawn(self)

    @property
    def tables(self) -> list[str]:
        """What `table` can read: the tables in the folder, and the large ones beside all publications."""
        small = {name.removesuffix(".parquet") for name in self.files if name.endswith(".parquet")}
        return sorted(small | {file["table"] for file in self._placed()})

    def table(self, name: str) -> "pl.DataFrame":
        """A table as published (docs/tables.md). Raises SalonError where there is none, or a file is not what was published."""
        import polars as pl

        if f"{name}.parquet" in self.files:
            return pl.read_parquet(io.BytesIO(self.content(f"{name}.parquet")))
        parts = [file for file in self._placed() if file["table"] == name]
        if not parts:
            beside = "; it covers all publications: read it from salon.duckdb, beside their folders"
            what = f"{self.benchmark} {self.publication_id[:12]} has no table {name!r}; available: {', '.join(self.tables)}"
            raise SalonError(what + (beside if name in _OF_ALL else self._remedy))
        read = [self._checked(f"{self.place.tables}{file['path']}", file["sha256"]) for file in parts]
        return pl.concat(pl.read_parquet(io.BytesIO(content)) for content in read)

    def content(self, name: str) -> bytes:
        """A file of the folder, after its digest was held against the manifest. Raises SalonError."""
        if name not in self.files:
            raise SalonError(f"{self!r} has no file {name!r}; available: {', '.join(self.files)}{self._remedy}")
        return self._checked(f"{self.folder}/{name}", self.files[name])

    @property
    def is_older(self) -> bool:
        """Whether a release published it that had no standings; an agreement has none either."""
        return not {"standings.parquet", "agreement.parquet"} & self.files.keys()

    @property
    def _remedy(self) -> str:
        """What is said behind what it lacks."""
        told = "; an older release published it: publish it again with this release (salon run) to get more"
        return told if self.is_older else ""

    def _checked(self, name: str, sha256: str) -> bytes:
        content = self.place.read(name)
        if content is None or hashlib.sha256(content).hexdigest() != sha256:
            raise SalonError(f"{self.place.root}/{name} is not the file that was published; restore it from its source")
        return content

    def _placed(self) -> list[dict[str, str]]:
        """The files among the tables for machines; none for a publication from before there were such."""
        if "tables.json" not in self.files:
            return []
        try:
            return [
                {name: str(file[name]) for name in ("table", "path", "sha256")} for file in self._said("tables.json")["files"]
            ]
        except (KeyError, TypeError) as error:
            raise self._is_spoiled("tables.json", error) from error

    def provenance(self) -> dict[str, Any]:
        """What it was made from: identities, instruments, judges, settings. Raises SalonError where that cannot be read."""
        return self._said("provenance.json")

    def _said(self, name: str) -> dict[str, Any]:
        content = self.content(name)
        try:
            return dict(json.loads(content))
        except (ValueError, TypeError, RecursionError) as error:
            raise self._is_spoiled(name, error) from error

    def _is_spoiled(self, name: str, error: Exception) -> SalonError:
        return SalonError(f"{self.place.root}/{self.folder}/{name} cannot be read ({error!r:.80}); restore it from its source")

    def standings(
        self, rubric: str | None = None, dimension: str | None = None, category: str = MACRO, *, is_all: bool = False
    ) -> "pl.DataFrame":
        """Who is better and how sure that is, best first: the table `standings`, of the headline dimensions alone.

        `dimension` names another one, `is_all` leaves none out. Ranks, differences and p come from one family of comparisons.
        Where the judge had its exam, `blind_to` says which planted faults it does not notice there. Raises SalonError for a value
        that no ranking has, and for a category where only headline rankings are asked for, which have none.
        """
        table = self._of_singles("standings", rubric)
        is_asked = (rubric, dimension, category) != (None, None, MACRO)  # else a publication without a ranking has none to show
        rows = narrowed(table, rubric_id=rubric, dimension=dimension, category=category) if is_asked else table
        rows = rows.filter(category=category)
        if dimension is None and not is_all:
            rows = headlines(rows, narrowed(table, rubric_id=rubric)) if is_asked else rows.filter("is_headline")
        if "exam.parquet" in self.files:
            rows = with_blindness(rows, self.table("exam"))
        order = ["rubric_id", "judge_model", "dimension", "rank_low", "rank_high", "estimate", *_CONTESTANT]
        return rows.sort(order, descending=[name == "estimate" for name in order], nulls_last=True)

    def compare(
        self, a: str, b: str, rubric: str | None = None, dimension: str | None = None, category: str | None = None
    ) -> "pl.DataFrame":
        """The published comparisons of a with b (checkpoint, or model/checkpoint), as a less b: one row for each pair of cells.

        `verdict` is what the page says of a. Raises SalonError for a name that is no checkpoint's, or more than one's, where both
        are one, and where the two were compared in pairs alone: win rates are another table.
        """
        import polars as pl

        table = self._of_singles("comparisons", rubric)
        first, second = (self._contestant(name) for name in (a, b))
        if first == second:
            raise SalonError(f"{a!r} and {b!r} are the same checkpoint; name another one to compare with")
        sides = [tuple(f"{name}_{side}" for name in _CONTESTANT) for side in "ab"]
        if table.is_empty() and "preferences.parquet" in self.files:
            raise SalonError(
                "they were compared only in pairs: see p.table('preferences'), whose win_rate is that of a against b"
            )
        same = table.filter(is_of(sides[0], first), is_of(sides[1], second))
        turned = turned_round(table.filter(is_of(sides[0], second), is_of(sides[1], first)))
        rows = narrowed(pl.concat([same, turned]), rubric_id=rubric, dimension=dimension, category=category)
        key = ["rubric_id", "judge_model", "dimension", "category", "metric", "estimand"]
        is_tested = pl.col("p_adjusted").is_not_null()  # one pair stands under each kind of comparison it is made for
        return rows.sort([*key, is_tested], descending=[False] * 6 + [True]).unique(key, keep="first", maintain_order=True)

    def samples(
        self,
        prompt: str | None = None,
        model: str | None = None,
        checkpoint: str | None = None,
        category: str | None = None,
        rubric: str | None = None,
    ) -> Samples:
        """The judged samples with their scores, and in a notebook their pictures. `prompt`: a part of its text, in any case.

        Raises SalonError for another value that no sample, or no judgement, has.
        """
        return Samples.of(self, prompt, given(model=model, checkpoint=checkpoint, category=category), rubric)

    def report(self) -> Report:
        """The page: shown in a notebook, opened in a browser by `.open()`."""
        return Report(self.content("report.html"), self.place, f"{self.folder}/report.html")

    def _of_singles(self, name: str, rubric: str | None) -> "pl.DataFrame":
        """A table that has no rows of rubrics of pairs."""
        table = self.table(name)
        pairs = self.table("preferences") if rubric is not None and "preferences.parquet" in self.files else None
        if pairs is not None and rubric in pairs["rubric_id"] and rubric not in table["rubric_id"]:
            raise SalonError(f"the rubric {rubric!r} asks which of two is better: see p.table('preferences'), its win rates")
        return table

    def _contestant(self, name: str) -> tuple[str, str]:
        paired = sides(self.table("preferences")) if "preferences.parquet" in self.files else ()
        cells: set[tuple[str, str]] = {*self.table("benchmark_long").select(_CONTESTANT).iter_rows(), *paired}
        found = [pair for pair in cells if name in (pair[1], "/".join(pair))]
        if len(found) != 1:
            known = ", ".join(in_order("/".join(pair) for pair in found or cells))
            told = f"{len(found)} published checkpoints are called" if found else "no published checkpoint is called"
            raise SalonError(f"{told} {name!r}; write one of: {known}")
        return found[0]

    def __repr__(self) -> str:
        current = "current" if self.is_current else self.withdrawn or "not current"
        return f"Publication({self.benchmark!r}, {self.run_date}, {self.publication_id[:12]}, {current})"

    def _repr_html_(self) -> str:
        """The headline standings as a table; every text escaped."""
        return as_html(self)
