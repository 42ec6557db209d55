"""What became of a sample, a request, a reply, a score, a check: closed lists. Those of published figures are cells.py."""

from enum import StrEnum


class SampleStatus(StrEnum):
    """What ingest found."""

    OK = "ok"  # usable; the image, if the row has one, decodes
    MISSING_FILE = "missing_file"  # the manifest names a file that is not there
    NOT_A_FILE = "not_a_file"  # a folder, a device, a link: not a regular file
    OUTSIDE_ROOT = "outside_root"  # the path, or the link it is, leaves the source's folder
    REMOTE_REFUSED = "remote_refused"  # a URL; Salon does not fetch
    EMPTY_FILE = "empty_file"  # zero bytes
    FILE_TOO_LARGE = "file_too_large"  # more bytes than an image may have
    NOT_AN_IMAGE = "not_an_image"  # no allowed decoder knows these bytes
    TOO_MANY_PIXELS = "too_many_pixels"  # above the pixel cap, refused before decoding
    BROKEN_IMAGE = "broken_image"  # the header is good, decoding fails
    MISSING_VALUE = "missing_value"  # a column this source needs is null in this row
    BAD_VALUE = "bad_value"  # a value that is not of the column's type
    DUPLICATE = "duplicate"  # the same content and role as an earlier sample, whose judgement counts for both
    REPEATED_ID = "repeated_id"  # another content under the id of an earlier row, which counts


class TextFlag(StrEnum):
    """What a sample's text holds that may be meant for the judge. The text is never altered; whoever reads the scores is told."""

    ADDRESSES_JUDGE = "addresses_judge"  # speaks to whoever judges, or asks for a score or for instructions to be set aside
    IMITATES_ANSWER = "imitates_answer"  # holds what looks like a judge's answer: a label or key with a number
    IMITATES_STRUCTURE = "imitates_structure"  # holds marks that divide a conversation: roles, template tokens, <chatend>
    HIDDEN_CHARACTERS = "hidden_characters"  # holds characters that people do not see and models read


class JudgementStatus(StrEnum):
    """What the plan decided about one sample under one rubric."""

    PLANNED = "planned"  # there is a request for it
    DUPLICATE = "duplicate"  # of older releases: an earlier sample again, no part of any figure; now planned as that one is
    UNUSABLE_SAMPLE = "unusable_sample"  # ingest found that the sample cannot be used
    MISSING_COLUMN = "missing_column"  # the rubric needs a value this sample does not have
    NO_PROMPT = "no_prompt"  # the rubric has no prompt for the sample's category
    UNKNOWN_VALUE = "unknown_value"  # a column holds a word that is not among those the rubric says it may hold


class ReplyStatus(StrEnum):
    """How one ask ended, mapped from the provider's errors in the client and nowhere else."""

    ANSWERED = "answered"  # a conforming completion arrived
    FILTERED = "filtered"  # the provider's content policy refused the request or the answer
    REJECTED = "rejected"  # the provider calls the request invalid (4xx); asked once
    UNAUTHORIZED = "unauthorized"  # the key is not accepted (401, 403)
    NO_CREDIT = "no_credit"  # insufficient_quota: the account is empty
    RATE_LIMITED = "rate_limited"  # 429 until the attempts were used up
    SERVER_ERROR = "server_error"  # 5xx until the attempts were used up
    TIMED_OUT = "timed_out"  # no complete reply within the deadline; may have been billed
    UNREACHABLE = "unreachable"  # no connection, or reset
    BAD_RESPONSE = "bad_response"  # a 200 that is not a completion
    NOT_ASKED = "not_asked"  # planned, never sent


FINAL_REPLY_STATUSES = frozenset({ReplyStatus.ANSWERED, ReplyStatus.FILTERED, ReplyStatus.REJECTED})
"""Asked once and kept for ever; every other status is asked again by the next run."""
PROVIDER_FAILURES = frozenset({
    ReplyStatus.SERVER_ERROR, ReplyStatus.TIMED_OUT, ReplyStatus.BAD_RESPONSE, ReplyStatus.RATE_LIMITED,
})  # fmt: skip
"""The provider's own failures, of one request or of all."""

LOST_ON_THE_WAY = "the connection was lost"
"""So begins the detail of an attempt that is `unreachable` and was sent: every other one never left the machine."""


class ReplyOrigin(StrEnum):
    """Where a reply came from."""

    ASKED = "asked"  # bought by Salon, one request at a time
    BATCH = "batch"  # bought through the provider's Batch API, or from a file of results
    RECORDED = "recorded"  # imported: the reply text as it was recorded elsewhere
    REBUILT = "rebuilt"  # imported: the text was rebuilt from columns by a template


class ScoreStatus(StrEnum):
    """What became of one dimension of one request."""

    SCORED = "scored"  # the reply says it, readable, on the scale, no rule against it
    RULE_VIOLATION = "rule_violation"  # readable, kept on the row, out of the mean
    UNREADABLE = "unreadable"  # there is a reply and no score; the reason says why
    NO_REPLY = "no_reply"  # there is no reply; the reason is the reply's status
    NOT_APPLICABLE = "not_applicable"  # the reply says so in a declared word: out of mean and coverage, counted beside them
    NOT_ASKED_FOR = "not_asked_for"  # an item whose parent failed, by the rubric's own rule: as what is not applicable
    MISSING_OPERAND = "missing_operand"  # a derived figure, and something it is made of has no score; the reason is that one's


class PairOutcome(StrEnum):
    """What both orders of a pair say together; a is the checkpoint whose name comes first."""

    WIN_A = "win_a"
    TIE = "tie"
    WIN_B = "win_b"
    ORDER_DEPENDENT = "order_dependent"  # both were read, and they differ: the place decided, not the picture
    UNJUDGED = "unjudged"  # one of the two, or both, could not be read or never came


NO_FAILURES = frozenset({ScoreStatus.NOT_APPLICABLE, ScoreStatus.NOT_ASKED_FOR})
"""Statuses without a score that are no failures: in neither mean nor coverage, counted beside them."""


class ParseReason(StrEnum):
    """Why a reply gave no score; the order is the precedence of docs/replies.md."""

    EMPTY = "empty"
    REFUSAL = "refusal"
    MISSING_INPUT = "missing_input"
    TRUNCATED = "truncated"
    NOT_FOUND = "not_found"
    TEMPLATE_ECHO = "template_echo"
    MISSING_KEY = "missing_key"
    MALFORMED = "malformed"
    WRONG_TYPE = "wrong_type"
    NON_INTEGER = "non_integer"
    OUT_OF_RANGE = "out_of_range"
    SCALE_MISMATCH = "scale_mismatch"
    AMBIGUOUS = "ambiguous"
    RULE_VIOLATION = "rule_violation"
    NOT_APPLICABLE = "not_applicable"
    NOT_ASKED_FOR = "not_asked_for"


class CheckStatus(StrEnum):
    """How one data check ended."""

    PASSED = "passed"
    FAILED = "failed"


class CheckSeverity(StrEnum):
    """What a failed data check does."""

    BLOCKING = "blocking"  # stops publication
    WARNING = "warning"  # is published beside the table
