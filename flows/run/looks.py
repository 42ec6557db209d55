"""Checkpoints that are asked look by look: who is asked on. Rounds are rounds.py's, what looks are worth tasks/aggregate."""

from collections.abc import Mapping, Sequence

import orjson
import polars as pl

from flows.run.context import RunContext
from rubrics.model import Rubric
from schemas.metrics import primary_of
from schemas.records import PlannedPart
from schemas.tables.stored import JUDGEMENTS, REQUESTS
from tasks.aggregate.comparisons.families import need_no_more
from tasks.aggregate.looks import planned_prompts
from tasks.aggregate.scales import total_reason
from tasks.aggregate.tables import Settings, headline_rows
from tasks.lake.request_rows import each_request
from tasks.ledger.open_ledgers import opened
from tasks.ledger.snapshot import replies_to
from tasks.validate.derived_scores import scores_of_lists
from tasks.validate.parse import REQUEST_COLUMNS, parse_part

_READ = ["request_key", "rubric_id", "dimension", "score", "status", "reason", "bound_low", "bound_high", "item"]


_CHECKPOINT = pl.concat_str("model", "checkpoint", separator="/")


class WatchedScores:
    """The checkpoints of one rubric and judge, as "model/checkpoint": the scores so far, and who is asked no more."""

    what = "checkpoints need no more prompts"

    def __init__(self, run: RunContext, rubric_id: str, parts: Sequence[PlannedPart]) -> None:
        self._run, self._rubric, self._parts = run, run.rubrics[rubric_id], parts
        of_all = run.lake.scan(JUDGEMENTS, run.ids.plan_id)
        self._planned = of_all.filter(
            pl.col("rubric_id") == rubric_id, pl.col("judge_model") == parts[0].judge_model, pl.col("occasion") == ""
        )
        self._prompts = planned_prompts(of_all, self._rubric)  # of all judges: a mean needs the categories of each
        self._n_family = _n_family(run, self._rubric)
        self._scores: list[pl.DataFrame] = []
        self._everyone = {str(part.about) for part in parts}
        self._ended: dict[str, int] = {}

    @property
    def closed(self) -> frozenset[str]:
        """Who is asked no more."""
        return frozenset(self._ended)

    @property
    def ended(self) -> Mapping[str, int]:
        """Who is asked no more, each with the look after which."""
        return self._ended

    @property
    def n_watched(self) -> int:
        """Checkpoints in all."""
        return len(self._everyone)

    def wanted(self, of_round: Sequence[PlannedPart]) -> list[PlannedPart]:
        """The parts of a round that are asked: of those not closed, and where a closed one's part holds what they ask too."""
        mine = [part for part in of_round if part.about not in self.closed]
        rest = [part for part in of_round if part.about in self.closed and part.n_requests]
        if not mine or not rest:
            return mine
        asked = self._planned.filter(pl.col("first_look") == _look(of_round), ~_CHECKPOINT.is_in(list(self.closed)))
        keys = each_request(asked, self._run.rubrics).select("request_key").drop_nulls().unique().collect(engine="streaming")
        if keys.height > sum(part.n_requests for part in mine):  # some stand in a part that comes first, of another checkpoint
            mine += [
                part
                for part in rest
                if not self._run.request_keys(part).to_frame().join(keys, on="request_key", how="semi").is_empty()
            ]
        return mine

    def look(self, asked: Sequence[PlannedPart]) -> None:
        """Take in what these parts' replies say, and see for whom no comparison is open any more."""
        self._scores += [self._read(part) for part in asked]
        statistics, look = self._run.benchmark.statistics, _look(asked)
        primary = _primary(self._run, self._rubric)
        if not self._prompts.are_enough(self._parts[0].judge_model, primary, look, statistics.min_paired_prompts):
            return
        scores = pl.concat(self._scores)
        last = _CHECKPOINT.replace_strict(self._ended, default=look, return_dtype=pl.Int64)
        mine = self._planned.filter(pl.col("first_look") <= last)  # a closed one may have replies that others asked for
        if self._rubric.is_of_lists:
            scores = self._of_lists(mine, scores)
        mine = mine.join(scores.lazy().select("request_key").unique(), on="request_key", how="semi")
        rows = headline_rows(mine, scores.lazy(), self._rubric, self._settings(), self._prompts)
        closed = need_no_more(rows, self._run.benchmark.name, statistics, self._n_family)
        self._ended |= dict.fromkeys(closed & self._everyone - self.closed, look)

    def _settings(self) -> Settings:
        own = self._run.benchmark
        gate, ids = own.gate.min_coverage, self._run.ids
        baseline, lineage = own.nightly.baseline, self._run.lineage
        return Settings(own.name, ids.dataset_id, "", self._run.run_date, gate, own.statistics, baseline, lineage=lineage)

    def _read(self, part: PlannedPart) -> pl.DataFrame:
        requests = self._run.lake.read_part(REQUESTS, self._run.ids.plan_id, part.index, REQUEST_COLUMNS)
        with opened(self._run.ledger_url) as ledger:
            replies = replies_to(ledger, requests.select("request_key", "judge_model"))
        read = parse_part(requests, replies, self._run.rubrics)
        return read if self._rubric.is_of_lists else read.select(_READ)

    def _of_lists(self, mine: pl.LazyFrame, scores: pl.DataFrame) -> pl.DataFrame:
        """What follows from the lists all of whose requests were asked."""
        lists = mine.select("request_key", "items_json").drop_nulls().unique("request_key").collect()
        asked = set(scores["request_key"])
        each = {key: orjson.loads(text) for key, text in lists.iter_rows()}
        whole = {key: items for key, items in each.items() if all(item["request_key"] in asked for item in items)}
        return scores_of_lists(whole, scores, self._run.rubrics).select(_READ)


def _look(parts: Sequence[PlannedPart]) -> int:
    return (parts[0].round or 0) + 1


def _n_family(run: RunContext, rubric: Rubric) -> int:
    """How many comparisons the published table corrects together with those of a rubric, at most."""
    if run.benchmark.statistics.family == "pair":
        return _n_rankings(run, rubric)
    planned = run.lake.scan(JUDGEMENTS, run.ids.plan_id).filter(pl.col("occasion") == "", pl.col("second_sample_id").is_null())
    by = ["rubric_id", "judge_model"]
    counted = planned.group_by(by).agg(n=pl.struct("model", "checkpoint").n_unique()).collect(engine="streaming")
    sizes = [(rubric_id, _n_pairs(run, n) * _n_rankings(run, run.rubrics[rubric_id])) for rubric_id, _, n in counted.iter_rows()]
    if run.benchmark.statistics.family == "table":
        return max(n for rubric_id, n in sizes if rubric_id == rubric.id)
    return sum(n for _, n in sizes)


def _n_pairs(run: RunContext, n_checkpoints: int) -> int:
    """Every two; above max_ranked each with the baseline and with its predecessor."""
    return n_checkpoints * (n_checkpoints - 1) // 2 if n_checkpoints <= run.benchmark.statistics.max_ranked else 2 * n_checkpoints


def _n_rankings(run: RunContext, rubric: Rubric) -> int:
    return sum(1 if total_reason(rubric, key) is None else max(1, len(rubric.variants)) for key in _primary(run, rubric))


def _primary(run: RunContext, rubric: Rubric) -> list[str]:
    return primary_of(rubric.id, [dimension.key for dimension in rubric.dimensions], run.benchmark.statistics.primary)
