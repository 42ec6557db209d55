"""`salon export`, in its uses. What is said is printing.py; the forms are tasks/publish/exporters/ and tasks/verify/bundle.py."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from flows.commands.exchange.printing import print_exported
from flows.commands.options import DEFAULT_LAKE, BenchmarkName, LakePlace
from flows.commands.printed.caveats import warn_of
from flows.observability.progress import shown_progress
from flows.observability.terminal import name_of, one_line, result_console
from schemas.errors import InputError


class Pictures(StrEnum):
    """Where the pictures of exported requests stand."""

    INLINE = "inline"
    FILE = "file"


class To(StrEnum):
    """Who takes a publication."""

    WANDB = "wandb"
    MLFLOW = "mlflow"
    HUGGINGFACE = "huggingface"
    EEE = "eee"
    BUNDLE = "bundle"


_OUT: dict[To | None, str] = {
    To.BUNDLE: "FILE.zip, or a folder: the bundle is only written, not sent",
    To.EEE: "DIR: the folder for the records, which you send by pull request",
}


What = Annotated[
    str | None,
    typer.Argument(
        metavar="[FILE | PUBLICATION]",
        help="With --batch-files a benchmark file; with --to a publication's id or its beginning (default: the current).",
    ),
]
BatchFiles = Annotated[Path | None, typer.Option(help="With FILE: the folder to write batch lines to, new or empty.")]
MaxMb = Annotated[int, typer.Option(min=1, help="The largest size of a batch file, in millions of bytes.")]
PicturesOption = Annotated[
    Pictures, typer.Option(help="inline: inside the lines; file: each once in DIR/pictures, as file:// URLs.")
]
PicturesAt = Annotated[
    str | None,
    typer.Option(help="With --pictures file: the URL of that folder where the engine runs; default: its URL here."),
]
ToOption = Annotated[
    To | None,
    typer.Option(
        help="Write a publication's figures in this receiver's format; eee: Every Eval Ever; bundle: everything salon "
        "verify needs to derive it, for people without the lake."
    ),
]
Out = Annotated[Path | None, typer.Option(help="With --to: the folder to write, new or empty; with --to bundle also FILE.zip.")]
WithPictures = Annotated[
    bool, typer.Option("--with-pictures", help="With --to bundle: include the pictures and the pages that show them.")
]
Rubrics = Annotated[
    list[Path] | None, typer.Option(help="With --to bundle: a folder of your own rubrics; may be given several times.")
]
Name = Annotated[
    str | None,
    typer.Option(
        help="With --to: wandb [ENTITY/]PROJECT, mlflow EXPERIMENT, huggingface OWNER/DATASET, eee ORGANISATION; "
        "wandb and mlflow default to the benchmark's name, the others require it."
    ),
]
Push = Annotated[bool, typer.Option("--push", help="With --to: also send it there, using that client's own credentials.")]


def export(
    what: What = None,
    batch_files: BatchFiles = None,
    max_mb: MaxMb = 200,
    pictures: PicturesOption = Pictures.INLINE,
    pictures_at: PicturesAt = None,
    to: ToOption = None,
    out: Out = None,
    with_pictures: WithPictures = False,
    rubrics: Rubrics = None,
    name: Name = None,
    push: Push = False,
    lake: LakePlace = DEFAULT_LAKE,
    benchmark: BenchmarkName = None,
) -> int:
    """Write the remaining requests as batch lines (FILE --batch-files), or a publication for a tracker or a hub (--to)."""
    if (batch_files is None) == (to is None):
        raise InputError(
            "give either --batch-files DIR (the remaining requests of FILE, for an offline engine) or --to RECEIVER --out DIR "
            "(a publication's figures, for a tracker or a hub)"
        )
    if batch_files is not None:
        if pictures_at is not None and pictures is not Pictures.FILE:
            raise InputError("--pictures-at needs --pictures file: inline pictures have no address")
        options = (("--out", out), ("--name", name), ("--push", push), ("--with-pictures", with_pictures), ("--rubrics", rubrics))
        given = [option for option, value in options if value]
        if given:
            raise InputError(
                f"{given[0]} belongs to --to (a publication's figures); --batch-files sends nothing and names its own folder"
            )
        at = pictures_at or (batch_files.absolute() / "pictures").as_uri() if pictures is Pictures.FILE else None
        return _export_requests(what, batch_files, max_mb, at)
    if out is None or to is None:
        raise InputError(f"--to {to} needs --out {_OUT.get(to, 'DIR: a folder is written first, and sent only with --push')}")
    if what is not None and Path(what).is_file():
        raise InputError(f"{what} is a file; --to takes a publication's id or its beginning, or nothing for the current one")
    if to is To.BUNDLE:
        if name or push:
            raise InputError(
                "--name and --push are for trackers and hubs; --to bundle writes a file or a folder, and sends nothing"
            )
        return _export_bundle(what, out, rubrics or [], with_pictures=with_pictures, place=(lake, benchmark))
    if with_pictures or rubrics:
        raise InputError(f"--with-pictures and --rubrics need --to bundle; --to {to} takes only figures")
    return _export_publication(what, to, out, name, is_push=push, place=(lake, benchmark))


def _export_requests(file: str | None, folder: Path, max_mb: int, pictures_at: str | None) -> int:
    from flows.run.preview import export as write_files

    if file is None:
        raise InputError("--batch-files needs the benchmark file: salon export FILE --batch-files DIR")
    with shown_progress() as reporter:
        exported = write_files(Path(file), folder, max_mb * 10**6, reporter, pictures_at and pictures_at.rstrip("/"))
    print_exported(result_console(), exported, folder)
    return 0


def _export_publication(
    prefix: str | None, to: To, out: Path, name: str | None, *, is_push: bool, place: tuple[str, str | None]
) -> int:
    from tasks.lake.reading import open_lake
    from tasks.publish.caveats import caveats_of
    from tasks.publish.exporters.exporting import export_publication, exporter_of
    from tasks.publish.reading import chosen

    exporter = exporter_of(to.value)
    root = open_lake(place[0]).root
    found = chosen(root, place[1], prefix)
    caveats = caveats_of(root, found, is_named=prefix is not None)
    if caveats.withdrawn is not None:
        raise InputError(f"{caveats.withdrawn.told}; export another one, or run the benchmark again, which brings it back")
    warn_of(caveats)
    sent = export_publication(found, exporter, out, name, is_push=is_push)
    console = result_console()
    console.print(name_of(f"exported    {found.benchmark} {found.run_date}, {found.publication_id[:16]}, to {out}/"))
    console.print(f"            every figure was read back unchanged by {exporter.checked_by}")
    how = "send it by pull request" if to is To.EEE else "--push sends it"
    console.print(f"sent        {escape(one_line(sent))}" if sent else f"            nothing was sent; {how}", highlight=False)
    return 0


def _export_bundle(
    prefix: str | None, out: Path, rubrics: list[Path], *, with_pictures: bool, place: tuple[str, str | None]
) -> int:
    from flows.verification.published import export_bundle
    from tasks.lake.reading import Lake, open_lake
    from tasks.publish.caveats import caveats_of
    from tasks.publish.reading import checked_benchmark, chosen, find_in
    from tasks.verify.publication import find_folder, is_agreement

    root = open_lake(place[0]).root
    folder = find_folder(root, prefix or chosen(root, place[1], None).publication_id)
    found = checked_benchmark(find_in(folder), place[1])
    if not is_agreement(folder):  # for whoever cited it: also of one that was taken back
        warn_of(caveats_of(root, found, is_named=prefix is not None))
    made = export_bundle(folder, Lake(root), out, rubrics, with_pictures=with_pictures)
    console = result_console()
    console.print(f"exported    {escape(one_line(made.folder))}, to {escape(one_line(str(out)))}", highlight=False)
    left_out = "" if with_pictures else ", but not the samples' pictures; --with-pictures adds them"
    console.print(f"            it contains texts, replies and rubrics{left_out}", highlight=False)
    console.print(f"next        salon verify {escape(one_line(str(out)))}, on any machine with Salon", highlight=False)
    return 0
