"""Frozen records handed between stages, one row each. Tables of them are declared in tables/."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any, get_type_hints

import orjson

from schemas.benchmark.exam import EXAM
from schemas.identities import canonical_json
from schemas.statuses.cells import Total
from schemas.statuses.rows import ParseReason, ReplyOrigin, ReplyStatus, SampleStatus
from schemas.tables import fields as f
from schemas.tables.field import Field

UNNAMED = "unnamed"
"""The checkpoint of a source that does not say."""
UNKNOWN = "__unknown__"
"""What a row that nobody could read should have said: in `samples` its model, in figures its category."""
ALL_JUDGES = "__pooled__"
"""In the column judge_model: the verdicts of all judges together."""
PEOPLE = "__people__"
"""In the column judge_model: people's votes."""
RESERVED_NAMES = frozenset([*map(str, Total), "__all__", UNKNOWN, ALL_JUDGES, PEOPLE, EXAM, "__anchors__"])
"""Names of no model, checkpoint and category of a source: in those columns they stand for something else."""
SAMPLE_TEXTS = ("prompt", "category", "question", "text", "reference", "caption_type", "output")
"""The text columns of a sample that `samples` has by name; those of a rubric's own stand in its `texts_json`."""
TEXT_COLUMNS = (*SAMPLE_TEXTS, "texts_json")


def texts_of(values: Mapping[str, Any]) -> dict[str, str | None]:
    """Every text of a row of `samples` by its column, those in `texts_json` among them."""
    texts: dict[str, str | None] = {name: values[name] for name in SAMPLE_TEXTS}
    own = values.get("texts_json")
    return texts | orjson.loads(own) if own else texts


def texts_json_of(texts: Mapping[str, str | None]) -> str | None:
    """The texts that have no column of their own, as canonical JSON; None where there are none."""
    own = {name: text for name, text in texts.items() if name not in SAMPLE_TEXTS and text is not None}
    return canonical_json(own).decode() if own else None


IMAGE = "image"
"""The role of the picture that is judged; the others of a sample are what it is judged beside."""


@dataclass(frozen=True, slots=True)
class RolePicture:
    """A picture of a sample, not opened yet: where it is, below the source's root, or its bytes."""

    role: str
    path: str | None = None
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """One thing to judge, as a reader hands it on: texts, an image not yet opened, who made it.

    `image_path` is relative to the source's root; `image_bytes` is set where the source holds bytes itself
    (Parquet, tar). Both None: the sample has no picture. `others` are those beside the first one of the role `image`.
    `status` other than OK: the reader could not use the row.
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
    others: tuple[RolePicture, ...] = ()

    @property
    def pictures(self) -> tuple[RolePicture, ...]:
        """All of its pictures, the one that is judged first."""
        has_image = self.image_path is not None or self.image_bytes is not None
        return (*((RolePicture(IMAGE, self.image_path, self.image_bytes),) if has_image else ()), *self.others)


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """How one ask of a request ended. Tokens, cost and latency are None where nobody said.

    Its lines are the columns of `replies`, in order: the lake's table, the ledger's (tasks/ledger/tables.py), the row written
    and the types read back all follow from them.
    """

    request_key: Annotated[str, f.REQUEST_KEY]
    ask_index: Annotated[int, f.ASK_INDEX]
    status: Annotated[ReplyStatus, f.REPLY_STATUS]
    text: Annotated[str | None, f.REPLY_TEXT] = field(default=None, kw_only=True)
    finish_reason: Annotated[str | None, f.FINISH_REASON] = field(default=None, kw_only=True)
    refusal_text: Annotated[str | None, f.REFUSAL_TEXT] = field(default=None, kw_only=True)
    error_detail: Annotated[str | None, f.ERROR_DETAIL] = field(default=None, kw_only=True)
    judge_model: Annotated[str, f.JUDGE_MODEL]
    answered_model: Annotated[str | None, f.ANSWERED_MODEL] = field(default=None, kw_only=True)
    n_input_tokens: Annotated[int | None, f.N_INPUT_TOKENS] = field(default=None, kw_only=True)
    n_cached_tokens: Annotated[int | None, f.N_CACHED_TOKENS] = field(default=None, kw_only=True)
    n_output_tokens: Annotated[int | None, f.N_OUTPUT_TOKENS] = field(default=None, kw_only=True)
    cost_usd: Annotated[float | None, f.COST_USD] = field(default=None, kw_only=True)
    latency_s: Annotated[float | None, f.LATENCY_S] = field(default=None, kw_only=True)
    n_attempts: Annotated[int, f.N_ATTEMPTS] = field(default=1, kw_only=True)
    received_at: Annotated[datetime | None, f.RECEIVED_AT] = field(default=None, kw_only=True)
    origin: Annotated[ReplyOrigin | None, f.ORIGIN]
    logprobs_json: Annotated[str | None, f.LOGPROBS_JSON] = field(default=None, kw_only=True)
    sha256: Annotated[str | None, f.REPLY_SHA256] = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """The digest is taken here, where the reply first is one; it stays with it wherever it is stored and read."""
        if self.sha256 is None:
            values = {of.name: getattr(self, attribute) for attribute, of in REPLY_FIELDS.items()}
            object.__setattr__(self, "sha256", reply_sha256(values))


REPLY_FIELDS: Mapping[str, Field] = {
    name: hint.__metadata__[0] for name, hint in get_type_hints(JudgeReply, include_extras=True).items()
}
"""The column of each attribute of a reply, in the table's order."""

SAID = (
    "request_key", "ask_index", "status", "reply_text", "finish_reason", "refusal_text", "answered_model", "logprobs_json",
)  # fmt: skip
"""The columns that a reply's digest is taken over: what a number can come from."""


def reply_sha256(values: Mapping[str, Any]) -> str:
    """sha256 hex over what was said, as canonical JSON; half characters as they are stored."""
    said = [values[name] for name in SAID]
    texts = [one.encode("utf-8", "replace").decode() if isinstance(one, str) else one for one in said]
    return sha256(canonical_json(texts)).hexdigest()


@dataclass(frozen=True, slots=True)
class ReadScores:
    """A reply that was read: every dimension has a number, or is `not_applicable` in a declared word.

    `violated` holds, by dimension, the (low, high) a rule allows. `spans`: where each number's digits, or the answer's word,
    stand in the reply, (start, end) in characters. Of several items (by id in place of dimension) some may be `unreadable`.
    """

    scores: Mapping[str, float]
    notes: Mapping[str, str] = field(default_factory=dict)
    violated: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    spans: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    not_applicable: frozenset[str] = frozenset()
    unreadable: Mapping[str, ParseReason] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether every item was answered, readably or not; one that was left out may be in another reply to the request."""
        return ParseReason.MISSING_KEY not in self.unreadable.values()

    def as_dict(self) -> dict[str, object]:
        """What `salon parse` prints."""
        said: dict[str, object] = {"error": ParseReason.RULE_VIOLATION.value} if self.violated else {}
        said["scores"] = dict(self.scores)
        said |= {"not_applicable": sorted(self.not_applicable)} if self.not_applicable else {}
        return said | ({"unreadable": {key: reason.value for key, reason in self.unreadable.items()}} if self.unreadable else {})


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A reply that gives no score, and why. `fault`: the error of ours that ended its reading; empty where it was read."""

    reason: ParseReason
    fault: str = ""

    def as_dict(self) -> dict[str, object]:
        """What `salon parse` prints."""
        return {"error": self.reason.value}


ParsedScore = ReadScores | Unreadable


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """Part `index` of requests: one part of samples under one rubric and one judge, or some pairs of them.

    `round`: of what is asked in rounds, the round, from 0, and `about` the checkpoint, as "model/checkpoint", or of pairs the two
    with a space between: later rounds about it are left out once it is decided. Of an exam: its occasion, no round.
    """

    index: int
    samples_part: int
    rubric_id: str
    judge_model: str
    n_requests: int
    round: int | None = None
    about: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan that stands in the lake, and the parts of requests it has."""

    plan_id: str
    parts: tuple[PlannedPart, ...]

    @property
    def n_requests(self) -> int:
        """Distinct requests."""
        return sum(part.n_requests for part in self.parts)


@dataclass(frozen=True, slots=True)
class ModelChange:
    """A judge under whose name another model answers than on the night before."""

    judge_model: str
    before: str
    now: str
