"""Reads JSON-like objects out of text, strict JSON first, then tolerantly. It moves no digit and chooses between no two readings.

Formatting is tolerated (quotes of any kind, comments, trailing commas, bare words); which dimension a key names is json_form.py.
Every regular expression is possessive and every loop is counted: a reply is hostile input.
"""

import json
import re
from typing import Any

from schemas.input_budget import REPLY_TEXT_LEVELS, REPLY_TOKENS

_N_QUOTES_MAX = 5_000
_N_STRICT_CHARACTERS_MAX = 65_536


class Number(str):
    """A JSON number, as it was written."""

    __slots__ = ()


class Bare(str):
    """A word, number or run of words that stands without quotes; `at` and `end` where the reader knows places."""

    __slots__ = ("at", "end")
    at: int
    end: int


class Quoted(str):
    """A string whose place is known, from the first character in its quotes to the last."""

    __slots__ = ("at", "end")
    at: int
    end: int


class Pairs(list[tuple[str, Any]]):
    """A JSON object with every pair it holds, repeated keys too."""


class Cut(Exception):  # noqa: N818 — it is an ending, not an error
    """The text ends before the object does; `is_in_string`: within quotes."""

    def __init__(self, *, is_in_string: bool = False) -> None:
        self.is_in_string = is_in_string


class Broken(Exception):  # noqa: N818
    """What stands at `position` cannot be read without choosing; `n_keys` keys were read before it."""

    def __init__(self, position: int, n_keys: int) -> None:
        self.position, self.n_keys = position, n_keys


class Hopeless(Exception):  # noqa: N818
    """Too deep, or of too many parts, to be a reply to one of our questions."""


_STRICT = json.JSONDecoder(object_pairs_hook=Pairs, parse_int=Number, parse_float=Number, parse_constant=Bare, strict=False)

_SKIP = re.compile(r"(?:[\s\u200b\u200c\u200d\u2060\ufeff*`]++|//[^\n]*+|#[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/)?+)*+")
_BARE_KEY = re.compile(r"[^\W\d](?:[\w*]++|[ \-](?=[\w*])){0,60}+")
_BARE = re.compile(r"(?:[^,;，；{}\[\]\"“”„\n/#]++|/(?![/*]))++")
_CLOSERS = {'"': '"', "'": "'", "“": '”"“', "„": '“”"', "”": "”", "‘": "’'‘", "’": "’"}
_KEY_AHEAD = r"(?:[\"'“‘][^\"'“”‘’\\\n]{1,80}+[\"'”’]|[^\W\d][\w \-]{0,60}+)\s*+[:：]"
_AFTER_STRING = re.compile(r"\s*+(?:[}\]]|\Z|[,;，；]|[*`/#]|[\"'“‘][^\"'“”‘’\\\n]{1,80}+[\"'”’]\s*+[:：])")


def _strings(closers: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """(a string whose inner quotes are escaped; one that ends only where a pair, an object or a list does)."""
    end = f"[{closers}]"
    ahead = rf"\s*+(?:[}}\]]|\Z|[,;，；]\s*+(?:[}}\]]|{_KEY_AHEAD})|[\"'“‘][^\"'“”‘’\\\n]{{1,80}}+[\"'”’]\s*+[:：])"
    return (
        re.compile(rf"((?:[^{closers}\\]++|\\.)*+){end}", re.DOTALL),
        re.compile(rf"((?:[^{closers}\\]++|\\.|{end}(?!{ahead}))*+){end}", re.DOTALL),
    )


_STRING = {opener: _strings(closers) for opener, closers in _CLOSERS.items()}


class ObjectReader:
    """Reads objects out of one text. `doubtful`: a pattern that must not stand in a string whose quotes are not escaped."""

    def __init__(self, text: str, doubtful: re.Pattern[str], *, has_places: bool = False) -> None:
        self._text, self._doubtful, self._has_places = text, doubtful, has_places
        self._is_strict_worth_trying = len(text) <= _N_STRICT_CHARACTERS_MAX and not has_places
        self._n_strict_left, self._n_tokens, self._n_keys, self._at = 4, 0, 0, 0

    def read(self, start: int) -> tuple[Pairs, int]:
        """The object whose brace stands at `start`, and where it ends. Raises Cut, Broken or Hopeless."""
        if self._is_strict_worth_trying and self._n_strict_left:
            self._n_strict_left -= 1
            try:
                found, end = _STRICT.raw_decode(self._text, start)
            except ValueError:
                pass  # not strict JSON: read on tolerantly
            except RecursionError as error:
                raise Hopeless from error
            else:
                if _is_too_deep(found, self._text):
                    raise Hopeless
                return found, end
        self._n_keys, self._at = 0, start + 1
        found = self._object(1)
        return found, self._at

    def _object(self, depth: int) -> Pairs:
        pairs = Pairs()
        while True:
            mark = self._next()
            if mark == "}":
                self._at += 1
                return pairs
            key = self._key(mark)
            if self._next() not in ":：=":
                raise Broken(self._at, self._n_keys)
            self._n_keys += 1
            self._at += 1
            pairs.append((key, self._value(depth)))
            if self._next() in ",;，；":
                self._at += 1

    def _list(self, depth: int) -> list[Any]:
        items: list[Any] = []
        while True:
            if self._next() == "]":
                self._at += 1
                return items
            items.append(self._value(depth))
            mark = self._next()
            if mark in ",;，；":
                self._at += 1
            elif mark != "]":
                raise Broken(self._at, self._n_keys)

    def _value(self, depth: int) -> Any:
        mark = self._next()
        if depth > REPLY_TEXT_LEVELS:
            raise Hopeless
        if mark == "{":
            self._at += 1
            return self._object(depth + 1)
        if mark == "[":
            self._at += 1
            return self._list(depth + 1)
        if mark in _STRING:
            return self._string(mark)
        found = _BARE.match(self._text, self._at)
        if found is None:
            raise Broken(self._at, self._n_keys)
        self._at = found.end()
        if self._at == len(self._text):
            raise Cut
        return self._placed(Bare(found[0].strip()), found.start(), found.end())

    def _placed(self, leaf: Any, at: int, end: int) -> Any:
        if self._has_places:
            leaf.at, leaf.end = at, end
        return leaf

    def _key(self, mark: str) -> str:
        found = _STRING[mark][0].match(self._text, self._at + 1) if mark in _STRING else _BARE_KEY.match(self._text, self._at)
        if found is None:
            raise Cut(is_in_string=True) if mark in _STRING else Broken(self._at, self._n_keys)
        self._at = found.end()
        return _unescaped(found[1]) if mark in _STRING else found[0]

    def _string(self, mark: str) -> str:
        escaped, loose = _STRING[mark]
        found = escaped.match(self._text, self._at + 1)
        if found is None:
            raise Cut(is_in_string=True)
        if not _AFTER_STRING.match(self._text, found.end()):
            if self._text.count(mark, self._at) > _N_QUOTES_MAX:
                raise Hopeless
            found = loose.match(self._text, self._at + 1)
            if found is None:
                raise Cut(is_in_string=True)
            # Were a label swallowed into the string, its number would be too: that is a choice, and not ours to make.
            if self._doubtful.search(found[1]):
                raise Broken(self._at, self._n_keys)
        self._at = found.end()
        text = _unescaped(found[1])
        return self._placed(Quoted(text), found.start(1), found.end(1)) if self._has_places else text

    def _next(self) -> str:
        """The next character that says something, after white space, bold marks and comments."""
        self._n_tokens += 1
        if self._n_tokens > REPLY_TOKENS:
            raise Hopeless
        skipped = _SKIP.match(self._text, self._at)
        self._at = skipped.end() if skipped else self._at
        if self._at >= len(self._text):
            raise Cut
        return self._text[self._at]


def _is_too_deep(found: Pairs, text: str) -> bool:
    """Whether a value stands in more than REPLY_TEXT_LEVELS objects and lists; what json bears depends on Python's release."""
    if text.count("{") + text.count("[") <= REPLY_TEXT_LEVELS:
        return False
    level: list[Any] = [found]
    for _ in range(REPLY_TEXT_LEVELS + 1):
        level = [inner for outer in level for inner in _inside(outer)]
    return bool(level)


def _inside(value: Any) -> list[Any]:
    if isinstance(value, Pairs):
        return [inner for _, inner in value]
    return value if isinstance(value, list) else []


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    try:
        decoded = json.loads(f'"{text}"', strict=False)
    except ValueError:
        return text
    return str(decoded)
