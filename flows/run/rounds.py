"""What is asked in rounds, pairs or looks: after each it is seen what is decided, and that is left. Asking is judging.py's."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby

import polars as pl

from flows.run.bought import asked_parts
from flows.run.context import RunContext
from flows.run.judge_servers import servers_of
from flows.run.judging import judge, n_left, recorded
from flows.run.looks import WatchedScores
from schemas.benchmark.exam import OCCASION
from schemas.metrics import primary_of
from schemas.records import PlannedPart
from schemas.statuses.rows import ReplyStatus
from schemas.tables.stored import JUDGEMENTS, REQUESTS
from tasks.aggregate.preferences.adaptive import next_comparisons
from tasks.aggregate.preferences.evidence import Plan
from tasks.aggregate.preferences.prompts import PAIR
from tasks.aggregate.preferences.verdicts import verdicts
from tasks.judge.outcome import Outcome
from tasks.ledger.ledger import Ledger
from tasks.ledger.open_ledgers import opened
from tasks.ledger.snapshot import parts_to_ask, replies_to
from tasks.plan.pairs import named
from tasks.validate.parse import REQUEST_COLUMNS, parse_part


class _WatchedPairs:
    """One rubric's comparisons by one judge: the verdicts so far, and which of them are decided (`closed`)."""

    what = "comparisons are decided"

    def __init__(self, run: RunContext, rubric_id: str, parts: Sequence[PlannedPart], n_family: int) -> None:
        self._run, self._n_family = run, n_family
        self._headlines = _headlines(run, rubric_id)
        self._last_round = {str(part.about): part.round for part in parts}  # in order of the rounds
        self.n_watched = len(self._last_round)
        self._planned = run.lake.scan(JUDGEMENTS, run.ids.plan_id).filter(
            pl.col("rubric_id") == rubric_id, pl.col("judge_model") == parts[0].judge_model
        )
        prompts = self._planned.select("category", "prompt_id").unique().collect(engine="streaming")
        self._n_prompts = dict(prompts.group_by("category").len().iter_rows())
        self._said: list[pl.DataFrame] = []
        self._exhausted: set[str] = set()
        self.closed: frozenset[str] = frozenset()

    def wanted(self, of_round: Sequence[PlannedPart]) -> list[PlannedPart]:
        return [part for part in of_round if part.about not in self.closed]

    def look(self, asked: Sequence[PlannedPart]) -> None:
        self._said.append(_verdicts(self._run, asked, self._planned))
        self._exhausted |= {str(part.about) for part in asked if part.round == self._last_round[str(part.about)]}
        said = pl.concat(self._said)
        ends = {named(*pair): pair for pair in _compared(said)}
        plan = Plan(self._n_prompts, [ends[name] for name in self._exhausted & ends.keys()])
        open_somewhere: set[str] = set()
        for dimension in self._headlines:
            mine, rules = said.filter(dimension=dimension), self._run.benchmark.statistics
            floors = rules.min_paired_prompts, self._run.benchmark.gate.min_coverage
            watches = next_comparisons(mine, list(ends.values()), plan, self._n_family, *floors, rules.failures)
            open_somewhere |= {named(*watch.pair) for watch in watches if not watch.is_decided}
        self.closed = frozenset(ends.keys() - open_somewhere)


_Watched = WatchedScores | _WatchedPairs
"""What is asked in rounds under one rubric by one judge."""


def judge_all(run: RunContext, parts: Sequence[PlannedPart], *, retried: set[str] | None = None) -> Outcome:
    """judge(), and after it, round by round, the parts that have rounds: those about which not all is decided yet.

    An exam's twins come last: what money and attempts there are goes to what is published first.
    What is decided follows from the replies alone: a run that is started again decides the same, and asks nothing of it again.
    """
    n_of_run = sum(part.n_requests for part in parts)
    with servers_of(run) as servers:
        return _all_judged(run, parts, partial(judge, run, retried=retried, n_of_run=n_of_run, servers=servers))


def _all_judged(run: RunContext, parts: Sequence[PlannedPart], judge_some: Callable[[Sequence[PlannedPart]], Outcome]) -> Outcome:
    in_rounds = dict(_by_judge(parts))
    examined = [part for part in parts if part.about == OCCASION] if in_rounds else []  # else they stand last as it is
    total = judge_some([part for part in parts if part.round is None and part not in examined]) + recorded(run, parts)
    watching, is_over, left_out = _watching(run, in_rounds), total.is_spent or total.is_stopped, list[PlannedPart]()
    met = set[int]()
    for (rubric_id, judge_model), mine in in_rounds.items():
        if run.judge(judge_model).recorded:
            continue
        if is_over:
            left_out += mine
            continue
        watched, rounds = watching(rubric_id, judge_model), _rounds(mine)
        for number, of_round in enumerate(rounds, 1):
            asked = watched.wanted(of_round)
            if not asked:
                break
            met |= {part.index for part in asked}
            if is_over:
                left_out += asked
                continue
            total += judge_some(asked)
            is_over = total.is_spent or total.is_stopped
            if number < len(rounds) and not is_over:  # a round that was not asked to its end decides nothing
                watched.look(asked)
                said = f"after round {number} of {len(rounds)}: {len(watched.closed)} of {watched.n_watched} {watched.what}"
                run.reporter.say(f"{rubric_id}, {judge_model}: {said}")
    met |= {part.index for part in left_out}
    total += _stored(run, [part for mine in in_rounds.values() for part in mine if part.index not in met])
    if is_over:
        return total + _not_tried(run, asked_parts(run, [*left_out, *examined]))
    return total + judge_some(examined) if examined else total


def _not_tried(run: RunContext, parts: Sequence[PlannedPart]) -> Outcome:
    """What the end of the money left: all that may still be asked, though later looks might spare some of it."""
    n_requests = sum(part.n_requests for part in parts)
    return Outcome(n_requests=n_requests, n_cached=n_requests - n_left(run, parts))


def _stored(run: RunContext, left: Sequence[PlannedPart]) -> Outcome:
    """Of what was left as decided, the requests with a reply: an earlier run, which went further, or another file bought it."""
    n_stored = _not_tried(run, asked_parts(run, left)).n_cached
    return Outcome(n_requests=n_stored, n_cached=n_stored)


def due_now(run: RunContext, parts: Sequence[PlannedPart]) -> list[PlannedPart]:
    """The parts to ask by files, of those in rounds what the first round lacks in which some were never asked, and those before.

    What is decided by the replies that are there is left, as judge_all() leaves it: `parts` are the plan's, as for it.
    """
    due = [part for part in parts if part.round is None]
    in_rounds = dict(_by_judge(parts))
    watching = _watching(run, in_rounds)
    for (rubric_id, judge_model), mine in in_rounds.items():
        if run.judge(judge_model).recorded:
            continue
        watched, rounds = watching(rubric_id, judge_model), _rounds(mine)
        for number, lacking, is_waited_for in _replayed(run, watched, rounds):
            due += lacking
            if is_waited_for:
                run.reporter.say(f"{rubric_id}, {judge_model}: round {number} of {len(rounds)}, until everything was asked")
    return asked_parts(run, due)


def decided(run: RunContext, parts: Sequence[PlannedPart]) -> dict[tuple[str, str], Mapping[str, int]]:
    """By rubric and judge, the checkpoints that need no more prompts, each with its last look: as judge_all() left them."""
    found: dict[tuple[str, str], Mapping[str, int]] = {}
    for (rubric_id, judge_model), mine in dict(_by_judge(parts)).items():
        if not (run.rubrics[rubric_id].is_of_pairs or run.judge(judge_model).recorded):
            watched = WatchedScores(run, rubric_id, mine)
            deque(_replayed(run, watched, _rounds(mine)), maxlen=0)
            found[rubric_id, judge_model] = watched.ended
    return found


def _replayed(
    run: RunContext, watched: _Watched, rounds: Sequence[Sequence[PlannedPart]]
) -> Iterator[tuple[int, list[PlannedPart], bool]]:
    """Each round with what it lacks, and whether some of that was never asked, up to the first of these; each is looked at."""
    for number, of_round in enumerate(rounds, 1):
        asked = watched.wanted(of_round)
        if not asked:
            return
        with opened(run.ledger_url) as ledger:
            lacking = parts_to_ask(run, asked, ledger)
            is_waited_for = any(_is_never_asked(run, part, ledger) for part in lacking)
        yield number, lacking, is_waited_for
        if is_waited_for:
            return
        watched.look(asked)


def _is_never_asked(run: RunContext, part: PlannedPart, ledger: Ledger) -> bool:
    """Whether a request of the part, or the re-ask that it is owed, was never answered nor failed."""
    keys = run.request_keys(part)
    failed = ledger.last_failures(keys).filter(pl.col("status") != ReplyStatus.NOT_ASKED.value)
    return not ((set(keys) - ledger.known(keys)) | ledger.reasks_due(keys)) <= set(failed["request_key"])


def _watching(run: RunContext, in_rounds: Mapping[tuple[str, str], Sequence[PlannedPart]]) -> Callable[[str, str], _Watched]:
    n_family = _n_family_of_pairs(run, in_rounds)

    def watched(rubric_id: str, judge_model: str) -> _Watched:
        mine = in_rounds[rubric_id, judge_model]
        if run.rubrics[rubric_id].is_of_pairs:
            return _WatchedPairs(run, rubric_id, mine, n_family[rubric_id, judge_model])
        return WatchedScores(run, rubric_id, mine)

    return watched


def _rounds(parts: Sequence[PlannedPart]) -> list[list[PlannedPart]]:
    return [list(of_round) for _, of_round in groupby(parts, key=lambda part: part.round)]


def _n_family_of_pairs(run: RunContext, in_rounds: Mapping[tuple[str, str], Sequence[PlannedPart]]) -> dict[tuple[str, str], int]:
    """By rubric and judge, how many comparisons of pairs are corrected together, as the published table is."""
    of_pairs = {key: parts for key, parts in in_rounds.items() if run.rubrics[key[0]].is_of_pairs}
    sizes = {key: len({part.about for part in parts}) * len(_headlines(run, key[0])) for key, parts in of_pairs.items()}
    together = {"benchmark": sum(sizes.values()), "pair": 1}
    return {key: together.get(run.benchmark.statistics.family, size) for key, size in sizes.items()}


def _headlines(run: RunContext, rubric_id: str) -> list[str]:
    """The dimensions of a rubric that claims are made of."""
    return primary_of(rubric_id, [one.key for one in run.rubrics[rubric_id].dimensions], run.benchmark.statistics.primary)


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
