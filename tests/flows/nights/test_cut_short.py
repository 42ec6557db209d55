"""A run that its budget stops publishes what it has and says so; the good table of before stays the current one."""

from collections.abc import Callable
from pathlib import Path

from tasks.publish.folders import GOOD_POINTER, POINTER
from tasks.publish.pointer import read_pointer
from tests.flows.flow_support import Said
from tests.support.night_world import World, write_benchmark


def _named(lake: Path) -> list[str]:
    """The run dates of the current publication and of the last good one."""
    found = (read_pointer(lake / "publish" / "v1" / "nights", name) for name in (POINTER, GOOD_POINTER))
    return [pointer["run_date"] if pointer else "" for pointer in found]


def test_a_run_stopped_by_its_budget_never_takes_a_good_tables_place(
    salon: Callable[..., Said], judge_url: str, tmp_path: Path
) -> None:
    world, lake = World(tmp_path), tmp_path / "lake"
    world.make(1)
    file = write_benchmark(tmp_path, judge_url)
    good = salon("run", file, "--run-date", "2026-03-01")
    assert (good.code, "next        salon table    salon explain CELL\n" in good.out) == (0, True)
    assert _named(lake) == ["2026-03-01"] * 2
    world.make(2)
    for _ in range(2):
        cut_short = salon("run", file, "--run-date", "2026-03-02", "--max-usd", "0.02")
        assert cut_short.code == 1
        assert "not made current: " in cut_short.out
        assert "of its 16 cells lack replies" in cut_short.out
        assert _named(lake) == ["2026-03-01"] * 2
        publication = cut_short.out.partition("publication ")[2][:16]
        for suggested in (f"salon table --publication {publication}", f"salon explain CELL --publication {publication}"):
            assert suggested in cut_short.out
        assert f"publication {publication} (not the current one)" in salon("table", "--publication", publication).out
    without = salon("backfill", file, "--all", "--max-usd", "0.0001")
    assert without.code == 3
    assert "max_usd = 0.0001 does not cover a single request: one may cost up to $0.0" in " ".join(without.err.split())
    assert salon("run", file, "--run-date", "2026-03-02").code == 0
    assert _named(lake) == ["2026-03-02"] * 2
