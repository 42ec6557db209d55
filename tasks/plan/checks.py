"""What makes a plan whole: its id, requests asked once over all parts, and stopping before a rubric nobody can be asked under."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from rubrics.model import Rubric
from schemas.errors import NothingToJudgeError
from schemas.records import IMAGE
from schemas.statuses.rows import JudgementStatus
from tasks.lake.atomic_files import store_error, write_scratch
from tasks.lake.request_rows import Array, Keys

ROWS_IN_MEMORY = 250_000
"""About 200 bytes a line: a plan id never holds more than some 50 MB of them, and as much again while it sorts."""


_HASHED_AT_ONCE = 50_000


_ITEMS_NOT_ASKED = pl.when(pl.col("request_key").is_null()).then(" " + pl.col("items_json")).fill_null("")
_SAMPLE = pl.col("sample_id") + (" " + pl.col("second_sample_id")).fill_null("")


def plan_id(
    judgements: pl.LazyFrame,
    rubrics: Iterable[Rubric] = (),
    n_rows_held: int = ROWS_IN_MEMORY,
    dataset_id: str | None = None,
    folder: Path | None = None,
    looks: Sequence[float] = (),
    prompts_a_round: int | None = None,
) -> str:
    """sha256 over the sorted lines "sample_id rubric_id judge_model repeat occasion request_key|reason", joined by newlines.

    Of a pair, second_sample_id follows sample_id; of a sample that is not asked, the items it has follow the reason.
    Before them stand the dataset, whose parts number those of the plan, the looks by which they are cut, if any, the prompts of
    a round of pairs (0: all are one), where there are pairs, and the digests of the rubrics planned by, one a line:
    `requests` names them, so another digest is another plan, also where it asks the same. Lines begin with hexadecimal digits:
    those of a large plan are dealt by these into files below `folder` (default: the system's temporary one), and sorted there.
    """
    lines = judgements.select(
        line=pl.concat_str(
            _SAMPLE, "rubric_id", "judge_model", pl.col("repeat").cast(pl.String), "occasion",
            pl.coalesce("request_key", "reason").fill_null("") + _ITEMS_NOT_ASKED, separator=" ",
        ),
    )  # fmt: skip
    n_rows = int(judgements.select(pl.len()).collect().item())
    hasher = sha256()
    separator = b""
    if dataset_id is not None:
        hasher.update(f"{dataset_id}\n".encode())
    if looks:
        hasher.update(f"looks {list(looks)}\n".encode())
    if prompts_a_round is not None:
        hasher.update(f"rounds {prompts_a_round}\n".encode())
    for rubric in sorted(rubrics, key=lambda rubric: rubric.id):
        hasher.update(f"{rubric.id} {rubric.digest}\n".encode())
    for part in _sorted(lines, -(-n_rows // n_rows_held), folder):
        for some in part.to_frame().iter_slices(_HASHED_AT_ONCE):
            hasher.update(separator + some["line"].str.join("\n").item().encode())
            separator = b"\n"
    return hasher.hexdigest()


def _sorted(lines: pl.LazyFrame, n_ranges: int, folder: Path | None) -> Iterator[pl.Series]:
    """The lines in order, those of one range of their first four digits in memory at a time."""
    if n_ranges <= 1:
        yield lines.select(pl.col("line").sort()).collect()["line"]
        return
    number = pl.col("line").str.head(4).str.to_integer(base=16) * n_ranges // 16**4
    with TemporaryDirectory(prefix="plan-", dir=folder) as dealt, store_error("dealing the lines of a plan"):
        batches = lines.with_columns(range=number).collect_batches(chunk_size=ROWS_IN_MEMORY, engine="streaming")
        for batch_number, batch in enumerate(batches):
            for (name,), mine in batch.partition_by("range", as_dict=True, include_key=False).items():
                write_scratch(mine, Path(dealt, f"{name:05}-{batch_number}.ipc"))
        for name in range(n_ranges):
            files = sorted(Path(dealt).glob(f"{name:05}-*.ipc"))
            if files:
                yield pl.scan_ipc(files).sort("line").collect()["line"]


class SeenRequests:
    """The requests of the parts so far, by the first 16 bytes of their keys: 16 bytes each, a sixth of what a set takes."""

    def __init__(self) -> None:
        self._runs: list[Keys] = []  # sorted; each at least as long as the next one, so that there are few

    def add(self, keys: pl.Series) -> pl.Series:
        """Which of these keys (hexadecimal, each once) no earlier call was given."""
        digests = np.frombuffer(bytes.fromhex("".join(keys)), ">u8").reshape(-1, 4).astype(np.uint64)
        key, check = digests[:, 0], digests[:, 1]
        is_new = np.ones(len(key), bool)
        for run in self._runs:
            is_new[run.find(key, check)[0]] = False
        hashes = self._merged(key[is_new], check[is_new])  # by itself: what was merged is let go of before it is sorted
        self._runs.append(Keys.of(hashes, np.zeros(hashes.height, np.bool_)))
        return pl.Series(is_new)

    def _merged(self, key: Array, check: Array) -> pl.DataFrame:
        """These and the runs that are no longer than them and what was merged before, which are taken away; not sorted."""
        merged = [(key, check)]
        while self._runs and len(self._runs[-1].key) <= sum(len(one) for one, _ in merged):
            last = self._runs.pop()
            merged.append((last.key, last.check))
        return pl.DataFrame([np.concatenate(one) for one in zip(*merged, strict=True)], schema=["key", "check"])


def keep_first(requests: pl.DataFrame, seen: SeenRequests) -> pl.DataFrame:
    """The requests no earlier part holds; `seen` is added to. Call it part by part, in order.

    Within a part keys are distinct.
    """
    is_new = seen.add(requests["request_key"])
    return requests if is_new.all() else requests.filter(is_new)


def summarise(judgements: pl.LazyFrame) -> pl.DataFrame:
    """How many samples of each rubric, judge, status, reason and category: what check_something_to_ask reads."""
    by = ["rubric_id", "judge_model", "status", "reason", "category"]
    return judgements.filter(repeat=0).group_by(by).agg(n=pl.len()).sort(by).collect(engine="streaming")


def check_something_to_ask(
    summary: pl.DataFrame,
    rubrics: Mapping[str, Rubric],
    sources: Iterable[str],
    first_unusable: Callable[[], Mapping[str, str]] = dict,
) -> None:
    """Raise NothingToJudgeError for every rubric under which no sample at all can be judged, saying what it lacks.

    `first_unusable`: by the status of samples that cannot be judged, the first such row in words; called where that is so.
    """
    sentences: list[str] = []
    lacking: set[str] = set()
    if summary.is_empty():
        alone = ", ".join(sources) if any(rubric.is_of_pairs for rubric in rubrics.values()) else ""
        unusable = "; ".join(f"{status} (the first: {first})" for status, first in first_unusable().items())
        found = f"the benchmark has no sample of a checkpoint: {unusable}; fix these files or rows" if unusable else _NO_SAMPLES
        raise NothingToJudgeError(_NO_PAIR.format(alone) if alone else found)
    for (rubric_id,), rows in summary.group_by("rubric_id", maintain_order=True):
        if JudgementStatus.PLANNED not in rows["status"]:
            sentences.append(_sentence(rubrics[str(rubric_id)], rows, ", ".join(sources), first_unusable))
            lacking.update(_lacking(rows)[0])
    if sentences:
        error = NothingToJudgeError("\n".join(sentences))
        error.lacking = frozenset(lacking)
        raise error


_NO_SAMPLES = "the benchmark has no samples; check the path and the `where` of its sources"
_NO_PAIR = (
    "no two samples of {} form a pair. Two checkpoints to be compared (`meet` under [pairs], and nightly.baseline) need samples "
    "of the same prompt; one checkpoint alone has no opponent: add another, or a rubric of single pictures"
)


def _lacking(rows: pl.DataFrame) -> tuple[list[str], dict[str, int], int]:
    """The columns that all samples lack which lack any, of how many each is missing, and how many those samples are.

    What some lack beside what all lack is no column to map: most have it. `rows` are of one rubric, and its first judge counts.
    """
    lacking = rows.filter(pl.col("judge_model") == rows["judge_model"][0], pl.col("reason").str.starts_with("missing:"))
    n_lacking, n_without = int(lacking["n"].sum()), Counter[str]()
    for reason, n in lacking.select("reason", "n").iter_rows():
        n_without.update(dict.fromkeys(reason.removeprefix("missing:").split(","), n))
    return sorted(name for name, n in n_without.items() if n == n_lacking) or sorted(n_without), dict(n_without), n_lacking


def _sentence(rubric: Rubric, rows: pl.DataFrame, sources: str, first_unusable: Callable[[], Mapping[str, str]]) -> str:
    first_judge = rows.filter(pl.col("judge_model") == rows["judge_model"][0])
    n_by_status = dict(first_judge.group_by("status").agg(pl.col("n").sum()).iter_rows())
    n_samples = sum(n_by_status.values())
    reasons = first_judge["reason"].drop_nulls().to_list()
    missing, n_without, n_lacking = _lacking(rows)
    clauses: list[str] = []
    if missing:
        roles = [role for role in rubric.roles if role in missing and role != IMAGE]
        columns = ", ".join(f'{name} = "…"' for name in missing if name not in roles)
        pictures = ", ".join(f'{role} = "…"' for role in roles)
        keys = [f"{key} = {{ {said} }}" for key, said in (("columns", columns), ("pictures", pictures)) if said]
        rest = "".join(f", {n} of them {name} too" for name, n in sorted(n_without.items()) if name not in missing)
        them = "them" if len(missing) > 1 else "it"
        clauses.append(
            f"needs {' and '.join(missing)}, and {_share(n_lacking, n_samples)} lack {them}{rest}; "
            f"map {them} under {' and '.join(keys)} of source {sources}"
        )
    if n := int(first_judge.filter(pl.col("reason").str.starts_with("malformed:"))["n"].sum()):
        clauses.append(
            f"cannot read the items of {_share(n, n_samples)}: to see why, run salon rubrics try {rubric.id} --sample FILE with "
            "one such row as JSON"
        )
    if n := n_by_status.get(JudgementStatus.NO_PROMPT, 0):
        seen = first_judge.filter(pl.col("status") == JudgementStatus.NO_PROMPT)["category"].unique().sort()
        words = ", ".join("none at all" if word is None else repr(word) for word in seen[:10])
        known = ", ".join(repr(category) for category in rubric.variants)
        clauses.append(
            f"has no prompt for the {rubric.dispatch} of {_share(n, n_samples)}: found {words}, but it has prompts for {known}; "
            f"map the words under [value_maps.{rubric.dispatch}] of a rubric of your own, or map the column {rubric.dispatch}"
        )
    if n := n_by_status.get(JudgementStatus.UNKNOWN_VALUE, 0):
        unknown = sorted({str(reason).partition(":")[2] for reason in reasons if str(reason).startswith("unknown_value:")})
        known = "; ".join(f"{name}: {', '.join(map(repr, rubric.words[name]))}" for name in unknown)
        clauses.append(
            f"does not know the word in {' and '.join(unknown)} of {_share(n, n_samples)} (it knows {known}); map the words "
            f"under [value_maps.{unknown[0]}] of a rubric of your own, or fix the source"
        )
    if n := n_by_status.get(JudgementStatus.UNUSABLE_SAMPLE, 0):
        statuses = sorted(first_judge.filter(pl.col("status") == JudgementStatus.UNUSABLE_SAMPLE)["reason"].unique())
        first = first_unusable()
        told = ", ".join(f"{status} (the first: {first[status]})" if status in first else status for status in statuses)
        clauses.append(f"cannot use {_share(n, n_samples)}: {told}; fix these files or rows")
    return f"rubric {rubric.id} " + "; it ".join(clauses)


def _share(n: int, n_samples: int) -> str:
    return f"all {n_samples} samples" if n == n_samples else f"{n} of the {n_samples} samples"
