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
from flows.observability.terminal import Console, indented, name_of, one_line, result_console
from schemas.statuses.cells import CellReason, CellStatus
from schemas.statuses.rows import ScoreStatus
from tasks.lake.reading import open_lake
from tasks.publish.explain.addresses import find_cell
from tasks.publish.explain.cells import ExplainedJudgement, ExplainedSample, Explanation, explain_sample
from tasks.publish.explain.cells import explain as explain_cell
from tasks.publish.explain.exam import ExplainedExam, explain_exam, find_exam
from tasks.publish.explain.pairs import ExplainedPair, ExplainedWinRate, explain_pair, find_pair
from tasks.publish.leaderboard import format_estimate
from tasks.publish.preferences import counts, verdict, win_rate
from tasks.publish.reading import Publication, chosen, load_cells
from tasks.publish.standings.exam import drop, fault_name, share
from tasks.publish.standings.exam import verdict as exam_verdict
from tasks.publish.standings.wording import failures_of, percent


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
    sample = explain_sample(opened, found, cell) if _is_sample(found, cell) else None
    if sample is not None:
        _show_sample(sample, as_json=as_json)
        return 0
    pair = find_pair(found, cell)
    if pair is not None:
        _show_pair(explain_pair(opened, found, pair, limit or None), as_json=as_json)
        return 0
    exam = find_exam(found, cell)
    if exam is not None:
        _show_exam(explain_exam(opened, found, exam, limit or None), as_json=as_json)
        return 0
    explanation = explain_cell(opened, found, find_cell(load_cells(found), cell), limit or None)
    if as_json:
        print(orjson.dumps(asdict(explanation), default=str).decode())
        return 0
    console = result_console()
    _print_cell(console, explanation)
    for judgement in explanation.judgements:
        _print_judgement(console, judgement)
    n_left = explanation.n_judgements - len(explanation.judgements)
    if n_left:
        console.print(f"{n_left:,} more judgements; --limit 0 shows all, --json prints them for programs")
    return 0


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
        _print_judgement(console, judgement)


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
        floor = f"{percent(cell['coverage_floor'])} needed (gate.min_coverage)"
        return f"{percent(cell['coverage'])} of the judgements have a score, {floor}"
    if cell["reason"] == CellReason.CATEGORY_MISSING:
        return "it lacks a category that others in the benchmark have"
    return escape(one_line(str(cell["reason"] or cell["status"]).replace("_", " ")))


def _print_judgement(console: Console, judgement: ExplainedJudgement) -> None:
    score = "no score" if judgement.score is None else f"{judgement.score:g}"
    why = f" ({judgement.status}{': ' + judgement.reason if judgement.reason else ''})"
    if judgement.score is not None or judgement.reason:
        console.rule(name_of(f"{score}{why}"), align="left")
    _print_where_it_is_from(console, judgement)
    console.print(f"sample   {judgement.sample_id}")
    for name, value in judgement.sample.items():
        if value is not None:
            console.print(indented(f"{name}: {value}"))
    console.print(f"request  {judgement.request_key or '-'}")
    console.print(f"rubric   {judgement.rubric_digest or '-'}")
    console.print(name_of(f"asked with {judgement.parameters_json}"))
    for message in orjson.loads(judgement.messages_json) if judgement.messages_json else []:
        console.print(name_of(f"--- message, role {message['role']}", "dim"))
        parts = message["content"]
        for part in [{"type": "text", "text": parts}] if isinstance(parts, str) else parts:
            console.print(indented(str(part["text"]) if part["type"] == "text" else _pictured(part)))
    for ask in judgement.asks:
        told = (
            f"--- reply {ask.ask_index}: {ask.status}, finish {ask.finish_reason}, answered by {ask.answered_model}, {ask.origin}"
        )
        console.print(name_of(told, "dim"))
        for text in (ask.reply_text, ask.refusal_text, ask.error_detail):
            if text:
                console.print(indented(text))
    console.print()


def _print_where_it_is_from(console: Console, judgement: ExplainedJudgement) -> None:
    """The place in the reply that says the number; of a figure what it is made of."""
    if judgement.sentence is not None:
        before, number, after = map(one_line, judgement.sentence)
        console.print(
            Text.assemble("read in  ", before, (number, "bold reverse"), after, f"   characters {judgement.score_span}")
        )
    elif judgement.note:
        console.print(name_of(f"note     {judgement.note}"))


def _pictured(part: Mapping[str, Any]) -> str:
    """A picture by its digest, and how it was shown where that is not as it is."""
    shown = ", ".join(f"{name} {value}" for name, value in part.get("shown", {}).items())
    return f"<image {part.get('sha256', '')}{'; shown with ' + shown if shown else ''}>"


def _show_pair(explained: ExplainedWinRate, *, as_json: bool) -> None:
    if as_json:
        print(orjson.dumps(asdict(explained), default=str).decode())
        return
    console, row = result_console(), explained.row
    a, b = (f"{row[f'model_{end}']} / {row[f'checkpoint_{end}']}" for end in "ab")
    console.print(Text(one_line(f"{a} against {b}, {row['rubric_id']} / {row['dimension']} / {row['category']}"), style="bold"))
    console.print(f"pair        {row['pair_id']}, judged by {escape(one_line(row['judge_model']))}")
    console.print(Text(one_line(f"published   {win_rate(row)} ({verdict(row) or row['status']}), won-tied-lost {counts(row)}")))
    again = "nothing" if explained.recomputed is None else f"{100 * explained.recomputed:.1f} %"
    console.print(f"recomputed  {again} from the {explained.n_judged:,} of {explained.n_pairs:,} pairs that have a verdict: "
                  + _agrees(explained))  # fmt: skip
    for name, value in explained.identities.items():
        console.print(name_of(f"{name:<16} {value}"))
    console.print()
    for pair in explained.pairs:
        console.rule(name_of(f"{_told(pair)}: {pair.sample_a[:12]}, {pair.sample_b[:12]}"), align="left")
        for judgement in pair.orders:
            first = "a" if judgement.sample_id == pair.sample_a else "b"
            said = "no score" if judgement.score is None else {1.0: "the first wins", 0.0: "the second wins"}.get(judgement.score)
            console.print(Text(f"{first} shown first: {said or 'a tie'}", style="bold"))
            _print_judgement(console, judgement)
    n_left = explained.n_pairs - len(explained.pairs)
    if n_left:
        console.print(f"{n_left:,} more pairs; --limit 0 shows all, --json prints them for programs")


def _agrees(explained: ExplainedWinRate) -> str:
    """What the share taken again says of the published one; where none is published, why."""
    row = explained.row
    if not explained.is_reproduced:
        return "[red]does not agree[/]"
    if row["win_rate"] is not None:
        return "agrees"
    if row["status"] != CellStatus.BLOCKED:
        return f"not published ({verdict(row)}); the counts agree"
    under = f"{percent(row['coverage'])} of the verdicts received, {percent(row['coverage_floor'])} needed (gate.min_coverage)"
    return f"not published, {under}; the counts agree"


def _told(pair: ExplainedPair) -> str:
    """What a pair says; of one asked repeatedly, the mean of its repeats."""
    n_repeats = len(pair.orders) // 2
    if n_repeats < 2 or pair.value is None:
        return _OUTCOMES[pair.outcome.value]
    return (
        f"{_OUTCOMES[pair.outcome.value].removesuffix(' in both orders')}, worth {pair.value:.2f} to a, averaged over its repeats"
    )


def _show_exam(explained: ExplainedExam, *, as_json: bool) -> None:
    if as_json:
        print(orjson.dumps(asdict(explained), default=str).decode())
        return
    console, row = result_console(), explained.row
    named = f"{row['rubric_id']} / {row['dimension']}, planted: {fault_name(row['fault'])}"
    console.print(Text(one_line(named), style="bold"))
    console.print(f"exam        {row['exam_id']}, judged by {escape(one_line(row['judge_model']))}")
    console.print(
        Text(f"noticed     {share(row, 'noticed')}, of harmless twins {share(row, 'false_notices')}: {exam_verdict(row)}")
    )
    console.print(Text(f"drop        {drop(row)}, over {row['n_samples']} samples of {row['n_prompts']} prompts"))
    for name, value in explained.identities.items():
        console.print(name_of(f"{name:<16} {value}"))
    console.print()
    for sample in explained.samples:
        console.rule(name_of(f"sample {sample.sample_id[:12]}: untouched, harmless twin, faulted twin"), align="left")
        for judgement in sample.judgements:
            _print_judgement(console, judgement)
    n_left = explained.n_samples - len(explained.samples)
    if n_left:
        console.print(f"{n_left:,} more samples; --limit 0 shows all, --json prints them for programs")


_OUTCOMES = {
    "win_a": "a wins in both orders", "win_b": "b wins in both orders", "tie": "a tie in both orders",
    "order_dependent": "the orders disagree", "unjudged": "no verdict",
}  # fmt: skip
