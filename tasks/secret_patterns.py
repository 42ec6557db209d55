"""A secret as others write it when they repeat it: in addresses, JSON, HTML, Python. Who holds secrets is not known here."""

import html
import json
import re
from urllib.parse import quote, quote_plus


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
