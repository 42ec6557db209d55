"""`salon verify`: what is printed of a verdict. What is verified is flows/verification/, a bundle's lines are printing.py."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from flows.commands.exchange.printing import print_layers, print_values
from flows.commands.options import DEFAULT_LAKE, AsJson, LakePlace
from flows.observability.progress import shown_progress
from flows.observability.terminal import Console, name_of, result_console
from schemas.errors import InputError
from tasks.lake.object_store.cache_folder import url_of
from tasks.lake.reading import Lake, open_lake
from tasks.publish.standings.wording import counted

if TYPE_CHECKING:
    from flows.verification.verifying import Verdict
    from tasks.verify.rows import Difference


NOT_ALL = 4
"""The exit code where nothing differs, and not everything could be derived again: pictures are not in the bundle, say."""


def verify(
    publication: Annotated[
        str,
        typer.Argument(help="A publication's id, its beginning or its folder (default: the current one); or a bundle, FILE.zip."),
    ] = "",
    lake: LakePlace = DEFAULT_LAKE,
    file: Annotated[Path | None, typer.Option(help="The benchmark file it was published from.")] = None,
    rubrics: Annotated[list[Path] | None, typer.Option(help="A folder of your own rubrics; may be given several times.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="Differences to show, the first of all; 0 for all.")] = 20,
    as_json: AsJson = False,
) -> int:
    """Derive every published number again from the stored replies, offline, and compare. Exit code 1 if anything differs."""
    from flows.verification.verifying import verify as verify_folder
    from tasks.publish.reading import chosen
    from tasks.verify.bundle_opening import is_bundle
    from tasks.verify.publication import find_folder

    if publication and is_bundle(Path(publication)):
        if file or rubrics:
            raise InputError("--file and --rubrics are for a publication in a lake; a bundle contains its own")
        return _verify_bundle(Path(publication), limit, as_json=as_json)
    if publication.endswith(".zip") and not Path(publication).exists():
        raise InputError(f"{publication} does not exist; name a bundle that salon export --to bundle wrote, or a publication")
    with _read_anew(open_lake(lake)) as named, shown_progress() as reporter:
        folder = find_folder(named.root, publication or chosen(named.root, None, None).publication_id)
        verdict = verify_folder(folder, Lake(_lake_of(folder, named.root)), reporter, file, rubrics or [])
    if as_json:
        print(_as_json(verdict, {"steps": verdict.steps}))
    else:
        _print(result_console(), verdict, limit)
    return 0 if verdict.is_verified else 1


def _verify_bundle(place: Path, limit: int, *, as_json: bool) -> int:
    from flows.verification.verifying import verify_bundle
    from tasks.publish.identity import code_version
    from tasks.verify.bundle_opening import open_bundle

    with tempfile.TemporaryDirectory(prefix="salon-verify-") as scratch, shown_progress() as reporter:
        verdict = verify_bundle(open_bundle(place, Path(scratch) / "bundle"), reporter)
        layers = verdict.layers
        is_whole = all(layer.is_whole for layer in layers)
        codes: dict[str, object] = {"published_by": verdict.made_by, "verified_by": code_version()}
        if as_json:
            print(_as_json(verdict, {"is_whole": is_whole, "layers": [asdict(layer) for layer in layers], "code": codes}))
        else:
            print_layers(result_console(), verdict, layers, code_version())
            _print_differences(result_console(), verdict, limit)
    return 1 if not verdict.is_verified else 0 if is_whole else NOT_ALL


def _as_json(verdict: "Verdict", more: dict[str, object]) -> str:
    """In ASCII: a file name of the folder may be no text in UTF-8."""
    said = {"publication": verdict.folder.name, "is_verified": verdict.is_verified, "values": verdict.values} | more
    return json.dumps(said | {"notes": [*verdict.notes, *verdict.advice], "differences": verdict.differences}, default=asdict)


@contextmanager
def _read_anew(lake: Lake) -> Iterator[Lake]:
    """A lake on a bucket with nothing fetched yet: what is verified is what is there, not what was kept here."""
    if lake.bucket is None:
        yield lake
        return
    with tempfile.TemporaryDirectory(prefix="salon-verify-") as folder:
        yield Lake(Path(folder) / lake.root.name)


def _lake_of(folder: Path, named: Path) -> Path:
    """The lake a published folder stands in; the named one where the folder was copied out of its lake."""
    above = next((parent.parent for parent in folder.parents if parent.name == "publish"), None)
    return above if above is not None and (above / "complete").is_dir() else named


def _print(console: Console, verdict: "Verdict", limit: int) -> None:
    url = next((url for parent in verdict.folder.parents if (url := url_of(parent))), None)
    console.print(name_of(f"publication {verdict.folder.name[:16]}  {url or verdict.folder}"))
    for name, done in verdict.steps:
        n = len(verdict.found.get(name, ()))
        console.print(name_of(f"{name:<11} {counted(n, 'difference') + ': ' if n else ''}{done}", "red" if n else ""))
    for note in verdict.notes:
        console.print(name_of(f"note        {note}", "yellow"))
    if verdict.is_verified:
        console.print("verified    every published number follows from the stored replies")
        return
    print_values(console, verdict)
    _print_differences(console, verdict, limit)


def _print_differences(console: Console, verdict: "Verdict", limit: int) -> None:
    if verdict.is_verified:
        return
    for advice in verdict.advice:  # before the list, which may be long and follow from it
        console.print(name_of(f"because     {advice}", "yellow"))
    console.print()
    by_place: dict[str, list[Difference]] = {}  # in the order of the steps: what differs first is the cause of the rest
    for one in verdict.differences:
        by_place.setdefault(one.place, []).append(one)
    n_left = limit or len(verdict.differences)
    for place, listed in by_place.items():
        console.print(name_of(f"{place}: {counted(len(listed), 'difference')}", "red"))
        for one in listed[:n_left]:
            where = " ".join(part for part in (one.row, one.column) if part)
            console.print(name_of(f"  {f'{where}: ' if where else ''}published {one.published}, derived {one.derived}"))
        n_left -= min(n_left, len(listed))
    if limit and len(verdict.differences) > limit:
        console.print(Text(f"and {len(verdict.differences) - limit:,} more of these; --limit 0 shows all"))
    step, first = next((step, found[0].place) for step, found in verdict.found.items())
    where = step if step == first else f"{step}, {first}"
    console.print()
    console.print(name_of(f"not verified: {counted(len(verdict.differences), 'difference')}, the first in: {where}"))
