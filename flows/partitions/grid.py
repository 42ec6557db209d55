"""The grid of partitions as a page beside a benchmark's publications, made anew by each run. How it looks: partitions_page()."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote

from flows.nights.checkpoints import find_checkpoints
from flows.nights.index import rewrite_index
from flows.observability.redaction import redacted
from flows.partitions.table import PartitionState, asked_alone, find_partitions, read_partitions, write_partitions
from flows.run.context import RunContext
from flows.run.rounds import decided
from schemas.errors import InputError, SalonError, StoppedError, StoreError
from schemas.records import Plan
from tasks.context import StageContext
from tasks.lake.atomic_files import locked, write_bytes
from tasks.lake.object_store.cache_folder import push
from tasks.plan.dataset import known_plan
from tasks.publish.folders import LAYOUT, PARTITIONS_PAGE
from tasks.publish.reading import find_publication
from tasks.publish.report.partitions import partitions_page

EVERY_S = 15.0


def note_run(run: StageContext, publication_id: str, asked_by: str) -> StageContext:
    """Write down where the partitions of a publication's plan stand; the run with its dataset and plan."""
    ids = find_publication(run.lake.root, publication_id).provenance()["identities"]
    planned = run.having(dataset_id=ids["dataset_id"], plan_id=ids["plan_id"])
    plan = known_plan(planned)
    ended = decided(RunContext.of(planned), plan.parts) if plan is not None else {}
    write_partitions(run, find_partitions(planned, ended=ended), asked_by)
    return planned


@contextmanager
def noted_where_it_ends(asked_by: str, run: RunContext, planned: Plan) -> Iterator[None]:
    """While a run asks: one that an error ends, or that is told to stop, writes down where its plan's partitions stand."""
    try:
        yield
    except StoreError:  # of the ledger or the lake, which this needs
        raise
    except BaseException as error:
        is_stopped = isinstance(error, StoppedError | KeyboardInterrupt)
        state, why = (PartitionState.PLANNED, "told to stop") if is_stopped else (PartitionState.FAILED, str(error))
        try:
            found = find_partitions(run.stage, ended=decided(RunContext.of(run.stage), planned.parts))
            write_partitions(run.stage, found, asked_by, state=state, detail=redacted(why))
        except Exception as fault:  # noqa: BLE001 - what ended the run is told, and this beside it
            run.reporter.say(f"where the partitions stand could not be written down: {fault}")
        raise


def write_grid(run: StageContext, file: Path) -> Path:
    """Write `publish/v1/<benchmark>/partitions.html`; its path. `file`: as the commands on the page name it."""
    rows = read_partitions(run)
    target = run.lake.root / "publish" / LAYOUT / run.benchmark.name / PARTITIONS_PAGE
    broken = dict[str, str]()
    names, is_known = _checkpoints(run, broken)
    begins = f"salon backfill {quote(file.name)} --checkpoints "
    page = partitions_page(
        run.benchmark.name, rows, asked_alone(run), names, datetime.now(UTC), begins, is_known=is_known, broken=list(broken)
    )
    is_first = not target.is_file()
    with locked(run.lake.root, f"partitions-{run.benchmark.name}"):
        write_bytes(page, target, run.lake.root / "staging")
    push(run.lake.root, target)
    if is_first:  # the index links to it
        rewrite_index(run.lake.root)
    return target


def kept_anew(run: RunContext, file: Path) -> Callable[[], None]:
    """What makes the page anew while a run goes on: every EVERY_S seconds at most, a twentieth of the time. It ends no run."""
    next_s = 0.0

    def make() -> None:
        nonlocal next_s
        began_s = time.monotonic()
        if began_s < next_s:
            return
        try:
            write_grid(run, file)
        except (SalonError, OSError) as error:
            run.reporter.say(f"the page of partitions could not be updated: {error}")
        ended_s = time.monotonic()
        next_s = ended_s + max(EVERY_S, 20 * (ended_s - began_s))

    return make


def _checkpoints(run: StageContext, broken: dict[str, str]) -> tuple[list[tuple[str, str]], bool]:
    """The checkpoints of the sources, oldest first of each model; none, and False, where they cannot be looked through.

    `broken` takes in those whose folder would name the model and cannot be read.
    """
    try:
        return [(one.model, one.checkpoint) for one in find_checkpoints(run, broken)], True
    except InputError:
        return [], False
