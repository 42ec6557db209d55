"""`salon parse` and `salon rubrics list|show|lint`: the instruments, without a benchmark file. They neither ask nor store."""

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from flows.observability.standard_streams import has_reader
from flows.observability.terminal import indented, name_of, one_line, result_console
from rubrics.declaration import DECLARATION
from rubrics.golden import rewrite_requests
from rubrics.linting import lint as problems_of
from rubrics.linting_messages import remarks
from rubrics.loading import SHIPPED, list_rubrics, load_rubric
from rubrics.model import Condition, Dimension, Rubric, WordsOutside
from rubrics.replies.jsonl import parse_jsonl
from schemas.errors import InputError, RubricError

Folders = Annotated[
    list[Path] | None, typer.Option("--rubrics", help="A folder of your own rubrics; may be given several times.")
]


def parse(
    rubric: Annotated[str, typer.Option(help="ID, or ID:CATEGORY where the rubric asks by category; or a rubric folder's path.")],
    jsonl: Annotated[Path, typer.Option(help='Lines {"raw": reply, "context": {...}}; - for standard input.')],
    rubrics: Folders = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show for each number which characters of the reply it came from.")
    ] = False,
) -> int:
    """Read replies with a rubric: for each line, one JSON line with the scores or the reason there are none."""
    name, _, category = rubric.partition(":") if not Path(rubric).is_dir() else (rubric, "", "")
    instrument = find_rubric(name, rubrics or [])
    chosen = choose_category(instrument, category or None)
    for line in parse_jsonl(instrument, _lines(jsonl), chosen, is_explained=explain):
        print(line)
        if not has_reader():  # and more lines may come for as long as anybody likes
            break
    return 0


def _lines(jsonl: Path) -> Iterator[bytes]:
    """The file's lines. Raises InputError where it cannot be read: what is wrong with the output is no fault of it."""
    try:
        with nullcontext(sys.stdin.buffer) if str(jsonl) == "-" else jsonl.open("rb") as lines:
            yield from lines
    except OSError as error:
        raise InputError(
            f"{jsonl}: cannot be read: {error.strerror}; name a file of JSON lines, or - for standard input"
        ) from error


def find_rubric(name: str, folders: list[Path]) -> Rubric:
    """The rubric of an id, or of a folder's path."""
    if (Path(name) / "rubric.toml").is_file():
        return load_rubric(Path(name))
    found = {rubric.id: rubric for rubric in list_rubrics([*folders, SHIPPED])}
    if name not in found:
        raise RubricError(
            f"rubric {name!r} does not exist; available: {', '.join(sorted(found))}. Name one of your own by its folder's path"
        )
    return found[name]


def choose_category(rubric: Rubric, category: str | None) -> str | None:
    """The category to read by: needed where the rubric asks by category, refused where it does not."""
    if rubric.requests:
        folders = ", ".join(str(one.folder) for one in rubric.requests.values())
        raise InputError(
            f"rubric {rubric.id} sends several requests; read the replies of one of them by naming its folder: {folders}"
        )
    if rubric.dispatch is None:
        if category is not None:
            raise InputError(f"rubric {rubric.id} has one prompt for all categories; write --rubric {rubric.id}")
        return None
    known = [name for name in rubric.variants if name is not None]
    if category is not None and category not in known:
        raise InputError(f"rubric {rubric.id} has no category {category!r}; available: {', '.join(known)}")
    return category


def list_(rubrics: Folders = None) -> int:
    """List the rubrics, shipped and your own."""
    console = result_console()
    for rubric in list_rubrics([*(rubrics or []), SHIPPED]):
        scales = "; ".join(dict.fromkeys(_scale(dimension) for dimension in rubric.dimensions))
        categories = [name for name in rubric.variants if name is not None]
        console.print(
            f"[bold]{escape(one_line(rubric.id))}[/] {escape(one_line(rubric.version))} - {escape(one_line(rubric.title))}"
        )
        console.print(f"  needs       {escape(one_line(_needs(rubric) or 'recorded replies'))}")
        by = f" of {one_line(rubric.program)}" if rubric.program else ""
        console.print(
            f"  reply       {rubric.reply_format}{escape(by)}, {len(rubric.dimensions)} dimensions, {escape(one_line(scales))}"
        )
        if categories:
            console.print(f"  categories  {escape(one_line(', '.join(categories)))}")
    return 0


def show(rubric: str, rubrics: Folders = None) -> int:
    """Show one rubric: what it needs, its messages, dimensions, rules and prompt texts."""
    found = find_rubric(rubric, rubrics or [])
    console = result_console()
    console.print(f"[bold]{escape(one_line(found.id))}[/] {escape(one_line(found.version))} - {escape(one_line(found.title))}")
    console.print(
        f"source: {escape(one_line(found.source))}\nfolder: {escape(one_line(str(found.folder)))}\ndigest: {found.digest}"
    )
    console.print(f"needs: {escape(one_line(_needs(found) or 'nothing'))}")
    if found.program:
        console.print(f"program: {escape(one_line(found.program))}; salon import takes in its numbers")
    for rule in found.rules:
        when = " and ".join(_when(condition) for condition in rule.when)
        console.print(
            name_of(f"rule {rule.name}: where {when}, {', '.join(rule.dimensions)} must be {_allowed(rule.low, rule.high)}")
        )
    for variant in found.variants.values():
        console.rule(name_of(variant.category or "prompt"))
        table = Table("dimension", "labels", "scale", "number stands at", box=None)
        for dimension in variant.dimensions:
            said = (dimension.key, ", ".join(dimension.labels), _scale(dimension), _places(dimension))
            table.add_row(*map(name_of, said))
        console.print(table)
        for figure in (one for one in variant.derived if one.figure):
            console.print(name_of(f"figure {figure.key}: {_made_of(figure)}, {_scale(figure)}"))
        if variant.prompt is not None:
            console.print(indented(variant.prompt))
    return 0


def lint(
    folders: Annotated[list[Path] | None, typer.Argument(help="Rubric folders; default: the shipped ones.")] = None,
    rewrite: Annotated[
        bool, typer.Option("--rewrite", help="First rewrite the folders' golden/requests as they are rendered now, for review.")
    ] = False,
) -> int:
    """Check, before a cent is spent, that a rubric asks what it should. Exit code 2 if it does not."""
    if rewrite and not folders:
        raise InputError("--rewrite changes golden/requests of your own rubrics: name their folders before it")
    chosen = [rubric for folder in folders or [SHIPPED] for rubric in _rubrics_in(folder)]
    for rubric in chosen if rewrite else ():
        _rewrite(rubric)
    n_problems = 0
    for rubric in chosen:
        problems = problems_of(rubric)
        n_problems += len(problems)
        print(f"{one_line(rubric.id)}: {'good' if not problems else n_of(len(problems), 'problem')}")
        for problem in problems:
            print(f"  - {one_line(problem)}")
        for remark in remarks(rubric):
            print(f"  (remark) {one_line(remark)}")
    if n_problems:
        found = f"{n_of(n_problems, 'problem')} in {n_of(len(chosen), 'rubric')}"
        raise RubricError(f"{found}; fix the files named above and lint again")
    return 0


def _rewrite(rubric: Rubric) -> None:
    """Render the rubric's golden requests anew and name those that changed: a person is to read what a judge will be asked."""
    try:
        changed = rewrite_requests(rubric)
    except ValueError:  # one is no golden request: which one lint says, and none was written
        return
    except OSError as error:
        said = f"{rubric.folder} cannot be written ({error.strerror})"
        raise InputError(f"{said}; copy it with salon rubrics new ID --like {rubric.folder}") from error
    for name in changed:
        print(f"{one_line(rubric.id)}: {one_line(f'golden/requests/{name}')} was rewritten; review the change with git diff")


def n_of(n: int, what: str) -> str:
    """A count and its word: 1 problem, 2 problems."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _rubrics_in(folder: Path) -> list[Rubric]:
    """The rubric that a folder is, or those that it holds."""
    found = [load_rubric(folder)] if (folder / DECLARATION).is_file() else list_rubrics([folder])
    if not found:
        raise RubricError(f"{folder} contains no rubric: name a folder with a {DECLARATION}, or one that contains such folders")
    return found


def _needs(rubric: Rubric) -> str:
    """Columns and pictures of a sample; of a rubric for pairs those that both have alike, and the two pictures."""
    roles = rubric.shared_roles if rubric.is_of_pairs else tuple(role for role in rubric.roles if role not in rubric.needs)
    named = [f"{name} (or null)" if name in rubric.may_be_null else name for name in dict.fromkeys((*rubric.needs, *roles))]
    return ", ".join([*named, "the images of two samples"] if rubric.is_of_pairs else named)


def _places(dimension: Dimension) -> str:
    return "its label" if dimension.at is None else " or ".join((dimension.at, *dimension.or_at))


def _made_of(dimension: Dimension) -> str:
    """Such as "weighted_mean of truth × 4, style × 1", as the rubric declares it."""
    figure = dimension.figure
    assert figure is not None
    weights = [f" × {weight:g}" for weight in figure.weights] or [""] * len(figure.of)
    of = ", ".join(f"{key}{weight}" for key, weight in zip(figure.of, weights, strict=True)) or "the items"
    more = f", at least {figure.at_least:g}" if figure.at_least is not None else ""
    gated = f", {figure.when_parent_fails.replace('_', ' ')} when a parent fails" if figure.when_parent_fails else ""
    return f"{figure.form} of {of}{more}{gated}"


def _scale(dimension: Dimension) -> str:
    if dimension.answers:
        said = ", ".join(f"{word} = {number:g}" for word, number in dimension.answers)
        return f"{said}; or not applicable" if dimension.not_applicable else said
    step = "any number" if dimension.step is None else "whole numbers"
    return f"{dimension.minimum:g} to {dimension.maximum:g}, {step}"


def _when(condition: Condition | WordsOutside) -> str:
    if isinstance(condition, WordsOutside):
        return f"the words of {condition.of} differ from those of {condition.reference} by more than {condition.percent} %"
    if condition.one_of is not None:
        return f"{condition.column} is {' or '.join(condition.one_of)}"
    return f"{condition.column} is {'null' if condition.is_null else 'not null'}"


def _allowed(low: float | None, high: float | None) -> str:
    if low is not None and low == high:
        return f"{low:g}"
    ends = [f"at least {low:g}" if low is not None else "", f"at most {high:g}" if high is not None else ""]
    return " and ".join(end for end in ends if end)
