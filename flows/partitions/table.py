"""Partitions: checkpoint x dataset x rubric x judge, a row each, as a table one can look at. Who asks them: backfill, nightly.

The ledger is the truth about what was bought; a row says what a run found there when it wrote the row. Each row is a file of its
own, replaced whole, so that several processes can write and a reader meets no half.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

import numpy as np
import polars as pl

from flows.nights.own_rubrics import asks_the_same
from schemas.benchmark.judges import DEFAULT_PROVIDER, Judge
from schemas.identities import canonical_json
from schemas.tables.stored import JUDGEMENTS, PARTITIONS, SAMPLES
from schemas.tables.table import conform
from tasks.context import StageContext
from tasks.ingest.identity import ID_BYTES, in_order
from tasks.ingest.identity import dataset_id as digest_of_samples
from tasks.lake.atomic_files import write_parquet
from tasks.lake.object_store.cache_folder import pull, push
from tasks.lake.pictures import StoredDataset
from tasks.lake.request_rows import each_request
from tasks.lake.small_files import read_files
from tasks.ledger.ledger import Ledger
from tasks.ledger.open_ledgers import opened
from tasks.ledger.process_identity import HERE, Process, this_process
from tasks.ledger.snapshot import still_holds
from tasks.plan.anchors import OFF_BOARD

Prices = Mapping[tuple[str, str], tuple[float | None, float | None]]
"""(rubric, judge) -> USD of a request, online and by batch; None where a price is not known."""
BACKFILL = "backfill"
OF_CHECKPOINT = ["model", "checkpoint"]
SERIES = [*OF_CHECKPOINT, "rubric_id", "judge_model"]
_KEYS_AT_ONCE = 50_000  # asked of the ledger together: as texts of Python's they take 110 bytes each


class PartitionState(StrEnum):
    """Where a partition stands."""

    PLANNED = "planned"  # something is left to ask, and nobody has begun
    RUNNING = "running"
    DONE = "done"  # every request has its final reply
    FAILED = "failed"  # a run ended and left something to ask
    STALE = "stale"  # the rubric, the judge or the samples are others now; never written, only shown


def find_partitions(
    run: StageContext,
    prices: Prices = MappingProxyType({}),
    mixed: Mapping[tuple[str, str], str] = MappingProxyType({}),
    ended: Mapping[tuple[str, str], Mapping[str, int]] = MappingProxyType({}),
) -> pl.DataFrame:
    """The partitions of the run's plan as rows of PARTITIONS less who and when, `state` done or planned as the ledger has it.

    `prices`: what a request of a (rubric, judge) costs, online and by batch. `mixed`, of the run's one checkpoint: why a
    (rubric, judge) cannot be published though all of it were asked. `ended`: by (rubric, judge) the checkpoints that need no
    more prompts, each with its last look: what later ones would have asked is none of theirs. Anchors and judges that are only
    recorded have none.
    """
    asked = [judge.id for judge in run.benchmark.asked_judges]
    of_series = [*SERIES, "rubric_version"]
    is_of_one = pl.col("second_sample_id").is_null()
    judgements = run.lake.scan(JUDGEMENTS, run.ids.plan_id).filter(
        pl.col("occasion") == "", pl.col("judge_model").is_in(asked), is_of_one
    )  # fmt: skip
    keyed = _packed_ids([each_request(_up_to_last_look(judgements, ended), run.rubrics)], of_series, "request_key")
    with opened(run.ledger_url) as ledger:
        taken = still_holds(run, ledger.state())
        asked_of = ledger if taken is None or not taken.is_answered else None  # of all: no key is looked up
        counted = [(*series, *_counted(asked_of, keyed.pop(series))) for series in list(keyed)]
    schema = dict.fromkeys(of_series, pl.String) | {"n_requests": pl.Int64, "n_left": pl.Int64}
    rows = pl.DataFrame(counted, schema=schema, orient="row")
    why = [mixed.get(one) for one in rows.select("rubric_id", "judge_model").iter_rows()]
    rows = rows.with_columns(mixed=pl.Series(why, dtype=pl.String))
    digests = {model: judge_digest(run.judge(model)) for model in asked}
    rows = _priced(rows, prices).join(_samples(run.dataset), on=OF_CHECKPOINT).with_columns(
        benchmark=pl.lit(run.benchmark.name),
        rubric_digest=pl.col("rubric_id").replace_strict({r.id: r.digest for r in run.rubrics.values()}, return_dtype=pl.String),
        judge_digest=pl.col("judge_model").replace_strict(digests, return_dtype=pl.String),
        state=pl.when(pl.col("n_left") == 0)
        .then(pl.lit(PartitionState.DONE.value))
        .otherwise(pl.lit(PartitionState.PLANNED.value)),
    )  # fmt: skip
    named = ["benchmark", *OF_CHECKPOINT, "dataset_id", "rubric_id", "rubric_digest", "judge_digest"]
    ids = [sha256("\n".join(row).encode()).hexdigest() for row in rows.select(named).iter_rows()]
    return rows.with_columns(partition_id=pl.Series(ids, dtype=pl.String)).sort(SERIES)


def _up_to_last_look(judgements: pl.LazyFrame, ended: Mapping[tuple[str, str], Mapping[str, int]]) -> pl.LazyFrame:
    last = [(*series, name, look) for series, looks in ended.items() for name, look in looks.items()]
    if not last:
        return judgements
    schema = {"rubric_id": pl.String, "judge_model": pl.String, "about": pl.String, "last_look": pl.Int64}
    of_each = judgements.with_columns(about=pl.concat_str(OF_CHECKPOINT, separator="/")).join(
        pl.LazyFrame(last, schema=schema, orient="row"), on=["rubric_id", "judge_model", "about"], how="left"
    )
    return of_each.filter(pl.col("last_look").is_null() | (pl.col("first_look") <= pl.col("last_look")))


def _priced(rows: pl.DataFrame, prices: Prices) -> pl.DataFrame:
    """The rows with what their requests that are left cost; null where that is not known."""
    usd: dict[str, list[float | None]] = {"online_usd": [], "batch_usd": []}
    for rubric_id, judge, n_left in rows.select("rubric_id", "judge_model", "n_left").iter_rows():
        each = prices.get((rubric_id, judge), (None, None))
        for name, price in zip(usd, each, strict=True):
            usd[name].append(0.0 if n_left == 0 else None if price is None else price * n_left)
    return rows.with_columns(pl.Series(name, values, dtype=pl.Float64) for name, values in usd.items())


def write_partitions(
    run: StageContext, found: pl.DataFrame, asked_by: str, *, state: PartitionState | None = None, detail: str | None = None
) -> None:
    """Write these rows, in place of earlier ones of the same partitions; `state` and `detail` are of those that are not done."""
    process = this_process()
    open_state = pl.col("state") if state is None else pl.lit(state.value)
    is_done, is_mixed = pl.col("n_left") == 0, pl.col("mixed").is_not_null()
    rows = found.with_columns(
        state=pl.when(is_mixed).then(pl.lit(PartitionState.FAILED.value))
        .when(is_done).then(pl.lit(PartitionState.DONE.value)).otherwise(open_state),
        detail=pl.when(is_mixed).then("mixed").when(~is_done).then(pl.lit(detail, dtype=pl.String)),
        asked_by=pl.lit(asked_by),
        changed_at=pl.lit(datetime.now(UTC)),
        host=pl.lit(process.host, dtype=pl.String),
        pid=pl.lit(process.pid, dtype=pl.Int64),
        process_started=pl.lit(process.started),
    )  # fmt: skip
    folder, written = _folder(run), []
    for row in rows.iter_slices(1):
        target = folder / f"{row['partition_id'].item()}.parquet"
        was = read_files([target], PARTITIONS)["state"].item() if target.is_file() else None
        if row["state"].item() == was == PartitionState.DONE:
            continue  # done before: who did it, and when, stays
        write_parquet(conform(row, PARTITIONS), target, run.lake.root / "staging")
        written.append(target)
    push(run.lake.root, *written)


def read_partitions(run: StageContext) -> pl.DataFrame:
    """Every partition of the benchmark that was ever written, as it stands now: PARTITIONS rows.

    Stale are those of another rubric or judge than the file's, and of other samples than the checkpoint's latest; a running one
    whose process is gone has failed. Of rows under rubrics that ask and read the same, as with another title, one is left.
    """
    table = read_files(sorted(_folder(run).glob("*.parquet")), PARTITIONS)
    present, same = [rubric.digest for rubric in run.rubrics.values()], _digests_that_ask_the_same(run, table)
    judges = {judge.id: judge_digest(judge) for judge in run.benchmark.judges}
    latest = table.sort("changed_at").unique(OF_CHECKPOINT, keep="last").select(*OF_CHECKPOINT, latest="dataset_id")
    gone = [
        row["state"] == PartitionState.RUNNING and HERE.is_dead(Process(row["host"], row["pid"], row["process_started"]))
        for row in table.iter_rows(named=True)
    ]
    differs = {
        "the rubric": ~pl.col("rubric_digest").is_in(same),
        "the judge": pl.col("judge_digest") != pl.col("judge_model").replace_strict(judges, default="", return_dtype=pl.String),
        "its samples": pl.col("dataset_id") != pl.col("latest"),
    }
    is_stale, since = pl.any_horizontal(*differs.values()), [pl.when(one).then(pl.lit(what)) for what, one in differs.items()]
    changed = pl.concat_str(pl.concat_str(since, separator=", ", ignore_nulls=True), pl.lit(" changed since"))
    shown = table.with_columns(gone=pl.Series(gone, dtype=pl.Boolean)).join(latest, on=OF_CHECKPOINT, how="left").with_columns(
        state=pl.when(is_stale).then(pl.lit(PartitionState.STALE.value))
        .when("gone").then(pl.lit(PartitionState.FAILED.value)).otherwise("state"),
        detail=pl.when(is_stale).then(changed).when("gone")
        .then(pl.lit("its process is gone; run the same command again to continue")).otherwise("detail"),
    )  # fmt: skip
    is_shown_stale = pl.col("state") == PartitionState.STALE.value
    each = shown.sort(pl.col("rubric_digest").is_in(present), "changed_at")  # today's digest is the newest
    left = each.filter(is_shown_stale | pl.struct(*SERIES, is_shown_stale).is_last_distinct())
    return left.select(PARTITIONS.columns).sort(*SERIES, "changed_at")


def _digests_that_ask_the_same(run: StageContext, table: pl.DataFrame) -> list[str]:
    """The digests in a table of partitions under which a rubric asks and reads as today's of its id does."""
    mine = table.select("rubric_id", "rubric_digest").unique().filter(pl.col("rubric_id").is_in(list(run.rubrics)))
    return [
        digest
        for name, digest in mine.iter_rows()
        if asks_the_same(run.lake.root, run.rubrics, name, digest, run.rubrics[name].digest)
    ]


def asked_alone(run: StageContext) -> list[tuple[str, str]]:
    """(rubric, judge) of what is asked of a checkpoint by itself; pairs are of two, and belong to no checkpoint's partition."""
    alone = [rubric_id for rubric_id, rubric in run.rubrics.items() if not rubric.is_of_pairs]
    return [(rubric_id, judge.id) for rubric_id in alone for judge in run.judges_for(rubric_id) if not judge.recorded]


def asks_pairs_alone(run: StageContext) -> bool:
    """Whether no rubric asks about a checkpoint by itself: there are no partitions then."""
    return all(rubric.is_of_pairs for rubric in run.rubrics.values())


def judge_digest(judge: Judge) -> str:
    """sha256 over what makes a judge's answers others: not where it is asked, how, or for how much."""
    said = judge.model_dump(mode="json", include={"model", "parameters", "repeats", "structured_output"})
    later = {name: value for name in ("share", "deployment") if (value := getattr(judge, name)) is not None}
    later |= {"provider": judge.provider} if judge.provider != DEFAULT_PROVIDER else {}
    later |= judge.shown  # unset, they leave every digest as it was
    return sha256(canonical_json(said | later)).hexdigest()


def _folder(run: StageContext) -> Path:
    """Where the benchmark's rows are, as they are now."""
    folder = run.lake.root / PARTITIONS.name / run.benchmark.name
    pull(run.lake.root, folder)
    return folder


def _packed_ids(scans: Iterable[pl.LazyFrame], by: Sequence[str], name: str) -> dict[tuple[str, ...], list[bytes]]:
    """The ids of column `name` by the other columns, in 32 bytes each: lists of pieces, as the rows come. Nulls are none."""
    found: dict[tuple[str, ...], list[bytes]] = {}
    wanted = [pl.col(by).cast(pl.Categorical), pl.col(name).str.decode("hex")]
    for scan in scans:
        for batch in scan.select(wanted).collect_batches(chunk_size=_KEYS_AT_ONCE, engine="streaming"):
            for series, mine in batch.group_by(by):
                found.setdefault(tuple(map(str, series)), []).append(b"".join(mine[name].drop_nulls()))
    return found


def _counted(ledger: Ledger | None, keys: list[bytes]) -> tuple[int, int]:
    """How many different requests these packed keys are, and of how many the ledger lacks something (None: of none)."""
    n_keys = n_left = 0
    for packed_keys in in_order(keys, _KEYS_AT_ONCE):
        some = np.unique(packed_keys).tobytes().hex("\n", ID_BYTES).split("\n")
        n_keys += len(some)
        if ledger is not None:
            known = ledger.known(some)
            n_left += len(some) - len(known) + len(ledger.reasks_due(known))
    return n_keys, n_left


def _samples(dataset: StoredDataset) -> pl.DataFrame:
    """(model, checkpoint, dataset_id, sources_json) of each checkpoint: its samples alone."""
    lake, is_own = dataset.lake, ~pl.col("model").is_in(OFF_BOARD)
    of_parts = lake.collect(SAMPLES, dataset.id, lambda rows: rows.filter(is_own).select(*OF_CHECKPOINT, "source").unique())
    named = of_parts.group_by(OF_CHECKPOINT).agg(sources=pl.col("source").unique().sort())
    ids = _packed_ids((rows.filter(is_own) for rows in lake.scans(SAMPLES, dataset.id)), OF_CHECKPOINT, "sample_id")
    return named.select(
        *OF_CHECKPOINT,
        dataset_id=pl.Series([digest_of_samples(ids.pop(one)) for one in named.select(OF_CHECKPOINT).rows()], dtype=pl.String),
        sources_json=pl.Series([json.dumps(list(names)) for names in named["sources"]], dtype=pl.String),
    )
