"""From a benchmark file to an opened run: rubrics loaded and linted, the lake, the ledger's address. Nothing is asked here."""

from datetime import UTC, date, datetime
from pathlib import Path

from flows.executors.keys import fetch_keys
from flows.observability import redaction
from rubrics.linting import lint
from rubrics.loading import SHIPPED, find_rubrics
from schemas.benchmark import Benchmark, load_benchmark
from schemas.errors import InputError, RubricError
from tasks.context import StageContext
from tasks.judge.budget.budget import check_max_usd
from tasks.judge.provider.client import api_key
from tasks.lake.reading import Lake, open_lake


def open_run(
    file: Path, run_date: date | None = None, judge_url: str | None = None, max_usd: float | None = None
) -> StageContext:
    """Open the run a benchmark file describes.

    `run_date` defaults to today in UTC; `judge_url` is asked in place of every judge's own `base_url`; `max_usd` stands
    in place of the file's own.
    Raises InputError: what is wrong with the file, the lake or a rubric; a rubric that lint finds fault with is never asked by.
    """
    benchmark = load_benchmark(file)
    redaction.watch(judge.api_key_env for judge in benchmark.judges)
    if judge_url is not None:
        judges = [judge.model_copy(update={"base_url": judge_url}) for judge in benchmark.judges]
        benchmark = benchmark.model_copy(update={"judges": judges})
    if max_usd is not None:
        benchmark = benchmark.model_copy(update={"limits": benchmark.limits.model_copy(update={"max_usd": max_usd})})
    folders = [benchmark.path(folder) for folder in benchmark.rubric_folders]
    rubrics = find_rubrics([choice.id for choice in benchmark.rubrics], [*folders, SHIPPED])
    for rubric in rubrics.values():
        problems = lint(rubric)
        if problems:
            raise RubricError(
                f"rubric {rubric.id} cannot be asked by ({len(problems)} problems):\n  - " + "\n  - ".join(problems)
            )
    lake = open_lake(benchmark.lake, benchmark.folder.resolve())
    return StageContext(benchmark, rubrics, lake, ledger_url(benchmark, lake), run_date or datetime.now(UTC).date())


def ledger_url(benchmark: Benchmark, lake: Lake) -> str:
    """The ledger's address. Raises InputError where a lake on a bucket has none named: a cache is no place for it."""
    if benchmark.ledger is None and lake.bucket:
        raise InputError(
            f'lake = "{lake.place}": a lake on an object store needs a ledger elsewhere, where replies are kept as they are paid '
            'for. Add ledger = "postgresql+psycopg://user@host/database", or for one machine ledger = "sqlite:////folder/ledger.db"'
        )
    return benchmark.ledger or f"sqlite:///{lake.root / 'ledger.db'}"


def check_keys(run: StageContext) -> None:
    """Before anything is sent: MissingKeyError where a remote judge has no key, InputError where max_usd cannot be kept."""
    check_max_usd(run.benchmark.judges, run.benchmark.limits.max_usd)
    fetch_keys(judge.api_key_env for judge in run.benchmark.judges if not judge.recorded)
    for judge in run.benchmark.judges:
        if not judge.recorded:
            api_key(judge)
