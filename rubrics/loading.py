"""Finding and loading rubric folders, every file inside its folder and bounded. Whether a rubric makes sense is linting.py."""

import difflib
import re
import tomllib
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError

from rubrics.assembling import assemble
from rubrics.declaration import Declaration, explain
from rubrics.linting import lint
from rubrics.model import Rubric
from schemas.errors import RubricError

__all__ = ["DECLARATION", "SHIPPED", "find_rubrics", "lint", "list_rubrics", "load_rubric"]

SHIPPED = Path(__file__).resolve().parent
"""The folder of the rubrics that come with Salon."""

DECLARATION = "rubric.toml"
_MAX_DECLARATION_BYTES = 256 * 1024
_MAX_PROMPT_BYTES = 1024 * 1024
_MAX_PROBLEMS = 20
_PROMPT_NAME = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}/)*[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


def load_rubric(folder: Path) -> Rubric:
    """The rubric declared in a folder. Raises RubricError naming the file, the key and what is allowed."""
    raw = _read(folder, DECLARATION, _MAX_DECLARATION_BYTES)
    declared = _declaration(folder / DECLARATION, raw)
    names = [declared.prompt, *(variant.prompt for variant in declared.variants)]
    prompts = {name: _read_prompt(folder, name) for name in names if name}
    return assemble(folder, declared, prompts, _digest({DECLARATION: raw} | prompts))


def find_rubrics(ids: Sequence[str], folders: Sequence[Path] = (SHIPPED,)) -> dict[str, Rubric]:
    """The rubrics of these ids, by id; each of `folders` is a rubric folder or holds some. Raises RubricError."""
    places = _places(folders)
    found: dict[str, Rubric] = {}
    for name in ids:
        at = places.get(name, [])
        if not at:
            close = difflib.get_close_matches(name, places, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            known = ", ".join(sorted(places)) or "none"
            searched = ", ".join(str(folder) for folder in folders)
            raise RubricError(f"there is no rubric {name!r}{hint} Known: {known}. Searched: {searched}")
        if len(at) > 1:
            both = " and ".join(str(folder) for folder in at)
            raise RubricError(f"the rubric {name!r} stands in {both}; rename one, so that it is clear which is meant")
        found[name] = load_rubric(at[0])
    return found


def list_rubrics(folders: Sequence[Path] = (SHIPPED,)) -> list[Rubric]:
    """Every rubric of these folders, by id. Raises RubricError at the first that does not load."""
    return list(find_rubrics(sorted(_places(folders)), folders).values())


def _places(folders: Sequence[Path]) -> dict[str, list[Path]]:
    """Rubric id (which is the folder's name) -> the folders of that name, each real folder once."""
    places: dict[str, dict[Path, Path]] = {}
    for folder in folders:
        if not folder.is_dir():
            raise RubricError(f"{folder} is not a folder; name one that holds rubric folders")
        try:
            inside = sorted(folder.iterdir())
        except OSError as error:
            raise RubricError(f"{folder} cannot be read: {error}") from error
        for place in [folder, *inside]:
            if (place / DECLARATION).is_file():
                places.setdefault(place.resolve().name, {}).setdefault(place.resolve(), place)
    return {name: list(at.values()) for name, at in places.items()}


def _read_prompt(folder: Path, name: str) -> bytes:
    if not _PROMPT_NAME.fullmatch(name):
        raise _refusal(
            folder, f"prompt {name[:100]!r} must be a file of the rubric folder: plain letters, digits, _ . - and no .."
        )
    return _read(folder, name, _MAX_PROMPT_BYTES)


def _read(folder: Path, name: str, max_bytes: int) -> bytes:
    """A regular file of the folder, followed to where it really is; a data folder must not read the rest of the disk."""
    root = folder.resolve()
    path = (folder / name).resolve()
    if not path.is_relative_to(root):
        raise _refusal(folder, f"{name} is a link that leaves the rubric folder; put the file itself there")
    if not path.is_file():
        raise _refusal(folder, f"{name} is not there, or is no regular file; put it into the folder")
    try:
        with path.open("rb") as stream:
            content = stream.read(max_bytes + 1)
    except OSError as error:
        raise _refusal(folder, f"{name} cannot be read: {error}") from error
    if len(content) > max_bytes:
        raise _refusal(folder, f"{name} has more than {max_bytes} bytes; shorten it")
    return content


def _declaration(path: Path, raw: bytes) -> Declaration:
    try:
        content = tomllib.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise RubricError(f"{path}: not UTF-8: {error}") from error
    except (ValueError, RecursionError) as error:
        raise RubricError(f"{path}: not valid TOML: {error}") from error
    try:
        return Declaration.model_validate(content)
    except ValidationError as error:
        problems = [f"{path}: {explain(problem)}" for problem in error.errors()[:_MAX_PROBLEMS]]
        raise RubricError("\n".join(problems)) from error


def _digest(files: dict[str, bytes]) -> str:
    """sha256 over the files' names and bytes, in name order: one changed byte is another rubric."""
    lines = [f"{name} {sha256(content).hexdigest()}\n" for name, content in sorted(files.items())]
    return sha256("".join(lines).encode()).hexdigest()


def _refusal(folder: Path, message: str) -> RubricError:
    return RubricError(f"{folder / DECLARATION}: {message}")
