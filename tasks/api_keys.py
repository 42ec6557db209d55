"""API keys by the name of their environment variable, and how others write a secret when they repeat it.

What is fetched never goes into the environment, where every child process would inherit it. Fetching is flows/executors/keys.py.
"""

import functools
import html
import json
import os
import re
from html.entities import html5
from urllib.parse import quote, quote_plus

N_SECRET_CHARACTERS = 8
"""Of a value to be taken for a secret: "none", "test" and "EMPTY", which stand for no key, are words."""
_N_WORD_CHARACTERS = 16

_fetched: dict[str, str] = {}


def key_named(name: str) -> str:
    """The key, without white space around it; empty where there is none."""
    return os.environ.get(name, "").strip() or _fetched.get(name, "")


def hold(name: str, value: str) -> None:
    """Hold a fetched key for this process."""
    _fetched[name] = value


def fetched() -> frozenset[str]:
    """Every fetched key, for who keeps secrets out of what is said."""
    return frozenset(_fetched.values())


def may_be_a_word(secret: str) -> bool:
    """Whether a text that knows nothing of the secret may hold it: "anything", "placeholder". Generated keys are longer."""
    return len(secret) < _N_WORD_CHARACTERS and not any(map(str.isdigit, secret))


class Spelled:
    """A secret as others write it: in capitals or not, each sign that is no letter or digit escaped or not.

    Addresses, JSON (once more in JSON too) and HTML escape signs; .NET writes + as a number, PHP / with a stroke before it. Other
    encodings of the whole, base64 for one, are not found.
    """

    __slots__ = ("_core", "_pattern")

    def __init__(self, secret: str) -> None:
        # No encoder touches letters and digits. Most texts lack the longest run of them: they are looked at no further.
        self._core = max(re.split(r"[^A-Za-z0-9]+", secret), key=len).lower()
        self._pattern = "".join(map(_signs, re.findall("[\ud800-\udfff]+|[^\ud800-\udfff]+", secret)))

    def is_in(self, text: str) -> bool:
        """Whether a text holds it."""
        return self._core in text.lower() and re.search(self._pattern, text, _ANY_CASE) is not None

    def sub(self, mark: str, text: str) -> str:
        """The text with the mark in its place."""
        if self._core not in text.lower():
            return text
        return re.sub(self._pattern, lambda _: mark, text, flags=_ANY_CASE)

    def sub_bytes(self, mark: bytes, content: bytes) -> bytes:
        """The same of a body that is not yet read."""
        if self._core.encode() not in content.lower():
            return content
        return re.sub(b"".join(map(_in_bytes, self._pattern)), lambda _: mark, content, flags=_ANY_CASE)


_ANY_CASE = re.IGNORECASE | re.ASCII
_UNREADABLE = "\ufffd"


def _in_bytes(character: str) -> bytes:
    return character.encode(errors="surrogateescape" if "\udc80" <= character <= "\udcff" else "surrogatepass")


def _signs(some: str) -> str:
    """Of signs that are all unreadable, or all readable. Who decodes unreadable bytes makes one replacement of one or several."""
    each = "".join(map(_sign, some))
    return f"(?:{each}|{_sign(_UNREADABLE)}{{1,{len(some)}}})" if "\ud800" <= some[0] <= "\udfff" else each


@functools.cache
def _sign(character: str) -> str:
    if character.isascii() and character.isalnum():
        return character
    number = ord(character)
    if "\ud800" <= character <= "\udfff":  # a byte of the environment that is no UTF-8, or half a character of JSON
        in_address, in_repr = ("".join(before + f"{byte:02x}" for byte in _in_bytes(character)) for before in ("%", r"\\{1,4}x"))
        return rf"(?:{character}|{in_address}|{in_repr}|\\{{1,4}}u{number:04x})"
    forms = {
        character, f"\\{character}", quote(character, safe=""), "".join(f"%{byte:02x}" for byte in character.encode()),
        quote_plus(character), ascii(character)[1:-1], json.dumps(character)[1:-1], html.escape(character),
        *(f"&{name}" for name, written in html5.items() if written == character and name.endswith(";")),
    }  # fmt: skip
    numbers = rf"\\{{1,4}}u{number:04x}|&\#0{{0,8}}{number};|&\#x0{{0,8}}{number:x};"
    return f"(?:{'|'.join(map(re.escape, sorted(forms, key=len, reverse=True)))}|{numbers})"
