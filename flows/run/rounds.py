"""Pairs that are asked in rounds: after each the verdicts are looked at, and what is decided is left. Asking is judging.py's."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby

import polars as pl

from flows.run.context import RunContext
from flows.run.judging import judge
from schemas.metrics import is_primary
from schemas.records import PlannedPart
from schemas.tables import JUDGEMENTS, REQUESTS
from tasks.aggregate.preferences.adaptive import next_comparisons
from tasks.aggregate.preferences.evidence import Plan
from tasks.aggregate.preferences.prompts import PAIR
from tasks.aggregate.preferences.verdicts import verdicts
from tasks.judge.outcome import Outcome
from tasks.ledger.ledger import opened
from tasks.ledger.snapshot import replies_to
from tasks.plan.pairs import named
from tasks.validate.parse import REQUEST_COLUMNS, parse_part


def judge_all(run: RunContext, parts: Sequence[PlannedPart], *, is_retrying: bool = False) -> Outcome:
    """judge(), and after it, round by round, the parts that have rounds: those of comparisons that are not decided yet.

    What is decided follows from the replies alone: a run that is started again decides the same, and asks nothing of it again.
    """
    judge_some = partial(judge, run, is_retrying=is_retrying, n_of_run=sum(part.n_requests for part in parts))
    total = judge_some([part for part in parts if part.round is None])
    in_rounds = dict(_by_judge(parts))
    sizes = {key: len({part.comparison for part in mine}) * len(_headlines(run, key[0])) for key, mine in in_rounds.items()}
    n_family = {"benchmark": sum(sizes.values()), "pair": 1}  # corrected together, as the published table is
    for (rubric_id, judge_model), mine in in_rounds.items():
        if total.is_spent or total.is_stopped or run.judge(judge_model).recorded:
            continue
        n_together = n_family.get(run.benchmark.statistics.family, sizes[rubric_id, judge_model])
        watched = _Watched(run, rubric_id, mine, n_together)
        for number, of_round in groupby(mine, key=lambda part: part.round):
            asked = [part for part in of_round if part.comparison not in watched.closed]
            if not asked or total.is_spent or total.is_stopped:
                break
            total += judge_some(asked)
            watched.look(asked)
            run.reporter.say(
                f"{rubric_id}, {judge_model}: after round {(number or 0) + 1} {len(watched.closed)} of {watched.n_compared} "
                "comparisons are decided"
            )
    return total


class _Watched:
    """One rubric's comparisons by one judge: the verdicts so far, and which of them are decided."""

    def __init__(self, run: RunContext, rubric_id: str, parts: Sequence[PlannedPart], n_family: int) -> None:
        self._run, self._n_family = run, n_family
        self._headlines = _headlines(run, rubric_id)
        self._last_round = {str(part.comparison): part.round for part in parts}  # in order of the rounds
        self._planned = run.lake.scan(JUDGEMENTS, run.ids.plan_id).filter(
            pl.col("rubric_id") == rubric_id, pl.col("judge_model") == parts[0].judge_model
        )
        prompts = self._planned.select("category", "prompt_id").unique().collect(engine="streaming")
        self._n_prompts = dict(prompts.group_by("category").len().iter_rows())
        self._said: list[pl.DataFrame] = []
        self._exhausted: set[str] = set()
        self.closed: frozenset[str] = frozenset()

    @property
    def n_compared(self) -> int:
        """Comparisons in all."""
        return len(self._last_round)

    def look(self, asked: Sequence[PlannedPart]) -> None:
        """Take in what these parts' replies say, and look which comparisons are decided in each headline dimension."""
        self._said.append(_verdicts(self._run, asked, self._planned))
        self._exhausted |= {str(part.comparison) for part in asked if part.round == self._last_round[str(part.comparison)]}
        said = pl.concat(self._said)
        ends = {named(*pair): pair for pair in _compared(said)}
        plan = Plan(self._n_prompts, [ends[name] for name in self._exhausted & ends.keys()])
        open_somewhere: set[str] = set()
        for dimension in self._headlines:
            mine, floor = said.filter(dimension=dimension), self._run.benchmark.statistics.min_paired_prompts
            watches = next_comparisons(mine, list(ends.values()), plan, self._n_family, floor)
            open_somewhere |= {named(*watch.pair) for watch in watches if not watch.is_decided}
        self.closed = frozenset(ends.keys() - open_somewhere)


def _headlines(run: RunContext, rubric_id: str) -> list[str]:
    """The dimensions of a rubric that claims are made of."""
    keys = [dimension.key for dimension in run.rubrics[rubric_id].dimensions]
    return [key for key in keys if is_primary(rubric_id, key, keys, run.benchmark.statistics.primary)] or keys


def _compared(said: pl.DataFrame) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    rows = said.select(PAIR).unique(maintain_order=True).iter_rows()
    return [((model, checkpoint), (other, its)) for model, checkpoint, other, its in rows]


def _by_judge(parts: Sequence[PlannedPart]) -> Iterator[tuple[tuple[str, str], list[PlannedPart]]]:
    """The parts that are asked in rounds, by rubric and judge, each in order of their rounds."""
    in_rounds = [part for part in parts if part.round is not None]
    order = sorted(in_rounds, key=lambda part: (part.rubric_id, part.judge_model, part.round, part.index))
    for key, mine in groupby(order, key=lambda part: (part.rubric_id, part.judge_model)):
        yield key, list(mine)


def _verdicts(run: RunContext, parts: Sequence[PlannedPart], planned: pl.LazyFrame) -> pl.DataFrame:
    """What these parts' replies say, as the ledger holds them now."""
    requests = pl.concat([run.lake.read_part(REQUESTS, run.ids.plan_id, part.index, REQUEST_COLUMNS) for part in parts])
    with opened(run.ledger_url) as ledger:
        replies = replies_to(ledger, requests.select("request_key", "judge_model"))
    scores = parse_part(requests, replies, run.rubrics)
    mine = planned.filter(pl.col("request_key").is_in(requests["request_key"].to_list()))
    return verdicts(mine, scores.lazy(), run.rubrics).filter("is_asked")
