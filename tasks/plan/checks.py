"""What makes a plan whole: its id, requests asked once over all parts, and stopping before a rubric nobody can be asked under."""

from collections.abc import Iterable, Mapping
from hashlib import sha256

import polars as pl

from rubrics.model import Rubric
from schemas.errors import NothingToJudgeError
from schemas.statuses import JudgementStatus

ROWS_IN_MEMORY = 500_000
"""About 200 bytes a line: a plan id never holds more than some 100 MB of them."""


def plan_id(
    judgements: pl.LazyFrame, rubrics: Iterable[Rubric] = (), n_rows_held: int = ROWS_IN_MEMORY, dataset_id: str | None = None
) -> str:
    """sha256 over the sorted lines "sample_id rubric_id judge_model repeat occasion request_key|reason", joined by newlines.

    Before them stand the dataset, whose parts number those of the plan, and the digests of the rubrics planned by, one a line:
    `requests` names them, so another digest is another plan, also where it asks the same. Lines begin with hexadecimal digits:
    a large plan is sorted one prefix after the other.
    """
    lines = judgements.select(
        "sample_id",
        line=pl.concat_str(
            "sample_id", "rubric_id", "judge_model", pl.col("repeat").cast(pl.String), "occasion",
            pl.coalesce("request_key", "reason").fill_null(""), separator=" ",
        ),
    )  # fmt: skip
    n_rows = int(judgements.select(pl.len()).collect().item())
    hasher = sha256()
    separator = b""
    if dataset_id is not None:
        hasher.update(f"{dataset_id}\n".encode())
    for rubric in sorted(rubrics, key=lambda rubric: rubric.id):
        hasher.update(f"{rubric.id} {rubric.digest}\n".encode())
    for prefix in _prefixes(n_rows, n_rows_held):
        part = lines.filter(pl.col("sample_id").str.starts_with(prefix)).select(pl.col("line").sort()).collect()["line"]
        if len(part):
            hasher.update(separator + part.str.join("\n").item().encode())
            separator = b"\n"
    return hasher.hexdigest()


def _prefixes(n_rows: int, n_rows_held: int) -> list[str]:
    """Hexadecimal prefixes in order, one digit longer for every sixteenfold of what is held at once."""
    n_digits = 0
    while n_rows > n_rows_held * 16**n_digits:
        n_digits += 1
    return [f"{number:0{n_digits}x}" for number in range(16**n_digits)] if n_digits else [""]


def keep_first(requests: pl.DataFrame, seen: set[bytes]) -> pl.DataFrame:
    """The requests no earlier part holds; `seen` (raw digests, 32 bytes each) is added to. Call it part by part, in order.

    Within a part keys are distinct.
    """
    raw = requests["request_key"].str.decode("hex").to_list()
    if seen.isdisjoint(raw):
        seen.update(raw)
        return requests
    is_new = [key not in seen for key in raw]
    seen.update(raw)
    return requests.filter(pl.Series(is_new, dtype=pl.Boolean))


def summarise(judgements: pl.LazyFrame) -> pl.DataFrame:
    """How many judgements of each rubric, judge, status, reason and category: what check_something_to_ask reads."""
    by = ["rubric_id", "judge_model", "status", "reason", "category"]
    return judgements.group_by(by).agg(n=pl.len()).sort(by).collect()


def check_something_to_ask(summary: pl.DataFrame, rubrics: Mapping[str, Rubric], sources: Iterable[str]) -> None:
    """Raise NothingToJudgeError for every rubric under which no sample at all can be judged, saying what it lacks."""
    sentences: list[str] = []
    if summary.is_empty():
        raise NothingToJudgeError("the benchmark has no samples; check the path and the `where` of its sources")
    for (rubric_id,), rows in summary.group_by("rubric_id", maintain_order=True):
        if JudgementStatus.PLANNED not in rows["status"]:
            sentences.append(_sentence(rubrics[str(rubric_id)], rows, ", ".join(sources)))
    if sentences:
        raise NothingToJudgeError("\n".join(sentences))


def _sentence(rubric: Rubric, rows: pl.DataFrame, sources: str) -> str:
    first_judge = rows.filter(pl.col("judge_model") == rows["judge_model"][0])
    n_by_status = dict(first_judge.group_by("status").agg(pl.col("n").sum()).iter_rows())
    n_samples = sum(n_by_status.values())
    reasons = [reason for reason in first_judge["reason"] if reason and reason.startswith("missing:")]
    missing = sorted({column for reason in reasons for column in reason.removeprefix("missing:").split(",")})
    clauses: list[str] = []
    if missing:
        columns = ", ".join(f'{name} = "…"' for name in missing)
        share = _share(n_by_status[JudgementStatus.MISSING_COLUMN], n_samples)
        clauses.append(
            f"needs {' and '.join(missing)}, and {share} lack them; map them under columns = {{ {columns} }} of source {sources}"
        )
    if n := n_by_status.get(JudgementStatus.NO_PROMPT):
        seen = first_judge.filter(pl.col("status") == JudgementStatus.NO_PROMPT)["category"].unique().sort()
        words = ", ".join("none at all" if word is None else repr(word) for word in seen[:10])
        known = ", ".join(repr(category) for category in rubric.variants)
        clauses.append(
            f"has no prompt for the {rubric.dispatch} of {_share(n, n_samples)}: seen {words}, while it has prompts for {known}; "
            f"map the words under [value_maps.{rubric.dispatch}] of a rubric of your own, or map the column {rubric.dispatch}"
        )
    if n := n_by_status.get(JudgementStatus.UNUSABLE_SAMPLE):
        words = ", ".join(sorted(first_judge.filter(pl.col("status") == JudgementStatus.UNUSABLE_SAMPLE)["reason"].unique()))
        clauses.append(f"cannot use {_share(n, n_samples)}: {words}; mend these files or rows")
    return f"rubric {rubric.id} " + "; it ".join(clauses)


def _share(n: int, n_samples: int) -> str:
    return f"all {n_samples} samples" if n == n_samples else f"{n} of the {n_samples} samples"
