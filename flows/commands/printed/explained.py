"""What `salon explain` prints of judgements, pairs and exams. Cells and samples, and what is looked up, are explaining.py's."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from rich.markup import escape
from rich.text import Text

from flows.observability.terminal import Console, indented, name_of, one_line
from schemas.statuses.cells import CellStatus
from tasks.publish.explain.exam import ExplainedExam
from tasks.publish.explain.judgements import Ask, ExplainedJudgement, Request
from tasks.publish.explain.pairs import ExplainedPair, ExplainedWinRate
from tasks.publish.standings.exam import drop, fault_name, share
from tasks.publish.standings.exam import verdict as exam_verdict
from tasks.publish.standings.pair_boards import counts, too_few_verdicts, verdict, win_rate
from tasks.publish.standings.wording import percent


def print_judgement(console: Console, judgement: ExplainedJudgement) -> None:
    """One judgement: its sample, the messages as sent, every reply to them, and what was read."""
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
    for request in judgement.requests:
        _print_request(console, request, [ask for ask in judgement.asks if ask.request_key == request.request_key])
    console.print()


def _print_request(console: Console, request: Request, asks: Sequence[Ask]) -> None:
    """The messages as sent, and every reply to them."""
    if request.items:
        items = ", ".join(request.items)
        console.print(name_of(f"=== item{'s' if len(request.items) > 1 else ''} {items}, request {request.request_key}", "bold"))
    console.print(name_of(f"asked with {request.parameters_json}"))
    for message in orjson.loads(request.messages_json) if request.messages_json else []:
        console.print(name_of(f"--- message, role {message['role']}", "dim"))
        parts = message["content"]
        for part in [{"type": "text", "text": parts}] if isinstance(parts, str) else parts:
            console.print(indented(str(part["text"]) if part["type"] == "text" else _pictured(part)))
    for ask in asks:
        told = (
            f"--- reply {ask.ask_index}: {ask.status}, finish {ask.finish_reason}, answered by {ask.answered_model}, {ask.origin}"
        )
        console.print(name_of(told, "dim"))
        for text in (ask.reply_text, ask.refusal_text, ask.error_detail):
            if text:
                console.print(indented(text))


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


def print_pair(console: Console, explained: ExplainedWinRate) -> None:
    """A win rate, what the pairs give when taken again, and the pairs."""
    row = explained.row
    a, b = (f"{row[f'model_{end}']} / {row[f'checkpoint_{end}']}" for end in "ab")
    console.print(Text(one_line(f"{a} against {b}, {row['rubric_id']} / {row['dimension']} / {row['category']}"), style="bold"))
    console.print(f"pair        {row['pair_id']}, judged by {escape(one_line(row['judge_model']))}")
    console.print(Text(one_line(f"published   {win_rate(row)} ({verdict(row) or row['status']}), won-tied-lost {counts(row)}")))
    again = "nothing" if explained.recomputed is None else percent(explained.recomputed)
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
            print_judgement(console, judgement)
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
    return f"not published, {too_few_verdicts(row)}; the counts agree"


def _told(pair: ExplainedPair) -> str:
    """What a pair says; of one asked repeatedly, the mean of its repeats."""
    n_repeats = len(pair.orders) // 2
    if n_repeats < 2 or pair.value is None:
        return _OUTCOMES[pair.outcome.value]
    return (
        f"{_OUTCOMES[pair.outcome.value].removesuffix(' in both orders')}, worth {pair.value:.2f} to a, averaged over its repeats"
    )


def print_exam(console: Console, explained: ExplainedExam) -> None:
    """An exam's figures and the judgements behind them."""
    row = explained.row
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
            print_judgement(console, judgement)
    n_left = explained.n_samples - len(explained.samples)
    if n_left:
        console.print(f"{n_left:,} more samples; --limit 0 shows all, --json prints them for programs")


_OUTCOMES = {
    "win_a": "a wins in both orders", "win_b": "b wins in both orders", "tie": "a tie in both orders",
    "order_dependent": "the orders disagree", "unjudged": "no verdict",
}  # fmt: skip
