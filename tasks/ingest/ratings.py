"""People's ratings out of tables, long or wide, cell by cell. Which sample is meant is rating_matching.py."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemas.benchmark.ratings import Ratings, RatingScale, RatingValue
from schemas.errors import InputError, SourceError
from schemas.json_text import loads
from schemas.pointers import MISSING, look_up, steps
from schemas.statuses.people import UNNAMED, Assessor, RatingStatus, is_named, is_reserved
from tasks.delimited import columns_told
from tasks.ingest.paths import encodable, quote
from tasks.ingest.readers.tables import SUFFIXES, records
from tasks.ingest.values import BadValueError, is_equal, text_of

IDENTIFIERS = ("sample_id", "item_id", "image")
"""What can name a sample, the surest first."""
NARROWING = ("model", "checkpoint", "seed")
NAMES = (*IDENTIFIERS, *NARROWING, "rater", "dimension", "rating")
"""What `ratings.columns` may map; by default each is the column of the same name."""
SHEET = ("sample_id", "image", "prompt", "dimension", "rater", "rating")
"""The columns of a list of samples to rate that Salon wrote: such a table is read as it is, on the scale of [ratings]."""
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*", re.ASCII)  # or thousands: the table does not say
_ON_STEP = 1e-9  # of a step: 0.1 has no exact binary form


@dataclass(frozen=True, slots=True)
class RatingCell:
    """One cell of a table of ratings, before it is known which sample is meant."""

    key: str
    names: Mapping[str, str]  # of IDENTIFIERS and NARROWING, what the row says
    dimension: str
    rater: str
    is_named: bool  # by the table or the benchmark file; else it is the file's name that stands for one
    kind: Assessor
    scale: RatingScale | None
    rating: float | None
    status: RatingStatus
    detail: str | None = None


def read_ratings(paths: Sequence[Path], ratings: Ratings) -> Iterator[RatingCell]:
    """Every cell of every file; a folder stands for the files of rows in it.

    Raises SourceError where a file cannot be read or lacks a column that `ratings` names, InputError where a name is wrong.
    """
    for name in ratings.columns:
        if name not in NAMES:
            raise InputError(f"ratings.columns: {name} is not a name Salon knows; allowed: {', '.join(NAMES)}")
    for path in rating_files(paths):
        columns = {*ratings.columns.values(), *NAMES, *ratings.where, *(value.at for value in ratings.values)}
        columns |= {str(steps(column)[0]) for column in columns}
        for number, row, there in records(path, path.name, columns):
            if isinstance(row, str):
                raise SourceError(f"{path.name}, row {number} {row}; fix the row")
            how = Ratings(scale=ratings.scale) if tuple(there) == SHEET else ratings
            _check_columns(how, row, there, f"{path.name}, row {number}")
            if all(is_equal(value_at(row, pointer), wanted) for pointer, wanted in how.where.items()):
                yield from _cells(how, row, path, number)


def rating_files(paths: Sequence[Path]) -> list[Path]:
    """The files, and of a folder those of rows in it. Raises SourceError where there are none, InputError for one stem twice."""
    found: list[Path] = []
    for path in paths:
        inside = sorted(one for one in path.iterdir() if _is_table(one.name)) if path.is_dir() else [path]
        if not inside or not all(one.is_file() for one in inside):
            raise SourceError(f"{path} is not a table of ratings ({', '.join(SUFFIXES)}); check the path")
        found += inside
    stems = [path.stem for path in found]
    for stem in stems:
        if stems.count(stem) > 1:
            raise InputError(f"two files of ratings are named {stem}; the file's name is the rater's name, so rename one")
    return found


def _is_table(name: str) -> bool:
    """Not where it begins with a dot: macOS puts a `._anna.csv` beside each file."""
    return not name.startswith(".") and Path(name).suffix.lower() in SUFFIXES


def _check_columns(ratings: Ratings, row: Mapping[str, Any], there: Sequence[str], place: str) -> None:
    """What the benchmark file names must be there, and something must name the sample."""
    known = [str(name) for name in (there or row)]
    mapped = {*ratings.columns.values(), *ratings.where, *(value.at for value in ratings.values)}
    for pointer in sorted(mapped):
        if pointer not in known and str(steps(pointer)[0]) not in known:
            raise SourceError(f"{place} has no column {pointer!r}, which [ratings] names; its columns: {columns_told(known)}")
    if not any(ratings.columns.get(name, name) in known or name in ratings.columns for name in IDENTIFIERS):
        raise SourceError(
            f"{place} does not name a sample: map one of {', '.join(IDENTIFIERS)} under [ratings] columns; its columns: "
            f"{columns_told(known)}"
        )
    if not ratings.values and "rating" not in ratings.columns and "rating" not in known:
        raise SourceError(
            f'{place} has no column "rating"; map it under [ratings] columns, or list the columns that hold ratings as '
            f"[[ratings.values]]; its columns: {columns_told(known)}"
        )


def _cells(ratings: Ratings, row: Mapping[str, Any], path: Path, number: int) -> Iterator[RatingCell]:
    said = {name: text for name in NAMES if (text := text_at(row, ratings.columns.get(name, name))) is not None}
    for value in ratings.values or [RatingValue(at=ratings.columns.get("rating", "rating"))]:
        place = f"{path.name}#{number}:{value.at}"
        dimension = value.dimension or ratings.dimension or said.get("dimension")
        if dimension is None:
            raise SourceError(
                f'{place} does not say its dimension; write dimension = "…" under [ratings] or [[ratings.values]], or map its '
                "column under [ratings] columns"
            )
        narrowed = {"model": value.model, "checkpoint": value.checkpoint}
        scale = value.scale or (None if value.metric is not None else ratings.scale)
        rating, status, detail = _rating(value_at(row, value.at), scale)
        named = value.metric or name_of_rater(value.rater) or name_of_rater(said.get("rater"))
        rater, is_said = whose(named, path, is_unnamed=ratings.unnamed)
        if status is RatingStatus.OK and (why := why_reserved(rater)):
            status, detail = RatingStatus.RESERVED_NAME, why
        yield RatingCell(
            key=encodable(f"{place}:{dimension}"),
            names={name: said[name] for name in (*IDENTIFIERS, *NARROWING) if name in said}
            | {name: text for name, text in narrowed.items() if text is not None},
            dimension=dimension,
            rater=rater,
            is_named=is_said,
            kind=Assessor.RATER if value.metric is None else Assessor.METRIC,
            scale=scale,
            rating=rating,
            status=status,
            detail=detail,
        )


def name_of_rater(said: str | None) -> str | None:
    """A rater's name without the blanks around it, which make nobody another person; None where there is none."""
    return (said or "").strip() or None


def whose(named: str | None, path: Path, *, is_unnamed: bool) -> tuple[str, bool]:
    """The rater, and whether that is said, not only the file's name. What `ratings` calls unnamed raters names nobody."""
    if named is None:
        return (UNNAMED, True) if is_unnamed else (path.stem, False)
    return named if is_named(named) else UNNAMED, True


def why_reserved(rater: str) -> str | None:
    """Why a rating, or vote, of a rater of this name cannot count; None where it can."""
    if rater == UNNAMED or not is_reserved(rater):
        return None
    return f"the rater {quote(rater, 60)}: names that begin and end with __ are Salon's own; rename this rater"


def _rating(found: object, scale: RatingScale | None) -> tuple[float | None, RatingStatus, str | None]:
    """A cell as a number, or why it is none. Nothing is rounded, cut off or filled in."""
    if found is MISSING or found is None or found == "" or (isinstance(found, float) and math.isnan(found)):
        return None, RatingStatus.MISSING, None
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    is_number = is_number or (isinstance(found, str) and bool(_NUMBER.fullmatch(found)))
    try:
        number = float(found) if is_number else math.nan  # type: ignore[arg-type]
    except OverflowError:  # a whole number of hundreds of digits
        number = math.inf
    if not math.isfinite(number):
        comma = ", with a decimal comma," if _DECIMAL_COMMA.fullmatch(str(found)) else ""
        return None, RatingStatus.BAD_VALUE, f"{quote(repr(found), 60)}{comma} is not a number"
    if scale is None:
        return number, RatingStatus.OK, None
    if not scale.min <= number <= scale.max:
        return number, RatingStatus.OUT_OF_RANGE, f"{number:g} is not within {scale.min:g} to {scale.max:g}"
    if scale.step is not None:
        n_steps = (number - scale.min) / scale.step
        if abs(n_steps - round(n_steps)) > _ON_STEP:
            return number, RatingStatus.OFF_STEP, f"{number:g} is not a multiple of {scale.step:g} counted from {scale.min:g}"
    return number, RatingStatus.OK, None


def text_at(row: Mapping[str, Any], pointer: str) -> str | None:
    """What stands at the pointer as a text; None where nothing does, or nothing that is a text."""
    try:
        text = text_of(value_at(row, pointer))
    except BadValueError:
        return None
    return text or None


def value_at(row: Mapping[str, Any], pointer: str) -> Any:
    """What stands at the pointer, also inside a cell that holds JSON text, as CSV and TSV keep lists; None where nothing does."""
    found = look_up(row, pointer)
    if found is not MISSING:
        return found
    column, *deeper = steps(pointer)
    cell = row.get(str(column))
    if not deeper or not isinstance(cell, str):
        return None
    try:
        nested = loads(cell)
    except (ValueError, RecursionError):
        return cell if cell.strip() else None  # a text where a list should be: no number, and so said
    found = look_up({"nested": nested}, "nested" + "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in deeper))
    return None if found is MISSING else found
