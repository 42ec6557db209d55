"""`salon backfill --dry-run` sends nothing and leaves every record as it was; what only the lake still has is stored to it."""

from collections.abc import Callable
from pathlib import Path

from tests.flows.flow_support import Said
from tests.support.checkpoint_folders import N_PROMPTS, make_folder, write_file
from tests.support.servers.provider import Provider

PLANNED = {"complete", "judgements", "lake.json", "ledger.db", "locks", "pictures", "planned", "requests", "samples", "sources"}
"""What `salon plan` makes in a lake."""


def _records(lake: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for name in ("partitions", "publish") for path in (lake / name).rglob("*") if path.is_file()}


def test_a_dry_run_writes_what_a_plan_writes_and_nothing_else(
    tmp_path: Path, salon: Callable[..., Said], scoring: Provider
) -> None:
    make_folder(tmp_path, "step-1")
    file, lake = write_file(tmp_path, scoring.url), tmp_path / "lake"
    said = salon("backfill", file, "--all", "--dry-run")
    assert (said.code, said.out.splitlines()[-1], scoring.n) == (0, "nothing was sent", 0)
    assert {path.name for path in lake.iterdir() if path.name != "staging"} == PLANNED
    assert salon("backfill", file, "--all").code == 0
    before, listed = _records(lake), salon("backfill", file, "--list").out
    manifest = tmp_path / "out" / "m" / "step-1" / "manifest.csv"
    manifest.write_text(manifest.read_text().replace("thing 0", "another thing"))
    make_folder(tmp_path, "step-2")
    assert f"to ask      {N_PROMPTS + 1} requests" in salon("backfill", file, "--all", "--dry-run").out
    assert (_records(lake) == before, salon("backfill", file, "--list").out == listed) == (True, True)


def test_what_only_the_lake_still_has_is_not_to_ask(tmp_path: Path, salon: Callable[..., Said], scoring: Provider) -> None:
    make_folder(tmp_path, "step-1")
    file = write_file(tmp_path, scoring.url)
    assert salon("backfill", file, "--all").code == 0
    for path in (tmp_path / "lake").glob("ledger.db*"):
        path.unlink()
    said = salon("backfill", file, "--all", "--dry-run")
    assert (said.code, "to ask      0 requests" in said.out, scoring.n) == (0, True, N_PROMPTS)
