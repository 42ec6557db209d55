"""API keys by the name of their environment variable, and how others write a secret when they repeat it.

What is fetched never goes into the environment, where every child process would inherit it. Fetching is flows/executors/keys.py.
"""

import html
import json
import os
import re
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


def spelled(secret: str) -> re.Pattern[str]:
    """Finds the secret, each of its signs escaped or not: .NET writes + as a number in JSON, PHP / with a stroke before it.

    Other encodings of the whole, base64 for one, are not found.
    """
    return re.compile("".join(_sign(character) for character in secret))


def _sign(character: str) -> str:
    if character.isascii() and (character.isalnum() or character in "-_"):
        return character  # no encoder touches them
    number = ord(character)
    forms = {
        character, f"\\{character}", quote(character, safe=""), quote(character, safe="").lower(), quote_plus(character),
        ascii(character)[1:-1], json.dumps(character)[1:-1], f"\\u{number:04x}", f"\\u{number:04X}", html.escape(character),
        f"&#{number};", f"&#x{number:x};", f"&#x{number:X};",
    }  # fmt: skip
    return f"(?:{'|'.join(map(re.escape, sorted(forms, key=len, reverse=True)))})"
