"""What one sees of a backfill while it runs: the page of partitions, lines of progress, the stages behind the asking."""

from collections.abc import Callable
from pathlib import Path

from tests.flows.flow_support import Said
from tests.support.night_world import N_SAMPLES, World, write_benchmark
from tests.support.servers.provider import Play, Provider, completion

GOOD = Play(body=completion("Reasoning: plain.\nScore: 3"))


def test_the_page_of_partitions_goes_on_and_what_is_done_is_counted_in_requests(
    tmp_path: Path, provider: Provider, salon: Callable[..., Said]
) -> None:
    world, pages = World(tmp_path), list[str]()
    for number in range(3):
        world.make(number)
    provider.then = GOOD
    page = tmp_path / "lake" / "publish" / "v1" / "nights" / "partitions.html"

    def look() -> None:
        if provider.n == 2 * N_SAMPLES:  # the third checkpoint is being asked
            pages.append(page.read_text())

    provider.on_request = look
    said = salon("backfill", write_benchmark(tmp_path, provider.url), "--all", "--at-once", "1")
    assert said.code == 0, said.err
    assert "2 planned, 1 done" in pages[0] or "1 planned, 2 done" in pages[0]
    assert " ago" not in page.read_text()
    lines = said.err.splitlines()
    assert f"judge: {3 * N_SAMPLES} done" in lines
    assert "backfill: 3 done" in lines
    stages = [line for line in lines if line.split(":")[0] in {"check", "aggregate", "publish"}]
    assert stages == [f"{stage}: {said}" for stage in ("check", "aggregate", "publish") for said in ("under way", "done")]
