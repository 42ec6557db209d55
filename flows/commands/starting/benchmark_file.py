"""`salon new`: a benchmark file begun from a folder of pictures. What is where in the folder: tasks/ingest/readers/layout.py."""

import json
import os
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

import typer

from flows.commands.instruments import find_rubric, n_of
from flows.observability.terminal import one_line
from rubrics.loading import SHIPPED, list_rubrics
from rubrics.model import Rubric
from rubrics.rules import mapped
from schemas.benchmark.file import Benchmark
from schemas.benchmark.judges import LOOPBACK, address_fault, model_fault
from schemas.errors import InputError
from schemas.records import IMAGE, Sample
from schemas.statuses.rows import SampleStatus
from tasks.delimited import columns_told
from tasks.ingest.paths import quote
from tasks.ingest.readers import read
from tasks.ingest.readers.layout import Layout, find_layout
from tasks.ingest.sources import expand
from tasks.regular_files import write_new

_PREFERRED: Final = ("composition", "alignment")
_N_LOOKED_AT: Final = 10_000
_N_NAMED: Final = 4
_PROVIDERS: Final = {"claude": "anthropic", "gemini": "gemini"}
_COMMENTS: Final[Mapping[tuple[bool, bool], str]] = {
    (True, True): "  # the folders' names are models and, below them, checkpoints",
    (False, True): "  # the folders' names are checkpoints",
    (True, False): '  # the folders\' names are models; for checkpoints of one model write {checkpoint} and model = "…"',
    (False, False): "",
}


def new(
    file: Annotated[Path, typer.Argument(help="The benchmark file to write (TOML). An existing file is never overwritten.")],
    place: Annotated[
        Path,
        typer.Option("--from", metavar="PATH", help="The folder with your pictures, or a table or archive that lists them."),
    ],
    prompt: Annotated[
        str | None, typer.Option(help="The column that holds the prompt; default: prompt, or one with a similar name.")
    ] = None,
    image: Annotated[
        str | None, typer.Option(help="The column that names the judged picture; default: image, or the only one that names any.")
    ] = None,
    rubric: Annotated[
        str | None, typer.Option(help="A rubric's id, or a folder; default: a shipped rubric whose columns are there.")
    ] = None,
    judge: Annotated[str, typer.Option(help="The judge's model.")] = "gpt-4.1-2025-04-14",
    base_url: Annotated[str | None, typer.Option(help="The judge's endpoint; default: the provider's.")] = None,
) -> int:
    """Write a benchmark file for your pictures: finds their layout, their columns and a rubric. Nothing is sent."""
    if file.exists():
        raise InputError(f"{file} already exists; choose another name, or remove it")
    if not file.parent.is_dir():
        raise InputError(f"the folder {file.parent} does not exist; create it first")
    for option, why in (("--base-url", None if base_url is None else address_fault(base_url)), ("--judge", model_fault(judge))):
        if why:
            raise InputError(f"{option}: {why}")
    begun = _Begun(file, place, find_layout(place, prompt, image), judge, base_url)
    asked = [find_rubric(rubric, [])] if rubric else _shipped()
    samples = begun.samples(asked)
    usable = [one for one in samples if one.status is SampleStatus.OK]
    if not usable:
        why = f"{samples[0].status}: {samples[0].detail}" if samples else "there are none"
        raise InputError(f"{place}: {begun.said_of_layout}: none of the first {len(samples):,} rows can be used; {why}")
    fitting = [one for one in asked if not _lacks(one, usable, begun.found)]
    if not fitting:
        nearest = min(asked, key=lambda one: len(_lacks(one, usable, begun.found)))
        lacking = _lacks(nearest, usable, begun.found)
        raise InputError(f"{place}: {begun.said_of_layout}: {_why_not(nearest, lacking, begun.found)}")
    begun.write(fitting)
    begun.tell(samples, usable, fitting)
    return 0


def _shipped() -> list[Rubric]:
    """The shipped rubrics for single samples, those that most people want first."""
    found = {one.id: one for one in list_rubrics([SHIPPED]) if not one.is_of_pairs}
    return [*(found.pop(name) for name in _PREFERRED), *found.values()]


def _lacks(rubric: Rubric, samples: Sequence[Sample], found: Layout) -> list[str]:
    """What the rubric needs and most of the samples do not have; a category counts where the rubric has a prompt for it."""
    lacking = []
    for name in rubric.needs:
        if name in rubric.may_be_null:
            continue
        n = sum(_has(rubric, name, sample) for sample in samples)
        lacking += [name] if 2 * n <= len(samples) or (name == IMAGE and not found.has_pictures) else []
    return lacking


def _why_not(rubric: Rubric, lacking: Sequence[str], found: Layout) -> str:
    """What is said where no rubric's columns are there, and what to do."""
    advice = "choose another --rubric, or write the file by hand with columns (docs/datasets.md)"
    if IMAGE in lacking:
        root = found.first if found.first.is_dir() else found.first.parent
        advice = f"no column names pictures that are there, seen from {root}"
    elif "prompt" in lacking:
        is_of_pictures = found.reader == "imagefolder"
        beside = ", or put a metadata.csv with the columns file_name and prompt beside the pictures" * is_of_pictures
        unread = "; text files beside the pictures are not read" * found.has_texts
        advice = f"name the column that holds it with --prompt{beside}{unread}"
    there = columns_told(found.shown, lacking)
    return f"rubric {rubric.id} needs {', '.join(lacking)}, and no column is called so; columns: {there}; {advice}"


def _has(rubric: Rubric, name: str, sample: Sample) -> bool:
    if name == IMAGE or name in rubric.roles:
        return any(picture.role == name for picture in sample.pictures)
    text = sample.texts.get(name)
    return bool(text) and (name != rubric.dispatch or rubric.variant(mapped(rubric, name, str(text))) is not None)


@dataclass(frozen=True, slots=True)
class _Begun:
    """The file to be written, and what it is made from."""

    file: Path
    place: Path
    found: Layout
    judge: str
    base_url: str | None

    @property
    def path(self) -> str:
        """The source's path as the file has it: relative to the file's folder."""
        return Path(os.path.relpath(self.found.path, self.file.parent)).as_posix()

    @property
    def said_of_layout(self) -> str:
        """How the pictures lie, in the words of the file."""
        return f"reader = {_quoted(self.found.reader)}, path = {_quoted(self.path)}"

    def samples(self, rubrics: Sequence[Rubric]) -> list[Sample]:
        """The first samples as a run would read them."""
        own_texts = sorted({name for rubric in rubrics for name in rubric.columns})
        sources = expand(self._benchmark(rubrics), own_texts)
        return list(islice(chain.from_iterable(read(source) for source in sources), _N_LOOKED_AT))

    def _benchmark(self, rubrics: Sequence[Rubric]) -> Benchmark:
        return Benchmark.model_validate(tomllib.loads(self.text(rubrics)) | {"folder": self.file.resolve().parent})

    def text(self, rubrics: Sequence[Rubric]) -> str:
        """The file's text, for the first of the rubrics; the others are named in a comment."""
        rubric, others = rubrics[0], ", ".join(one.id for one in rubrics[1:])
        folder = None if rubric.folder.is_relative_to(SHIPPED) else os.path.relpath(rubric.folder.parent, self.file.parent)
        provider = next((name for begin, name in _PROVIDERS.items() if self.judge.startswith(begin)), None)
        of_source = {
            "model": self.found.model,
            "checkpoint": self.found.checkpoint,
            "remote_hosts": list(self.found.remote_hosts) or None,
        }
        columns = ", ".join(f"{name} = {_quoted(at)}" for name, at in self.found.columns.items())
        lines = [
            f"# Begun by salon new from {one_line(str(self.place))}. Every key: docs/benchmark-file.md",
            f"name = {_quoted(_name_of(self.file))}",
            *([f"rubric_folders = [{_quoted(Path(folder).as_posix())}]"] if folder else []),
            "",
            "[[sources]]",
            f"reader = {_quoted(self.found.reader)}",
            f"path = {_quoted(self.path)}" + _COMMENTS["{model}" in self.path, "{checkpoint}" in self.path],
            *(f"{key} = {_quoted(value)}" for key, value in of_source.items() if value),
            *([f"columns = {{ {columns} }}"] if columns else []),
            "\n[[rubrics]]",
            f"id = {_quoted(rubric.id)}" + (f"  # these would do too: {others}" if others else ""),
            "",
            "[[judges]]",
            f"model = {_quoted(self.judge)}",
            *([f"provider = {_quoted(provider)}"] if provider and not self.base_url else []),
            *([f"base_url = {_quoted(self.base_url)}"] if self.base_url else []),
            "parameters = { temperature = 0, max_tokens = 600 }",
        ]
        return "\n".join(lines) + "\n"

    def write(self, rubrics: Sequence[Rubric]) -> None:
        """Write the file, where there still is none. Raises InputError."""
        try:
            write_new(self.file, self.text(rubrics).encode())
        except (OSError, UnicodeError) as error:
            raise InputError(f"{self.file} cannot be written: {error}") from error

    def tell(self, samples: Sequence[Sample], usable: Sequence[Sample], rubrics: Sequence[Rubric]) -> None:
        """What was found, what was chosen, and what comes next."""
        checkpoints = list(dict.fromkeys(f"{one.model}/{one.checkpoint}" for one in samples))
        named = ", ".join(checkpoints[:_N_NAMED]) + (", …" if len(checkpoints) > _N_NAMED else "")
        at_least = "at least " if len(samples) == _N_LOOKED_AT else ""
        shown = next((one.texts["prompt"] for one in usable if one.texts.get("prompt")), None)
        others = ", ".join(one.id for one in rubrics[1:])
        has_pairs = {"prompt", IMAGE} <= {*rubrics[0].needs} and _is_shared(usable)
        lines = {
            "samples": f"{at_least}{len(samples):,} in {n_of(len(checkpoints), 'checkpoint')}: {named}",
            "layout": self.said_of_layout,
            "prompt": quote(shown) + f" (column {self.found.columns.get('prompt', 'prompt')})" if shown else "",
            "seed": "the number at the end of the picture's name (column stem_number)" * ("seed" in self.found.columns),
            "picture": f"column {self.found.columns[IMAGE]}" if self.found.columns.get(IMAGE) else "",
            "rubric": f"{rubrics[0].id} (reads {', '.join(rubrics[0].needs)})" + f"; these would do too: {others}" * bool(others),
            "judge": self._said_of_judge(rubrics),
            "note": "; ".join(self._notes(samples)),
            "pairs": 'to see which of two checkpoints is better, add [[rubrics]] id = "preference": docs/pairs.md' * has_pairs,
            "next": f"salon plan {shlex.quote(str(self.file))}",
        }
        print(f"{one_line(str(self.file))}: written; look it over")
        for name, said in lines.items():
            if said:
                print(f"  {name:<8} {one_line(said)}")

    def _said_of_judge(self, rubrics: Sequence[Rubric]) -> str:
        (judge,) = self._benchmark(rubrics).judges
        if self.base_url and urlsplit(self.base_url).hostname in LOOPBACK:
            return f"{self.judge} at {self.base_url}"
        is_set = "set" if os.environ.get(judge.api_key_env) else f"not set yet: export {judge.api_key_env}=…"
        return f"{self.judge}; its key is read from {judge.api_key_env}, which is {is_set}"

    def _notes(self, samples: Sequence[Sample]) -> list[str]:
        unusable = Counter(str(one.status) for one in samples if one.status is not SampleStatus.OK)
        notes = [f"{n:,} rows cannot be used ({status})" for status, n in unusable.most_common()]
        if self.found.n_others:
            n = n_of(self.found.n_others, "folder")
            notes.append(f"{n} below {self.place} are laid out otherwise; add a second [[sources]] for them")
        return notes


def _is_shared(samples: Sequence[Sample]) -> bool:
    """Whether two checkpoints have pictures of one prompt."""
    drawn = {(one.texts.get("prompt"), one.model, one.checkpoint) for one in samples if one.texts.get("prompt")}
    return len(drawn) > len({prompt for prompt, *_ in drawn})


def _name_of(file: Path) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", file.stem).lstrip("._-")[:100] or "benchmark"


def _quoted(value: str | list[str]) -> str:
    """As TOML, whose strings and lists of strings are written as JSON's, but for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
