"""Rows of any source, and how one becomes a Sample: mapped columns, texts, who made it. No file is opened here."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from schemas.errors import SourceError
from schemas.input_budget import is_too_deep
from schemas.json_text import RepeatedKeyError, loads
from schemas.pointers import MISSING, look_up, steps
from schemas.records import IMAGE, RESERVED_NAMES, SAMPLE_TEXTS, UNKNOWN, UNNAMED, RolePicture, Sample
from schemas.statuses.rows import SampleStatus
from tasks.delimited import columns_told
from tasks.ingest.left_out import LeftOut
from tasks.ingest.paths import encodable, is_inside
from tasks.ingest.sources import COLUMN_NAMES, ResolvedSource
from tasks.ingest.values import (
    BadValueError,
    Picture,
    is_equal,
    name_of,
    own_text_of,
    pictures_of,
    seed_of,
    text_of,
)

Record = tuple[int, dict[str, Any] | str, tuple[str, ...]]
"""Row number from 1, the row's values or one sentence about what is wrong with it, and the file's columns where known."""


@dataclass(frozen=True, slots=True)
class RawRow:
    """One row as a reader finds it. `file` and `number` (from 1) name it in messages, `key` (below the root) in tables.

    `folder` is what image paths of the row are relative to, below the root. `columns` lists the file's columns where the
    reader did not read all of them. `status` other than OK: the reader could not make sense of the row.
    """

    values: Mapping[str, Any]
    file: str
    number: int
    key: str
    folder: str = ""
    columns: Sequence[str] = ()
    status: SampleStatus = SampleStatus.OK
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class DatasetReader:
    """A dataset format: the function that finds its rows, and columns whose names differ from Salon's in it.

    `left_out` looks at what of the source's files no row stands for; None where the rows themselves say it.
    """

    rows: Callable[[ResolvedSource], Iterator[RawRow]]
    columns: Mapping[str, str] = field(default_factory=dict)
    left_out: Callable[[ResolvedSource], LeftOut] | None = None


class _MissingValueError(ValueError):
    """A value the row should have."""


def pointers(source: ResolvedSource, defaults: Mapping[str, str]) -> dict[str, str]:
    """Where each of Salon's columns stands in the source; what is mapped to "" is left out."""
    names = (*COLUMN_NAMES, *source.own_texts)
    return {name: at for name in names if (at := source.columns.get(name, defaults.get(name, name)))}


def columns_read(source: ResolvedSource) -> set[str]:
    """The top-level columns that may be looked at; a reader of wide files need not read others."""
    wanted = [*pointers(source, {}).values(), *source.where, *(at for _, at in source.pictures)]
    return {*wanted, *(str(steps(pointer)[0]) for pointer in wanted)}


def paths_in(row: RawRow, source: ResolvedSource, places: Sequence[str]) -> Iterator[str]:
    """The files below the root that a row names in these columns; what is no picture there is sample_of's business."""
    for pointer in places:
        try:
            found = pictures_of(value_at(row, source, IMAGE, pointer, is_needed=False))
        except BadValueError:
            continue
        yield from (path for one in found if (path := _path_of(row, one)) is not None)


class UndecodedSample(Sample):
    """A sample of a source whose pictures need not be decoded: a clean one's header is enough."""

    __slots__ = ()


def sample_of(row: RawRow, source: ResolvedSource, places: Mapping[str, str], *, is_maker_said: bool = False) -> Sample:
    """The row as a Sample; what cannot be used becomes a status. Raises SourceError where a needed column is not there.

    `is_maker_said`: a column was to say the checkpoint. Where nobody could read who made it, the model is UNKNOWN.
    """
    is_usable = row.status is SampleStatus.OK
    needed = set(source.columns) if is_usable else set()  # what the benchmark file names must be there
    problem: tuple[SampleStatus, str] | None = None if is_usable else (row.status, row.detail or "the row cannot be read")
    taken: dict[str, Any] = {}
    unread: set[str] = set() if is_usable or not is_maker_said else {"checkpoint"}
    for name, pointer in places.items():
        try:
            convert = _CONVERT.get(name, text_of if name in COLUMN_NAMES else own_text_of)
            taken[name] = _not_reserved(name, convert(value_at(row, source, name, pointer, is_needed=name in needed)))
        except (BadValueError, _MissingValueError) as error:
            kind = SampleStatus.BAD_VALUE if isinstance(error, BadValueError) else SampleStatus.MISSING_VALUE
            problem = problem or (kind, f"{name}: {error}")
            unread.add(name)
    model = _who(taken.get("model")) or source.model
    if model is None and problem is None:
        _need_model(row, source, places)
        problem = (SampleStatus.MISSING_VALUE, "the row does not say which model made it")
    checkpoint = _who(taken.get("checkpoint")) or source.checkpoint
    is_known = model is not None and (checkpoint is not None or "checkpoint" not in unread)
    shown = [RolePicture(IMAGE, _path_of(row, one), one.content) for one in taken.get(IMAGE) or ()]
    for role, at in source.pictures:
        try:
            found = pictures_of(value_at(row, source, role, at, is_needed=is_usable))
            shown += [RolePicture(role, _path_of(row, one), one.content) for one in found]
        except (BadValueError, _MissingValueError) as error:
            kind = SampleStatus.BAD_VALUE if isinstance(error, BadValueError) else SampleStatus.MISSING_VALUE
            problem = problem or (kind, f"{role}: {error}")
    judged = next((one for one in shown if one.role == IMAGE), None)
    return (Sample if source.is_decoded else UndecodedSample)(
        source=source.name,
        source_key=source.key(row.key),
        model=model if model is not None and is_known else UNKNOWN,
        checkpoint=checkpoint or UNNAMED,
        texts={name: taken.get(name) for name in SAMPLE_TEXTS}
        | {name: text for name in source.own_texts if (text := taken.get(name)) is not None},
        item_id=taken.get("item_id"),
        seed=taken.get("seed"),
        image_path=judged.path if judged else None,
        image_bytes=judged.content if judged else None,
        status=problem[0] if problem else SampleStatus.OK,
        detail=encodable(problem[1]) if problem else None,
        remote_hosts=source.remote_hosts,
        others=tuple(one for one in shown if one is not judged),
    )


def _not_reserved(name: str, value: Any) -> Any:
    """The value; a name that Salon's tables give another meaning is none of a source. Raises BadValueError."""
    if name not in _FREE and isinstance(value, str) and value.strip() in RESERVED_NAMES:
        raise BadValueError(f"{value.strip()} is a name that Salon reserves; rename it in the source")
    return value


def is_kept(row: RawRow, source: ResolvedSource) -> bool:
    """Whether the row passes the source's `where`. What a broken row does not say counts as said: it must not vanish."""
    is_usable = row.status is SampleStatus.OK
    for pointer, wanted in source.where.items():
        try:
            if not is_usable and look_up(row.values, pointer) is MISSING:
                continue
            if not is_equal(value_at(row, source, "where", pointer, is_needed=True), wanted):
                return False
        except BadValueError:  # of a cell of two readings
            continue
        except _MissingValueError:
            return False
    return True


def value_at(row: RawRow, source: ResolvedSource, name: str, pointer: str, *, is_needed: bool) -> Any:
    """What stands at the pointer; None where nothing needs to."""
    if pointer in row.values:
        return row.values[pointer]
    column, *deeper = steps(pointer)
    if column not in row.values:
        if is_needed and row.status is SampleStatus.OK:
            raise SourceError(_no_column(row, source, name, str(column)))
        return None
    found = look_up(row.values, pointer)
    if found is not MISSING:
        return found
    nested = _parsed(row.values[str(column)])
    found = look_up({"nested": nested}, "nested" + "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in deeper))
    if found is MISSING and is_needed and row.values[str(column)] is not None:
        raise _MissingValueError(f"there is no value at {pointer!r}")
    return None if found is MISSING else found


def _parsed(value: object) -> object:
    """A cell that holds JSON text (CSV and Parquet keep nested values so), parsed. Raises BadValueError for a key twice."""
    if isinstance(value, str) and value.lstrip()[:1] in {"{", "["}:
        try:
            found = loads(value)
        except RepeatedKeyError as error:
            raise BadValueError(f"the JSON in the cell is ambiguous: {error}") from error
        except (ValueError, RecursionError):
            return None
        return None if is_too_deep(found) else found
    return value


def _no_column(row: RawRow, source: ResolvedSource, name: str, column: str) -> str:
    place = f"source {source.name!r}: {source.key(row.file)}, row {row.number} has no column {column!r}"
    if name == "where":
        return f"{place}, which where = {{ … }} names; its columns: {columns_told(row.columns or row.values, [column])}"
    spare = ' (or image = "" where the source has no pictures)' if name == "image" else ""
    advice = f'map the right one with columns = {{ {name} = "…" }}{spare}, or write null in rows without a value'
    return f"{place}, needed for {name}; its columns: {columns_told(row.columns or row.values, [column])}; {advice}"


def _need_model(row: RawRow, source: ResolvedSource, places: Mapping[str, str]) -> None:
    """Stop where no row of the source can say its model: the column is not there, and nothing stands in for it."""
    pointer = places.get("model")
    if pointer is None or (look_up(row.values, pointer) is MISSING and steps(pointer)[0] not in row.values):
        raise SourceError(
            f"source {source.name!r}: {source.key(row.file)}, row {row.number} does not say which model made it; add "
            f'columns = {{ model = "<its column>" }}, or model = "<name>", or {{model}} in the path'
        )


_FREE = frozenset({"item_id", "prompt", "question", "text", "reference", "output"})
"""Columns that name nothing which tables are made by."""
_CONVERT: Mapping[str, Callable[[object], Any]] = {
    "seed": seed_of, IMAGE: pictures_of, "model": name_of, "checkpoint": name_of,
}  # fmt: skip


def _who(name: str | None) -> str | None:
    return name if name and name.strip() else None


def _path_of(row: RawRow, picture: Picture) -> str | None:
    path = picture.path
    if path is None or picture.content is not None or not row.folder or not is_inside(path):
        return path  # one that may not be followed is handed on as it is, to be refused by its name
    return f"{row.folder}/{path}"
