"""The main job as a flow: what it is given, shows and sends. The work is run/pipeline.py, Prefect's side prefect_flows.py."""

from collections.abc import Sequence
from datetime import date
from functools import partial
from pathlib import Path

from flows.executors.choose import opened_executor
from flows.nights.checkpoints import find_checkpoints
from flows.observability.alerting import table_blocked
from flows.observability.artifacts import progress_in_prefect, show_in_prefect, tell_alerts
from flows.observability.progress import RunSummary, current
from flows.observability.redaction import redacted_errors
from flows.observability.waiting import say_stopping
from flows.partitions.grid import kept_anew, note_run, noted_where_it_ends, write_grid
from flows.run.clock import check_today
from flows.run.context import RunContext, check_keys, open_run
from flows.run.pipeline import run_pipeline
from schemas.benchmark.file import Retry, Runner
from schemas.errors import GateBlockedError, ProviderError
from tasks.judge.batch.folders import BatchResults
from tasks.stopping import heeding_sigterm


def benchmark(
    file: Path,
    run_date: date | None = None,
    checkpoints: Sequence[str] | None = None,
    judge_url: str | None = None,
    replies: Path | BatchResults | None = None,
    max_usd: float | None = None,
    runner: Runner | None = None,
    retry: Retry | None = None,
) -> RunSummary:
    """Run one benchmark file to a published table.

    file: the benchmark file. run_date: its logical date (default: today in [nightly] timezone). checkpoints: only these.
    judge_url: ask here in place of the judges' own addresses. replies: import these recorded replies, or
    results of exported requests, and ask nobody.
    max_usd: spend at most this, in place of the file's own limit. runner: local, processes or dask, in place of the file's own.
    retry: "rejected" asks again what the provider rejected.
    """
    with heeding_sigterm(say_stopping), redacted_errors():
        run = open_run(file, run_date, judge_url, max_usd)
        if replies is None:
            check_keys(run)
        reporter = current()
        reporter.on_share = progress_in_prefect(run.benchmark.name)
        try:
            with opened_executor(run, runner) as executor:
                context = RunContext.of(run, executor, reporter)
                if run_date is None:
                    check_today(context)
                known = find_checkpoints(context, {}, checkpoints) if checkpoints else None
                noted = partial(noted_where_it_ends, "run")
                retried = None if retry is None else set[str]()
                summary = run_pipeline(context, checkpoints, replies, known=known, retried=retried, while_asking=noted)
                write_grid(note_run(run, summary.published.publication_id, "run"), file)
        except GateBlockedError as error:
            tell_alerts(run.benchmark.name, run.run_date, [table_blocked(error)])
            raise
        except ProviderError:
            kept_anew(RunContext.of(run, reporter=reporter), file)()
            raise
        except Exception:
            if reporter.made is not None:  # another start finds it there, and would tell nobody of it
                show_in_prefect(run, reporter.made, reporter.made.cells)
            raise
        show_in_prefect(run, summary, summary.cells)
        return summary
