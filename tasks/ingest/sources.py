"""Sources of a benchmark file, resolved: `{model}` and `{checkpoint}` filled from the folders that are there. No row is read."""

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from schemas.benchmark.file import Benchmark, Source, source_name
from schemas.errors import InputError, SourceError
from schemas.pointers import steps
from schemas.records import IMAGE, RESERVED_NAMES, SAMPLE_TEXTS
from tasks.ingest.paths import encodable, quote

COLUMN_NAMES = ("image", "item_id", "model", "checkpoint", "seed", *SAMPLE_TEXTS)
"""What `columns` of a benchmark file may map, beside what its rubrics need."""

_OF_FOLDERS = frozenset({"geneval", "imagefolder"})
"""Readers whose path is a folder: a placeholder stands for no file beside the folders it is for."""

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class ResolvedSource:
    """One folder or file to read: a source with every placeholder filled.

    `own_texts`: columns that rubrics need beside SAMPLE_TEXTS. `pictures`: (role, where in the source) of pictures in order;
    where none has the role `image`, a column of that name has it.
    `model` and `checkpoint` hold where the source's rows do not say. `prefix` is where `root` stands below the part of
    the path that holds no placeholder; it begins every source_key. `checkpoints`, where given, are the only ones wanted.
    """

    name: str
    reader: str
    path: Path
    prefix: str = ""
    model: str | None = None
    checkpoint: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    pictures: tuple[tuple[str, str], ...] = ()
    own_texts: tuple[str, ...] = ()
    where: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    checkpoints: frozenset[str] | None = None
    has_checkpoint_in_path: bool = False
    remote_hosts: tuple[str, ...] = ()
    is_decoded: bool = True  # False: a clean picture's header is enough

    @property
    def root(self) -> Path:
        """The folder no path of the source's data may leave."""
        return self.path if self.path.is_dir() else self.path.parent

    def key(self, place: str) -> str:
        """The source_key of what stands at `place`, a path below the root."""
        return encodable(f"{self.prefix}/{place}" if self.prefix else place)

    def is_wanted(self, model: str | None, checkpoint: str) -> bool:
        """Whether the checkpoint is asked for, by its own name or as model/checkpoint (any model where it is not known yet)."""
        if self.checkpoints is None or checkpoint in self.checkpoints:
            return True
        if model is None:
            return any(wanted.endswith(f"/{checkpoint}") for wanted in self.checkpoints)
        return f"{model}/{checkpoint}" in self.checkpoints


def expand(benchmark: Benchmark, own_texts: Sequence[str], checkpoints: Collection[str] | None = None) -> list[ResolvedSource]:
    """Every source of the benchmark file once for each folder its path stands for, in order.

    `own_texts`, those of StageContext, are read where a row has them; `columns` may map no others beside Salon's own.
    `checkpoints` keeps those alone, each named as it is or as model/checkpoint. Raises SourceError where a path matches
    nothing, and where none of the checkpoints asked for can be there.
    """
    wanted = None if checkpoints is None else frozenset(checkpoints)
    found = [
        resolved
        for index, source in enumerate(benchmark.sources)
        for resolved in _expand_one(source_name(source, index), source, benchmark.path(source.path), wanted, tuple(own_texts))
    ]
    # Where the path does not name the checkpoint a column may: the reader looks at each row.
    kept = [one for one in found if not one.has_checkpoint_in_path or one.is_wanted(one.model, one.checkpoint or "")]
    if not kept:
        there = ", ".join(sorted({f"{one.model}/{one.checkpoint}" if one.model else str(one.checkpoint) for one in found}))
        raise SourceError(f"no source has the checkpoints {', '.join(sorted(wanted or ()))}; available: {there}")
    return kept


def no_rows(
    benchmark: Benchmark, name: str, checkpoints: Collection[str] | None = None, left_out: str | None = None
) -> SourceError:
    """What is said of a source in which there is nothing to read; `left_out`: what is there instead."""
    source = next(one for index, one in enumerate(benchmark.sources) if source_name(one, index) == name)
    where = f", where = {dict(source.where)}" if source.where else ""
    only = f", checkpoints {', '.join(sorted(checkpoints))}" if checkpoints else ""
    return SourceError(
        f"source {name!r} is empty: reader {source.reader} finds no rows at path = {source.path!r}{where}{only}"
        + (f"; {left_out}" if left_out else "")
    )


def _expand_one(
    name: str, source: Source, pattern: Path, wanted: frozenset[str] | None, own_texts: tuple[str, ...]
) -> list[ResolvedSource]:
    _check(name, source, own_texts)
    places = [name_ for part in pattern.parts for name_ in _PLACEHOLDER.findall(part)]
    base = Path(*_leading_parts_without_placeholder(pattern))
    matches = _match(name, source, pattern) if places else [(pattern, {})]
    found = (_resolve(name, source, path, base=base, filled=filled, wanted=wanted) for path, filled in matches)
    return [replace(one, own_texts=own_texts) for one in found]


def _resolve(
    name: str, source: Source, path: Path, *, base: Path, filled: Mapping[str, str], wanted: frozenset[str] | None
) -> ResolvedSource:
    if not path.exists():
        raise SourceError(f"source {name!r}: {path} does not exist; {_mend(source)}")
    if filled and not source.follow_links and not path.resolve().is_relative_to(base.resolve()):
        raise SourceError(
            f"source {name!r}: {quote(str(path))} is a link out of {base}, where path = {quote(source.path)} looks. "
            "If the links are your own, such as to checkpoints on several disks, set follow_links = true for the source"
        )
    model, checkpoint = filled.get("model", source.model), filled.get("checkpoint", source.checkpoint)
    for what, said in (("model", model), ("checkpoint", checkpoint)):
        if said in RESERVED_NAMES:
            raise SourceError(f"source {name!r}: {what} {said!r} is a name that Salon reserves; rename it")
    root = path if path.is_dir() else path.parent
    prefix = root.relative_to(base).as_posix() if filled and root.is_relative_to(base) else "."
    return ResolvedSource(
        name=name,
        reader=source.reader,
        path=path,
        prefix="" if prefix == "." else prefix,
        model=model,
        checkpoint=checkpoint,
        columns=source.columns | ({IMAGE: ""} if IMAGE in source.pictures else {}),
        pictures=tuple((role, at) for role, places in source.pictures.items() for at in _listed(places)),
        where=source.where,
        checkpoints=wanted,
        has_checkpoint_in_path="checkpoint" in filled,
        remote_hosts=tuple(source.remote_hosts),
        is_decoded=source.decode == "full",
    )


def _check(name: str, source: Source, own_texts: Sequence[str]) -> None:
    """What the benchmark file can be told about a source before its folder is looked at."""
    if "://" in source.path:
        raise SourceError(
            f"source {name!r}: {quote(source.path)} is a URL; Salon reads local folders: download it and name the folder"
        )
    _check_columns(name, source, own_texts)
    used = _PLACEHOLDER.findall(source.path)
    for placeholder in used:
        if placeholder not in {"model", "checkpoint"}:
            raise SourceError(
                f"source {name!r}: {{{placeholder}}} in its path is unknown; allowed: {{model}}, {{checkpoint}}. "
                "A folder whose own name has braces cannot be named; rename it"
            )
        if getattr(source, placeholder) is not None:
            raise SourceError(f"source {name!r}: {placeholder} is given twice, in the path and as a value; keep one")
    for part in Path(source.path).parts:
        if len(_PLACEHOLDER.findall(part)) > 1:
            raise SourceError(f"source {name!r}: {quote(part)} holds two placeholders; use at most one per folder name")


def _check_columns(name: str, source: Source, own_texts: Sequence[str]) -> None:
    for column, pointer in source.columns.items():
        if column not in {*COLUMN_NAMES, *own_texts}:
            known = ", ".join((*COLUMN_NAMES, *own_texts))
            raise SourceError(
                f"source {name!r}: columns maps {column!r}, which neither Salon nor a rubric of this file knows; allowed: {known}"
            )
        _check_pointer(name, f"columns.{column}", pointer or "unread")
    for role, places in source.pictures.items():
        for at in _listed(places):
            _check_pointer(name, f"pictures.{role}", at)


def _listed(places: str | list[str]) -> list[str]:
    return [places] if isinstance(places, str) else places


def _check_pointer(name: str, key: str, pointer: str) -> None:
    try:
        steps(pointer)
    except InputError as error:
        raise SourceError(f"source {name!r}: {key}: {error}") from error


def _match(name: str, source: Source, pattern: Path) -> list[tuple[Path, dict[str, str]]]:
    """The paths that fit the pattern, sorted, with what each placeholder stands for."""
    found: list[tuple[Path, dict[str, str]]] = [(Path(), {})]
    looked_in, n_parts = Path(), len(pattern.parts)
    for number, part in enumerate(pattern.parts, 1):
        may_be_file = number == n_parts and source.reader not in _OF_FOLDERS
        step = [child for path, filled in found for child in _children(path, part, filled, may_be_file=may_be_file)]
        if not step:
            looked_in = found[0][0]
            break
        found = step
    else:
        return found
    what = f"folders {quote(part)}, which reader {source.reader} reads" if source.reader in _OF_FOLDERS else quote(part)
    raise SourceError(f"source {name!r}: nothing matches its path; looked in {looked_in} for {what}; {_mend(source)}")


def _mend(source: Source) -> str:
    return f"fix path = {quote(source.path)} in the benchmark file, or mount its disk"


def _children(path: Path, part: str, filled: dict[str, str], *, may_be_file: bool) -> list[tuple[Path, dict[str, str]]]:
    placeholder = _PLACEHOLDER.search(part)
    if not placeholder or placeholder[1] in filled:
        child = path / _PLACEHOLDER.sub(lambda match: filled[match[1]], part)
        return [(child, filled)] if child.exists() else []
    fits = re.compile(f"{re.escape(part[: placeholder.start()])}(.+){re.escape(part[placeholder.end() :])}", re.DOTALL)
    try:
        entries = (entry for entry in os.scandir(path) if not entry.name.startswith("."))
        names = sorted(entry.name for entry in entries if may_be_file or entry.is_dir())
    except NotADirectoryError:
        return []
    children = [(path / name, filled | {placeholder[1]: match[1]}) for name in names if (match := fits.fullmatch(name))]
    for child, _ in children:
        if encodable(child.name) != child.name:
            raise SourceError(f"the folder {quote(str(child))} has a name that is not UTF-8; rename it")
    return children


def _leading_parts_without_placeholder(pattern: Path) -> list[str]:
    parts = list(pattern.parts)
    return parts[: next((index for index, part in enumerate(parts) if _PLACEHOLDER.search(part)), len(parts))]
