"""`salon gc` in a lake into which somebody put links: what is behind one stays, and why is said."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.garbage_collection.inventory import NOTES
from tasks.ledger.open_ledgers import opened
from tests.flows.flow_support import Said

pytestmark = pytest.mark.slow

OLD = time.time() - 400 * 86_400
KEY = "ab" * 32


def _lake(folder: Path) -> Path:
    """A lake in which everything is old and nothing is wanted."""
    root = folder / "lake"
    files = [
        "complete/samples/k.json", "samples/dataset_id=k/part-00000.parquet", f"data_docs/{KEY}/index.html", "planned/a.json",
        "taken/a.json", "verdicts/a.json", "sources/a.json.z", "tiles/a.parquet", "staging/samples-1/part-00000.parquet",
        f"publish/v1/tables/scores/benchmark_name=b/publication={KEY}/part-00000.parquet",
    ]  # fmt: skip
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("a thesis")
    with opened(f"sqlite:///{root / 'ledger.db'}") as ledger:
        ledger.known([])
        ledger.alone_now(lambda _: None)
    for path in root.rglob("*"):
        os.utime(path, (OLD, OLD))
    return root


def _held(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _move_out(root: Path, place: str) -> Path:
    """Put a link in the place of a folder of the lake; where the folder stands now."""
    outside = root.parent / "outside"
    (root / place).rename(outside)
    (root / place).symlink_to(outside)
    return outside


@pytest.mark.parametrize(
    "place",
    [
        "tiles", "taken", "verdicts", "planned", "sources", "data_docs", f"data_docs/{KEY}", "samples", "samples/dataset_id=k",
        "complete", "complete/samples", "publish", "publish/v1/tables",
    ],
)  # fmt: skip
def test_what_is_behind_a_link_stays_and_all_else_goes(tmp_path: Path, salon: Callable[..., Said], place: str) -> None:
    root = _lake(tmp_path)
    outside = _move_out(root, place)
    before = _held(outside)
    said = salon("gc", "--lake", root, "--yes")
    assert said.code == 0, said.err
    if place not in NOTES:  # which are not listed where they stay
        assert f"{place}isalink:nothingbehinditisdeleted" in "".join(said.out.split())
    assert {name: content for name, content in _held(outside).items() if name in before} == before
    for name in {"tiles", "taken", "verdicts", "planned", "sources", "staging"} - {place}:
        assert not any((root / name).iterdir()), name
    assert (root / place).is_symlink()


def test_without_links_all_of_it_goes(tmp_path: Path, salon: Callable[..., Said]) -> None:
    root = _lake(tmp_path)
    assert salon("gc", "--lake", root, "--yes").code == 0
    assert "a thesis" not in {content.decode("latin-1") for content in _held(root).values()}


def test_a_lake_whose_staging_is_a_link_is_refused_untouched(tmp_path: Path, salon: Callable[..., Said]) -> None:
    root = _lake(tmp_path)
    outside = _move_out(root, "staging")
    before = _held(outside)
    said = salon("gc", "--lake", root, "--yes")
    assert said.code == 3
    assert "lake/staging is a link" in said.err
    assert _held(outside) == before
    assert (root / "tiles" / "a.parquet").exists()


def test_a_file_among_the_runs_that_is_no_table_keeps_nothing_back_and_the_index_names_it(
    tmp_path: Path, salon: Callable[..., Said]
) -> None:
    root = _lake(tmp_path)
    (root / "runs").mkdir()
    (root / "runs" / "thesis.parquet").write_text("a thesis")
    said = salon("gc", "--lake", root, "--yes")
    assert said.code == 0, said.err
    assert not (root / "tiles" / "a.parquet").exists()
    assert (root / "runs" / "thesis.parquet").exists()
    assert "thesis.parquet is not a table runs that Salon wrote" in (root / "publish" / "v1" / "index.html").read_text()
