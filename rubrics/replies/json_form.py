"""The JSON form: which objects of a reply say a score, and under which key. How an object is read is tolerant_json.py."""

import json
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from rubrics.model import Dimension
from rubrics.replies.labels import key_patterns, keys_by_label, normal
from rubrics.replies.numbers import BLANK, Found, Value, literal, read_number, scale_stated
from rubrics.replies.tolerant_json import Bare, Broken, Cut, Hopeless, Number, ObjectReader, Pairs
from schemas.pointers import steps
from schemas.statuses import ParseReason

_N_ATTEMPTS_MAX = 100
_N_READ_MAX = 2_000_000
_DEPTH_MAX = 6
_OPENING = re.compile(r"\{(?!\s*+\{)")
_BRACE = re.compile(r"[{}]")
_FENCED_STRING = re.compile(r'```[A-Za-z]{0,10}+\s*+(".*")\s*```', re.DOTALL)
_QUOTED_START = re.compile(r"\{\s*+(?:[\"'“‘]|\Z)")
_SCALE_KEYS = frozenset(
    {"max", "maxscore", "maximum", "maximumscore", "outof", "scale", "scoremax", "scoringscale", "scorescale"}
)
_SCORE = "score"
# A dimension called plainly "score" could be anything's; only these words around it say that it is the answer's.
_WRAPPER_WORD = re.compile(
    r"(?:scores?|evaluations?|results?|ratings?|response|reply|answer|output|assessments?|aspects?|individual|final|overall|judge?ments?"
    r"|reviews?|scoring|metrics?|dimensions?|criteria|images?|caption|data|json|details?|detailed|report|summary|object|model|and|the|of)"
)


def read_json(text: str, dimensions: tuple[Dimension, ...], *, is_cut: bool) -> Found:
    """Everything the reply's JSON objects say. `is_cut`: the provider says the reply was stopped by its length."""
    text = _decoded(text)
    objects, reason = _objects(text, dimensions)
    if reason is None and not objects:
        reason = ParseReason.TRUNCATED if is_cut else ParseReason.NOT_FOUND
    if reason:
        return Found(reason=reason)
    values: dict[str, list[Value]] = {}
    notes: dict[str, str] = {}
    for pairs in objects:
        _collect(pairs, dimensions, values, notes)
    return Found(values, {key: note for key, note in notes.items() if note})


def _decoded(text: str) -> str:
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


def _objects(text: str, dimensions: tuple[Dimension, ...]) -> tuple[list[Pairs], ParseReason | None]:
    """The outermost objects of the text, or why they cannot be told."""
    key, key_or_quoted = key_patterns(dimensions)
    reader = ObjectReader(text, key)
    objects: list[Pairs] = []
    at = n_read = next_key = 0
    for _ in range(_N_ATTEMPTS_MAX):
        opening = _OPENING.search(text, at)
        if opening is None:
            return objects, None
        start = opening.start()
        try:
            pairs, at = reader.read(start)
            objects.append(pairs)
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


def _collect(root: Pairs, dimensions: tuple[Dimension, ...], values: dict[str, list[Value]], notes: dict[str, str]) -> None:
    labels = keys_by_label(dimensions)
    for holder, is_answer in _holders(root, labels.keys()):
        named = [(normal(key), value) for key, value in holder]
        says = [(name, value) for name, value in named if name in labels and (is_answer or name != _SCORE)]
        scales = {value for name, value in named if name in _SCALE_KEYS and isinstance(value, str)} if says else set()
        for name, value in says:
            for dimension in labels[name]:
                said, note = _says(value, dimension, dimensions)
                is_other = any(_is_other_scale(scale, dimension) for scale in scales)
                values.setdefault(dimension.key, []).extend([ParseReason.SCALE_MISMATCH] if is_other else said)
                if dimension.key not in notes and any(isinstance(value, Decimal) for value in said):
                    notes[dimension.key] = note or (_note(holder, labels.keys()) if len(dimensions) == 1 else "")


def _holders(root: Pairs, labels: Any) -> Iterator[tuple[Pairs, bool]]:
    """The object and those in it, but for the dimensions' own; and whether every key around one means the whole answer."""
    waiting: list[tuple[Any, bool, int]] = [(root, True, 0)]
    while waiting:
        value, is_answer, depth = waiting.pop()
        if isinstance(value, Pairs):
            yield value, is_answer
        if depth >= _DEPTH_MAX:
            continue
        if isinstance(value, Pairs):
            for key, inner in value:
                if isinstance(inner, list) and normal(key) not in labels:
                    waiting.append((inner, is_answer and _is_wrapper(key), depth + 1))
        else:
            waiting.extend((inner, is_answer, depth + 1) for inner in value if isinstance(inner, list))


def _is_wrapper(key: str) -> bool:
    words = re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key[:80]).lower())
    return all(_WRAPPER_WORD.fullmatch(word) for word in words)


def _says(value: Any, dimension: Dimension, dimensions: Sequence[Dimension]) -> tuple[list[Value], str]:
    """What a dimension's value says (several values where its `score` is there twice), and the words beside it."""
    if dimension.at is not None:
        value = _at_pointer(value, dimension.at, dimensions)
    if not isinstance(value, Pairs):
        return [_read(value, dimension)], ""
    says = [_read(inner, dimension) for key, inner in value if normal(key) == _SCORE]
    if any(_is_other_scale(inner, dimension) for key, inner in value if normal(key) in _SCALE_KEYS):
        says = [ParseReason.SCALE_MISMATCH]
    return says or [ParseReason.WRONG_TYPE], _note(value, frozenset({_SCORE}))


def _read(value: Any, dimension: Dimension) -> Value:
    if isinstance(value, Number):
        return literal(value)
    if isinstance(value, str):
        return read_number(value, dimension, is_prose_allowed=False) if value.strip(BLANK) else ParseReason.WRONG_TYPE
    if isinstance(value, list) and not isinstance(value, Pairs) and 0 < len(value) <= 120:
        return _read_list(value, dimension)
    return ParseReason.WRONG_TYPE


def _read_list(items: list[Any], dimension: Dimension) -> ParseReason:
    """A list is no number; yet `[0-4]` is how a prompt writes its form."""
    if all(isinstance(item, Bare | Number) for item in items):
        says = read_number("[" + ", ".join(items) + "]", dimension, is_prose_allowed=False)
        if says is ParseReason.TEMPLATE_ECHO:
            return says
    return ParseReason.WRONG_TYPE


def _at_pointer(value: Any, pointer: str, dimensions: Sequence[Dimension]) -> Any:
    """What stands at the rest of the pointer; None (no number) where a list has another length than the pointers imply."""
    path = steps(pointer)
    for index, step in enumerate(path[1:], 1):
        if isinstance(step, str):
            inner = [entry for key, entry in value if normal(key) == normal(step)] if isinstance(value, Pairs) else []
            value = inner[0] if len(inner) == 1 else None
        else:
            is_list = isinstance(value, list) and not isinstance(value, Pairs)
            value = value[step] if is_list and len(value) == _n_implied(path[:index], dimensions) else None
    return value


def _n_implied(prefix: tuple[str | int, ...], dimensions: Sequence[Dimension]) -> int:
    """One more than the highest index any dimension takes from the list at `prefix`."""
    paths = [steps(dimension.at) for dimension in dimensions if dimension.at is not None]
    indices = [path[len(prefix)] for path in paths if len(path) > len(prefix) and path[: len(prefix)] == prefix]
    return 1 + max((index for index in indices if isinstance(index, int)), default=-1)


def _is_other_scale(stated: Any, dimension: Dimension) -> bool:
    return isinstance(stated, str) and len(stated) < 100 and scale_stated(stated, dimension) is not None


def _note(pairs: Pairs, labels: Any) -> str:
    """The texts that stand beside the number."""
    return " ".join(value.strip() for key, value in pairs if type(value) is str and normal(key) not in labels)
