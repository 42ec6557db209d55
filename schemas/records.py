"""Frozen records handed between stages, one row each. Tables of them are declared in tables.py."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from schemas.statuses import ParseReason, ReplyOrigin, ReplyStatus, SampleStatus

SAMPLE_TEXTS = ("prompt", "category", "question", "text", "reference", "caption_type", "output")
"""The text columns of a sample that a source can fill and a rubric can ask for."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One thing to judge, as a reader hands it on: texts, an image not yet opened, who made it.

    `image_path` is relative to the source's root; `image_bytes` is set where the source holds bytes itself
    (Parquet, tar). Both None: the sample has no picture. `status` other than OK: the reader could not use the row.
    `remote_hosts`: where image_path is a URL, the hosts it may be fetched from.
    """

    source: str
    source_key: str
    model: str
    checkpoint: str
    texts: Mapping[str, str | None]
    item_id: str | None = None
    seed: int | None = None
    image_path: str | None = None
    image_bytes: bytes | None = None
    status: SampleStatus = SampleStatus.OK
    detail: str | None = None
    remote_hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """One question to one judge, ready to send. `image` is None where the messages hold no picture."""

    request_key: str
    judge_model: str
    parameters: Mapping[str, object]
    messages: tuple[Mapping[str, object], ...]
    image: bytes | None
    image_format: str | None
    rubric_id: str
    variant: str | None
    facts: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """How one ask of a request ended. Tokens, cost and latency are None where nobody said."""

    request_key: str
    ask_index: int
    status: ReplyStatus
    judge_model: str
    origin: ReplyOrigin
    text: str | None = None
    finish_reason: str | None = None
    refusal_text: str | None = None
    error_detail: str | None = None
    answered_model: str | None = None
    n_input_tokens: int | None = None
    n_cached_tokens: int | None = None
    n_output_tokens: int | None = None
    cost_usd: float | None = None
    latency_s: float | None = None
    n_attempts: int = 1
    logprobs_json: str | None = None


@dataclass(frozen=True, slots=True)
class ReadScores:
    """A reply that was read: every dimension has a number. `violated` holds, by dimension, the (low, high) a rule allows."""

    scores: Mapping[str, float]
    notes: Mapping[str, str] = field(default_factory=dict)
    violated: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, object]:
        """What `salon parse` prints."""
        if self.violated:
            return {"error": ParseReason.RULE_VIOLATION.value, "scores": dict(self.scores)}
        return {"scores": dict(self.scores)}


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A reply that gives no score, and why."""

    reason: ParseReason

    def as_dict(self) -> dict[str, object]:
        """What `salon parse` prints."""
        return {"error": self.reason.value}


ParsedScore = ReadScores | Unreadable


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """Part `index` of requests: one part of samples under one rubric and one judge."""

    index: int
    samples_part: int
    rubric_id: str
    judge_model: str
    n_requests: int
