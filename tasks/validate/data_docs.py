"""The pages that Great Expectations writes: all of them, loading nothing from outside. What they say is great_expectations.py's.

It writes them to load scripts and styles from six outside hosts: whoever opens one tells them so, and runs what they send.
"""

import logging
import re
from pathlib import Path
from typing import Any, Final

_POLICY: Final = "default-src 'none'; style-src 'self' file: 'unsafe-inline'; img-src 'self' file: data:; font-src 'self' file:"
_HEAD: Final = f"""\
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<style>
body {{ font-family: sans-serif; margin: 1rem auto; max-width: 80rem; padding: 0 1rem; }}
table {{ border-collapse: collapse; margin: .5rem 0; }}
td, th {{ border: 1px solid #bbb; padding: .2rem .5rem; text-align: left; vertical-align: top; }}
img, svg {{ max-width: 12rem; }}
input, label, button, footer {{ display: none; }}
</style>
"""
_SCRIPTS: Final = re.compile(r"<script\b.*?</script\s*>", re.DOTALL | re.IGNORECASE)
_OUTSIDE: Final = re.compile(
    r"""<(?:link|img|iframe|source)\b[^>]*?(?:src|href)\s*=\s*["']?(?:https?:)?//[^>]*>""", re.IGNORECASE
)
_ADDRESS: Final = re.compile(r"""url\(\s*["']?(?:https?:)?//[^)]*\)""", re.IGNORECASE)
_START: Final = re.compile(r"<head[^>]*>", re.IGNORECASE)


_log = logging.getLogger("salon.checks")
_SYSTEM_SAID: Final = re.compile(r"\[Errno \d+\] [^\n\"]+")


class _Heard(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def build_pages(context: Any) -> None:
    """Write the Data Docs. Raises OSError where a page could not be written: the library logs a traceback and goes on without."""
    logger, heard = logging.getLogger("great_expectations"), _Heard()
    is_passed_on, logger.propagate = logger.propagate, False
    logger.addHandler(heard)
    try:
        context.build_data_docs()
    finally:
        logger.removeHandler(heard)
        logger.propagate = is_passed_on
    for said in heard.said:
        if found := _SYSTEM_SAID.search(said):
            raise OSError(found[0])
        _log.warning("a page of the Data Docs could not be made: %s", " ".join(said.split())[:300])


def make_self_contained(folder: Path) -> None:
    """Take scripts and what stands outside out of every page below the folder, and forbid browsers to load either."""
    for path in folder.rglob("*.html"):
        page = _ADDRESS.sub("none", _OUTSIDE.sub("", _SCRIPTS.sub("", path.read_text("utf-8"))))
        path.write_text(_START.sub(lambda found: found.group() + "\n" + _HEAD, page, count=1), "utf-8")
    for path in folder.rglob("*.css"):
        path.write_text(_ADDRESS.sub("none", path.read_text("utf-8")), "utf-8")
