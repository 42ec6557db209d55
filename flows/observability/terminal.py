"""Keeping the terminal for the command: texts from outside cannot steer it, and Prefect's console logging goes quiet there."""

import logging
import re
import threading
from collections.abc import Iterable
from textwrap import indent
from typing import Any

import rich.console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

# A terminal obeys them; each is shown as one sign instead. A line feed, and a tab that rich has made spaces of, stay. Halves of
# characters, which file names may hold, no stream takes.
_OBEYED = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"} | {0x7F: 0x2421}
_OBEYED |= dict.fromkeys([*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xD800, 0xE000)], 0xFFFD)
_UNSEEN = (0xAD, 0x61C, 0x180E, *range(0x200B, 0x2010), 0x2028, 0x2029, *range(0x2060, 0x2065), 0xFEFF, *range(0xE0000, 0xE0080))
_OBEYED |= dict.fromkeys(_UNSEEN, 0xFFFD)  # two names that differ in these alone would look the same
_FLUSH = re.compile(r"\n(?! )")
WORD_CHARACTERS = 1000
_LONG_WORD = re.compile(rf"(\S{{{WORD_CHARACTERS}}})\S+")
_LINE_ENDS = {code: 0x2400 + code for code in (0x09, 0x0A)}


def printable(text: str) -> str:
    """The text with every control and unseen character and change of writing direction as a visible sign."""
    return text.translate(_OBEYED)


def one_line(text: str) -> str:
    """A name out of data, printable and on one line: a line feed in it would begin a line that says what it likes.

    Of a word of more than a thousand characters the first stand there: rich takes time with the square of a word's length.
    """
    if len(text) > WORD_CHARACTERS:
        text = _LONG_WORD.sub(r"\1…", text)
    return printable(text).translate(_LINE_ENDS)


def hanging(text: str) -> str:
    """A message with its further lines indented: what data made a line break of begins no line of its own."""
    return _FLUSH.sub("\n  ", printable(text))


def name_of(text: str, style: str = "") -> Text:
    """A name out of data, as a console prints it: one line, no markup, in a table one cell."""
    return Text(one_line(text), style)


def indented(text: str) -> Text:
    """A text of many lines out of data: none of them stands where a command's own lines begin."""
    return Text(indent(printable(text), "  "))


class Console(rich.console.Console):
    """A console whose texts hold no command to the terminal; rich's own colours and bars work as ever.

    No `:star:` of a name becomes a picture.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of a renderable, those of text made printable."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


def result_console() -> Console:
    """For what a command found: no line is broken, no number coloured."""
    return Console(soft_wrap=True, highlight=False)


def keep_prefect_quiet() -> None:
    """Let Prefect's console handlers speak only of what is critical; errors are printed once, by the command."""
    from flows.prefect_server import told_of_settings

    with told_of_settings():
        from prefect.logging.handlers import PrefectConsoleHandler

    for name in ("", "prefect", "prefect.flow_runs", "prefect.task_runs", "prefect.server", "prefect._internal"):
        for handler in logging.getLogger(name).handlers:
            if isinstance(handler, PrefectConsoleHandler):
                handler.setLevel(logging.CRITICAL)
    logging.raiseExceptions = False  # logs the server does not take, one by one
    services = logging.getLogger("prefect._internal.concurrency")
    if not any(isinstance(one, _Once) for one in services.filters):
        services.addFilter(_Once())


class _Once(logging.Filter):
    """Of what Prefect's threads say when the server takes no events, the first line: each shard sends some."""

    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002  the standard library's own form
        """Let the first one pass."""
        is_first, self.is_said = not getattr(self, "is_said", False), True
        return is_first


PREFECT_IS_AWAY = threading.Event()
"""Set once Prefect's server could not be reached: what its client still holds for it cannot be told any more."""


def is_prefect_away(error: BaseException) -> bool:
    """Whether the error is that Prefect's server, or what stands before it, does not do as it should.

    httpx is Prefect's client library, and not Salon's; Prefect's own classes for what a server answered descend from its errors.
    """
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_prefect_away, error.exceptions))
    of = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return bool(of & {"httpx", "httpcore"}) or (isinstance(error, RuntimeError) and str(error).startswith("Failed to reach API"))


def prefect_away(error: Exception) -> str | None:
    """The clause that says so, where it is that."""
    return f"the Prefect server does not answer ({error})" if is_prefect_away(error) else None


def format_cost(usd: float | None, *, is_at_least: bool) -> str:
    """What was billed, for people: "$1.20", "at least $1.20", "cost unknown"."""
    return "cost unknown" if usd is None else f"{'at least ' * is_at_least}{format_usd(usd)}"


def format_usd(usd: float | None) -> str:
    """USD for people, in about three digits; "?" where it is not known."""
    if usd is None:
        return "?"
    if usd == 0:
        return "$0"
    return f"${usd:,.0f}" if usd >= 100 else f"${usd:.2f}" if usd >= 0.1 else f"${usd:.2g}" if usd >= 0.0001 else "<$.0001"
