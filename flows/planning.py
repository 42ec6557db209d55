"""The preview behind `salon plan`: what a run would ask, and what is stored already. Nothing is sent; Prefect has no part."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from flows import stages
from flows.fan_out import in_this_process
from flows.opening import open_run
from flows.progress import Reporter
from schemas.tables import REQUESTS
from tasks.ingest.samples import IngestResult
from tasks.judge.ledger import Ledger


@dataclass(frozen=True, slots=True)
class PlannedRubric:
    """What one judge is to be asked by one rubric."""

    rubric_id: str
    judge_model: str
    is_recorded: bool
    n_requests: int
    n_cached: int
    n_output_tokens_expected: int  # of what is still to be asked

    @property
    def n_to_ask(self) -> int:
        """Requests that would be sent: none to a judge whose replies are only recorded."""
        return 0 if self.is_recorded else self.n_requests - self.n_cached


@dataclass(frozen=True, slots=True)
class Preview:
    """A run that has not happened."""

    name: str
    dataset: IngestResult
    rubrics: tuple[PlannedRubric, ...]
    requests_per_minute: int | None

    @property
    def minutes_at_limit(self) -> float | None:
        """Minutes the asking takes at the stated requests a minute; None where no limit is stated."""
        n_to_ask = sum(row.n_to_ask for row in self.rubrics)
        return n_to_ask / self.requests_per_minute if self.requests_per_minute else None


def preview(file: Path, checkpoints: Sequence[str] | None, reporter: Reporter) -> Preview:
    """Read the sources, plan, and look into the ledger."""
    run = open_run(file)
    dataset = stages.ingest(run, in_this_process, reporter, checkpoints)
    planned = stages.plan(run, dataset.dataset_id, in_this_process, reporter)
    rows: dict[tuple[str, str], PlannedRubric] = {}
    with Ledger(run.ledger_url) as ledger:
        for part in planned.parts:
            requests = run.lake.read_part(REQUESTS, planned.plan_id, part.index, ["request_key", "n_output_tokens_expected"])
            n_cached = len(ledger.known(requests["request_key"]))
            expected = requests["n_output_tokens_expected"].to_list()  # the same for every request of a rubric
            n_tokens = (requests.height - n_cached) * (expected[0] if expected else 0)
            before = rows.get((part.rubric_id, part.judge_model))
            rows[part.rubric_id, part.judge_model] = PlannedRubric(
                part.rubric_id,
                part.judge_model,
                run.judge(part.judge_model).recorded,
                requests.height + (before.n_requests if before else 0),
                n_cached + (before.n_cached if before else 0),
                n_tokens + (before.n_output_tokens_expected if before else 0),
            )
    return Preview(run.benchmark.name, dataset, tuple(rows.values()), run.benchmark.limits.requests_per_minute)
