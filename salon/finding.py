"""Which publications and agreements a place holds, and one of them opened. What can be asked of it: publication.py."""

import hashlib
import io
import json
import re
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from salon.errors import SalonError
from salon.places import LAYOUT, Place
from salon.publication import Publication

if TYPE_CHECKING:
    import polars as pl

_IS_ID = re.compile(r"[0-9a-f]{64}")


def open(  # noqa: A001 - `salon.open`, as in `gzip.open`
    place: str | Path = "lake", benchmark: str | None = None, publication: str | None = None
) -> Publication:
    """The current publication of a lake, or the one, or the agreement, whose id begins with `publication` (4 characters or more).

    `place`: the lake's folder, a copy of its `publish` alone, or s3://bucket/prefix. With several benchmarks, name one.
    Warns where that one was taken back (`salon withdraw`). Raises SalonError that says what there is instead.
    """
    found = find(Place.of(place), benchmark, publication)
    if found.withdrawn:
        warnings.warn(f"{found.benchmark} {found.publication_id[:12]} was {found.withdrawn}", stacklevel=2)
    return found


def publications(place: str | Path = "lake") -> "pl.DataFrame":
    """What a lake has published: a row for each benchmark, run date and publication, and whether it is the current one.

    One whose folder is not whole has no run date.
    """
    lake = Place.of(place)
    return _table(lake, _homes(lake))


def agreements(place: str | Path = "lake") -> "pl.DataFrame":
    """The agreements with people or a judge that a lake has published, as `publications` lists those; current is the last one.

    `salon.open(place, publication=…)` opens one, whose tables are read by their names.
    """
    lake = Place.of(place)
    return _table(lake, _of_agreements(_homes(lake)))


def find(place: Place, benchmark: str | None, prefix: str | None) -> Publication:
    """The publication or agreement that open() gives, without its warning."""
    homes = [name for name in _homes(place) if benchmark in (None, name)]
    if prefix:
        found = [
            pair for pair in _pairs(place, [*homes, *_of_agreements(homes)]) if len(prefix) >= 4 and pair[1].startswith(prefix)
        ]
    else:
        found = [(home, named[0]) for home in homes if (named := _pointer(place, home))]
    if len(found) == 1:
        return _opened(place, *found[0])
    every = _homes(place)
    there = [(*row, "") for row in _table(place, every).iter_rows()]
    there += [(*row, "  agreement") for row in _table(place, _of_agreements(every)).iter_rows()]
    known = "\n".join(
        f"  {home}  {day or 'not whole'}  {one[:12]}{kind}{'  current' * bool(is_current)}"
        for home, one, day, is_current, kind in there
    )
    what = f"{len(found)} publications" if found else "no publication"
    raise SalonError(
        f"{what} in {place.root} {_asked(benchmark, prefix, len(found))}; choose one with benchmark= or publication=:\n"
        f"{known or '  none'}"
    )


def newer(shown: Publication) -> Publication | None:
    """See Publication.newer."""
    place, home = shown.place, shown.folder.removeprefix(shown.place.tables).rpartition("/")[0]
    if not shown.is_current or home != shown.benchmark:  # an agreement
        return None
    others = [one for pair in _pairs(place, [home]) if (one := _opened(place, *pair)).run_date >= shown.run_date]
    ended = _ended(place, home) if len(others) > 1 else {}
    age = {one.publication_id: (one.run_date, min(ended.get(one.publication_id, []), default="")) for one in others}
    for one in sorted(others, key=lambda one: age[one.publication_id], reverse=True):
        if age[one.publication_id] <= age[shown.publication_id]:
            break
        if _withdrawal(place, one.publication_id, len(ended.get(one.publication_id, []))) is None:
            return one
    return None


def withdrawn(shown: Publication) -> str | None:
    """See Publication.withdrawn."""
    place, home = shown.place, shown.folder.removeprefix(shown.place.tables).rpartition("/")[0]
    if shown.is_current or home != shown.benchmark:  # an agreement
        return None
    if _withdrawal(place, shown.publication_id) is None:  # which costs nothing to know; the runs do
        return None
    said = _withdrawal(place, shown.publication_id, len(_ended(place, home).get(shown.publication_id, [])))
    return None if said is None else f"taken back on {said['withdrawn_at'][:16].replace('T', ' ')} UTC: {said['because']}"


def _withdrawal(place: Place, publication_id: str, n_runs: int = 0) -> dict[str, str] | None:
    """What withdrawn/ says of it; None where it says nothing, or a run made or found it since, the last of so many."""
    name = f"withdrawn/{publication_id}.json"
    content = place.read(name) if place.tables == f"{LAYOUT}/" else None
    if content is None:
        return None
    try:
        said = json.loads(content)
        found, n_runs_then = {name: str(said[name]) for name in ("withdrawn_at", "because")}, int(said["n_runs"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _not_ours(place, name, error) from error
    return None if n_runs > n_runs_then else found


def _ended(place: Place, home: str) -> dict[str, list[str]]:
    """When the runs ended that made or found each publication of a benchmark."""
    import polars as pl

    ended: dict[str, list[str]] = {}
    for name in place.names(f"{place.tables}tables/runs/benchmark_name={home}", ".parquet"):
        try:
            run = pl.read_parquet(io.BytesIO(place.read(name) or b"")).row(0, named=True)
            ended.setdefault(run["publication_id"], []).append(run["finished_at"].isoformat())
        except (ValueError, KeyError, TypeError, AttributeError, pl.exceptions.PolarsError) as error:
            raise _not_ours(place, name, error) from error
    return ended


def _not_ours(place: Place, name: str, error: Exception) -> SalonError:
    return SalonError(f"{place.root}/{name} was not written by Salon ({error!r:.80}); restore it from its source")


def _homes(place: Place) -> list[str]:
    return [name for name in place.children(place.tables) if name != "tables"]


def _of_agreements(homes: Iterable[str]) -> list[str]:
    return [f"{home}/agreement" for home in homes]


def _pairs(place: Place, homes: Iterable[str]) -> list[tuple[str, str]]:
    """The folders that are named as publications are, each with the one that it stands in."""
    return [(home, one) for home in homes for one in place.children(f"{place.tables}{home}") if len(one) == 64]


def _table(place: Place, homes: Iterable[str]) -> "pl.DataFrame":
    import polars as pl

    schema = {"benchmark": pl.String, "publication_id": pl.String, "run_date": pl.String, "is_current": pl.Boolean}
    rows = [_row(place, *pair) for pair in _pairs(place, homes)]
    found = pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col("run_date").str.to_date(strict=False))
    return found.sort("benchmark", "run_date", "publication_id")


def _row(place: Place, home: str, publication_id: str) -> tuple[str, str, str | None, bool]:
    """Its row; without a date where its folder is not whole, which opening it says."""
    try:
        one = _opened(place, home, publication_id)
    except SalonError as error:
        if error.exit_code == 3:  # the place cannot be read
            raise
        return home.partition("/")[0], publication_id, None, False
    return one.benchmark, one.publication_id, one.run_date, one.is_current


def _opened(place: Place, home: str, publication_id: str) -> Publication:
    folder = f"{place.tables}{home}/{publication_id}"
    content = place.read(f"{folder}/manifest.json") or b""
    named, sha256 = _pointer(place, home) or ("", "")
    if named == publication_id and hashlib.sha256(content).hexdigest() != sha256:
        raise SalonError(f"{place.root}/{folder}/manifest.json does not match latest.json; restore it from its source")
    try:
        said = json.loads(content)
        files = {name: file["sha256"] for name, file in said["files"].items()}
        found = said["benchmark"], said["publication_id"], said["run_date"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SalonError(f"{place.root}/{folder} has no complete manifest.json; restore it from its source") from error
    return Publication(place, folder, *found, named == publication_id, files)


def _pointer(place: Place, home: str) -> tuple[str, str] | None:
    """The publication that a benchmark's pointer names, and its manifest's sha256; None where there is none yet."""
    content = place.read(f"{place.tables}{home}/latest.json")
    if content is None:
        return None
    try:
        said = json.loads(content)
        named, sha256 = (str(said[name]) for name in ("publication_id", "manifest_sha256"))
        is_one = _IS_ID.fullmatch(named) is not None  # it becomes a folder's name
    except (ValueError, KeyError, TypeError, RecursionError):
        is_one = False
    if not is_one:
        raise SalonError(f"{place.root}/{place.tables}{home}/latest.json is not a pointer written by Salon; restore it")
    return named, sha256


def _asked(benchmark: str | None, prefix: str | None, n: int) -> str:
    of = f"of benchmark {benchmark!r}" if benchmark else "are current" if n > 1 else "is current"
    return f"{of} and begin{'s' * (n < 2)} with {prefix!r} (4 characters or more)" if prefix else of
