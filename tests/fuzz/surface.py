"""What is attacked: a reader, its seeds, its errors; and whether an input found a fault. The readers: surfaces.py, answers.py."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import NamedTuple


class Surface(NamedTuple):
    """`read` takes the bytes and an empty folder; what it returns must be storable, what it raises one of `errors`."""

    seeds: tuple[bytes, ...]
    read: Callable[[bytes, Path], object]
    errors: tuple[type[Exception], ...] = ()
    mend: Callable[[bytes], bytes] = bytes
    kind: str = "a judge's reply"  # as its row in input_budget.TABLE begins
    costs: int = 1  # how many of a plain reader's inputs one of its inputs takes


def fault_of(surface: Surface, content: bytes, folder: Path) -> BaseException | None:
    """What a reading raised that it may not, or a value that could not be stored; None where all is well."""
    try:
        _check_storable(surface.read(content, folder))
    except surface.errors:
        return None
    except BaseException as error:  # noqa: BLE001 - also what is no Exception: a library in Rust that panics
        return error
    return None


def _check_storable(value: object) -> None:
    """Every text can be written as UTF-8: half a surrogate pair would fail only where the row is stored."""
    match value:
        case str():
            value.encode()
        case Enum() | bytes() | None | int() | float():
            pass
        case dict():
            _check_storable([*value.keys(), *value.values()])
        case list() | tuple() | set() | frozenset():
            for one in value:
                _check_storable(one)
        case _ if is_dataclass(value):
            for one in fields(value):
                _check_storable(getattr(value, one.name))


def file_of(suffix: str, use: Callable[[Path], object]) -> Callable[[bytes, Path], object]:
    def read_it(content: bytes, folder: Path) -> object:
        path = folder / f"input{suffix}"
        path.write_bytes(content)
        return use(path)

    return read_it
