"""`salon deploy`, and what is printed of it. What it sets up on the Prefect server is flows/serving/deploying.py."""

from typing import TYPE_CHECKING, Annotated

import typer

from flows.commands.options import BenchmarkFile
from flows.commands.serving import DEFAULT_POOL
from flows.observability.terminal import Console, result_console

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
    from flows.serving import deploying

    deployed = deploying.deploy(file, deploying.DeployOptions(pool, file_at_worker, image, with_automations, take_over))
    _print_deployed(result_console(), deployed)
    return 0


def _print_deployed(console: Console, deployed: "Deployed") -> None:
    """What was set up, who hears of a bad night, and how the runs get going."""
    console.print(f"On {deployed.api_url}, in the work pool {deployed.pool.name} ({deployed.pool.type}):")
    for name in deployed.deployments:
        console.print(f"  deployment  {name}", markup=False)
    for name, other in deployed.taken_over:
        console.print(f"  taken over  {name}: it ran {other}, whose nights now end", markup=False)
    for name in deployed.removed:
        console.print(f"  removed     {name}: it ran the same file under an earlier name", markup=False)
    for name in deployed.kept_off:
        console.print(
            f"  stays off   {name}: so was its schedule under the earlier name; salon doctor says how to resume", markup=False
        )
    for name in deployed.elsewhere:
        console.print(
            f"  left alone  {name}, of another pool: it runs a file with the same path. If that is this file's earlier",
            markup=False,
        )
        console.print(f"              name: prefect deployment delete '{name}'", markup=False)
    for name in deployed.automations:
        console.print(f"  automation  {name}", markup=False)
    if deployed.told:
        told = ", ".join(deployed.told)
        console.print(
            f"\nalerts reach:        {told} (where the Prefect server is on SQLite, one may be lost: docs/alerts.md)",
            markup=False,
        )
    else:
        console.print(
            "\nalerts reach nobody: create a notification block (docs/alerts.md), then add --with-automations <type>/<name>",
            markup=False,
        )
    is_process = deployed.pool.type == "process"  # a plain worker would kill its runs when it is told to stop
    worker = "salon worker" if is_process else "prefect worker start"
    console.print(f"runs need a worker:  {worker} --pool {deployed.pool.name}", markup=False)
    console.print(f"run one now:         prefect deployment run '{deployed.deployments[0]}' --watch", markup=False)
