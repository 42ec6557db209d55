"""A checkpoint that cannot be read fails, by name, and the others go on; what refuses as a whole names all that are broken."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.flows.flow_support import Said, cells_of
from tests.support.checkpoint_folders import N_PROMPTS, make_folder, write_file
from tests.support.servers.provider import Provider


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


def _without_manifest(folder: Path) -> None:
    (folder / "manifest.csv").unlink()


def _without_usable_rows(folder: Path) -> None:
    for path in folder.glob("*.png"):
        path.write_bytes(b"no picture")


@pytest.mark.parametrize("damage", [_empty, _without_manifest, _without_usable_rows])
def test_a_broken_folder_fails_alone(
    tmp_path: Path, salon: Callable[..., Said], scoring: Provider, damage: Callable[[Path], None]
) -> None:
    make_folder(tmp_path, "step-1")
    damage(make_folder(tmp_path, "step-2"))
    make_folder(tmp_path, "step-3")
    file = write_file(tmp_path, scoring.url)
    preview = salon("backfill", file, "--all", "--dry-run")
    assert (preview.code, "m/step-2 cannot be read, and is skipped: " in preview.out) == (0, True)
    ended = salon("backfill", file, "--since", "2020-01-01")
    assert (
        ended.code,
        "1 of 3 checkpoints are not done; all complete checkpoints are published" in " ".join(ended.err.split()),
    ) == (3, True)
    assert "m/step-2: " in ended.err.splitlines()[-1]
    assert set(cells_of(tmp_path / "lake")["checkpoint"]) == {"step-1", "step-3"}
    alone = salon("backfill", file, "--checkpoints", "m/step-2")
    assert (alone.code, scoring.n) == (2, 2 * N_PROMPTS)


def test_what_was_done_and_cannot_be_read_any_more_does_not_stop_the_others(
    tmp_path: Path, salon: Callable[..., Said], scoring: Provider
) -> None:
    broken = make_folder(tmp_path, "step-1")
    make_folder(tmp_path, "step-2")
    file = write_file(tmp_path, scoring.url)
    assert salon("backfill", file, "--all").code == 0
    _without_manifest(broken)
    make_folder(tmp_path, "step-3")
    others = salon("backfill", file, "--checkpoints", "step-3")
    assert (others.code, "m/step-1 is done, but can no longer be read" in " ".join(others.err.split())) == (0, True)
    assert set(cells_of(tmp_path / "lake")["checkpoint"]) == {"step-2", "step-3"}


def test_what_was_done_and_has_no_usable_picture_any_more_is_in_no_new_table(
    tmp_path: Path, salon: Callable[..., Said], scoring: Provider
) -> None:
    broken = make_folder(tmp_path, "step-1")
    file = write_file(tmp_path, scoring.url)
    assert salon("backfill", file, "--all").code == 0
    _without_usable_rows(broken)
    make_folder(tmp_path, "step-2")
    ended = salon("backfill", file, "--all")
    told = " ".join(ended.err.split())
    assert (ended.code, "m/step-1: rubric alignment cannot use all 12 samples" in told) == (3, True), told
    assert set(cells_of(tmp_path / "lake")["checkpoint"]) == {"step-2"}


def test_all_broken_folders_are_named_at_once(tmp_path: Path, salon: Callable[..., Said], scoring: Provider) -> None:
    for name in ("step-1", "step-2", "step-3"):
        make_folder(tmp_path, name)
    for name in ("step-1", "step-3"):
        _without_manifest(tmp_path / "out" / "m" / name)
    file = write_file(tmp_path, scoring.url)
    for command in (("plan",), ("run",), ("backfill", "--checkpoints", "step-1,step-3")):
        refused = salon(command[0], file, *command[1:])
        assert (refused.code, scoring.n) == (2, 0)
        assert all(f"m/{name} should hold one manifest" in " ".join(refused.err.split()) for name in ("step-1", "step-3"))
    listed = salon("backfill", file, "--all")
    assert (listed.code, "2 of 3 checkpoints are not done" in listed.err) == (3, True)


def test_a_broken_folder_whose_rows_would_name_the_model_fails_alone(
    tmp_path: Path, salon: Callable[..., Said], scoring: Provider
) -> None:
    for name in ("step-1", "step-2"):
        manifest = make_folder(tmp_path, name) / "manifest.csv"
        head, *rows = manifest.read_text().splitlines()
        manifest.write_text("\n".join([f"{head},model", *(f"{row},m" for row in rows)]))
    _without_manifest(tmp_path / "out" / "m" / "step-2")
    file = write_file(tmp_path, scoring.url)
    file.write_text(file.read_text().replace("out/{model}/", "out/m/"))
    for code, *chosen in ((3, "--all"), (2, "--checkpoints", "step-1,step-2"), (2, "--all")):  # 2: nothing else was asked
        ended = salon("backfill", file, *chosen)
        assert (ended.code, scoring.n, "step-2: source 'source-0'" in ended.err) == (code, N_PROMPTS, True)
        assert ("fix first: step-2" if code == 3 else "Fix each of them") in " ".join(ended.err.split())
    page = next((tmp_path / "lake" / "publish").rglob("partitions.html")).read_text()
    assert ("Cannot be read: step-2<" in page, "could not be looked through" in page) == (True, False)
