"""`salon deploy`: a benchmark's nightly and backfill on a Prefect server, and what to do next. How: flows/serving/."""

from pathlib import Path
from typing import Annotated

import typer

from flows.observability.terminal import Console

DEFAULT_POOL = "salon-process"


def deploy(
    file: Annotated[Path, typer.Argument(help="The benchmark file (TOML).")],
    pool: Annotated[
        str, typer.Option(help="The work pool: salon-process, salon-docker, salon-kubernetes or one of yours.")
    ] = DEFAULT_POOL,
    file_at_worker: Annotated[
        str | None, typer.Option(help="The file's path where runs happen, such as /benchmarks/x.toml; default: its path here.")
    ] = None,
    image: Annotated[str | None, typer.Option(help="The container image of the runs; default: the pool's.")] = None,
    with_automations: Annotated[
        str | None,
        typer.Option(help="Also set up infra/automations/, telling this notification block: slack-webhook/salon-alerts."),
    ] = None,
) -> int:
    """Set up a benchmark's nightly and backfill on the Prefect server named by PREFECT_API_URL. Run it again after a change."""
    from flows.serving import deploying

    deployed = deploying.deploy(file, deploying.Asked(pool, file_at_worker, image, with_automations))
    console = Console(soft_wrap=True, highlight=False)
    console.print(f"On {deployed.api_url}, in the work pool {deployed.pool.name} ({deployed.pool.type}):")
    for name in deployed.deployments:
        console.print(f"  deployment  {name}", markup=False)
    for name in deployed.automations:
        console.print(f"  automation  {name}", markup=False)
    is_process = deployed.pool.type == "process"  # a plain worker would kill its runs when it is told to stop
    worker = "salon worker" if is_process else "prefect worker start"
    console.print(f"\nruns need a worker:  {worker} --pool {deployed.pool.name}", markup=False)
    console.print(f"run one now:         prefect deployment run '{deployed.deployments[0]}' --watch", markup=False)
    return 0
