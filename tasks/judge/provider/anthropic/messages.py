"""What a response of Anthropic's Messages API means: the judge's text, why it ended, its tokens, the key's limits, errors.

By https://platform.claude.com/docs/en/api/messages, /api/errors, /api/rate-limits and /build-with-claude/handling-stop-reasons
(2026-11).
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from schemas.input_budget import REPLY_TEXT_BYTES
from schemas.statuses.rows import ReplyStatus
from tasks.judge.provider import failures
from tasks.judge.provider.exchange import NOTHING_SAID, Answer, SaidLimit, SaidLimits
from tasks.judge.provider.json_bodies import UnusableError, count, mapping, read_200, total, word

_THOUGHTS = ("thinking", "redacted_thinking")
_NUMBER = re.compile(r" *[0-9]{1,15} *")
_NO_CREDIT = re.compile(r"billing_error|credit balance is too low|specified API usage limits", re.IGNORECASE)
"""Of errors that come as a 400: the account's, not the request's."""


def read_answer(status_code: int, headers: Mapping[str, str], body: bytes) -> Answer:
    """The typed meaning of a whole HTTP response. Never raises."""
    is_message = 200 <= status_code < 300
    answer = read_200(body, read_message) if is_message else read_failure(status_code, headers, body)
    said = limits(headers)
    return answer if said == NOTHING_SAID else replace(answer, limits=said)


def read_failure(status_code: int, headers: Mapping[str, str], body: bytes) -> Answer:
    """The typed meaning of a response that is no 2xx. Never raises."""
    answer = failures.read_failure(status_code, headers, body)
    is_account = answer.status != ReplyStatus.BAD_RESPONSE and _NO_CREDIT.search(answer.detail or "")
    return replace(answer, status=ReplyStatus.NO_CREDIT) if is_account else answer


def read_message(content: dict[str, Any]) -> Answer:
    """The meaning of a message object. Raises UnusableError where it is none."""
    blocks = content.get("content")
    if not isinstance(blocks, list):
        said = failures.message_of(content) if "error" in content else f"keys {sorted(content)[:8]}"
        raise UnusableError(f"a 200 without content: {said}")
    texts: list[str] = []
    for block in blocks:
        kind = mapping(block).get("type")
        if kind == "text" and isinstance(block.get("text"), str):
            texts.append(block["text"])
        elif kind not in _THOUGHTS:
            raise UnusableError(f"a 200 whose content has a part of type {str(kind)[:60]!r}, where text is expected")
    stop_reason, usage = word(content.get("stop_reason")), mapping(content.get("usage"))
    n_cached, n_written = count(usage.get("cache_read_input_tokens")), count(usage.get("cache_creation_input_tokens"))
    n_fresh = count(usage.get("input_tokens"))
    return Answer(
        ReplyStatus.FILTERED if stop_reason == "refusal" else ReplyStatus.ANSWERED,
        text="".join(texts)[: REPLY_TEXT_BYTES + 1] if texts else None,
        finish_reason=stop_reason,
        answered_model=word(content.get("model")) or None,
        n_input_tokens=None if n_fresh is None else total(n_fresh, n_cached, n_written),
        n_output_tokens=count(usage.get("output_tokens")),  # what it thought among them
        n_cached_tokens=n_cached,
        n_cache_written_tokens=n_written,
        dearer_as="inference_geo = us" if usage.get("inference_geo") == "us" else None,  # a workspace may choose it
    )


def limits(headers: Mapping[str, str]) -> SaidLimits:
    """What the anthropic-ratelimit headers say; of tokens the limit that binds most. Resets are moments, told in seconds."""
    return _limit(headers, "requests"), _limit(headers, "tokens")


def _limit(headers: Mapping[str, str], of: str) -> SaidLimit | None:
    limit, n_left, reset = (headers.get(f"anthropic-ratelimit-{of}-{what}", "") for what in ("limit", "remaining", "reset"))
    if not _NUMBER.fullmatch(limit):
        return None
    return SaidLimit(int(limit), int(n_left) if _NUMBER.fullmatch(n_left) else None, _reset_s(reset, headers.get("date", "")))


def _reset_s(reset: str, date: str) -> float | None:
    """Seconds from the response's own date, where it has one, to a moment in RFC 3339."""
    try:
        moment = datetime.fromisoformat(reset)
        now = parsedate_to_datetime(date) if date else datetime.now(UTC)
        return max(0.0, (moment - now).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None
