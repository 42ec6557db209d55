"""Stored replies of another model among those of a cell: nothing more is paid for then, since the check at the end would block.

The check itself is tasks/validate; that a run stops as another model answers is tasks/judge/model_pin.py.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain

import polars as pl

from flows.run.bought import asked_parts
from flows.run.context import RunContext
from schemas.benchmark.judges import Judge
from schemas.errors import InputError
from schemas.records import PlannedPart
from schemas.tables.stored import JUDGEMENTS, SAMPLES
from tasks.lake.request_rows import each_request
from tasks.ledger.ledger import Ledger
from tasks.ledger.queries import answered_by, names_answering
from tasks.ledger.snapshot import still_holds

N_NAMED = 3
_CELL = ["rubric_id", "judge_model", "model", "checkpoint"]


def refuse_other_models(run: RunContext, ledger: Ledger, parts: Sequence[PlannedPart]) -> None:
    """Raise InputError where something is left to ask and the check will not take some of a judge's stored replies."""
    before, every = still_holds(run, ledger.state()), asked_parts(run, parts)
    if before is not None and before.is_answered:
        return
    found = others_of(run, ledger, every)
    if found and any(ledger.n_left(run.request_keys(part).unique()) for part in every):
        raise InputError("\n  ".join(chain.from_iterable(found.values())))


def others_of(run: RunContext, ledger: Ledger, parts: Sequence[PlannedPart]) -> dict[str, list[str]]:
    """By judge, where cells of it have replies of several models: a sentence for each model."""
    found = dict[str, list[str]]()
    for judge in run.benchmark.asked_judges:
        mine = [part for part in parts if part.judge_model == judge.id]
        names = set[str]()  # no key is held where all are by one, as nearly always
        for part in mine:
            names |= ledger.read(partial(names_answering, keys=run.request_keys(part).to_list()))
        if len({judge.one_name(name) for name in names}) < 2:
            continue
        told = dict[str, str]()
        for part in mine:
            keys = run.request_keys(part).to_list()
            told.update((key, judge.one_name(name)) for key, name in ledger.read(partial(answered_by, keys=keys)))
        if sentences := list(_others(run, judge, told)):
            found[judge.id] = sentences
    return found


def mixed_cells(run: RunContext, ledger: Ledger, parts: Sequence[PlannedPart]) -> dict[tuple[str, str], str]:
    """Of a plan of one checkpoint, each (rubric, judge) whose stored replies are by several models: a sentence."""
    found = defaultdict[tuple[str, str], set[str]](set)
    for part in asked_parts(run, parts):
        names = ledger.read(partial(names_answering, keys=run.request_keys(part).to_list()))
        found[part.rubric_id, part.judge_model] |= {run.judge(part.judge_model).one_name(name) for name in names}
    return {(rubric_id, judge): _mixed(rubric_id, judge, names) for (rubric_id, judge), names in found.items() if len(names) > 1}


def _mixed(rubric_id: str, judge: str, names: set[str]) -> str:
    return (
        f"its replies under {rubric_id} by judge {judge} come from {len(names)} models ({', '.join(sorted(names))}), and "
        "such a cell is not published. If they are the same judge, list their names: accept_models = […]; otherwise ask "
        'everything again, with a dated snapshot as the judge\'s model or with a deployment = "…"'
    )


def _others(run: RunContext, judge: Judge, told: dict[str, str]) -> Iterator[str]:
    """The sentence, where a cell has replies of two models. Which of them is the cell's own, the most say."""
    names = pl.DataFrame({"request_key": list(told), "name": list(told.values())})
    wanted = [
        each_request(rows.filter(judge_model=judge.id), run.rubrics)
        .select(*_CELL, "request_key", "sample_id")
        .join(names.lazy(), on="request_key")
        .collect()
        for rows in run.lake.scans(JUDGEMENTS, run.ids.plan_id)
    ]
    rows = pl.concat(wanted) if wanted else pl.DataFrame()
    others, first, own_names = Counter[str](), defaultdict[str, list[str]](list), set[str]()
    for _, cell in rows.group_by(_CELL, maintain_order=True) if rows.height else ():
        (own, _), *_ = sorted(Counter(cell["name"].to_list()).items(), key=lambda one: (-one[1], one[0]))
        own_names.add(own)
        for name, sample_id in cell.filter(pl.col("name") != own).select("name", "sample_id").iter_rows():
            others[name] += 1
            first[name].append(sample_id)
    to_list = json.dumps(sorted((own_names | others.keys()) - {judge.model}))
    for name, n in others.items():
        places = _places(run, first[name][:N_NAMED])
        yield (
            f"judge {judge.id}: {n:,} of its stored replies are by {name}, but others of the same checkpoints are not "
            f"({places}). Nothing was sent: even with the rest paid for, the check judgements.judge_model.is_one_model_in_a_cell "
            f"would block publication. If all are the same judge, list their names: accept_models = {to_list}; otherwise ask "
            'everything again by giving the judge a deployment = "…"'
        )


def _places(run: RunContext, sample_ids: list[str]) -> str:
    def places(rows: pl.LazyFrame) -> pl.LazyFrame:
        return rows.filter(pl.col("sample_id").is_in(sample_ids)).select("source_key")

    found = run.lake.collect(SAMPLES, run.ids.dataset_id, places)["source_key"].to_list()
    return f"{'the first: ' if len(found) > 1 else ''}{', '.join(map(str, found))}"
