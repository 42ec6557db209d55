"""`salon deploy`, and what is printed of it. What it sets up on the Prefect server is flows/serving/deploying.py."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from flows.commands.options import BenchmarkFile
from flows.commands.serving import DEFAULT_POOL
from flows.observability.terminal import result_console

if TYPE_CHECKING:
    from flows.serving.deploying import Deployed

Pool = Annotated[str, typer.Option(help="The work pool: salon-process, salon-docker, salon-kubernetes or one of yours.")]
FileAtWorker = Annotated[
    str | None,
    typer.Option(help="The file's path where the runs execute, such as /benchmarks/x.toml; default: its path here."),
]
Image = Annotated[str | None, typer.Option(help="The container image of the runs; default: the pool's.")]
WithAutomations = Annotated[
    str | None,
    typer.Option(help="Also set up infra/automations/, which notify this block, such as slack-webhook/salon-alerts."),
]
TakeOver = Annotated[
    bool, typer.Option("--take-over", help="Deploy even if deployments of this name run another file, whose nights then end.")
]


def deploy(
    file: BenchmarkFile,
    pool: Pool = DEFAULT_POOL,
    file_at_worker: FileAtWorker = None,
    image: Image = None,
    with_automations: WithAutomations = None,
    take_over: TakeOver = False,
) -> int:
    """Set up a benchmark's nightly and backfill on the Prefect server named by PREFECT_API_URL. Run it again after a change."""
    from flows.prefect_server import told_of_settings

    with told_of_settings():
        from flows.serving import deploying

    deployed = deploying.deploy(file, deploying.DeployOptions(pool, file_at_worker, image, with_automations, take_over))
    console = result_console()
    for line in _told(deployed):
        console.print(line, markup=False)
    return 0


def _told(deployed: "Deployed") -> Iterator[str]:
    """What was set up, who hears of a bad night, and how the runs get going."""
    yield f"On {deployed.api_url}, in the work pool {deployed.pool.name} ({deployed.pool.type}):"
    for name in deployed.deployments:
        yield f"  deployment  {name}"
    for name, other in deployed.taken_over:
        yield f"  taken over  {name}: it ran {other}, whose nights now end"
    for name in deployed.removed:
        yield f"  removed     {name}: it ran the same file under an earlier name"
    for name in deployed.kept_off:
        yield f"  stays off   {name}: its schedule was switched off; salon doctor says how to resume"
    for name in deployed.elsewhere:
        yield f"  left alone  {name}, of another pool: it runs a file with the same path. If that is this file's earlier"
        yield f"              name: prefect deployment delete '{name}'"
    for name in deployed.automations:
        yield f"  automation  {name}"
    for name in deployed.without_block:
        yield f"  not set up  {name}: the others notify several blocks; --with-automations names one for all of them, or"
        yield "              create it for yours from infra/automations/alerts.yaml (docs/alerts.md)"
    yield from _nights(deployed)
    if deployed.told:
        told = ", ".join(deployed.told)
        yield f"alerts reach:        {told} (where the Prefect server is on SQLite, one may be lost: docs/alerts.md)"
    else:
        yield "alerts reach nobody: create a notification block (docs/alerts.md), then add --with-automations <type>/<name>"
    for block in deployed.no_longer_told:
        yield f"                     and no longer {block}: of all benchmarks on this server, which share these automations"
    is_process = deployed.pool.type == "process"  # a plain worker would kill its runs when it is told to stop
    worker = "salon worker" if is_process else "prefect worker start"
    yield f"runs need a worker:  {worker} --pool {deployed.pool.name}"
    yield f"run one now:         prefect deployment run '{deployed.deployments[0]}' --watch"


def _nights(deployed: "Deployed") -> Iterator[str]:
    """When nights come, and what to do where the file does not say so: who took the line out may have meant to end them."""
    nightly, name = deployed.nightly, deployed.deployments[0]
    comes = (
        "switched off" if name in deployed.kept_off else f"the next at {nightly.next_due(datetime.now(UTC)):%Y-%m-%d %H:%M %Z}"
    )
    yield f"\nnights:              {nightly.schedule} ({nightly.timezone}), {comes}"
    if "schedule" not in nightly.model_fields_set:
        yield "                     [nightly] schedule is not set: this is the default, every night at 02:00. To end the nights:"
        yield f"                     prefect deployment delete '{name}'"
