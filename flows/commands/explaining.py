"""`salon explain`: a published number, a pair or a sample down to messages, replies and hashes. Tables are reading.py's."""

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
from schemas.statuses.cells import CellReason, CellStatus
from schemas.statuses.rows import ScoreStatus
from tasks.lake.reading import open_lake
from tasks.publish.caveats import caveats_of
from tasks.publish.explain.addresses import find_cell
from tasks.publish.explain.cells import ExplainedSample, Explanation, explain_sample
from tasks.publish.explain.cells import explain as explain_cell
from tasks.publish.explain.exam import explain_exam, find_exam
from tasks.publish.explain.pairs import explain_pair, find_pair
from tasks.publish.leaderboard import format_estimate
from tasks.publish.reading import Publication, chosen, load_cells
from tasks.publish.standings.wording import failures_of, has_enough, percent


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
    found = chosen(opened.root, benchmark, publication, is_good=good)
    warn_of(caveats_of(opened.root, found, is_named=publication is not None or good))
    sample = explain_sample(opened, found, cell) if _is_sample(found, cell) else None
    if sample is not None:
        _show_sample(sample, as_json=as_json)
        return 0
    pair = find_pair(found, cell)
    if pair is not None:
        win_rate = explain_pair(opened, found, pair, limit or None)
        print_pair(win_rate, as_json=as_json)
        return 0 if win_rate.is_reproduced else 1
    exam = find_exam(found, cell)
    if exam is not None:
        print_exam(explain_exam(opened, found, exam, limit or None), as_json=as_json)
        return 0
    where = f"publication {found.publication_id[:12]} of {found.benchmark} (another: --publication, --benchmark)"
    explanation = explain_cell(opened, found, find_cell(load_cells(found), cell, where), limit or None)
    _show_cell(explanation, as_json=as_json)
    return 0 if explanation.is_reproduced else 1


def _show_cell(explanation: Explanation, *, as_json: bool) -> None:
    if as_json:
        print(orjson.dumps(asdict(explanation), default=str).decode())
        return
    console = result_console()
    _print_cell(console, explanation)
    for judgement in explanation.judgements:
        print_judgement(console, judgement)
    n_left = explanation.n_judgements - len(explanation.judgements)
    if n_left:
        console.print(f"{n_left:,} more judgements; --limit 0 shows all, --json prints them for programs")


def _is_sample(publication: Publication, address: str) -> bool:
    """Whether it can be a sample's id: hexadecimal, long enough, and no cell's."""
    known = load_cells(publication)["cell_id"]
    return re.fullmatch(r"[0-9a-f]{8,64}", address) is not None and not known.str.starts_with(address).any()


def _show_sample(sample: ExplainedSample, *, as_json: bool) -> None:
    if as_json:
        print(orjson.dumps(asdict(sample), default=str).decode())
        return
    console = result_console()
    console.print(Text(one_line(f"{sample.model} / {sample.checkpoint}, sample {sample.sample_id}"), style="bold"))
    console.print(f"{len(sample.judgements)} judgements in publication {sample.publication_id[:16]}\n")
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
    console.print(f"published   {format_estimate(cell['estimate'], cell['ci_low'], cell['ci_high'], 4)} ({cell['status']}"
                  + (f": {escape(one_line(str(cell['reason'])))})" if cell["reason"] else ")"))  # fmt: skip
    if explanation.recomputed is None:
        verdict = "the counts agree" if explanation.is_reproduced else "[red]the counts do not agree[/]"
        console.print(f"recomputed  nothing, as no mean is published: {_why_no_mean(cell)}; {verdict}")
    else:
        verdict = "agrees" if explanation.is_reproduced else "[red]does not agree[/]"
        console.print(f"recomputed  {explanation.recomputed:.4f} from the scores below: {verdict}")
    counts = f"{cell['n_judgements']} judgements, {cell['n_scored']} with a score, {cell['n_failed']} without"
    if cell.get("n_not_applicable"):  # older publications do not say
        counts += f"; {cell['n_not_applicable']} more are not applicable"
    why = ", ".join(f"{reason} {n:,}" for reason, n in failures_of(cell))
    console.print(f"counts      {counts}" + (f" ({escape(one_line(why))})" if why else ""))
    for name, value in explanation.identities.items():
        console.print(name_of(f"{name:<16} {value}"))
    console.print()


def _why_no_mean(cell: Mapping[str, Any]) -> str:
    if cell["status"] == CellStatus.BLOCKED:
        scored = f"{percent(cell['coverage'])} of the judgements have a score"
        if has_enough(cell):
            return f"{scored}, but none in one of the categories" if cell["coverage"] else scored
        return f"{scored}, {percent(cell['coverage_floor'])} needed (gate.min_coverage)"
    if cell["reason"] == CellReason.CATEGORY_MISSING:
        return "it lacks a category that others in the benchmark have"
    return escape(one_line(str(cell["reason"] or cell["status"]).replace("_", " ")))
