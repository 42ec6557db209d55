"""MLflow: a run for each checkpoint, in a tracking store that is one SQLite file. Which figures: figures.py."""

import logging
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from schemas.errors import InputError
from tasks.publish.exporters.figures import FIGURES, Contestant, Exported, Numbers, check_reachable

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

STORE = "mlflow.db"
_AT_ONCE = 1000  # metrics of one call, as MLflow allows
_ADDRESS = "MLFLOW_TRACKING_URI"


class MlflowRuns:
    """The metrics of a run are a checkpoint's figures; where they come from stands in its tags."""

    columns = FIGURES
    checked_by = "mlflow's own client"

    def check(self, exported: Exported, *, is_push: bool) -> None:  # noqa: ARG002 - any name is one of an experiment
        """Raise InputError where it is to be sent and no tracking server is named."""
        if is_push and not os.environ.get(_ADDRESS):
            raise InputError(
                f"--push sends to the tracking server that {_ADDRESS} names; set it, for instance to https://mlflow.example"
            )

    def write(self, exported: Exported, folder: Path) -> None:
        """One file, `mlflow ui --backend-store-uri sqlite:///mlflow.db` shows it."""
        _log(_client(_uri(folder)), exported)

    def read(self, folder: Path) -> Numbers:
        """Every run's metrics."""
        client = _client(_uri(folder))
        ids = [one.experiment_id for one in client.search_experiments()]
        runs = _runs(client, ids, "")
        return {(run.data.tags["salon.model"], run.data.tags["salon.checkpoint"]): dict(run.data.metrics) for run in runs}

    def push(self, exported: Exported, folder: Path) -> str:  # noqa: ARG002 - the runs are logged again, not copied
        """Log the same runs at MLFLOW_TRACKING_URI, less those of this publication that are there."""
        address = os.environ[_ADDRESS]
        if address.startswith("http"):
            check_reachable(address)
        n_sent = _log(_client(address), exported)
        n_there = len(exported.contestants) - n_sent
        return f"experiment {_experiment(exported)}: {n_sent} runs" + (f", {n_there} there already" if n_there else "")


def _uri(folder: Path) -> str:
    return f"sqlite:///{folder.absolute() / STORE}"


def _client(uri: str) -> "MlflowClient":
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # a folder is written: nothing is sent
    from mlflow import MlflowClient

    logging.getLogger("mlflow.store.db.utils").setLevel(logging.WARNING)  # it tells of each table that it makes
    return MlflowClient(tracking_uri=uri)


def _experiment(exported: Exported) -> str:
    return exported.name or exported.publication.benchmark


def _log(client: "MlflowClient", exported: Exported) -> int:
    """Log what the experiment does not hold of the publication yet; how many runs that were."""
    known = client.get_experiment_by_name(_experiment(exported))
    experiment = known.experiment_id if known else client.create_experiment(_experiment(exported))
    mine = f"tags.`salon.publication_id` = '{exported.publication.publication_id}' and attributes.status = 'FINISHED'"
    there = {(run.data.tags["salon.model"], run.data.tags["salon.checkpoint"]) for run in _runs(client, [experiment], mine)}
    missing = [one for one in exported.contestants if (one.model, one.checkpoint) not in there]
    for contestant in missing:
        _log_run(client, experiment, exported, contestant)
    return len(missing)


def _log_run(client: "MlflowClient", experiment: str, exported: Exported, contestant: Contestant) -> None:
    from mlflow.entities import Metric

    day = datetime.fromisoformat(exported.publication.run_date).replace(tzinfo=UTC)
    at_ms = int(day.timestamp() * 1000)
    tags = {f"salon.{name}": text for name, text in exported.words(contestant).items()}
    run = client.create_run(experiment, start_time=at_ms, tags=tags, run_name=contestant.name).info.run_id
    metrics = [Metric(key, value, at_ms, 0) for key, value in contestant.numbers().items()]
    for start in range(0, len(metrics), _AT_ONCE):
        client.log_batch(run, metrics=metrics[start : start + _AT_ONCE])
    client.set_terminated(run)


def _runs(client: "MlflowClient", experiments: list[str], wanted: str) -> "Iterator[Run]":
    token = None
    while True:
        page = client.search_runs(experiments, wanted, page_token=token)
        yield from page
        token = page.token
        if not token:
            return
