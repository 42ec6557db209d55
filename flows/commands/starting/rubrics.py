"""`salon rubrics new|try`: a rubric of one's own begun, and tried on one sample by hand. Nothing is asked, nothing stored."""

import json
import re
import shutil
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from flows.commands.instruments import Folders, choose_category, find_rubric, n_of
from flows.observability.terminal import indented, one_line, result_console
from rubrics.declaration import DECLARATION
from rubrics.explaining import explained
from rubrics.items import Item, questions_of
from rubrics.linting import lint
from rubrics.loading import SHIPPED, load_rubric
from rubrics.model import Rubric
from rubrics.replies.jsonl import LACKS, said_of
from rubrics.replies.probabilities import has_probabilities
from rubrics.replies.read import parse_reply
from rubrics.rules import mapped
from schemas.errors import InputError, RubricError
from schemas.input_budget import REPLY_BYTES, ROW_BYTES
from schemas.records import IMAGE

_STARTERS = SHIPPED / "starters"
_LOGPROBS_FORM = '{"content": [{"token": "yes", "logprob": -0.1, "top_logprobs": []}]}'


def new(
    name: Annotated[str, typer.Argument(metavar="ID", help="The new rubric's id, also its folder's name: a-z, 0-9 and _.")],
    folder: Annotated[
        Path, typer.Option(help="Where to create its folder; name this in rubric_folders of the benchmark file.")
    ] = Path("my-rubrics"),
    like: Annotated[str | None, typer.Option(help="Start from a copy of this rubric: an id, or a folder.")] = None,
    kind: Annotated[
        Literal["scale", "aspects", "items", "edit", "pairs", "program"],
        typer.Option(
            help="Start from one number, several in JSON, items, an edit beside its source, two pictures, or a program's numbers."
        ),
    ] = "scale",
    rubrics: Folders = None,
) -> int:
    """Create a rubric of your own: a folder that passes lint, for you to edit."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", name):
        raise RubricError(f"{name!r} is not a valid rubric id; use lower-case letters, digits and _, starting with a letter")
    source = find_rubric(like, rubrics or []).folder if like else _STARTERS / kind
    target = folder / name
    if target.exists():
        raise RubricError(f"{target} already exists; choose another id, or remove it")
    if target.resolve().is_relative_to(source.resolve()):
        raise RubricError(f"{target} is inside {source}, which it would be a copy of; choose another --folder")
    declared = (source / DECLARATION).read_text(encoding="utf-8-sig")
    line = re.compile(rf"""^([ \t]*(?:id|"id"|'id')[ \t]*=[ \t]*)(["']){source.resolve().name}\2""", re.MULTILINE)
    declared = line.sub(rf'\1"{name}"', declared, count=1)
    if tomllib.loads(declared)["id"] != name:
        raise RubricError(f"{source / DECLARATION}: its id cannot be replaced; write it there on a line of its own, in quotes")
    try:
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        (target / DECLARATION).write_text(declared, encoding="utf-8")
    except OSError as error:
        if not isinstance(error, FileExistsError):  # another command's
            shutil.rmtree(target, ignore_errors=True)  # a half would stand in the way of the next try
        raise InputError(f"{target} cannot be written: {error}") from error
    problems = lint(load_rubric(target))
    for problem in problems:
        print(f"  - {one_line(problem)}")
    named, program = one_line(str(target)), load_rubric(target).program
    then = (
        f"salon import FILE --replies NUMBERS (judge: {program}, recorded)"
        if program
        else f"salon rubrics try {named} --sample sample.json"
    )
    print(
        f"{named}: {n_of(len(problems), 'problem') if problems else 'good'}, as {one_line(like or kind)}; edit it, then\n"
        f"  salon rubrics lint {named}\n  {one_line(then)}"
    )
    return 0


def try_(
    rubric: Annotated[str, typer.Argument(help="An id, or a rubric folder's path.")],
    sample: Annotated[Path, typer.Option(help='One sample as JSON: {"prompt": "…", "image": "a.png"}; - for standard input.')],
    reply: Annotated[Path | None, typer.Option(help="A reply to read, as text; - for standard input.")] = None,
    logprobs: Annotated[
        Path | None,
        typer.Option(help="The reply's log probabilities, for a rubric that reads them: JSON as OpenAI's API returns it."),
    ] = None,
    rubrics: Folders = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the messages as JSON instead.")] = False,
) -> int:
    """Show word for word what a rubric asks about one sample, and how a reply of yours is read."""
    found = find_rubric(rubric, rubrics or [])
    if logprobs is not None and reply is None:
        raise InputError(f"--logprobs {logprobs}: these are a reply's; name it with --reply")
    values, pictures = _sample(found, sample)
    has_image = IMAGE in pictures
    if found.requests and reply is not None:
        choose_category(found, None)  # says that one of the requests must be named
    asked = list(questions_of(found, values, has_image, pictures))
    if as_json:
        listed = [rendered.messages for _, rendered, _ in asked]
        print(json.dumps(listed if found.is_of_lists else listed[0], ensure_ascii=False))
    console = result_console()
    for items, rendered, _ in () if as_json else asked:
        if len(asked) > 1:
            console.print(f"{'request' if found.requests else 'item'} {items[0].id}", markup=False)
        for message in rendered.messages:
            _print_message(console, message)
    if reply is not None:
        category = values.get(found.dispatch) if found.dispatch else None
        context: dict[str, Any] = asked[0][2]
        if found.dispatch and category:
            context["category"] = mapped(found, found.dispatch, category)
        _print_reading(found, reply, logprobs, context, asked[0][0] if len(asked) == 1 else ())
    return 0


def _print_reading(
    rubric: Rubric, reply: Path, logprobs: Path | None, context: dict[str, Any], items: Sequence[Item] = ()
) -> None:
    """The reading; beside it which dimension has no score, and the figures. `items`: all, where one reply answers all."""
    text = _read(reply, REPLY_BYTES).decode("utf-8", "replace")
    if logprobs is not None:
        context["logprobs_json"] = _read(logprobs, REPLY_BYTES).decode("utf-8", "replace")
        if not has_probabilities(context["logprobs_json"]):
            raise InputError(f"{logprobs}: contains no token with its logprob; write {_LOGPROBS_FORM}")
    read = parse_reply(rubric, text, context)
    said = said_of(rubric, read, context) | explained(rubric, read, text, context, items)
    print(json.dumps(said, ensure_ascii=False))
    if LACKS in said:
        print(
            f"rubric {rubric.id} reads log probabilities: pass the reply's with --logprobs FILE, {_LOGPROBS_FORM}",
            file=sys.stderr,
        )


def _sample(rubric: Rubric, path: Path) -> tuple[dict[str, str | None], Mapping[str, int]]:
    """The texts of a sample, and how many pictures it has in each role."""
    try:
        content = json.loads(_read(path, ROW_BYTES))
    except (ValueError, RecursionError) as error:
        raise InputError(
            f'{path}: not JSON: {error}; write one object, such as {{"prompt": "a cup", "image": "a.png"}}'
        ) from error
    found: Counter[str] = Counter()
    for role in rubric.roles or (IMAGE,) if isinstance(content, dict) else ():
        named = content.pop(role, None)
        for one in named if isinstance(named, list) else [named] if named is not None else []:
            if not isinstance(one, str) or not (path.parent / one).is_file():
                raise InputError(f"{path}: picture {one!r} does not exist in {path.parent}; name a file, or null for none")
            found[role] += 1
    if isinstance(content, dict) and rubric.items and isinstance(content.get(rubric.items.column), list):
        content[rubric.items.column] = json.dumps(content[rubric.items.column])
    if not isinstance(content, dict):
        columns = ", ".join(dict.fromkeys((*rubric.needs, *rubric.roles)))
        raise InputError(f"{path}: expected one JSON object with these columns as texts: {columns}")
    texts = {name: value for name, value in content.items() if isinstance(value, str | None)}  # others may be a manifest's own
    if wrong := [name for name in rubric.columns if name in content.keys() - texts.keys()]:
        raise InputError(
            f"{path}: {wrong[0]} is {json.dumps(content[wrong[0]])[:80]}; rubric {rubric.id} reads it as a text: quote it"
        )
    return texts, found


def _read(path: Path, n_bytes_most: int) -> bytes:
    try:
        with nullcontext(sys.stdin.buffer) if str(path) == "-" else path.open("rb") as file:
            content = file.read(n_bytes_most + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; name a file, or - for standard input") from error
    if len(content) > n_bytes_most:
        raise InputError(f"{path}: longer than {n_bytes_most:,} bytes; shorten it")
    return content


def _print_message(console: Console, message: Mapping[str, Any]) -> None:
    console.rule(f"{message['role']}")
    for kind, text in _parts(message["content"]):
        console.print(indented(text) if kind == "text" else f"  [{kind}]", markup=False, soft_wrap=True)


def _parts(content: Any) -> Iterator[tuple[str, str]]:
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        whose = part.get("role") or ("example" if "sha256" in part else "")
        yield f"{part['type']}{f': {whose}' if whose else ''}", str(part.get("text", ""))
