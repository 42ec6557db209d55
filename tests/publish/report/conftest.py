"""Fixtures of the report's tests: lakes of drawn samples and their publications, in a few words each."""

import hashlib
import io
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest
from PIL import Image

from rubrics.model import Dimension, ReplyFormat, Rubric, Variant
from schemas.benchmark.file import Statistics
from schemas.identities import RunIds
from schemas.tables.published import BENCHMARK_LONG, COMPARISONS, STANDINGS
from schemas.tables.stored import CHECKS, JUDGEMENTS, QUARANTINE, REPLIES, SAMPLES, SCORES
from schemas.tables.table import Table
from tasks.aggregate.tables import Settings, aggregated
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tasks.publish.folders import PublicationName, Published
from tasks.publish.publication import Draft, publish
from tasks.publish.report.compare import START, compare_pages
from tasks.publish.report.gallery import Gallery, gallery_of
from tasks.publish.report.page import report_page

RUN_DATE = date(2026, 11, 3)
DIMENSIONS = ("overall_score", "accuracy")
HOSTILE = (
    "<script>window.pwned=1</script>",
    '"><img src=x onerror=window.pwned=1>',
    "'><svg/onload=window.pwned=1>",
    "</script><script>window.pwned=1</script>",
    "</style><style>body{display:none}</style>",
    "{{ 7*7 }}{% raise %}",
    "javascript:window.pwned=1",
    '=HYPERLINK("http://x")',
    "&lt;b&gt;",
    "a\u202eb\u0000c\u001b[31m\u2028d",
    "<!--",
    "]]>",
    "ᚠ田😀",
    "x" * 300,
    "`${window.pwned=1}`",
)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


IDS = {f"{name}_id": digest(name) for name in ("dataset", "plan", "snapshot", "reading")}


def picture(seed: int, side_px: int = 64, *, is_noise: bool = False) -> bytes:
    buffer = io.BytesIO()
    if is_noise:
        Image.frombytes("RGB", (side_px, side_px), random.Random(seed).randbytes(3 * side_px**2)).save(buffer, "PNG")
    else:
        Image.new("RGB", (side_px, side_px), (seed * 37 % 256, seed * 91 % 256, 120)).save(buffer, "PNG")
    return buffer.getvalue()


class At(NamedTuple):
    """Which ask: the numbers of the sample, of who made it, of the judge, and of the repeat."""

    sample: int
    made: int
    judge: int
    repeat: int


@dataclass
class World:
    """What is judged. `became` says of an ask its score, the reason there is none, or ("rule", score) for a forbidden one."""

    made_by: Sequence[tuple[str, str]] = (("north", "step-900"), ("north", "step-1000"), ("south", "base"))
    categories: Sequence[str | None] = ("colors", "counting")
    n_prompts: int = 12  # in all, spread over the categories
    n_per_prompt: int = 2
    judges: Sequence[str] = ("eye",)
    n_repeats: int = 1
    became: Callable[[At], Any] = lambda at: float((at.sample * 7 + at.made * 2) % 11)
    prompt: Callable[[int], str] = lambda index: f"a red cube number {index}"
    words: Callable[[int], str] = lambda index: f"It shows cube {index}."
    picture: Callable[[int], bytes | None] = picture
    source_key: Callable[[int], str] = lambda index: f"set/{index}.png"
    occasion: Callable[[int], str] = lambda _index: ""


@dataclass(frozen=True)
class Made:
    """A lake, and what a publication of it would be made from."""

    lake: Lake
    tables: dict[Table, pl.DataFrame]
    provenance: dict[str, Any]
    publication_id: str = digest("publication")
    kept: list[bytes] = field(default_factory=list)

    def kept_page(self) -> bytes:
        """The page, made once for all tests that only read it."""
        self.kept[:] = self.kept or [self.page()]
        return self.kept[0]

    def gallery(self, **options: Any) -> Gallery:
        return gallery_of(self.lake, RunIds(**IDS), self.tables[BENCHMARK_LONG], {}, **options)

    @property
    def name(self) -> PublicationName:
        return PublicationName(self.provenance["benchmark"], self.publication_id, RUN_DATE)

    def page(self, gallery: Gallery | None = None) -> bytes:
        return report_page(self.name, self.tables, self.provenance, gallery or self.gallery(), is_pictured=True)

    def beside(self, folder: Path, **options: Any) -> Path:
        """The pages of all pictures, written into a folder; the one they start from."""
        for name, content in compare_pages(self.lake, RunIds(**IDS), self.tables, {}, self.name, **options):
            (folder / name).write_bytes(content)
        return folder / START


def rubric() -> Rubric:
    dimensions = tuple(Dimension(key, (key,), 0, 10) for key in DIMENSIONS)
    return Rubric(
        id="small",
        version="1",
        title="A small rubric",
        source="",
        folder=Path(),
        digest=digest("rubric"),
        reply_format=ReplyFormat.JSON,
        needs=("prompt",),
        may_be_null=frozenset(),
        unit=("prompt",),
        report_by="category",
        dispatch=None,
        value_maps={},
        messages=(),
        variants={None: Variant(None, "Look.", "look.txt", dimensions)},
        rules=(),
        n_output_tokens_expected=9,
    )


def _frame(table: Table, rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=table.empty().schema)


def _rows(world: World) -> dict[Table, list[dict[str, Any]]]:
    found: dict[Table, list[dict[str, Any]]] = {table: [] for table in (SAMPLES, JUDGEMENTS, REPLIES, SCORES)}
    for made, (model, checkpoint) in enumerate(world.made_by):
        for index in range(world.n_prompts * world.n_per_prompt):
            prompt = index // world.n_per_prompt
            sample_id, category = digest(f"{made} {index}"), world.categories[prompt % len(world.categories)]
            who = {"sample_id": sample_id, "model": model, "checkpoint": checkpoint, "category": category}
            content = world.picture(index)
            found[SAMPLES].append(
                who
                | {
                    "source": "set",
                    "source_key": world.source_key(index),
                    "prompt": world.prompt(prompt),
                    "status": "ok",
                    "image": {"bytes": content, "path": None} if content else None,
                    "image_sha256": hashlib.sha256(content).hexdigest() if content else None,
                }
            )
            for judge, name in enumerate(world.judges):
                for repeat in range(world.n_repeats):
                    _judged(found, world, who, At(index, made, judge, repeat), name)
    return found


def _judged(found: dict[Table, list[dict[str, Any]]], world: World, who: dict[str, Any], at: At, judge: str) -> None:
    index, made, _, repeat = at
    became, key = world.became(at), digest(f"{at}")
    common = {"rubric_id": "small", "rubric_version": "1", "judge_model": judge, "request_key": key}
    prompt_id = digest(world.prompt(index // world.n_per_prompt))
    found[JUDGEMENTS].append(
        who
        | common
        | {
            "repeat": repeat,
            "occasion": world.occasion(index),
            "prompt_id": prompt_id,
            "status": "planned",
        }
    )
    found[REPLIES].append(
        {
            "request_key": key,
            "ask_index": 0,
            "status": "answered",
            "reply_text": world.words(index),
            "judge_model": judge,
            "answered_model": judge,
            "n_input_tokens": 400,
            "n_output_tokens": 20 + made,
            "cost_usd": 0.001,
            "latency_s": 0.5 + index / 100,
            "n_attempts": 1,
        }
    )
    for number, dimension in enumerate(DIMENSIONS):
        found[SCORES].append(
            common | {"dimension": dimension, "ask_index": 0, "note": world.words(index)} | _score(became, number)
        )


def _score(became: Any, number: int) -> dict[str, Any]:
    if isinstance(became, str):
        return {"score": None, "status": "unreadable", "reason": became, "bound_low": 0.0, "bound_high": 10.0}
    is_forbidden = isinstance(became, tuple)
    score = min(10.0, float(became[1] if is_forbidden else became) + number)
    verdict = {"is_in_range": True, "is_on_step": True, "is_rule_kept": not is_forbidden}
    if is_forbidden:
        return verdict | {
            "score": score,
            "status": "rule_violation",
            "reason": "rule_violation",
            "bound_low": 0.0,
            "bound_high": 1.0,
        }
    return verdict | {"score": score, "status": "scored", "reason": None, "bound_low": score, "bound_high": score}


def make(root: Path, world: World, benchmark: str = "nightly") -> Made:
    lake, frames = Lake(root), {}
    for (table, rows), key in zip(_rows(world).items(), ("dataset_id", "plan_id", "snapshot_id", "reading_id"), strict=True):
        frames[table] = _frame(table, rows)
        staging = stage(lake, table)
        staging.write_part(0, frames[table])
        staging.commit(IDS[key])
    run = Settings(
        benchmark=benchmark,
        dataset_id=IDS["dataset_id"],
        publication_id=digest("publication"),
        run_date=RUN_DATE,
        min_coverage=0.9,
        statistics=Statistics(min_paired_prompts=2),
        baseline=f"{world.made_by[0][0]}/{world.made_by[0][1]}",
    )
    tables = aggregated(frames[JUDGEMENTS].lazy(), frames[SCORES].lazy(), frames[REPLIES].lazy(), {"small": rubric()}, run)
    check = {
        "publication_id": digest("publication"),
        "check": "scores.score.is_not_null",
        "severity": "warning",
        "n_checked": 1234,
    }
    keys = json.dumps([{"request_key": HOSTILE[0]}, {"request_key": "\ud800"}])
    tables[CHECKS] = _frame(
        CHECKS,
        [
            check | {"status": "failed", "n_failing": 2, "failing_keys_json": keys},
            check | {"check": "scores.key.is_unique", "status": "passed", "n_failing": 0},
        ],
    )
    provenance = {
        "benchmark": benchmark,
        "identities": IDS | {"code_version": digest("code")},
        "benchmark_digest": digest("file"),
        "min_coverage": 0.9,
        "rubrics": {"small": {"version": "1", "digest": digest("rubric"), "title": "A small rubric", "source": "ours"}},
        "judges": [
            {"model": name, "parameters": {"temperature": 0}, "repeats": world.n_repeats, "recorded": False}
            for name in world.judges
        ],
    }
    return Made(lake, tables, provenance)


def hostile_world() -> World:
    return World(
        made_by=[(HOSTILE[0], HOSTILE[1]), (HOSTILE[0], HOSTILE[9]), (HOSTILE[5], HOSTILE[13])],
        categories=[HOSTILE[2], HOSTILE[4], HOSTILE[10]],
        n_prompts=15,
        judges=[HOSTILE[3]],
        became=lambda at: "refusal" if at.sample == 3 else (at.sample * 7 + at.made * 3) % 11,
        prompt=lambda index: f"{HOSTILE[index % len(HOSTILE)]} {index}",
        words=lambda index: HOSTILE[index % len(HOSTILE)] * 5,
        source_key=lambda index: HOSTILE[index % len(HOSTILE)],
    )


@pytest.fixture(scope="session")
def publish_one() -> Callable[..., Published]:
    """Puts a publication with a report into a lake; its number makes its id and its date."""

    def put(root: Path, made: Made, index: int, benchmark: str = "nightly") -> Published:
        name = PublicationName(benchmark, digest(f"{benchmark} {index}"), date(2026, 1, 1) + timedelta(days=index))
        kept = {table: made.tables[table] for table in (BENCHMARK_LONG, CHECKS, STANDINGS, COMPARISONS)}
        published = publish(root, Draft(name, kept | {QUARANTINE: _frame(QUARANTINE, [])}, made.provenance))
        (published.folder / "report.html").write_text("not to be opened")
        return published

    return put


@pytest.fixture(scope="session")
def made_in() -> Callable[..., Made]:
    """A lake in a folder and its tables from the words of World."""
    return lambda root, **said: make(root, World(**said))


@pytest.fixture
def made_of(tmp_path: Path, made_in: Callable[..., Made]) -> Callable[..., Made]:
    """The same in a folder of the test's own."""
    return lambda **said: made_in(tmp_path, **said)


@pytest.fixture(scope="session")
def drawn() -> Callable[..., bytes]:
    """A PNG: plain of a colour that follows from its number, or of noise."""
    return picture


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make(tmp_path_factory.mktemp("small"), World())


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make(tmp_path_factory.mktemp("hostile"), hostile_world(), benchmark="<script>window.pwned=1</script>")


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """20,000 judgements: five checkpoints of 1,000 samples, asked four times; pictures of noise, long prompts and replies."""
    noise = [picture(seed, 96, is_noise=True) for seed in range(8)]
    world = World(
        made_by=[("north", f"step-{step}000") for step in range(1, 6)],
        categories=[f"category_{index}" for index in range(6)],
        n_prompts=250,
        n_per_prompt=4,
        n_repeats=4,
        became=lambda at: "refusal" if at.sample % 97 == 0 else (at.sample * 7 + at.made * 2 + at.repeat * (at.sample % 3)) % 11,
        prompt=lambda index: f"prompt {index} " + "with <several> & more words " * 20,
        words=lambda index: f"reply {index} " + '"quoted" <reasons> & more ' * 60,
        picture=lambda index: noise[index % len(noise)],
    )
    return make(tmp_path_factory.mktemp("large"), world)
