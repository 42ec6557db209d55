"""How a run tells where it is, a bar in the terminal and a progress artifact in Prefect, and what it did. It decides nothing."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from flows.observability.log_lines import as_json, is_json
from flows.observability.redaction import redacted
from flows.observability.terminal import Console, one_line, printable
from schemas.statuses.cells import CellStatus
from tasks.ledger.process_identity import Process, this_process

if TYPE_CHECKING:
    from schemas.benchmark.file import Gate
    from schemas.benchmark.judges import Judge
    from schemas.records import JudgeReply
    from tasks.ingest.samples import IngestResult
    from tasks.judge.outcome import Outcome
    from tasks.judge.provider.exchange import Answer
    from tasks.ledger.import_replies.importing import ImportResult
    from tasks.publish.folders import Published
    from tasks.publish.standings.pair_boards import PairBoard


log = logging.getLogger("salon.progress")
SECONDS_BETWEEN_LINES = 10.0  # where there is no terminal, one line of progress each so many seconds


@dataclass
class Reporter:
    """Counts what is done in each stage; safe to advance from several threads."""

    console: Console | None = None
    on_share: Callable[[str, float], None] | None = None  # told of a stage's share now and then, in the flow's own thread
    on_word: Callable[[str], None] | None = None  # told of each sentence, for the log of the flow's run
    ran: Mapping[str, object] = field(default_factory=dict)  # the run's row in `runs` once it ended, and its replies by status
    attempts: Counter[str] = field(default_factory=Counter)  # to the judges, by how they ended
    made: "RunSummary | None" = None  # what the run published, from then on
    heard: "Outcome | None" = None  # what this process has heard of a run's requests, while it asks
    _bars: Progress | None = None
    _ids: dict[str, TaskID] = field(default_factory=dict)
    _done: dict[str, int] = field(default_factory=dict)
    _totals: dict[str, int] = field(default_factory=dict)
    _last_line_s: float = 0.0
    _began_s: dict[str, float] = field(default_factory=dict)
    _took_s: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, stage: str, total: int) -> None:
        """Begin a stage of `total` steps (0: unknown)."""
        with self._lock:
            self._done[stage], self._totals[stage] = 0, total
            self._began_s[stage] = time.monotonic()
            self._took_s.pop(stage, None)
            if self._bars is not None:
                self._ids[stage] = self._bars.add_task(stage, total=total or None)

    def advance(self, stage: str, n: int = 1) -> None:
        """Count `n` more steps of a stage."""
        with self._lock:
            self._done[stage] = self._done.get(stage, 0) + n
            if self._bars is not None and stage in self._ids:
                self._bars.advance(self._ids[stage], n)
            else:
                of = f" of {self._totals[stage]:,}" if self._totals.get(stage) else ""
                self.line(stage, f"{self._done[stage]:,}{of}", is_one_of_many=True)

    def find(self, stage: str, n: int) -> None:
        """Count `n` steps of a stage that were done before it began."""
        self.advance(stage, n)

    def finish(self, stage: str) -> None:
        """End a stage: its bar shows as complete."""
        with self._lock:
            n_done = self._done.get(stage, 0)
            self._done[stage] = n_done or self._totals.get(stage, 0)
            self._took_s[stage] = time.monotonic() - self._began_s.get(stage, time.monotonic())
            if self._bars is not None and stage in self._ids:
                self._bars.update(self._ids[stage], total=max(n_done, 1), completed=max(n_done, 1))
            elif n_done:
                self.line(stage, f"{n_done:,} done")

    def describe(self, stage: str, said: str) -> None:
        """What a stage is waiting for, beside its bar ("": for nothing any more); without a terminal a line now and then."""
        said = one_line(redacted(said))
        with self._lock:
            if self._bars is not None and stage in self._ids:
                self._bars.update(self._ids[stage], description=f"{stage} ({said})" if said else stage)
            elif said:
                self.line(stage, said, is_one_of_many=True)

    def line(self, stage: str, said: str, *, is_one_of_many: bool = False) -> None:
        """A line about a stage where no bar shows it; `is_one_of_many`: only now and then."""
        if self.console is None or (self._bars is not None and stage in self._ids):
            return
        if is_one_of_many:
            if time.monotonic() - self._last_line_s <= SECONDS_BETWEEN_LINES:
                return
            self._last_line_s = time.monotonic()
        self.console.print(f"{stage}: {said}", markup=False, highlight=False)

    def count_attempts(self, by_status: Mapping[str, int]) -> None:
        """Count attempts to a judge, by how they ended."""
        with self._lock:
            self.attempts.update(by_status)

    def hear_attempt(self, answer: "Answer") -> None:
        """Count an attempt as heard; without a sum of outcomes, for there is one for each request."""
        with self._lock:
            if self.heard is not None:
                self.heard.count_attempt(answer)

    def hear_reply(self, reply: "JudgeReply") -> None:
        """Add a stored reply, and what it was billed, to what is heard."""
        with self._lock:
            if self.heard is not None:
                self.heard.count(reply)

    def hear_from(self, judge: str) -> None:
        """A judge answered, though not with a reply: its provider has a batch. Nothing counts it here."""

    def hear(self, bought: "Outcome") -> None:
        """Add what was found, asked or bought to what is heard, where somebody counts it."""
        with self._lock:
            if self.heard is not None:
                self.heard += bought

    def stages(self) -> dict[str, tuple[int, int, float]]:
        """Of each stage that began: steps done, steps left, and the seconds it has taken."""
        with self._lock:
            now_s = time.monotonic()
            return {
                stage: (n_done, max(0, self._totals[stage] - n_done), self._took_s.get(stage, now_s - self._began_s[stage]))
                for stage, n_done in self._done.items()
                if stage in self._began_s
            }

    def say(self, sentence: str) -> None:
        """One sentence the user should read, above the bars; without secrets, which errors of libraries may quote."""
        sentence = redacted(sentence)
        if self.on_word is not None:
            self.on_word(one_line(sentence))
        elif self.console is None:
            log.warning(sentence)
        if self.console is not None:
            self.console.print(f"note: {one_line(sentence)}", markup=False, highlight=False)

    def say_who_is_waited_for(self, other: Process) -> None:
        """Another process does the same; this one begins when that one ends."""
        where = "this machine" if other.host == this_process().host else "another machine"
        self.say(f"process {other.pid} on {where} is doing the same; waiting until it has ended")

    def tell(self, stage: str) -> None:
        """Tell who listens how much of a stage is done, 0 to 1."""
        total = self._totals.get(stage, 0)
        if self.on_share is not None and total:
            self.on_share(stage, min(1.0, self._done[stage] / total))

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Draw the bars while the block runs, if the console is a terminal."""
        if self.console is None or not self.console.is_terminal:
            yield
            return
        columns = (
            TextColumn("{task.description:<10}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self.console) as self._bars:
            yield
        self._bars = None


_current = Reporter()


def current() -> Reporter:
    """The reporter of this process: silent but while a command shows its progress."""
    return _current


class _JsonConsole(Console):
    """Says each line as a JSON object, and draws no bars."""

    is_terminal = False

    def print(self, *said: object, **_: object) -> None:
        """One line."""
        self.file.write(as_json("info", printable(redacted(" ".join(map(str, said))))) + "\n")


@contextmanager
def shown_progress() -> Iterator[Reporter]:
    """A reporter whose bars are drawn on standard error while the block runs."""
    global _current  # noqa: PLW0603  one process runs one command
    _current = reporter = Reporter(_JsonConsole(stderr=True) if is_json() else Console(stderr=True))
    try:
        with reporter.shown():
            yield reporter
    finally:
        _current = Reporter()


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What a run did: what it read, what it asked, what it published."""

    dataset: "IngestResult"
    n_requests: int
    asked: "Outcome"
    published: "Published"
    cells: pl.DataFrame  # means for prompts like these, with their standings
    gate: "Gate"
    imported: "ImportResult | None" = None
    pairs: "Sequence[PairBoard]" = ()
    judges: "Sequence[Judge]" = ()

    @property
    def n_cells(self) -> int:
        """Cells of the headline."""
        return self.cells.height

    @property
    def n_blocked(self) -> int:
        """Cells without a figure because too much is missing."""
        return self.cells.filter(pl.col("status") == CellStatus.BLOCKED).height

    @property
    def is_blocked(self) -> bool:
        """Whether a cell is blocked that the benchmark file ends a run with 1 for."""
        blocked = self.cells.filter(pl.col("status") == CellStatus.BLOCKED)
        if any(board.n_blocked and (board.is_headline or self.gate.exit_1 == "any") for board in self.pairs):
            return True
        return not blocked.is_empty() if self.gate.exit_1 == "any" else bool(blocked["is_headline"].any())

    @property
    def outcome(self) -> str:
        """The run's word in the table of runs."""
        return "published" if self.published.is_new else "unchanged"
