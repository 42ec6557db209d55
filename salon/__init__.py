"""What a notebook imports: publications read by their tables alone, and Salon's commands started as processes of their own.

Nothing here imports the packages of the application, so that it works in any project, whatever is called `tasks` there; and
nothing heavy is imported before it is used.
"""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from salon import finding
from salon.errors import SalonError
from salon.notebook import Report
from salon.places import Place
from salon.publication import Publication
from salon.running import Plan, parse, plan, run
from salon.samples import Samples

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Plan", "Publication", "Report", "SalonError", "Samples", "agreements", "open", "parse", "plan", "publications", "run"]


def open(  # noqa: A001 - `salon.open`, as in `gzip.open`
    place: str | Path = "lake", benchmark: str | None = None, publication: str | None = None
) -> Publication:
    """The current publication of a lake, or the one, or the agreement, whose id begins with `publication` (4 characters or more).

    `place`: the lake's folder, a copy of its `publish` alone, or s3://bucket/prefix. With several benchmarks, name one.
    Warns where that one was taken back (`salon withdraw`). Raises SalonError that says what there is instead.
    """
    found = finding.find(Place.of(place), benchmark, publication)
    if found.withdrawn:
        warnings.warn(f"{found.benchmark} {found.publication_id[:12]} was {found.withdrawn}", stacklevel=2)
    return found


def publications(place: str | Path = "lake") -> "pl.DataFrame":
    """What a lake has published: a row for each benchmark, run date and publication, and whether it is the current one.

    One whose folder is not whole has no run date.
    """
    return finding.listed(Place.of(place))


def agreements(place: str | Path = "lake") -> "pl.DataFrame":
    """The agreements with people or a judge that a lake has published, as `publications` lists those; current is the last one.

    `salon.open(place, publication=…)` opens one, whose tables are read by their names.
    """
    return finding.agreements(Place.of(place))
