"""A publication written as a bundle, once its rubrics are those it was made with. Its form: tasks/verify/bundle.py."""

from collections.abc import Sequence
from pathlib import Path

from flows.verification.published import open_published
from schemas.errors import CorruptLakeError, InputError
from tasks.lake.reading import Lake
from tasks.publish.folders import PROVENANCE
from tasks.verify.bundle import BundleName, write_bundle
from tasks.verify.publication import read_provenance


def export_bundle(folder: Path, lake: Lake, out: Path, rubrics: Sequence[Path], *, with_pictures: bool) -> BundleName:
    """Write the bundle of a published folder. Raises InputError where a rubric is not the one it was made with."""
    said = read_provenance(folder)
    if said is None:
        raise CorruptLakeError(f"{folder / PROVENANCE} cannot be read; restore the folder from a copy, or run again")
    opened = open_published(folder, said, lake.root, None, rubrics, advice="name its folder with --rubrics DIR")
    if opened.differences:
        one = opened.differences[0]
        raise InputError(
            f"{folder.name[:12]} cannot be derived from what is here: {one.column} is {one.published} in its {PROVENANCE}, and "
            f"{one.derived} is found; name the folder of its rubrics as they were with --rubrics"
        )
    return write_bundle(folder, lake, opened.run.ids, opened.run.rubrics, out, with_pictures=with_pictures)
