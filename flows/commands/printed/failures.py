"""What a run's last lines say of asks that got no reply: how they ended, in the provider's own words, and what to do.

Of replies that cannot be read: replies.py. Errors that end a run are tasks/judge/outcome.py.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from rich.text import Text

from flows.commands.printed.replies import counted
from flows.observability.redaction import redacted
from flows.observability.terminal import Console, one_line
from schemas.benchmark.judges import Judge
from schemas.statuses.cells import HealthMeasure
from schemas.statuses.rows import ReplyStatus
from schemas.tables.published import HEALTH
from tasks.judge.provider.base import provider_of
from tasks.judge.provider.failures import unnumbered

N_WORDS = 2
N_LETTERS = 200
"""Of one sentence: a provider may answer with a page."""
_AGAIN = "run the same command again to ask again"
_THEN: Mapping[str, str] = MappingProxyType({
    ReplyStatus.NO_CREDIT: f"the account behind the environment variable {{key}} has no credit left: top it up; {_AGAIN}",
    ReplyStatus.UNAUTHORIZED: f"check the key in the environment variable {{key}}, and what it may use; {_AGAIN}",
    ReplyStatus.REJECTED: "fix what the message names, then ask these again with --retry rejected",
    ReplyStatus.BAD_RESPONSE: f"check that base_url, and any proxy before it, answers as the judge's API; {_AGAIN}",
    ReplyStatus.SERVER_ERROR: f"check the provider's status; {_AGAIN}",
    ReplyStatus.RATE_LIMITED: f"check the key's limits, and who else uses it; {_AGAIN}",
    ReplyStatus.TIMED_OUT: f"check the provider's status, or raise limits.deadline_s; {_AGAIN}",
    ReplyStatus.UNREACHABLE: f"check that it runs, and the network; {_AGAIN}",
})  # fmt: skip
_LOST_IN_BATCH = f'its batches lack these lines: look in its console what became of them; {_AGAIN}, or set mode = "online"'


def print_failed(console: Console, folder: Path, judges: Sequence[Judge]) -> None:
    """A line for each judge of a publication in `folder` some of whose asks ended without a reply."""
    health = folder / f"{HEALTH.name}.parquet"
    statuses, words = counted(health, HealthMeasure.N_REPLIES), counted(health, HealthMeasure.N_SAID)
    for judge in judges:
        failed = {ReplyStatus(word): round(n) for name, word, n in statuses if name == judge.id and word in _THEN}
        said = _alike((word, round(n)) for name, word, n in words if name == judge.id)
        if failed and not judge.recorded:
            style = "red" if ReplyStatus.NO_CREDIT in failed or ReplyStatus.UNAUTHORIZED in failed else "yellow"
            console.print(Text(one_line(f"failed      {redacted('; '.join(_told(judge, failed, said)))}"), style=style))


def _alike(words: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Sentences that differ by numbers alone as one, in the words of the first."""
    first: dict[str | None, str] = {}
    n_of: Counter[str] = Counter()
    for word, n in sorted(words):
        n_of[first.setdefault(unnumbered(word), word)] += n
    return list(n_of.items())


def _told(judge: Judge, failed: Mapping[ReplyStatus, int], said: Sequence[tuple[str, int]]) -> Iterator[str]:
    ordered = sorted(failed, key=lambda status: (-failed[status], status))
    yield f"requests to {judge.id} without a reply: {', '.join(f'{status.value} {failed[status]:,}' for status in ordered)}"
    often = sorted(said, key=lambda one: (-one[1], one[0]))[:N_WORDS]
    if often:
        yield f"most frequent messages: {', '.join(_quoted(word, n) for word, n in often)}"
    yield from filter(None, dict.fromkeys(provider_of(judge).remedy(word) for word, _ in often))
    then = dict(_THEN)
    if judge.mode != "online" and any("batch" in word for word, _ in said):  # no deadline of ours ends a batch's line
        then[ReplyStatus.TIMED_OUT] = _LOST_IN_BATCH
    yield from (f"{status.value}: {then[status].format(key=judge.api_key_env)}" for status in ordered)


def _quoted(words: str, n: int) -> str:
    return f'"{words if len(words) <= N_LETTERS else words[: N_LETTERS - 1] + "…"}" ×{n:,}'
