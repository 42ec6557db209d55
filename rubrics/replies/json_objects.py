"""Where the outermost JSON objects of a reply stand, or why that cannot be told. How one is read is tolerant_json.py."""

import json
import re

from rubrics.model import Dimension
from rubrics.replies.labels import key_patterns
from rubrics.replies.numbers import BLANK
from rubrics.replies.tolerant_json import Broken, Cut, Hopeless, ObjectReader, Pairs
from schemas.statuses.rows import ParseReason

_N_ATTEMPTS_MAX = 100
_N_READ_MAX = 2_000_000


_OPENING = re.compile(r"\{(?!\s*+\{)")
_BRACE = re.compile(r"[{}]")
_FENCED_STRING = re.compile(r'```[A-Za-z]{0,10}+\s*+(".*")\s*```', re.DOTALL)
_QUOTED_START = re.compile(r"\{\s*+(?:[\"'“‘]|\Z)")


PlacedObject = tuple[Pairs, int, int]


def decoded(text: str) -> str:
    """A reply that is itself one JSON string, in a fence or not: the text in it."""
    trimmed = text.strip(BLANK)
    if trimmed.startswith("```") and (fenced := _FENCED_STRING.fullmatch(trimmed)):
        trimmed = fenced[1]
    if len(trimmed) > 1 and trimmed[0] == trimmed[-1] == '"':
        try:
            inner = json.loads(trimmed, strict=False)
        except ValueError:
            return text
        return inner if isinstance(inner, str) else text
    return text


def objects_in(
    reader: ObjectReader, text: str, dimensions: tuple[Dimension, ...]
) -> tuple[list[PlacedObject], ParseReason | None]:
    """The outermost objects of the text, each with its ends, or why they cannot be told."""
    key, key_or_quoted = key_patterns(dimensions)
    objects: list[PlacedObject] = []
    at = n_read = next_key = 0
    for _ in range(_N_ATTEMPTS_MAX):
        opening = _OPENING.search(text, at)
        if opening is None:
            return objects, None
        start = opening.start()
        try:
            pairs, at = reader.read(start)
            objects.append((pairs, start, at))
        except Cut as cut:
            return objects, _cut_reason(text, start, key, is_in_string=cut.is_in_string)
        except Broken as broken:
            if next_key < start:
                found = key_or_quoted.search(text, start)
                next_key = found.start() if found else len(text)
            if next_key < (_balanced_end(text, start) if broken.n_keys else broken.position):
                return objects, ParseReason.MALFORMED
            at, n_read = start + 1, n_read + broken.position - start
            if n_read > _N_READ_MAX:
                break
        except Hopeless:
            break
    return objects, ParseReason.MALFORMED


def _cut_reason(text: str, start: int, key: re.Pattern[str], *, is_in_string: bool) -> ParseReason | None:
    """Why an object that is open at the text's end gives no answer; None where its brace was one of prose."""
    if not (_QUOTED_START.match(text, start) or key.search(text, start)):
        return None
    is_finished = is_in_string and text.rstrip(BLANK + "`").endswith("}")
    return ParseReason.MALFORMED if is_finished else ParseReason.TRUNCATED


def _balanced_end(text: str, start: int) -> int:
    """Where the brace at `start` is closed, counting braces alone; the text's end where it is not."""
    depth = 0
    for n_seen, brace in enumerate(_BRACE.finditer(text, start)):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
        if n_seen > 1000:
            break
    return len(text)
