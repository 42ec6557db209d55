"""`salon table`, `explain` and `open`: what was published, in the terminal and as a page. They read; they change nothing."""

import os
import re
import sys
import webbrowser
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import orjson
import typer
from rich.markup import escape
from rich.text import Text

from flows.commands.category_table import print_categories
from flows.commands.pairs_table import print_pairs
from flows.commands.tables import Format, Sort, as_text, print_rows, sorted_rows
from flows.observability.terminal import Console, indented, name_of, one_line, result_console
from schemas.errors import InputError
from schemas.statuses import ScoreStatus, Total
from tasks.lake.object_store.cache_folder import bring, fresh, working_root
from tasks.lake.reading import open_lake
from tasks.publish.explain import ExplainedJudgement, ExplainedSample, Explanation, explain_sample
from tasks.publish.explain import explain as explain_cell
from tasks.publish.folders import INDEX, LAYOUT, REPORT
from tasks.publish.leaderboard import answers_of, format_estimate, leaderboard_rows
from tasks.publish.reading import Publication, chosen, find_cell, load_cells
from tasks.publish.standings import failures_of

LakePlace = Annotated[
    str, typer.Option("--lake", help="The lake, a folder or s3://bucket/prefix; default: $SALON_LAKE, or the folder lake.")
]
BenchmarkName = Annotated[str | None, typer.Option("--benchmark", help="The benchmark's name; default: the last one published.")]
PublicationId = Annotated[
    str | None, typer.Option("--publication", help="A publication's id or its beginning; default: the current one.")
]
Good = Annotated[
    bool,
    typer.Option("--good", help="The last publication of which no cell is blocked or lacks replies, instead of the current one."),
]
DEFAULT_LAKE = os.environ.get("SALON_LAKE", "lake")


def table(
    lake: LakePlace = DEFAULT_LAKE,
    benchmark: BenchmarkName = None,
    publication: PublicationId = None,
    good: Good = False,
    rubric: Annotated[str | None, typer.Option(help="Only this rubric.")] = None,
    judge: Annotated[str | None, typer.Option(help="Only this judge.")] = None,
    model: Annotated[str | None, typer.Option(help="Only this model.")] = None,
    checkpoint: Annotated[str | None, typer.Option(help="Only this checkpoint.")] = None,
    dimension: Annotated[str | None, typer.Option(help="Only this dimension.")] = None,
    category: Annotated[str, typer.Option(help="A category, __micro__, or __macro__: the mean over categories.")] = "__macro__",
    sort: Annotated[Sort, typer.Option(help="Within each rubric, judge and dimension.")] = Sort.RANK,
    form: Annotated[Format, typer.Option("--format", help="table for people; csv and json hold every digit.")] = Format.TABLE,
) -> int:
    """Print the leaderboard: which is better, how sure that is, the means with their intervals, and what is missing."""
    found = chosen(open_lake(lake).root, benchmark, publication, is_good=good)
    cells = load_cells(found)
    wanted = {
        "rubric_id": rubric, "judge_model": judge, "model": model, "checkpoint": checkpoint, "dimension": dimension,
        "category": category,
    }  # fmt: skip
    for column, value in wanted.items():
        everywhere = cells  # at the end without the last one, the category
        known = cells[column].unique().sort().to_list()
        if value is not None and value not in known:
            raise InputError(f"no cell has {column} {value!r}; there are: {', '.join(known)}")
        if value is not None:
            cells = cells.filter(cells[column] == value)
    rows = sorted_rows(leaderboard_rows(cells, category=category, is_headline_only=False), sort)
    if form is not Format.TABLE:
        sys.stdout.write(as_text(rows, form, found))
        return 0
    console = Console(highlight=False)
    where = "current" if found.is_current else "the last good one" if good else "not the current one"
    console.print(f"{escape(one_line(found.benchmark))}, {found.run_date}, publication {found.publication_id[:16]} ({where})\n")
    if rubric is None and judge is None and model is None and checkpoint is None and dimension is None:
        print_pairs(console, found.folder, is_short=False)
    print_rows(console, rows, answers_of(cells))
    if rubric is not None and category == Total.MACRO:
        print_categories(console, rows, everywhere)
    return 0


def explain(
    cell: Annotated[
        str,
        typer.Argument(help="A cell's or sample's id (its first characters), or model/checkpoint/rubric/dimension[/category]."),
    ],
    lake: LakePlace = DEFAULT_LAKE,
    benchmark: BenchmarkName = None,
    publication: PublicationId = None,
    good: Good = False,
    limit: Annotated[
        int, typer.Option(min=0, help="How many judgements to show; 0 for all. Failures and low scores come first.")
    ] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> int:
    """Trace a published number, or one sample, to the exact messages, the replies and the hashes."""
    opened = open_lake(lake)
    found = chosen(opened.root, benchmark, publication, is_good=good)
    sample = explain_sample(opened, found, cell) if _is_sample(found, cell) else None
    if sample is not None:
        _show_sample(sample, as_json=as_json)
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
        console.print(f"{n_left:,} more judgements; --limit 0 shows all, --json gives them to a program")
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
    again = "-" if explanation.recomputed is None else f"{explanation.recomputed:.4f}"
    verdict = "agrees" if explanation.is_reproduced else "[red]does not agree[/]"
    console.print(f"taken again {again} from the scores below: {verdict}")
    counts = f"{cell['n_judgements']} judgements, {cell['n_scored']} with a score, {cell['n_failed']} without"
    why = ", ".join(f"{reason} {n:,}" for reason, n in failures_of(cell))
    console.print(f"counts      {counts}" + (f" ({escape(one_line(why))})" if why else ""))
    for name, value in explanation.identities.items():
        console.print(name_of(f"{name:<16} {value}"))
    console.print()


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


def open_page(
    lake: LakePlace = DEFAULT_LAKE,
    benchmark: BenchmarkName = None,
    publication: PublicationId = None,
    good: Good = False,
    is_index: Annotated[bool, typer.Option("--index", help="The index over all publications of the lake instead.")] = False,
    is_shown: Annotated[bool, typer.Option("--browser", help="Open it in the browser too.")] = False,
) -> int:
    """Print the path of the report page; with --browser, open it."""
    root = open_lake(lake).root.resolve()
    page = root / "publish" / LAYOUT / INDEX if is_index else chosen(root, benchmark, publication, is_good=good).folder / REPORT
    if not is_index:
        bring(page)
    elif working_root(page):
        fresh(page)
    if not page.is_file():
        raise InputError(f"{page} is not there: it was published before there were pages; run the benchmark again to publish one")
    typer.echo(page)
    if is_shown and not webbrowser.open(page.as_uri()):
        raise InputError(f"no browser could be started here; open {page.as_uri()} in one")
    return 0
