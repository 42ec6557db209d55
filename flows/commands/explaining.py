"""`salon explain`: a published number, a pair or a sample down to messages, replies and hashes. Tables are reading.py's."""

import os
import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import orjson
import typer
from rich.markup import escape
from rich.text import Text

from flows.commands.options import DEFAULT_LAKE, AsJson, BenchmarkName, Good, LakePlace, PublicationId
from flows.commands.printed.caveats import warn_of
from flows.commands.printed.explained import print_exam, print_judgement, print_pair
from flows.observability.terminal import Console, name_of, one_line, result_console
from schemas.metrics import is_mean_for_prompts_like_these
from schemas.statuses.cells import CellReason, CellStatus
from schemas.statuses.rows import ScoreStatus
from schemas.tables.nights import EXAM
from schemas.tables.published import PREFERENCES
from tasks.lake.reading import Lake, open_lake
from tasks.publish.caveats import caveats_of
from tasks.publish.explain.cells import ExplainedSample, Explanation, explain_sample, find_cell, find_row
from tasks.publish.explain.cells import explain as explain_cell
from tasks.publish.explain.exam import ExplainedExam, explain_exam
from tasks.publish.explain.pairs import ExplainedWinRate, explain_pair
from tasks.publish.leaderboard import format_estimate
from tasks.publish.reading import Publication, chosen, load_cells
from tasks.publish.standings.wording import counted, failures_of, has_enough, percent

Explained = ExplainedSample | ExplainedWinRate | ExplainedExam | Explanation


def explain(
    cell: Annotated[
        str,
        typer.Argument(
            help="A cell's, pair's, exam's or sample's id (or its beginning), or model/checkpoint/rubric/dimension[/category]."
        ),
    ],
    lake: LakePlace = DEFAULT_LAKE,
    benchmark: BenchmarkName = None,
    publication: PublicationId = None,
    good: Good = False,
    limit: Annotated[
        int, typer.Option(min=0, help="How many judgements to show; 0 for all. Failures and low scores come first.")
    ] = 5,
    as_json: AsJson = False,
) -> int:
    """Trace a published number, or one sample, to the exact messages, the replies and the hashes."""
    opened = open_lake(lake)
    published = chosen(opened.root, benchmark, publication, is_good=good)
    warn_of(caveats_of(opened.root, published, is_named=publication is not None or good))
    address = os.fsencode(cell).decode(errors="replace")  # bytes that are no text are in no name
    found = _explained(opened, published, address, limit or None)
    if as_json:
        print(orjson.dumps(asdict(found), default=str).decode())
    else:
        _print(result_console(), found)
    return 0 if isinstance(found, ExplainedSample | ExplainedExam) or found.is_reproduced else 1


def _explained(lake: Lake, publication: Publication, address: str, limit: int | None) -> Explained:
    cells = load_cells(publication)
    if re.fullmatch(r"[0-9a-f]{4,64}", address) and not cells["cell_id"].str.starts_with(address).any():  # no cell's id or path
        if len(address) >= 8 and (sample := explain_sample(lake, publication, address)) is not None:
            return sample
        if (pair := find_row(publication, PREFERENCES, "pair_id", address)) is not None:
            return explain_pair(lake, publication, pair, limit)
        if (exam := find_row(publication, EXAM, "exam_id", address)) is not None:
            return explain_exam(lake, publication, exam, limit)
    where = f"publication {publication.publication_id[:12]} of {publication.benchmark} (another: --publication, --benchmark)"
    return explain_cell(lake, publication, find_cell(cells, address, where), limit)


def _print(console: Console, found: Explained) -> None:
    if isinstance(found, ExplainedSample):
        _print_sample(console, found)
    elif isinstance(found, ExplainedWinRate):
        print_pair(console, found)
    elif isinstance(found, ExplainedExam):
        print_exam(console, found)
    else:
        _print_cell(console, found)


def _print_sample(console: Console, sample: ExplainedSample) -> None:
    console.print(Text(one_line(f"{sample.model} / {sample.checkpoint}, sample {sample.sample_id}"), style="bold"))
    console.print(f"{counted(len(sample.judgements), 'judgement')} in publication {sample.publication_id[:16]}\n")
    for judgement, (rubric, judge), scores in zip(sample.judgements, sample.judged_by, sample.scores, strict=True):
        console.print(Text(one_line(f"{rubric}, judged by {judge}"), style="bold"))
        for dimension, score, status, reason in scores:
            told = "no score" if score is None else f"{score:g}"
            why = "" if status == ScoreStatus.SCORED else f" ({reason or status})"
            console.print(name_of(f"  {dimension}: {told}{why}"))
        print_judgement(console, judgement)


def _print_cell(console: Console, explanation: Explanation) -> None:
    cell = explanation.cell
    names = ("model", "checkpoint", "rubric_id", "dimension", "category")
    console.print(Text(one_line(" / ".join(str(cell[name]) for name in names)), style="bold"))
    console.print(f"cell        {cell['cell_id']}, judged by {escape(one_line(str(cell['judge_model'])))}")
    if not is_mean_for_prompts_like_these(cell):  # several figures have one address
        console.print(name_of(f"figure      {cell['metric']} for {cell['estimand']}".replace("_", " ")))
    console.print(f"published   {format_estimate(cell['estimate'], cell['ci_low'], cell['ci_high'], 4)} ({cell['status']}"
                  + (f": {escape(one_line(str(cell['reason'])))})" if cell["reason"] else ")"))  # fmt: skip
    if explanation.recomputed is None:
        verdict = "the counts agree" if explanation.is_reproduced else "[red]the counts do not agree[/]"
        console.print(f"recomputed  nothing, as no mean is published: {_why_no_mean(cell)}; {verdict}")
    else:
        verdict = "agrees" if explanation.is_reproduced else "[red]does not agree[/]"
        console.print(f"recomputed  {explanation.recomputed:.4f} from the scores below: {verdict}")
    counts = f"{counted(cell['n_judgements'], 'judgement')}, {cell['n_scored']} with a score, {cell['n_failed']} without"
    if cell.get("n_not_applicable"):  # older publications do not say
        counts += f"; {cell['n_not_applicable']} more are not applicable"
    why = ", ".join(f"{reason} {n:,}" for reason, n in failures_of(cell))
    console.print(f"counts      {counts}" + (f" ({escape(one_line(why))})" if why else ""))
    for name, value in explanation.identities.items():
        console.print(name_of(f"{name:<16} {value}"))
    console.print()
    for judgement in explanation.judgements:
        print_judgement(console, judgement)
    n_left = explanation.n_judgements - len(explanation.judgements)
    if n_left:
        console.print(f"{n_left:,} more judgements; --limit 0 shows all, --json prints them for programs")


def _why_no_mean(cell: Mapping[str, Any]) -> str:
    if cell["status"] == CellStatus.BLOCKED:
        scored = f"{percent(cell['coverage'], beside=cell['coverage_floor'])} of the judgements have a score"
        if has_enough(cell):
            return f"{scored}, but none in one of the categories" if cell["coverage"] else scored
        return f"{scored}, {percent(cell['coverage_floor'])} needed (gate.min_coverage)"
    if cell["reason"] == CellReason.CATEGORY_MISSING:
        return "it lacks a category that others in the benchmark have"
    return escape(one_line(str(cell["reason"] or cell["status"]).replace("_", " ")))
