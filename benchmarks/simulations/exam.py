"""A judge whose blindness is known, examined: how often intervals hold the truth (`python -m benchmarks.simulations.exam`).

First the whole way: scenes are painted, twins made, asked of the demo's judge and read; it notices a share of each kind of fault
that the scenario says. Then the figures alone, over many drawn exams: prompts with one to four pictures, faults that are noticed
more and less easily, and a judge that wavers. Exit code 1 where a share is off by more than five points, or an interval of `net`
holds the truth too seldom.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import polars as pl

from demo.drawing import draw_png
from demo.running import running_judge
from demo.scenes import Errors, compose
from demo.sentences import phrase
from demo.world import COLORS, SHAPES, Asked, Item
from flows.run.context import RunContext, open_run
from flows.run.pipeline import run_pipeline
from rubrics.model import Dimension
from schemas.benchmark.exam import FAULTS, PlantedFault
from schemas.tables.nights import EXAM
from tasks.aggregate.exam import Noticed, figures_of, net_interval
from tasks.aggregate.intervals import Interval

SEED = 20261124
WITHIN = 0.05
COVERAGE = 0.93
SCALE = Dimension("score", ("Score",), 1, 5, 1)
WORDS = ("LAMP", "RIVER", "OPEN", "HARBOUR", "MUSIC", "BREAD")
NOTICED = dict(zip((PlantedFault.HARMLESS, *FAULTS), (0.04, 0.95, 0.1, 0.3, 0.02, 0.6, 0.8, 0.45, 0.2), strict=True))
BENCHMARK = """\
name = "exam"
lake = "lake"
[[sources]]
reader = "manifest"
path = "m.jsonl"
model = "painter"
checkpoint = "1"
[[rubrics]]
id = "alignment"
[[judges]]
model = "salon-demo-judge"
[limits]
concurrency = 16
[exam]
share = 1.0
floor = 0.3
"""


def paint(folder: Path, n: int, seed: int = SEED) -> None:
    """`n` faultless scenes, as a manifest with its benchmark; prompts have a colour, a number or a side, and quote a title."""
    rng, rows = Random(seed), []
    for number in range(n):
        colors = rng.sample([color for color in COLORS if color != "black"], 2)
        one, other = (Item(shape, color) for shape, color in zip(rng.sample(SHAPES, 2), colors, strict=True))
        beside = Asked((one, other), rng.choice(("left of", "right of")))
        asked = Asked((replace(one, n=rng.randint(2, 6)),)) if number % 2 else beside
        (folder / f"{number}.png").write_bytes(draw_png(compose(asked, Errors(), rng)))
        rows.append({"image": f"{number}.png", "prompt": f'{phrase(asked)}, titled "{rng.choice(WORDS)} {number}"'})
    (folder / "m.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    (folder / "b.toml").write_text(BENCHMARK)
    shares = ", ".join(f"{fault} = {share}" for fault, share in NOTICED.items())
    (folder / "scenario.toml").write_text(f'seed = {seed}\n[exam]\nlake = "lake"\nnoticed = {{ {shares} }}\n')


def examined(folder: Path) -> pl.DataFrame:
    """The table `exam` of the benchmark in a painted folder, judged by the scenario beside it."""
    with running_judge(folder / "scenario.toml") as url:
        summary = run_pipeline(RunContext.of(open_run(folder / "b.toml", judge_url=url)))
    return pl.read_parquet(summary.published.folder / f"{EXAM.name}.parquet")


def drawn(n_prompts: int, share: float, wavering: float, rng: np.random.Generator) -> pl.DataFrame:
    """One exam: prompts whose own share scatters around `share`, one to four pictures each, scores that waver by one step."""
    ease = rng.beta(4 * share, 4 * (1 - share), n_prompts)
    prompt = np.repeat(np.arange(n_prompts), rng.integers(1, 5, n_prompts))
    n = len(prompt)
    true = rng.integers(2, 6, n)
    taken = rng.integers(1, 4, n) * (rng.random(n) < ease[prompt])
    untouched, harmless, faulted = (
        np.clip(value + rng.choice([-1, 0, 1], n, p=[wavering, 1 - 2 * wavering, wavering]), 1, 5)
        for value in (true, true, true - taken)
    )
    columns = {"untouched": untouched, "harmless": harmless, "faulted": faulted}
    return pl.DataFrame({"prompt_id": prompt} | {name: values.astype(float) for name, values in columns.items()})


def coverage(n_prompts: int, share: float, wavering: float, n_draws: int, seed: int = SEED) -> tuple[float, float, float]:
    """Shares of draws whose interval of `noticed`, of `net` and of `drop` holds the truth; no interval does not hold it."""
    rng = np.random.default_rng(seed)
    truth = figures_of(drawn(300_000, share, wavering, rng), SCALE)
    held = np.zeros(3)
    for _ in range(n_draws):
        row = figures_of(drawn(n_prompts, share, wavering, rng), SCALE)
        estimates = row["estimates"]
        net = net_interval(estimates) if isinstance(estimates, Noticed) else None
        ends = [(row.get(f"{name}_low"), row.get(f"{name}_high")) for name in ("noticed", "drop")]
        ends.insert(1, (net.low, net.high) if isinstance(net, Interval) else (None, None))
        for place, (name, (low, high)) in enumerate(zip(("noticed", "net", "drop"), ends, strict=True)):
            held[place] += low is not None and float(str(low)) <= float(str(truth[name])) <= float(str(high))
    noticed, net_held, drop = held / n_draws
    return float(noticed), float(net_held), float(drop)


def main() -> Iterator[bool]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=int, default=8000)
    parser.add_argument("--draws", type=int, default=1000)
    arguments = parser.parse_args()
    started = time.process_time()
    with tempfile.TemporaryDirectory() as name:
        paint(Path(name), arguments.pictures)
        found = examined(Path(name))
    print(
        f"{arguments.pictures} pictures\n{'fault':16} {'n':>5} {'set':>6} {'noticed':>8} {'false':>6} {'net [95 %]':>22} verdict"
    )
    for row in found.iter_rows(named=True):
        known, measured = NOTICED[PlantedFault(row["fault"])], row["noticed"]
        print(
            f"{row['fault']:16} {row['n_samples']:5} {known:6.1%} {measured:8.1%} {row['false_notices']:6.1%} "
            f"{row['net']:6.1%} [{row['net_low']:6.1%}, {row['net_high']:6.1%}] {row['verdict']}"
        )
        yield abs(measured - known) <= WITHIN
    print(f"\n{'prompts':>7} {'noticed':>8} {'wavers':>7}   held: noticed   net    drop   ({arguments.draws} draws)")
    for n_prompts in (10, 30, 100):
        for share in (0.05, 0.3, 0.8):
            for wavering in (0.0, 0.1):
                held = coverage(n_prompts, share, wavering, arguments.draws)
                print(f"{n_prompts:7} {share:8.0%} {wavering:7.0%}   {held[0]:13.1%} {held[1]:6.1%} {held[2]:6.1%}")
                yield n_prompts < 30 or held[1] >= COVERAGE
    print(f"{time.process_time() - started:.0f} CPU s beside the judge's own")


if __name__ == "__main__":
    sys.exit(0 if all(list(main())) else 1)
