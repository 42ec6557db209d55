"""Whether a reply calls for the one counted re-ask: it cannot be read, and asking again may mend that. Online and batch alike."""

import orjson

from rubrics.model import Rubric
from rubrics.replies import parse_reply
from schemas.records import Unreadable
from schemas.statuses import ParseReason, ReplyStatus
from tasks.judge.answers import Answer

NOT_REASKED = frozenset({ParseReason.REFUSAL, ParseReason.MISSING_INPUT, ParseReason.RULE_VIOLATION})
"""What asking again would not mend: the judge has understood and said its word, or we sent nothing to judge."""


def is_reask_due(rubric: Rubric, variant: str | None, facts_json: str, answer: Answer) -> bool:
    """Whether an answer to a request of this rubric, category and facts is to be asked for once more."""
    if answer.status != ReplyStatus.ANSWERED:
        return False
    context = orjson.loads(facts_json)
    context |= {"category": variant, "finish_reason": answer.finish_reason, "refusal": answer.refusal_text}
    read = parse_reply(rubric, answer.text, context)
    return isinstance(read, Unreadable) and read.reason not in NOT_REASKED
