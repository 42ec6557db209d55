"""How a plan looks in a terminal: what would be asked, what it costs, how long it takes, and what to beware of."""

import io
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from flows.commands.printed.plan_cells import print_samples
from flows.commands.printed.plan_warnings import of_budget, percentage, plan_warnings
from flows.observability.terminal import Console, format_usd, name_of, one_line
from tasks.judge.budget.forecast import total_usd
from tasks.judge.budget.levers import SHOWN, Lever
from tasks.judge.budget.prices import ModelPrice, why_no_price
from tasks.judge.provider.base import provider_of

if TYPE_CHECKING:
    from flows.run.preview import PlannedRubric, Preview

N_SAID_MOST = 5
_LEVER_SAID = {
    Lever.BATCH: 'by batch (mode = "batch")',
    Lever.MAX_SIDE_1024: "with max_side_px = 1024",
    Lever.MAX_SIDE_512: "with max_side_px = 512",
    Lever.DETAIL_LOW: 'with detail = "low"',
    Lever.REPEATS_1: "with repeats = 1",
    Lever.SHARE_HALF: "with share = 0.5, half of the prompts",
    Lever.PROMPT_CACHE: "if each request hits the prompt cache",
}
_USD = ("online_usd", "batch_usd", "worst_usd", "worst_batch_usd")
_ASKS_LESS = (Lever.REPEATS_1, Lever.SHARE_HALF)
_TEXT_WIDTH = 120
_LEAST_SAVED = 0.005


def print_plan(console: Console, preview: "Preview") -> None:
    """What a run would ask, cost and take: a table for each judge, the totals, and what the reader should know before it runs."""
    from flows.run.preview import HANDED_OVER  # a help text does not wait for it

    console.print(f"{escape(one_line(preview.name))}: {preview.dataset.n_samples:,} samples, usable {preview.dataset.n_ok:,}")
    print_samples(console, preview)
    console.print(
        "in and out: tokens still to pay for; saved: what stored replies would cost; most: if every reply has maximum length\n"
    )
    for judge_model in dict.fromkeys(row.judge.id for row in preview.rubrics):
        _print_judge(console, preview, [row for row in preview.rubrics if row.judge.id == judge_model])
    asked = [row.forecast for row in preview.rubrics if row.n_to_ask]
    online, batch = (format_usd(total_usd(getattr(each, name) for each in asked)) for name in ("online_usd", "batch_usd"))
    saved = format_usd(total_usd(row.forecast.saved_usd for row in preview.rubrics if not row.judge.recorded))
    if asked:
        console.print(f"to ask      {preview.n_to_ask:,} requests: {online} online, {batch} by batch; at most {_most(preview)}")
        if n_handed_over := sum(row.n_handed_over for row in preview.rubrics):
            console.print(HANDED_OVER.format(n_handed_over))
        max_usd, aside = preview.left_usd, total_usd(row.worst_usd for row in preview.rubrics if row.is_by_batch)
        if max_usd is not None and aside and (most := preview.worst_usd) is not None and max_usd >= most:
            console.print(
                f"budget      by batch, {format_usd(aside)} is reserved until replies arrive; {of_budget(preview)} covers all"
            )
        console.print(f"time        {_time(preview)}")
        _print_what_may_end_early(console, preview)
        _print_levers(console, preview)
    if preview.n_of_exam:
        console.print(f"exam        {preview.n_of_exam:,} of all requests are for twins with planted faults")
    console.print(
        f"stored      {sum(row.forecast.n_cached for row in preview.rubrics):,} replies: {saved} (online) need not be spent again"
    )
    for said, n in sorted(preview.rejected.items(), key=lambda one: (-one[1], one[0]))[:N_SAID_MOST]:
        console.print(name_of(f"rejected    {n:,} requests; the provider's message: {said}", "yellow"))
    if preview.rejected:
        console.print("            they count as asked; once the cause is fixed, --retry rejected asks them again")
    for sentence in plan_warnings(preview):
        console.print(f"[yellow]warning[/]     {escape(one_line(sentence))}")
    console.print("nothing was sent")


def _print_what_may_end_early(console: Console, preview: "Preview") -> None:
    """That the price is the most of what is asked in rounds."""
    if preview.looks:
        console.print(f"looks       at most {len(preview.looks)}; what is decided at an early look is not asked further")
    if preview.is_adaptive:
        console.print("pairs       at most these; a comparison that is decided is not asked further")


def plan_object(preview: "Preview") -> dict[str, object]:
    """The same for a program: numbers in full, USD and minutes null where not known, and `text`, the table for people."""
    drawn = io.StringIO()
    print_plan(Console(file=drawn, width=_TEXT_WIDTH, no_color=True), preview)
    asked = [row.forecast for row in preview.rubrics if row.n_to_ask]
    stored = [row.forecast for row in preview.rubrics if not row.judge.recorded]
    return {
        "benchmark": preview.name, "n_samples": preview.dataset.n_samples, "n_usable": preview.dataset.n_ok,
        "n_by_status": preview.dataset.n_by_status, "unusable": [asdict(row) for row in preview.found.unusable],
        "n_requests": sum(row.forecast.n_requests for row in preview.rubrics),
        "n_stored": sum(row.forecast.n_cached for row in preview.rubrics), "n_to_ask": preview.n_to_ask,
        "n_of_exam": preview.n_of_exam, "n_handed_over": sum(row.n_handed_over for row in preview.rubrics),
        **{name: total_usd(getattr(each, name) for each in asked) for name in _USD},
        "saved_usd": total_usd(each.saved_usd for each in stored), "minutes": preview.minutes,
        "rubrics": [_rubric_object(row, preview) for row in preview.rubrics],
        "levers": [asdict(lever) for lever in _levers(preview)], "rejected": dict(preview.rejected),
        "warnings": plan_warnings(preview), "notes": preview.notes,
        "checkpoints": [asdict(one) for one in preview.found.checkpoints],
        "categories": [asdict(one) for one in preview.asked.sizes],
        "text": drawn.getvalue(),
    }  # fmt: skip


def _rubric_object(row: "PlannedRubric", preview: "Preview") -> dict[str, object]:
    named = ("n_requests", "n_to_ask", "n_input_tokens", "n_output_tokens", *_USD, "saved_usd")
    told = {name: getattr(row.forecast, name) for name in named} | {"n_stored": row.forecast.n_cached}
    return {"rubric_id": row.rubric_id, "judge_model": row.judge.id} | told | {"minutes": row.minutes(preview.limits)}


def _print_judge(console: Console, preview: "Preview", rows: "list[PlannedRubric]") -> None:
    """One judge: its price with source and date, and a line for each rubric."""
    judge, price = rows[0].judge, rows[0].forecast.price
    console.print(
        Text.assemble("judged by ", (one_line(judge.id), "bold"), ", replies recorded elsewhere" if judge.recorded else "")
    )
    if not judge.recorded:
        said = why_no_price(judge) if price is None else _price(price)
        console.print(name_of(said, "yellow" if price is None else "dim"))
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("rubric", overflow="fold", min_width=8)
    for name in ("total", "stored", "to ask", "in", "out", "online", "batch", "most", "saved", "min"):
        table.add_column(name, justify="right", overflow="fold")
    for row in rows:
        each = row.forecast
        minutes = row.minutes(preview.limits)
        table.add_row(
            name_of(row.rubric_id),
            _short(each.n_requests), percentage(each.n_cached, each.n_requests), _short(each.n_to_ask),
            _short(each.n_input_tokens), _short(each.n_output_tokens),
            *(format_usd(usd) for usd in (each.online_usd, each.batch_usd, row.worst_usd, each.saved_usd)),
            "-" if minutes is None else f"{minutes:,.1f}",
        )  # fmt: skip
    console.print(table)
    for row in rows:
        if row.forecast.observed.n_replies:
            console.print(name_of(f"{row.rubric_id}: {_correction(row)}", "dim"))
    _print_equal_beginnings(console, rows)
    console.print()


def _print_equal_beginnings(console: Console, rows: "list[PlannedRubric]") -> None:
    """Which rubrics can meet the provider's prompt cache, where what it asks for is known."""
    least = provider_of(rows[0].judge).prompt_cache_tokens(rows[0].judge)
    if least is None or rows[0].judge.recorded:
        return
    for row in rows:
        fewest, most = row.forecast.n_equal_tokens
        said = f"{fewest:,} equal tokens" if fewest == most else f"{fewest:,} to {most:,} equal tokens, depending on its variant"
        verdict = "too few for" if most < least else "all can hit" if fewest >= least else "some can hit"
        text = f"{row.rubric_id}: requests begin with about {said}: {verdict} the prompt cache (from {least:,})"
        console.print(name_of(text, "dim"))


@dataclass(frozen=True, slots=True)
class PricedLever:
    """What all that is to be asked would cost under one lever alone, and the share of the expected cost that this saves."""

    lever: Lever
    usd: float
    saved_share: float


def _levers(preview: "Preview") -> list[PricedLever]:
    expected = preview.expected_usd
    return [PricedLever(lever, usd, 1 - usd / expected) for lever, usd in preview.lever_usd.items()] if expected else []


def _print_levers(console: Console, preview: "Preview") -> None:
    """What would cost less, each by itself, where the provider's prices say so."""
    found = [one for one in _levers(preview) if one.saved_share >= _LEAST_SAVED]
    for number, one in enumerate(found):
        start = f"cheaper     {format_usd(preview.expected_usd)} would be" if number == 0 else ""
        console.print(Text(f"{start:<27} {format_usd(one.usd):>6} {_LEVER_SAID[one.lever]}: {one.saved_share:.0%} less"))
    if any(one.lever in SHOWN for one in found):
        is_anew = any(row.forecast.n_cached for row in preview.rubrics if not row.judge.recorded)
        anew = ", all asked again, including stored ones" if is_anew else ""
        console.print(
            f"            smaller pictures make different requests{anew}: first check that the judge agrees (docs/cost.md)"
        )
    if any(one.lever in _ASKS_LESS for one in found):
        console.print("            fewer answers give wider intervals: half of the prompts, 1.4 times as wide")


def _price(price: ModelPrice) -> str:
    return (
        f"${price.input_usd:g} in, ${price.cached_usd:g} repeated, ${price.output_usd:g} out per million tokens; "
        f"by batch {price.batch_share:.0%} ({price.said_by})"
    )


def _correction(row: "PlannedRubric") -> str:
    observed = row.forecast.observed
    each = row.forecast.n_output_tokens / row.n_to_ask if row.n_to_ask else observed.n_output_tokens(0)
    declared = row.rubric.n_output_tokens_expected
    return (
        f"from {observed.n_replies:,} stored replies: input x {observed.input_ratio:.2f} ({observed.cached_share:.0%} repeated), "
        f"output {each:.0f} each ({declared} declared)"
    )


def _most(preview: "Preview") -> str:
    """The most that is paid, each judge asked in its own mode."""
    asked = [row for row in preview.rubrics if row.n_to_ask]
    ways = {row.is_by_batch for row in asked}
    how = "in the judges' modes" if len(ways) > 1 else "by batch" if True in ways else "online"
    return f"{format_usd(preview.worst_usd)} {how}, each asked once"


def _time(preview: "Preview") -> str:
    ways = [row.is_by_batch for row in preview.rubrics if row.n_to_ask]
    if all(ways) and ways:
        return "a batch may take a day"
    return f"{_time_online(preview)}{'; a batch may take a day' if any(ways) else ''}"


def _time_online(preview: "Preview") -> str:
    asked = [row for row in preview.rubrics if row.n_to_ask and not row.is_by_batch]
    limits, minutes = preview.limits, total_usd(row.minutes(preview.limits) for row in asked)
    said = {"requests": limits.requests_per_minute, "tokens": limits.tokens_per_minute}
    listed = " and ".join(f"{value:,} {what}" for what, value in said.items() if value is not None)
    if minutes is None:
        return "unknown: no limits are set (limits.requests_per_minute, limits.tokens_per_minute) and no reply was timed yet"
    latencies = sorted({f"{row.forecast.latency_s:.2g}" for row in asked if row.forecast.latency_s})
    seen = f"{limits.concurrency:,} in flight, replies after {' and '.join(latencies)} s" if latencies else ""
    known = ", ".join(part for part in (f"{listed} a minute" if listed else "", seen) if part)
    return f"{minutes:,.1f} minutes at {known}" if known else "none: nothing is left to ask"


def _short(n: int) -> str:
    """A count as it is, a large one in about three digits."""
    if n < 10_000:
        return f"{n:,}"
    about = float(f"{n:.3g}")  # which may be a unit more: 999,700 is about a million
    size, letter = next(one for one in ((1e9, "G"), (1e6, "M"), (1e3, "k")) if about >= one[0])
    return f"{about / size:.3g}{letter}" if about < 1000 * size else f"{n / size:,.0f}{letter}"
