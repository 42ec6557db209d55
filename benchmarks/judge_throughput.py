"""Salon's whole `run` beside a script on AsyncOpenAI, curator and Inspect: the same pictures, the same server, one sitting.

    python -m benchmarks.judge_throughput [--judgements 2000] [--repetitions 3] [--environments FOLDER] [--only NAME …]

The server is the mock provider in its plain mode, in a process of its own, without latency. Every contender is run with
`--judgements` and with `--few` items, `--repetitions` times in turn; of each the run with the least CPU counts. CPU without
start-up is the slope between the two. CPU is that of all of a client's processes; Prefect's embedded server stands apart.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from benchmarks.throughput import measuring
from benchmarks.throughput.contenders import CONTENDERS, Contender, NotInstalledError, install, settings_for
from benchmarks.throughput.material import make_pictures, write_benchmark, write_items
from benchmarks.throughput.measuring import RunFailedError, Usage, bytes_kept, measure, said_by
from benchmarks.throughput.printing import Run, comparison, print_salon
from demo.running import running_judge

REPOSITORY = Path(__file__).parents[1]
PLAIN = REPOSITORY / "docs" / "examples" / "scenarios" / "plain.toml"
SALON = "Salon, whole run"
JUDGING = "Salon, judging alone"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judgements", type=int, default=2000)
    parser.add_argument("--few", type=int, default=200, help="the small run that start-up is told from")
    parser.add_argument("--at-once", type=int, default=200)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--environments", type=Path, help="where the contenders' environments stand; default: a temporary folder")
    parser.add_argument("--only", nargs="+", help="names of contenders, or their beginnings", default=[""])
    given = parser.parse_args()
    console = Console(width=130)
    words = tuple(word.lower() for word in given.only)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        environments = given.environments or folder / "environments"
        bench = Bench(folder, environments.resolve(), given.at_once, stack.enter_context(running_judge(PLAIN)))
        make_pictures(folder, given.judgements)
        chosen = [contender for contender in (None, *CONTENDERS) if name_of(contender).lower().startswith(words)]
        runs = bench.run_all(chosen, (given.few, given.judgements), given.repetitions, console)
    if runs:
        console.print(comparison(runs, JUDGING, given.few, given.judgements, given.at_once))
    if SALON in runs:
        print_salon(console, runs[SALON], given.few, given.judgements)
    return 0 if len(runs) == len(chosen) else 1


def name_of(contender: Contender | None) -> str:
    """None is Salon, which needs no environment of its own."""
    return SALON if contender is None else contender.name


class Bench:
    """What stays the same from run to run."""

    def __init__(self, folder: Path, environments: Path, n_at_once: int, base_url: str) -> None:
        self.folder, self.environments, self.n_at_once, self.base_url = folder, environments, n_at_once, base_url

    def run_all(
        self, chosen: Sequence[Contender | None], sizes: Sequence[int], repetitions: int, console: Console
    ) -> dict[str, list[Run]]:
        """Every contender in turn, so that what else the machine does falls on all. Who cannot run is named and left out."""
        runs: dict[str, list[Run]] = {}
        for contender in chosen:
            try:
                if contender is not None:
                    install(contender, self.environments)
                runs[name_of(contender)] = []
            except NotInstalledError as error:
                console.print(f"{name_of(contender)} could not be installed: {error}", markup=False)
        for repetition in range(1, repetitions + 1):
            for contender in [each for each in chosen if name_of(each) in runs]:
                name = name_of(contender)
                try:
                    for n in sizes:
                        run = self.run(contender, n)
                        runs[name].append(run)
                        console.print(
                            f"{repetition}. {name}: {n} items, {run.usage.client_cpu_s:.2f} s CPU, {run.usage.wall_s:.2f} s"
                        )
                except RunFailedError as error:
                    console.print(f"{name} failed with {n} items: {error}", markup=False)
                    del runs[name]
        return runs

    def run(self, contender: Contender | None, n: int) -> Run:
        """One run in a folder of its own, which is gone afterwards. Raises RunFailedError."""
        items = write_items(self.folder, n)
        output = Path(tempfile.mkdtemp(dir=self.folder))
        said_by(self.base_url, "/stats/reset", "POST")
        try:
            usage = measure(*self.command(contender, items, output))
            seen = said_by(self.base_url, "/stats")
            if seen["by_status"].get("200", 0) < n:
                raise RunFailedError(f"the server's answers: {seen['by_status']}")
            asking_s = seen["last_answer_s"] - seen["first_request_s"]
            if contender is not None:
                return Run(n, usage, asking_s, bytes_kept(output, leave_out="home"))
            return self.of_salon(n, usage, asking_s, output)
        finally:
            shutil.rmtree(output)

    def of_salon(self, n: int, usage: Usage, asking_s: float, output: Path) -> Run:
        """The same with what Salon alone is asked for. Raises RunFailedError where a picture stands anywhere as base64."""
        picture = (self.folder / "images" / "00000.jpg").read_bytes()
        found = measuring.files_with_base64(output, picture) + measuring.files_with_base64(self.folder / "prefect", picture)
        if found:
            raise RunFailedError(f"a picture is kept as base64 in {', '.join(found)}")
        stages = json.loads((output / "stages.json").read_text(encoding="utf-8"))
        return Run(n, usage, asking_s, bytes_kept(output / "lake"), stages, measuring.by_part(output / "lake"))

    def command(self, contender: Contender | None, items: Path, output: Path) -> tuple[list[str], Path, dict[str, str]]:
        """The command, its folder and its environment variables. Each has a home of its own, so that none finds a cache."""
        home = {"HOME": str(output / "home")}
        if contender is not None:
            command = contender.command(self.environments, items, self.base_url, self.n_at_once, output)
            return command, output, home | settings_for(contender, self.environments)
        benchmark = write_benchmark(output, items, self.base_url, self.n_at_once)
        command = [sys.executable, "-m", "benchmarks.throughput.salon_run", str(benchmark), str(output / "stages.json")]
        return command, output, home | {"PREFECT_HOME": str(self.folder / "prefect"), "PYTHONPATH": str(REPOSITORY)}


if __name__ == "__main__":
    sys.exit(main())
