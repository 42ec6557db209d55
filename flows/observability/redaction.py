"""Keeping secrets out of what is said: log records, error texts, tracebacks. Each stage cleans what it stores by itself.

A secret is known by the name of the environment variable that holds it: its value is looked up when something is said, and is
kept nowhere but in re's cache of patterns; so with keys that were fetched (tasks/api_keys.py). What merely looks like one (a
password in an address, a bearer token) goes too.
"""

import logging
import os
import re
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from flows.observability.terminal import hanging, printable
from schemas.errors import SalonError
from tasks.api_keys import N_SECRET_CHARACTERS, Spelled, fetched

REMOVED = "[removed]"

_SECRET_NAME = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|AUTH_STRING)\Z", re.IGNORECASE)
# Between :// and @: a user, a password (which may hold anything but white space), or a token alone. A port is neither.
_IN_ADDRESS = re.compile(
    r"(://)(?!user(?::password)?@)(?:[^\s/@:?#\"'<>]{1,400}|[^\s/@:?#\"'<>]{0,200}:(?![0-9]{1,5}[/?#])[^\s\"'<>]{1,400})@"
)
_QUERY_NAME = r"[\w.\-]{0,40}?(?:key|token|secret|passw(?:or)?d|sig(?:nature)?|auth)"
_LOOKS_SECRET = (
    (re.compile(rf"([?&;]{_QUERY_NAME}=)[^&\s#\"'<>]+", re.IGNORECASE), r"\1"),
    (re.compile(r"\b((?i:bearer|basic)\s+)(?=\S*[0-9A-Z=+/])[\w.+/=~\-]{6,}"), r"\1"),
    (
        re.compile(
            r"(?i:\b(api[_-]?key|authorization|passw(?:or)?d)([\"']?\s*[:=]\s*[\"']?))(?!(?i:bearer|basic)\b)[^\s\"',;(){}\[\]]{6,}"
        ),
        r"\1\2",
    ),
    (re.compile(r"\b(?:sk-[\w\-]{6,}|hf_\w{16,}|gh[pousr]_\w{16,}|AIza[\w\-]{20,}|AKIA[0-9A-Z]{12,}|pn[ub]_\w{16,})"), ""),
)

_names: set[str] = set()


def install() -> None:
    """Clean every log record made in this process from now on, and every traceback printed at its end. Once is enough."""
    made_by = logging.getLogRecordFactory()
    if getattr(made_by, "is_redacting", False):
        return
    # A filter on a logger misses what its children log, one on a handler the handlers that Prefect makes later.
    logging.setLogRecordFactory(_redacting(made_by))
    sys.excepthook = _print_uncaught
    threading.excepthook = _print_uncaught_in_thread


def watch(names: Iterable[str]) -> None:
    """Take these environment variables for secrets, whatever they are called: a benchmark file's `api_key_env`."""
    _names.update(names)


def redacted(text: str) -> str:
    """The text without the values of secret environment variables, and without what looks like a secret."""
    for secret in _secrets():
        text = Spelled(secret).sub(REMOVED, text)
    text = _IN_ADDRESS.sub(rf"\1{REMOVED}@", text)
    for pattern, kept in _LOOKS_SECRET:
        text = pattern.sub(kept + REMOVED, text)
    return text


@contextmanager
def redacted_errors() -> Iterator[None]:
    """For a flow's body: clean logs, and what is raised leaves with clean texts, which Prefect keeps as the run's state."""
    install()
    try:
        yield
    except Exception as error:
        said = str(error)
        for one in _chain(error):
            _clean(one)
        if redacted(str(error)) != str(error):  # a class that makes its text of something else than its arguments
            raise SalonError(redacted(f"{type(error).__name__}: {said}")) from None
        raise


def _secrets() -> list[str]:
    """The secrets of the environment as they are now, longest first."""
    held = {value.strip() for name, value in os.environ.items() if name in _names or _SECRET_NAME.search(name)} | fetched()
    return sorted((value for value in held if len(value) >= N_SECRET_CHARACTERS), key=len, reverse=True)


def _clean(error: BaseException) -> None:
    """Clean the texts an exception is made of, in place: its class, its other values and its traceback stay."""
    error.args = tuple(redacted(value) if isinstance(value, str) else value for value in error.args)
    if hasattr(error, "__notes__"):
        error.__notes__ = [redacted(note) for note in error.__notes__]


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception, what it came from, and, of a group, its members."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [one.__cause__, one.__context__, *(one.exceptions if isinstance(one, BaseExceptionGroup) else ())]


def _redacting(made_by: Callable[..., logging.LogRecord]) -> Callable[..., logging.LogRecord]:
    def make(*values: Any, **named: Any) -> logging.LogRecord:
        record = made_by(*values, **named)
        _clean_message(record)
        if record.exc_info and record.exc_info[1] is not None:
            shown = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
            if _logged(shown) != shown:  # formatters print exc_text where it is set
                record.exc_text, record.exc_info = _logged(shown), None
        return record

    make.is_redacting = True  # type: ignore[attr-defined]
    return make


def _clean_message(record: logging.LogRecord) -> None:
    """Clean a record's text; its arguments stay arguments where that is enough, since some formatters count them."""
    said = _said(record)
    if hanging(_logged(said)) == said:
        return
    if isinstance(record.args, tuple):
        record.args = tuple(hanging(_logged(value)) if isinstance(value, str) else value for value in record.args)
    if not _is_fitting(record) or hanging(_logged(_said(record))) != _said(record):
        record.msg, record.args = hanging(_logged(said)), ()


def _logged(text: str) -> str:
    """The text without secrets, and without what a terminal obeys: a worker's log is read in one."""
    return printable(redacted(text))


def _is_fitting(record: logging.LogRecord) -> bool:
    """Whether the record's arguments fit its message: where not, logging prints both to stderr."""
    try:
        record.getMessage()
    except Exception:  # noqa: BLE001 - whatever formatting raises
        return False
    return True


def _said(record: logging.LogRecord) -> str:
    return record.getMessage() if _is_fitting(record) else f"{record.msg} {record.args!r}"


def _print_uncaught(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
    print(printable(redacted("".join(traceback.format_exception(kind, error, at)))), file=sys.stderr, end="")


def _print_uncaught_in_thread(uncaught: threading.ExceptHookArgs) -> None:
    if uncaught.exc_value is not None and uncaught.exc_type is not SystemExit:
        name = uncaught.thread.name if uncaught.thread else "unknown"
        print(f"Exception in thread {name}:", file=sys.stderr)
        _print_uncaught(uncaught.exc_type, uncaught.exc_value, uncaught.exc_traceback)
