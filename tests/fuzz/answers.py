"""What reads what a judge said: replies, items, and the answers and batch results of providers. What a user writes: surfaces.py."""

# ruff: noqa: E501 - a surface is a line

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from rubrics.items import BadItems, items_of
from rubrics.loading import SHIPPED, load_rubric
from rubrics.model import Rubric
from rubrics.replies.jsonl import parse_jsonl
from rubrics.replies.read import parse_reply
from schemas.errors import SalonError
from tasks.judge.batch.folders import BatchResults
from tasks.judge.provider.anthropic import batch_api as anthropic_batches
from tasks.judge.provider.anthropic import messages as anthropic
from tasks.judge.provider.batch_api import CallFailedError
from tasks.judge.provider.batch_calls import read_object, read_result_lines
from tasks.judge.provider.gemini import batch_api as gemini_batches
from tasks.judge.provider.gemini import responses as gemini
from tasks.judge.provider.json_bodies import epoch_s
from tasks.judge.provider.openai import batch_files, responses
from tasks.judge.provider.openai.batch_files import read_batch
from tasks.judge.provider.transport import Secrets
from tests.fuzz.seeds import (
    ANTHROPIC,
    ANTHROPIC_RESULTS,
    BATCH,
    ERROR,
    GEMINI,
    GEMINI_RESULTS,
    ITEMS,
    LOGPROBS,
    OPENAI,
    REPLIES,
    RESULTS,
    STREAM,
)
from tests.fuzz.surface import Surface, file_of

ROOT = Path(__file__).parents[2]


@cache
def rubric(name: str) -> Rubric:
    places = (SHIPPED / name, SHIPPED / "starters" / name, ROOT / "tests/instruments" / name)
    return load_rubric(next(place for place in places if place.is_dir()))


def _reply(name: str) -> Callable[[bytes, Path], object]:
    def read_it(content: bytes, _folder: Path) -> object:
        of, text = rubric(name), content.decode("utf-8", "surrogateescape" if content[:1] == b"[" else "replace")
        facts = {"items": json.loads(ITEMS), "text_is_null": False, "reference_words": 7, "output_words": 3}
        categories = [key for key in (*of.variants, *of.of_requests) if key is not None][:2] or [None]
        said = [parse_reply(of, text, facts | {"category": one}).as_dict() for one in categories]
        return [said, parse_reply(of, text, {"finish_reason": "length", "logprobs_json": text, "items": text}).as_dict()]

    return read_it


def _probabilities(content: bytes, _folder: Path) -> object:
    return [
        parse_reply(
            rubric(name), "Yes", {"logprobs_json": content.decode("utf-8", "replace"), "items": json.loads(ITEMS)}
        ).as_dict()
        for name in ("geneval2", "t2i_corebench")
    ]


def _response(read_answer: Callable[..., object]) -> Callable[[bytes, Path], object]:
    def read_it(content: bytes, _folder: Path) -> object:
        said = content.decode("latin-1")[:80]
        headers = dict.fromkeys(("retry-after", "retry-after-ms", "x-ratelimit-limit-requests", "x-ratelimit-reset-requests",
                                 "anthropic-ratelimit-tokens-reset", "date", "location"), said)  # fmt: skip
        return [read_answer(status, headers, content) for status in (200, 302, 400, 429, 503)]

    return read_it


class _Calls:
    def failed(self, why: str) -> SalonError:
        return SalonError(why)


def _batch_object(content: bytes, _folder: Path) -> object:
    """A batch object in each provider's form; `failed` is what a call raises, and here one of Salon's errors."""
    secrets = Secrets("secret-key", "https://host.example")
    found = read_object(content, secrets)
    calls = _Calls()
    anthropic_api: Any = anthropic_batches.AnthropicBatches(calls, lambda path, _: f"https://host.example{path}", secrets)  # type: ignore[arg-type]
    gemini_api: Any = gemini_batches.GeminiBatches(calls, "https://host.example", "models/x", secrets)  # type: ignore[arg-type]
    made: list[object] = [read_batch(found), epoch_s(found.get("created_at"))]
    for api in (anthropic_api, gemini_api):
        try:
            made.append(api._read(found))
        except SalonError:
            continue
    return made


def _native_results(name_key: str, ended: Callable[[dict[str, Any]], Any]) -> Callable[[bytes, Path], object]:
    return file_of(".jsonl", lambda path: [*read_result_lines(path, name_key, ended)])


def _results_folder(content: bytes, folder: Path) -> object:
    (folder / "manifest.json").write_bytes(content)
    (folder / "results.jsonl").write_bytes(b"{}\n")
    return [str(path) for path in BatchResults(folder).files()]


def _items(content: bytes, _folder: Path) -> object:
    return [items_of(rubric(name), {"items": content.decode("utf-8", "replace"), "prompt_form": "a"}) for name in ("tiif", "dsg")]


_REPLY_RUBRICS = (
    "interleaved", "image_aspects", "caption", "composition", "alignment", "preference", "edit_preference", "program", "items",
    "tiif", "unigenbench", "dsg", "wise", "viescore/viescore_overall",
)  # fmt: skip
_WRONG = (SalonError,)
ANSWERS: dict[str, Surface] = {
    "openai, response": Surface((OPENAI, STREAM, ERROR), _response(responses.read_answer)),
    "anthropic, response": Surface((ANTHROPIC, ERROR), _response(anthropic.read_answer)),
    "gemini, response": Surface((GEMINI, ERROR), _response(gemini.read_answer)),
    "batch object": Surface((BATCH,), _batch_object, (CallFailedError,)),
    "openai, results": Surface((RESULTS,), file_of(".jsonl", lambda path: [*batch_files.read_results(path)])),
    "anthropic, results": Surface((ANTHROPIC_RESULTS,), _native_results("custom_id", anthropic_batches._ended)),
    "gemini, results": Surface((GEMINI_RESULTS,), _native_results("key", gemini_batches._ended)),
    "results, manifest": Surface((b'{"files":[{"name":"requests.jsonl"}]}',), _results_folder, _WRONG),
    "logprobs": Surface((LOGPROBS,), _probabilities, kind="the text of a reply"),
    "items": Surface((ITEMS,), _items, (BadItems,), kind="the text of a reply"),
    "salon parse": Surface(
        (b'{"raw":"Score: 4","context":{"finish_reason":"stop","items":[]}}\n{"raw":null}\n',),
        lambda content, _: [*parse_jsonl(rubric("alignment"), content.splitlines(keepends=True), is_explained=True)],
        _WRONG, kind="the text of a reply",
    ),
} | {f"reply, {name.rpartition('/')[2]}": Surface(REPLIES, _reply(name), kind="the text of a reply") for name in _REPLY_RUBRICS}  # fmt: skip
