"""Checkpoints that are asked look by look: who is asked on. Rounds are rounds.py's, what looks are worth tasks/aggregate."""

from collections.abc import Sequence

import orjson
import polars as pl

from flows.run.context import RunContext
from schemas.records import PlannedPart
from schemas.tables.stored import JUDGEMENTS, REQUESTS
from schemas.tables.table import Row
from tasks.aggregate.leaving import CHECKPOINT, Leaving
from tasks.aggregate.tables import Settings, headline_rows
from tasks.lake.request_rows import each_request
from tasks.ledger.open_ledgers import opened
from tasks.ledger.snapshot import replies_to
from tasks.validate.derived_scores import scores_of_lists
from tasks.validate.parse import REQUEST_COLUMNS, parse_part

_READ = ["request_key", "rubric_id", "dimension", "score", "status", "reason", "bound_low", "bound_high", "item"]


class WatchedScores:
    """The checkpoints of one rubric and judge, as "model/checkpoint": the scores so far, and who is asked no more."""

    what = "checkpoints need no more prompts"

    def __init__(self, run: RunContext, rubric_id: str, parts: Sequence[PlannedPart]) -> None:
        self._run, self._rubric, self._parts = run, run.rubrics[rubric_id], parts
        of_all = run.lake.scan(JUDGEMENTS, run.ids.plan_id).filter(pl.col("second_sample_id").is_null())
        judge, own = parts[0].judge_model, run.benchmark
        self._leaving = Leaving.of(of_all, run.rubrics, self._rubric, judge, own.name, own.statistics)
        self._scores: list[pl.DataFrame] = []
        self._everyone = {str(part.about) for part in parts}
        self.n_watched = len(self._everyone)
        self.ended: dict[str, int] = {}  # who is asked no more, each with the look after which

    @property
    def closed(self) -> frozenset[str]:
        """Who is asked no more."""
        return frozenset(self.ended)

    def wanted(self, of_round: Sequence[PlannedPart]) -> list[PlannedPart]:
        """The parts of a round that are asked: of those not closed, and where a closed one's part holds what they ask too."""
        mine = [part for part in of_round if part.about not in self.closed]
        rest = [part for part in of_round if part.about in self.closed and part.n_requests]
        if not mine or not rest:
            return mine
        asked = self._leaving.judgements.filter(pl.col("first_look") == _look(of_round), ~CHECKPOINT.is_in(list(self.closed)))
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
        look = _look(asked)
        closed = self._leaving.after(look, self.ended, self._rows_of)
        self.ended |= dict.fromkeys(closed & self._everyone, look)

    def _rows_of(self, mine: pl.LazyFrame) -> list[Row]:
        scores = pl.concat(self._scores)
        if self._rubric.is_of_lists:
            scores = self._of_lists(mine, scores)
        mine = mine.join(scores.lazy().select("request_key").unique(), on="request_key", how="semi")
        return headline_rows(mine, scores.lazy(), self._rubric, Settings.of(self._run), self._leaving.prompts)

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
