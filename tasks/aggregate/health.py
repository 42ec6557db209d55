"""How asking went: failures by reason, replies by status, latency, tokens and cost, from the snapshot alone.

What a run itself paid and found stored is no property of the snapshot: it stands in `runs`.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from rubrics.model import Rubric
from rubrics.replies.read import CUT
from schemas.metrics import CELL
from schemas.statuses.cells import HealthMeasure
from schemas.statuses.rows import JudgementStatus, ReplyStatus
from schemas.tables.table import Row
from tasks.aggregate.judged import Array, Judged, judgements_of, requests_of
from tasks.aggregate.outcomes import Outcomes, scores_of
from tasks.aggregate.prompt_sums import exact_sums
from tasks.lake.request_rows import Keys, joined

N_SAID_MOST = 5
"""Sentences of a provider kept for each rubric, judge and checkpoint: some hold a number of each request."""
QUANTILES = (0.5, 0.9, 0.99)
_SUMMED = (HealthMeasure.N_INPUT_TOKENS, HealthMeasure.N_OUTPUT_TOKENS, HealthMeasure.COST_USD)


def health_rows(judged: Judged, asked: Keys, read: Mapping[str, Outcomes], replies: pl.LazyFrame) -> Iterator[Row]:
    """The rows of one rubric; `asked` are its requests_of. A request that answers for two checkpoints counts in both."""
    cells = judged.strata.select(CELL).unique(maintain_order=True)
    cell_of_stratum = judged.strata.join(cells.with_row_index("cell"), on=CELL, how="left", maintain_order="left")["cell"]
    cell = cell_of_stratum.to_numpy()[judged.stratum][judged.prompt]
    requests = _requests(asked, cell)
    judgements = _judged(judged, read, cell, requests.row, cells.height)
    asks = _asks(requests, replies)
    for number, address in enumerate(cells.iter_rows(named=True)):
        answered = _answered(pl.concat(asks.pop(number))) if number in asks else ()
        for measure, word, value, n_known in (*judgements[number], *answered):
            yield address | {"measure": measure.value, "word": word, "value": value, "n_known": n_known}


def health_of_pairs(
    judgements: pl.LazyFrame, scores: pl.LazyFrame, replies: pl.LazyFrame, rubrics: Iterable[Rubric], *, only_asked: bool
) -> Iterator[Row]:
    """The rows of those of the rubrics that are of pairs. A request counts for the checkpoint whose picture it shows first.

    Both orders are asked: each checkpoint has half of its pairs' requests, and a sum over checkpoints counts each once but
    where they have the same picture. `only_asked`: each request that was never sent is left out, as pairs are which are decided.
    """
    if only_asked:
        unsent = scores.filter(reason=ReplyStatus.NOT_ASKED.value).select("request_key").unique()
        judgements = judgements.join(unsent, on="request_key", how="anti", maintain_order="left")
    for rubric in rubrics:
        if rubric.is_of_pairs:
            judged = judgements_of(judgements, rubric)
            read, asked = scores_of(judged, judgements, scores, rubric), requests_of(judged, judgements, rubric)
            rows = health_rows(judged, asked, read, replies)
            yield from ({"rubric_id": rubric.id, "rubric_version": rubric.version} | row for row in rows)


def models_that_answered(
    health: Iterable[Row], same_models: Mapping[str, Sequence[str]]
) -> dict[tuple[str, ...], frozenset[str]]:
    """By cell, of one rubric's rows, the models that said they answered; nothing of a cell for which nobody said.

    `same_models`: by judge, the names of models that are one: the first stands for all.
    """
    found: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for row in health:
        if row["measure"] == HealthMeasure.N_ANSWERED_BY:
            same = same_models.get(str(row["judge_model"]), ())
            found[tuple(str(row[name]) for name in CELL)].add(same[0] if row["word"] in same else str(row["word"]))
    return {cell: frozenset(models) for cell, models in found.items()}


_Figure = tuple[HealthMeasure, str, float | None, int]


def _judged(judged: Judged, read: Mapping[str, Outcomes], cell: Array, asked: Array, n_cells: int) -> list[list[_Figure]]:
    """By cell: judgements, those planned, their requests (`asked` holds the cell of each), and failures by reason."""
    is_planned = (judged.frame["status"] == JudgementStatus.PLANNED.value).to_numpy()
    totals = np.bincount(cell, minlength=n_cells)
    counts = {
        HealthMeasure.N_JUDGEMENTS: totals,
        HealthMeasure.N_PLANNED: np.bincount(cell[is_planned], minlength=n_cells),
        HealthMeasure.N_REQUESTS: np.bincount(asked, minlength=n_cells),
    }
    if judged.twin is not None:
        counts[HealthMeasure.N_AGAIN] = np.bincount(cell[judged.is_again], minlength=n_cells)
    found: list[list[_Figure]] = [
        [(measure, "", float(values[n]), int(totals[n])) for measure, values in counts.items()] for n in range(n_cells)
    ]
    schema = {"row": pl.Int32(), "reason": pl.String()}
    failures = [pl.DataFrame({"row": one.failed_row, "reason": one.reason}, schema=schema) for one in read.values()]
    failed = pl.concat([pl.DataFrame(schema=schema), *failures]).unique()
    counted = failed.with_columns(cell=pl.Series(cell[failed["row"].to_numpy()])).group_by("cell", "reason").len("n")
    for number, reason, n in counted.sort("cell", "reason").iter_rows():
        found[number].append((HealthMeasure.N_WITHOUT_SCORE, reason, float(n), int(totals[number])))
    return found


def _requests(keys: Keys, cell: Array) -> Keys:
    """The cell of each request, once where samples of a cell share a question."""
    cells = cell[keys.row].astype(np.int32)
    if not keys.has_twins:
        return Keys(keys.key, keys.check, cells)
    once = pl.DataFrame({"key": keys.key, "check": keys.check, "cell": cells}).unique()
    return Keys.of(once, once["cell"].to_numpy())


def _asks(requests: Keys, replies: pl.LazyFrame) -> dict[int, list[pl.DataFrame]]:
    """By cell, in pieces: a row per ask of its requests."""
    texts = [pl.col(name).cast(pl.Categorical) for name in ("status", "answered_model", "error_detail", "finish_reason")]
    numbers = ["n_input_tokens", "n_output_tokens", "cost_usd", "latency_s", "n_attempts"]
    wanted = replies.select("request_key", *texts, *numbers, is_reask=pl.col("ask_index") > 0)
    found: dict[int, list[pl.DataFrame]] = defaultdict(list)
    for batch in joined(wanted, requests):
        for (cell,), mine in batch.partition_by("row", as_dict=True, include_key=False).items():
            found[cell].append(mine)
    return found


def _answered(asks: pl.DataFrame) -> Iterator[_Figure]:
    for status, n in _counts(asks["status"]):
        yield HealthMeasure.N_REPLIES, status, float(n), asks.height
    for name, n in _counts(asks["answered_model"].drop_nulls()):
        yield HealthMeasure.N_ANSWERED_BY, name, float(n), asks.height
    is_answered, is_filtered = (pl.col("status") == word.value for word in (ReplyStatus.ANSWERED, ReplyStatus.FILTERED))
    for measure, mine in ((HealthMeasure.N_SAID, ~is_answered & ~is_filtered), (HealthMeasure.N_FILTER_SAID, is_filtered)):
        said = _counts(asks.filter(mine)["error_detail"].drop_nulls())
        for words, n in sorted(said, key=lambda one: (-one[1], one[0]))[:N_SAID_MOST]:
            yield measure, words, float(n), asks.height
    for word, n in _counts(asks.filter(is_answered)["finish_reason"].drop_nulls()):
        if word.strip().lower() in CUT:
            yield HealthMeasure.N_CUT, word, float(n), asks.height
    yield HealthMeasure.N_REASKED, "", float(asks["is_reask"].sum()), asks.height
    yield HealthMeasure.N_ATTEMPTS, "", float(asks["n_attempts"].sum()), asks.height
    for measure in _SUMMED:
        known = asks[measure.value].drop_nulls().cast(pl.Float64).to_numpy()
        total = float(exact_sums(np.zeros(len(known), np.int64), known, 1)[0]) if len(known) else None
        yield measure, "", total, len(known)
    latency = asks.filter(is_answered)["latency_s"].drop_nulls()
    for quantile in QUANTILES:  # an order statistic: no arithmetic that could round
        yield HealthMeasure.LATENCY_S, f"p{100 * quantile:g}", latency.quantile(quantile, "nearest"), latency.len()


def _counts(words: pl.Series) -> list[tuple[str, int]]:
    counted = words.cast(pl.String).alias("word").to_frame().group_by("word").len("n").sort("word")
    return [(str(word), int(n)) for word, n in counted.iter_rows()]
