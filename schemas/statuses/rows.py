"""All statuses and reasons of samples, requests, replies, scores and checks. Those of published figures: cells.py."""

from enum import StrEnum


class SampleStatus(StrEnum):
    """Result of ingesting a sample."""

    OK = "ok"  # usable; its image, if it has one, can be decoded
    MISSING_FILE = "missing_file"  # the file that the manifest names does not exist
    NOT_A_FILE = "not_a_file"  # a folder, device or link instead of a regular file
    OUTSIDE_ROOT = "outside_root"  # the path, or the link, leads out of the source's folder
    REMOTE_REFUSED = "remote_refused"  # a URL; Salon does not fetch it
    EMPTY_FILE = "empty_file"  # zero bytes
    FILE_TOO_LARGE = "file_too_large"  # more bytes than an image may have
    NOT_AN_IMAGE = "not_an_image"  # no allowed decoder recognizes the bytes
    TOO_MANY_PIXELS = "too_many_pixels"  # above the pixel limit; refused before decoding
    BROKEN_IMAGE = "broken_image"  # the header is valid, but decoding fails
    MISSING_VALUE = "missing_value"  # a column that this source needs is null in this row
    BAD_VALUE = "bad_value"  # a value does not have the column's type
    DUPLICATE = "duplicate"  # the same content and role as an earlier sample, whose judgement counts for both
    REPEATED_ID = "repeated_id"  # different content under the id of an earlier row; the earlier row counts


ROW_UNUSABLE = (SampleStatus.BAD_VALUE.value, SampleStatus.MISSING_VALUE.value)
"""Statuses of samples that the row itself, not its picture, makes unusable."""


class TextFlag(StrEnum):
    """What in a sample's text may be aimed at the judge. Salon never changes the text; it tells readers of the scores."""

    ADDRESSES_JUDGE = "addresses_judge"  # speaks to the judge, asks for a score, or asks to set instructions aside
    IMITATES_ANSWER = "imitates_answer"  # looks like a judge's answer: a label or key with a number
    IMITATES_STRUCTURE = "imitates_structure"  # has marks that divide a conversation: roles, template tokens, `<chatend>`
    HIDDEN_CHARACTERS = "hidden_characters"  # has characters that people do not see and models read


class JudgementStatus(StrEnum):
    """What the plan decided for a sample under a rubric."""

    PLANNED = "planned"  # it has a request
    DUPLICATE = "duplicate"  # written by older releases: a duplicate, in no figure; today it is planned like the first sample
    UNUSABLE_SAMPLE = "unusable_sample"  # ingest found that the sample is not usable
    MISSING_COLUMN = "missing_column"  # the rubric needs a value that this sample lacks
    NO_PROMPT = "no_prompt"  # the rubric has no prompt for the sample's category
    UNKNOWN_VALUE = "unknown_value"  # a column holds a value that the rubric does not declare


class ReplyStatus(StrEnum):
    """How an ask ended."""

    ANSWERED = "answered"  # a valid completion arrived
    FILTERED = "filtered"  # the provider's content policy refused the request or the answer
    REJECTED = "rejected"  # the provider calls the request invalid (4xx); asked once
    UNAUTHORIZED = "unauthorized"  # the API key is not accepted (401, 403)
    NO_CREDIT = "no_credit"  # insufficient_quota: the account is empty
    RATE_LIMITED = "rate_limited"  # 429 until the attempts were used up
    SERVER_ERROR = "server_error"  # 5xx until the attempts were used up
    TIMED_OUT = "timed_out"  # no complete reply before the deadline; it may have been billed
    UNREACHABLE = "unreachable"  # no connection, or the connection was reset
    BAD_RESPONSE = "bad_response"  # a 200 response that is not a completion
    NOT_ASKED = "not_asked"  # planned, but never sent


FINAL_REPLY_STATUSES = frozenset({ReplyStatus.ANSWERED, ReplyStatus.FILTERED, ReplyStatus.REJECTED})
"""Asked once and kept for ever; every other status is asked again by the next run."""
UNANSWERED = frozenset(ReplyStatus) - FINAL_REPLY_STATUSES
"""What a request ends with that no reply came to: the next run asks it again."""
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
    RECORDED = "recorded"  # imported: the reply text as recorded elsewhere
    REBUILT = "rebuilt"  # imported: the text was rebuilt from columns by a template


class ScoreStatus(StrEnum):
    """Whether a dimension of a request has a score, and if not, why."""

    SCORED = "scored"  # the reply states it readably, on the scale, and no rule forbids it
    RULE_VIOLATION = "rule_violation"  # readable but forbidden by a rule; kept in the row, left out of the mean
    UNREADABLE = "unreadable"  # there is a reply but no score; the reason says why
    NO_REPLY = "no_reply"  # there is no reply; the reason is the reply's status
    NOT_APPLICABLE = "not_applicable"  # the reply says so in a declared word; outside mean and coverage, counted separately
    NOT_ASKED_FOR = "not_asked_for"  # an item whose parent failed, by the rubric's own rule; treated like `not_applicable`
    MISSING_OPERAND = "missing_operand"  # a derived figure with a part that has no score; the reason is that part's


class PairOutcome(StrEnum):
    """What both orders of a pair say together; a is the checkpoint whose name comes first."""

    WIN_A = "win_a"  # a wins in both orders
    TIE = "tie"  # a tie in both orders
    WIN_B = "win_b"  # b wins in both orders
    ORDER_DEPENDENT = "order_dependent"  # both were read and disagree: the position decided, not the picture
    UNJUDGED = "unjudged"  # at least one order could not be read or never came


NO_FAILURES = frozenset({ScoreStatus.NOT_APPLICABLE, ScoreStatus.NOT_ASKED_FOR})
"""Statuses without a score that are no failures: in neither mean nor coverage, counted beside them."""


class ParseReason(StrEnum):
    """Why a reply gave no score, in the order of precedence that docs/replies.md defines."""

    EMPTY = "empty"  # nothing but white space
    REFUSAL = "refusal"  # the provider filtered it, or the judge declines
    MISSING_INPUT = "missing_input"  # the judge says that it was given nothing to judge
    TRUNCATED = "truncated"  # the reply stops before its structure is closed
    NOT_FOUND = "not_found"  # no answer in the requested form
    TEMPLATE_ECHO = "template_echo"  # the form itself, unfilled
    MISSING_KEY = "missing_key"  # the form is there, the dimension is not
    MALFORMED = "malformed"  # the form is there but cannot be read without choosing
    WRONG_TYPE = "wrong_type"  # the value is not one number
    NON_INTEGER = "non_integer"  # a fraction where the rubric asks for whole numbers
    OUT_OF_RANGE = "out_of_range"  # a number off the scale
    SCALE_MISMATCH = "scale_mismatch"  # a number on another stated scale
    AMBIGUOUS = "ambiguous"  # different values for one dimension, a range, or a number taken back
    RULE_VIOLATION = "rule_violation"  # a declared rule forbids the score
    NOT_APPLICABLE = "not_applicable"  # the reply says so in a declared word
    NOT_ASKED_FOR = "not_asked_for"  # an item whose parent failed


class CheckStatus(StrEnum):
    """How a data check ended."""

    PASSED = "passed"
    FAILED = "failed"


class CheckSeverity(StrEnum):
    """What a failed data check does."""

    BLOCKING = "blocking"  # stops publication
    WARNING = "warning"  # is published beside the table
