"""From a benchmark file to the context of a run: rubrics linted, lake, executor, reporter. Nothing is asked here."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NoReturn, Self

from flows.executors.base import Executor
from flows.executors.keys import fetch_keys
from flows.executors.local import InProcessExecutor
from flows.observability import redaction
from flows.observability.progress import Reporter
from rubrics.linting import lint
from rubrics.loading import SHIPPED, find_rubrics
from rubrics.model import Rubric
from schemas.benchmark.file import MAX_USD, Benchmark, load_benchmark, refused
from schemas.errors import InputError, RubricError
from schemas.identities import RunIds
from tasks.context import StageContext
from tasks.judge.budget.budget import why_not_kept
from tasks.judge.local_identity import with_identities
from tasks.judge.provider.base import check_provider, provider_of
from tasks.lake.reading import Lake, open_lake
from tasks.publish.identity import code_version


@dataclass(frozen=True)
class RunContext(StageContext):
    """What the stages of a flow know: beside what every shard is sent, who runs the shards and who is told of progress.

    The defaults are those of a preview: no Prefect, nobody told. A stage is `stage(context, input) -> output`; what it has made
    goes on as `context.having(...)`.
    """

    executor: Executor = field(default_factory=InProcessExecutor)
    reporter: Reporter = field(default_factory=Reporter)

    @classmethod
    def of(cls, stage: StageContext, executor: Executor | None = None, reporter: Reporter | None = None) -> Self:
        """The context of a flow around what its shards are sent."""
        return cls(
            stage.benchmark, stage.rubrics, stage.lake, stage.ledger_url, stage.run_date, stage.ids,
            stage.lineage, executor or InProcessExecutor(), reporter or Reporter(),
        )  # fmt: skip

    @property
    def stage(self) -> StageContext:
        """What a shard is sent."""
        return StageContext(self.benchmark, self.rubrics, self.lake, self.ledger_url, self.run_date, self.ids, self.lineage)

    def __reduce__(self) -> NoReturn:
        """Executor and reporter belong to one process."""
        raise TypeError("a RunContext stays in its process; what is sent to others is its `stage`")


def open_run(
    file: Path, run_date: date | None = None, judge_url: str | None = None, max_usd: float | None = None
) -> StageContext:
    """Open the run a benchmark file describes.

    `run_date` defaults to today in `[nightly] timezone`; `judge_url` is asked in place of every judge's own `base_url`;
    `max_usd` stands in place of the file's own.
    Raises InputError: what is wrong with the file, the lake or a rubric; a rubric that lint finds fault with is never asked by.
    """
    benchmark = load_benchmark(file)
    for index, judge in enumerate(benchmark.judges):
        check_provider(judge)
        with _at(file, "judges", index, "parameters"):
            provider_of(judge).check_parameters(judge.parameters)
        with _at(file, "judges", index, "detail"):
            provider_of(judge).check_detail(judge)
    redaction.watch(judge.api_key_env for judge in benchmark.judges)
    if judge_url is not None:
        judges = [judge.model_copy(update={"base_url": judge_url}) for judge in benchmark.judges]
        benchmark = benchmark.model_copy(update={"judges": judges})
    if max_usd is not None:
        if not 0 <= max_usd <= MAX_USD:
            raise InputError(f"max_usd = {max_usd}: from 0 to {MAX_USD:,} USD may be spent")
        benchmark = benchmark.model_copy(update={"limits": benchmark.limits.model_copy(update={"max_usd": max_usd})})
    folders = [benchmark.path(folder) for folder in benchmark.rubric_folders]
    rubrics = find_rubrics([choice.id for choice in benchmark.rubrics], [*folders, SHIPPED])
    for rubric in rubrics.values():
        problems = lint(rubric)
        if problems:
            raise RubricError(f"rubric {rubric.id} cannot be used with:\n  - " + "\n  - ".join(problems))
    _check_programs(benchmark, rubrics)
    _check_dimensions(file, benchmark, rubrics)
    lake = open_lake(benchmark.lake, benchmark.folder.resolve())
    benchmark = with_identities(benchmark, lake.root)
    ids = RunIds(code_version=code_version())
    day = run_date or benchmark.nightly.today(datetime.now(UTC))
    return StageContext(benchmark, rubrics, lake, ledger_url(benchmark, lake), day, ids)


def _check_programs(benchmark: Benchmark, rubrics: Mapping[str, Rubric]) -> None:
    """Raise InputError where a rubric has no judge: a program's numbers none to be of, or no messages to ask one by."""
    programs = {rubric.program for rubric in rubrics.values() if rubric.program}
    recorded = {judge.id for judge in benchmark.judges if judge.recorded}
    for rubric in rubrics.values():
        if rubric.program and rubric.program not in recorded:
            raise InputError(
                f"rubric {rubric.id} takes the numbers of {rubric.program}, which is not a recorded judge of this file; add "
                f'[[judges]] with model = "{rubric.program}" and recorded = true'
            )
        if not rubric.program and programs >= {judge.id for judge in benchmark.judges}:
            raise InputError(f"rubric {rubric.id} has no judge: all judges of the file are programs that measure; add [[judges]]")
        asked = benchmark.asked_judges
        if asked and not (rubric.program or rubric.messages or rubric.requests):
            raise InputError(
                f"rubric {rubric.id} has no [[messages]], and {asked[0].id} cannot be asked with it; add them to its "
                "rubric.toml, or import replies recorded elsewhere: recorded = true under [[judges]]"
            )


@contextmanager
def _at(file: Path, *loc: int | str) -> Iterator[None]:
    """Name the line of the benchmark file where what is said there is refused."""
    try:
        yield
    except InputError as error:
        raise refused(file, loc, str(error)) from error


def _check_dimensions(file: Path, benchmark: Benchmark, rubrics: Mapping[str, Rubric]) -> None:
    keys = {one.key for rubric in rubrics.values() for one in rubric.dimensions}
    keys |= {f"{rubric.id}.{one.key}" for rubric in rubrics.values() for one in rubric.dimensions}
    named: list[tuple[str, tuple[str | int, ...]]] = []
    named += [(name, ("statistics", "at_least", name)) for name in benchmark.statistics.at_least]
    named += [(name, ("statistics", "primary", index)) for index, name in enumerate(benchmark.statistics.primary)]
    named += [(name, ("exam", "meant", name)) for name in (benchmark.exam.meant if benchmark.exam else ())]
    for name, place in named:
        if name not in keys:
            known = ", ".join(sorted(key for key in keys if "." not in key))
            raise refused(file, place, f"no rubric of this file has {name!r}; its dimensions: {known}")
    for rubric in rubrics.values():
        for key in dict.fromkeys(one.key for one in rubric.dimensions):
            _check_threshold(file, benchmark.statistics.at_least, rubric, key)


def _check_threshold(file: Path, at_least: Mapping[str, float], rubric: Rubric, key: str) -> None:
    """Off the scale it is a share of nothing or of everything, published as a finding."""
    name = next((name for name in (f"{rubric.id}.{key}", key) if name in at_least), None)
    scales = [(one.minimum, one.maximum) for one in rubric.dimensions if one.key == key]
    low, high = min(low for low, _ in scales), max(high for _, high in scales)
    if name is not None and not low <= at_least[name] <= high:
        why = f"{at_least[name]:g} is not on the scale of {key} in rubric {rubric.id}, {low:g} to {high:g}; write a score on it"
        apart = "" if "." in name else f', or a "rubric.{key}" for each rubric'
        raise refused(file, ("statistics", "at_least", name), why + apart)


def ledger_url(benchmark: Benchmark, lake: Lake) -> str:
    """The ledger's address. Raises InputError where a lake on a bucket has none named: a cache is no place for it."""
    if benchmark.ledger is None and lake.bucket:
        raise InputError(
            f'lake = "{lake.place}": a lake on an object store needs a ledger elsewhere, which stores replies as they arrive. '
            'Add ledger = "postgresql+psycopg://user@host/database", or for a single machine ledger = "sqlite:////folder/ledger.db"'
        )
    return benchmark.ledger or f"sqlite:///{lake.root / 'ledger.db'}"


def check_keys(run: StageContext) -> None:
    """Before anything is sent: MissingKeyError where a remote judge has no key, InputError where max_usd cannot be kept."""
    why_not = why_not_kept(run.benchmark.judges, run.benchmark.limits.max_usd)
    if why_not is not None:
        raise InputError(why_not)
    fetch_keys(judge.api_key_env for judge in run.benchmark.judges if not judge.recorded)
    for judge in run.benchmark.judges:
        if not judge.recorded:
            provider_of(judge).check(judge)
