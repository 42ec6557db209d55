"""A publication written in a receiver's form, held against what was published, and sent where the user says so.

What the forms are: a file for each receiver beside this one.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from schemas.errors import CorruptLakeError, InputError, SalonError, StoreError
from schemas.tables.published import PREFERENCES
from tasks.lake.atomic_files import place_folder, refuse_full, staged_beside, store_error
from tasks.publish.exporters.figures import FIGURES, Exported, Exporter, Numbers, read_figures
from tasks.publish.reading import Publication

EXPORTERS = {
    "wandb": ("wandb_runs.WandbRuns", "wandb"),
    "mlflow": ("mlflow_runs.MlflowRuns", "mlflow"),
    "huggingface": ("huggingface_dataset.HuggingFaceDataset", "huggingface_hub"),
    "eee": ("every_eval_ever.EveryEvalEver", None),
}
"""The class of each exporter, and the package it does not do without."""


def exporter_of(name: str) -> Exporter:
    """The exporter of this name. Raises InputError where it is none, or its package is not installed."""
    if name not in EXPORTERS:
        raise InputError(f"--to {name!r} is not a receiver; available: {', '.join(EXPORTERS)}")
    place, package = EXPORTERS[name]
    if package is not None and find_spec(package) is None:
        raise InputError(f"--to {name} needs the package {package}, which is not installed; run: pip install 'salon[{name}]'")
    module, _, of = place.partition(".")
    made: Callable[[], Exporter] = getattr(import_module(f"tasks.publish.exporters.{module}"), of)
    return made()


def export_publication(
    publication: Publication, exporter: Exporter, folder: Path, name: str | None, *, is_push: bool
) -> str | None:
    """Write the folder, whole, and send it where `is_push`; where it was sent to, for people.

    What was written is read back by the receiver's own client: a figure that is not the published one is an error, and then
    there is no folder. Raises InputError, StoreError.
    """
    refuse_full("--out", folder)
    exported = read_figures(publication, name)
    if not exported.contestants:
        where = f"only pairs; their win rates are in {PREFERENCES.name}.parquet and .csv of {publication.folder}"
        what = where if f"{PREFERENCES.name}.parquet" in publication.files else "no judged sample"
        raise InputError(f"--to exports means of scores, but {publication.publication_id[:12]} has none: {what}")
    exporter.check(exported, is_push=is_push)
    with store_error(f"writing {folder}"), staged_beside(folder) as staged, _client_errors(f"writing {folder}"):
        exporter.write(exported, staged)
        _compare(_kept(exported, exporter.columns), exporter.read(staged))
        place_folder(staged, folder.absolute())
    if not is_push:
        return None
    try:
        with _client_errors(f"sending {folder}"):
            return exporter.push(exported, folder)
    except (StoreError, OSError) as error:  # some clients' errors are OSErrors
        raise StoreError(
            f"{' '.join(str(error).split())}; {folder} is complete: send it by hand, or remove it and run the same command again"
        ) from error


def _kept(exported: Exported, columns: Sequence[str]) -> Numbers:
    """What a receiver of these columns has to have."""
    whole = columns == FIGURES
    return {
        (one.model, one.checkpoint): dict(
            pair for cell in (one.cells if whole else one.estimated) for pair in cell.numbers(columns).items()
        )
        for one in exported.contestants
    }


def _compare(published: Numbers, found: Numbers) -> None:
    """Raise CorruptLakeError for the first figure that is not the published one, to the last digit."""
    for of in {**published, **found}:
        mine, theirs = published.get(of, {}), found.get(of, {})
        wrong = next((name for name in {**mine, **theirs} if mine.get(name) != theirs.get(name)), None)
        if wrong is not None:
            raise CorruptLakeError(
                f"{'/'.join(of)}, {wrong}: {mine.get(wrong)} was published, but {theirs.get(wrong)} was read back; nothing was "
                "written"
            )


@contextmanager
def _client_errors(doing: str) -> Iterator[None]:
    """A receiver's client raises what it likes: all of it is a StoreError that says what it said."""
    try:
        yield
    except (SalonError, OSError):
        raise
    except Exception as error:
        said = " ".join(str(error).split())[:500]
        if isinstance(error, ImportError):
            said += "; the client that is installed does not fit: install it by Salon's extra of its name (docs/export.md)"
        raise StoreError(f"{doing} failed: {type(error).__name__}: {said}") from error
