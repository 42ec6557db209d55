"""How a plan looks in a terminal: what would be asked, what it costs, how long it takes, and what to beware of."""

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from flows.observability.terminal import Console, format_usd
from tasks.judge.budget.forecast import total_usd
from tasks.judge.budget.prices import ModelPrice, why_no_price

if TYPE_CHECKING:
    from flows.run.preview import PlannedRubric, Preview

N_SAID_MOST = 5


def print_plan(console: Console, preview: "Preview") -> None:
    """What a run would ask, cost and take: a table for each judge, the totals, and what the reader should know before it runs."""
    console.print(f"{escape(preview.name)}: {preview.dataset.n_samples:,} samples, usable {preview.dataset.n_ok:,}")
    _print_unusable(console, preview)
    console.print(
        "in and out: tokens still to be paid; saved: what stored replies would cost; most: if every reply is as long as it may\n"
    )
    for judge_model in dict.fromkeys(row.judge.model for row in preview.rubrics):
        _print_judge(console, preview, [row for row in preview.rubrics if row.judge.model == judge_model])
    asked = [row.forecast for row in preview.rubrics if row.n_to_ask]
    online, batch, worst = (
        format_usd(total_usd(getattr(each, name) for each in asked)) for name in ("online_usd", "batch_usd", "worst_usd")
    )
    saved = format_usd(total_usd(row.forecast.saved_usd for row in preview.rubrics if not row.judge.recorded))
    if asked:
        console.print(f"to ask      {preview.n_to_ask:,} requests: {online} online, {batch} by batch; at most {worst} online")
        console.print(f"time        {_time(preview)}")
    console.print(
        f"stored      {sum(row.forecast.n_cached for row in preview.rubrics):,} replies: {saved} online not spent again"
    )
    for said, n in sorted(preview.rejected.items(), key=lambda one: (-one[1], one[0]))[:N_SAID_MOST]:
        console.print(Text(f"rejected    {n:,} requests; the provider said: {said}", style="yellow"))
    if preview.rejected:
        console.print("            they count as asked; once the cause is mended, --retry rejected asks them again")
    for sentence in plan_warnings(preview):
        console.print(f"[yellow]warning[/]     {escape(sentence)}")
    console.print("nothing was sent")


def _print_unusable(console: Console, preview: "Preview") -> None:
    """Rows that nobody is asked about, some of each status."""
    for status in dict.fromkeys(row.status for row in preview.unusable):
        rows = [row for row in preview.unusable if row.status == status]
        n = preview.dataset.n_by_status[status]
        which = f"; the first {len(rows)}:" if n > len(rows) else ":"
        console.print(Text(f"{status:<11} {n:,} rows are not judged{which}", style="yellow"))
        for row in rows:
            console.print(Text(f"            {row.source}, {row.source_key}{': ' + row.detail if row.detail else ''}"))


def _print_judge(console: Console, preview: "Preview", rows: "list[PlannedRubric]") -> None:
    """One judge: its price with source and date, and a line for each rubric."""
    judge, price = rows[0].judge, rows[0].forecast.price
    console.print(Text.assemble("judged by ", (judge.model, "bold"), ", replies recorded elsewhere" if judge.recorded else ""))
    if not judge.recorded:
        said = why_no_price(judge) if price is None else _price(price)
        console.print(Text(said, style="yellow" if price is None else "dim"))
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("rubric", overflow="fold", min_width=8)
    for name in ("total", "stored", "to ask", "in", "out", "online", "batch", "most", "saved", "min"):
        table.add_column(name, justify="right", overflow="fold")
    for row in rows:
        each = row.forecast
        minutes = each.minutes(preview.limits)
        table.add_row(
            Text(row.rubric_id), _short(each.n_requests), f"{each.n_cached / max(1, each.n_requests):.0%}", _short(each.n_to_ask),
            _short(each.n_input_tokens), _short(each.n_output_tokens),
            *(format_usd(usd) for usd in (each.online_usd, each.batch_usd, each.worst_usd, each.saved_usd)),
            "-" if minutes is None else f"{minutes:,.1f}",
        )  # fmt: skip
    console.print(table)
    for row in rows:
        if row.forecast.observed.n_replies:
            console.print(Text(f"{row.rubric_id}: {_correction(row)}", style="dim"))
    console.print()


def plan_warnings(preview: "Preview") -> list[str]:
    """What could surprise: a budget that is too small, a price that is not known, thinking that nobody has counted yet."""
    sentences: list[str] = []
    asked = [row for row in preview.rubrics if row.n_to_ask]
    max_usd, expected = preview.limits.max_usd, preview.expected_usd
    worst = total_usd(row.forecast.worst_usd for row in asked)
    if max_usd is not None and expected is None:
        sentences.append("limits.max_usd cannot be kept without a price; a run would stop before anything is sent")
    elif max_usd is not None and expected is not None and max_usd < expected:
        sentences.append(
            f"limits.max_usd = {max_usd:g} is below the {format_usd(expected)} expected: "
            f"it pays for about {max_usd / expected:.0%} of the requests, and the run stops there"
        )
    elif max_usd is not None and worst is not None and max_usd < worst:
        sentences.append(
            f"limits.max_usd = {max_usd:g} is above the {format_usd(expected)} expected and below the {format_usd(worst)} "
            "at most: where replies are long, the run stops before its end"
        )
    thinking = {row.judge.model for row in asked if row.forecast.price and row.forecast.price.is_reasoning}
    unknown = {row.judge.model for row in asked if not row.forecast.observed.n_replies} & thinking
    sentences += [
        f"{model} thinks before it answers, and that is billed as output; what is expected here is the answer alone, "
        "until replies are stored"
        for model in sorted(unknown)
    ]
    return sentences


def _price(price: ModelPrice) -> str:
    return (
        f"${price.input_usd:g} in, ${price.cached_usd:g} repeated, ${price.output_usd:g} out a million tokens; "
        f"by batch {price.batch_share:.0%} ({price.said_by})"
    )


def _correction(row: "PlannedRubric") -> str:
    observed = row.forecast.observed
    each = row.forecast.n_output_tokens / row.n_to_ask if row.n_to_ask else observed.n_output_tokens(0)
    declared = row.rubric.n_output_tokens_expected
    return (
        f"by {observed.n_replies:,} stored replies: input x {observed.input_ratio:.2f} ({observed.cached_share:.0%} repeated), "
        f"output {each:.0f} each ({declared} declared)"
    )


def _time(preview: "Preview") -> str:
    limits, minutes = preview.limits, preview.minutes
    said = {"requests": limits.requests_per_minute, "tokens": limits.tokens_per_minute}
    listed = " and ".join(f"{value:,} {what}" for what, value in said.items() if value is not None)
    if minutes is None:
        return "not known: no limits are stated (limits.requests_per_minute, limits.tokens_per_minute) and no reply was timed yet"
    latencies = sorted({f"{row.forecast.latency_s:.2g}" for row in preview.rubrics if row.n_to_ask and row.forecast.latency_s})
    seen = f"{limits.concurrency:,} in flight, replies after {' and '.join(latencies)} s" if latencies else ""
    known = ", ".join(part for part in (f"{listed} a minute" if listed else "", seen) if part)
    return f"{minutes:,.1f} minutes at {known}" if known else "none: nothing is left to ask"


def _short(n: int) -> str:
    """A count as it is, a large one in about three digits."""
    for size, letter in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if n >= max(size, 10_000):
            return f"{n / size:.3g}{letter}" if n < 1000 * size else f"{n / size:,.0f}{letter}"
    return f"{n:,}"
