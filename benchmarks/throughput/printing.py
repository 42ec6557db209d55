"""The benchmark's tables, from its runs. What is measured is elsewhere."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from rich.console import Console
from rich.table import Table

from benchmarks.throughput.measuring import PICTURES, Usage


@dataclass(frozen=True, slots=True)
class Run:
    """One run: what it used, how long the server saw requests, what it keeps; of Salon also CPU by stage, bytes by part."""

    n: int
    usage: Usage
    asking_s: float
    kept_bytes: int
    stage_cpu_s: Mapping[str, float] = field(default_factory=dict)
    part_bytes: Mapping[str, int] = field(default_factory=dict)


def cheapest(runs: Sequence[Run], n: int, cost: Callable[[Run], float]) -> float:
    """The least cost of the runs with n items: what others do on the machine can only add to it."""
    return min(cost(run) for run in runs if run.n == n)


def slope_ms(runs: Sequence[Run], few: int, many: int, cost: Callable[[Run], float]) -> float:
    """Milliseconds for one judgement more: between the cheapest run with few items and the cheapest with many."""
    return (cheapest(runs, many, cost) - cheapest(runs, few, cost)) / (many - few) * 1000


def client_cpu_s(run: Run) -> float:
    return run.usage.client_cpu_s


def comparison(runs: Mapping[str, Sequence[Run]], engine: str, few: int, many: int, n_at_once: int) -> Table:
    """All contenders, one line each; `engine` is the name of Salon's judging stage's own line."""
    title = f"{many} judgements, {n_at_once} at once; of each contender's runs the cheapest"
    table = Table(title=title, title_justify="left")
    headings = (
        "",
        "judgements/s",
        "CPU ms each",
        "without start-up",
        "× Salon's judging",
        "peak RSS MB",
        "kept KB each",
        "whole s",
    )
    for heading in headings:
        table.add_column(heading, justify="right" if heading else "left")
    lines: dict[str, tuple[Sequence[Run], Callable[[Run], float]]] = {name: (of, client_cpu_s) for name, of in runs.items()}
    salon = next((of for of in runs.values() if of[0].stage_cpu_s), None)
    judging_ms = None
    if salon is not None:
        lines |= {engine: (salon, judging_cpu_s)}
        judging_ms = slope_ms(salon, few, many, judging_cpu_s)
    for name, (of, cost) in lines.items():
        large = [run for run in of if run.n == many]
        each_ms = slope_ms(of, few, many, cost)
        table.add_row(
            name,
            f"{many / min(run.asking_s for run in large):.0f}",
            f"{cheapest(of, many, cost) / many * 1000:.2f}",
            f"{each_ms:.2f}",
            f"{each_ms / judging_ms:.1f}" if judging_ms else "",
            "" if name == engine else f"{min(run.usage.peak_client_bytes for run in large) / 1e6:.0f}",
            "" if name == engine else f"{large[0].kept_bytes / many / 1000:.1f}",
            "" if name == engine else f"{min(run.usage.wall_s for run in large):.1f}",
        )
    return table


def judging_cpu_s(run: Run) -> float:
    return run.stage_cpu_s["judge"]


def _stage_cpu_s(stage: str, run: Run) -> float:
    return run.stage_cpu_s[stage]


def print_salon(console: Console, runs: Sequence[Run], few: int, many: int) -> None:
    """Where Salon's CPU and bytes go."""
    large = [run for run in runs if run.n == many]
    console.print("\nSalon's CPU, ms for one judgement more, by stage (process CPU at the stage's ends):")
    for stage in large[0].stage_cpu_s:
        if all(stage in run.stage_cpu_s for run in runs):
            console.print(f"  {stage:<12}{slope_ms(runs, few, many, partial(_stage_cpu_s, stage)):8.3f}")
    console.print("  The rest of the whole run's slope is other processes' CPU: pictures are decoded in processes of their own.")
    server_s = min(run.usage.prefect_server_cpu_s for run in large)
    peak = min(run.usage.peak_tree_bytes for run in large) / 1e6
    console.print(
        f"Prefect's embedded server, not in the client's figures: {server_s:.1f} s CPU a run; with it {peak:.0f} MB in all."
    )
    console.print(
        "Kept, bytes a judgement: " + ", ".join(f"{part} {size / many:.0f}" for part, size in sorted(large[0].part_bytes.items()))
    )
    beyond = sum(size for part, size in large[0].part_bytes.items() if part != PICTURES)
    console.print(f"Beyond the pictures themselves: {beyond / many:.0f} bytes a judgement, the reply's text included.")
