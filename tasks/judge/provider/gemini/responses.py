"""What a response of the Gemini API means: the judge's text, why it ended or was blocked, its tokens, errors.

By https://ai.google.dev/api/generate-content, /gemini-api/docs/troubleshooting and /gemini-api/docs/rate-limits (2026-11).
The API tells no limits in headers; a 429 says in its details how long to wait.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import orjson

from schemas.input_budget import REPLY_TEXT_BYTES, is_too_deep
from schemas.statuses.rows import ReplyStatus
from tasks.judge.provider import failures
from tasks.judge.provider.exchange import Answer
from tasks.judge.provider.json_bodies import UnusableError, count, listed, mapping, read_200, text, total, word

_FILTERED = frozenset({
    "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION", "LANGUAGE",
})  # fmt: skip
_ENDED = frozenset({"STOP", "MAX_TOKENS"})
"""Other reasons (OTHER, MALFORMED_RESPONSE, UNEXPECTED_TOOL_CALL …) are the service's own trouble."""
_ACCOUNT = frozenset({"FAILED_PRECONDITION", "PERMISSION_DENIED", "UNAUTHENTICATED", "NOT_FOUND"})
"""Of the account or the address, whatever is asked: a place without the service, a project without billing."""
CANCELLED = "CANCELLED"
"""Of the service that stopped working on a request, not of what it was asked; over HTTP it is a 499."""
_NO_CREDIT = re.compile(r"credits? (are|is) depleted|spend(ing)? (cap|limit)", re.IGNORECASE)
_A_DAY = re.compile(r"per_?day", re.IGNORECASE)


def read_answer(status_code: int, headers: Mapping[str, str], body: bytes) -> Answer:
    """The typed meaning of a whole HTTP response. Never raises."""
    return read_200(body, read_content) if 200 <= status_code < 300 else read_failure(status_code, headers, body)


def read_content(content: dict[str, Any]) -> Answer:
    """The meaning of a GenerateContentResponse. Raises UnusableError where it is none."""
    candidates, feedback = listed(content.get("candidates")), mapping(content.get("promptFeedback"))
    usage = mapping(content.get("usageMetadata"))
    n_prompt = count(usage.get("promptTokenCount"))
    answer = Answer(
        ReplyStatus.FILTERED,
        answered_model=word(content.get("modelVersion")) or None,
        n_input_tokens=total(n_prompt, count(usage.get("toolUsePromptTokenCount"))),
        # A number of 0 is left out; thoughts are billed as output.
        n_output_tokens=None if n_prompt is None else total(0, *(count(usage.get(name)) for name in _OUTPUT)),
        n_cached_tokens=count(usage.get("cachedContentTokenCount")),
    )
    if not candidates:
        blocked = text(feedback.get("blockReason"))
        if blocked is None:
            why = failures.message_of(content) if "error" in content else f"keys {sorted(content)[:8]}"
            raise UnusableError(f"a 200 without candidates: {why}")
        return replace(answer, finish_reason=blocked, detail=failures.one_line(f"the prompt was blocked: {blocked}"))
    said, finish_reason = _said(candidates[0]), word(candidates[0].get("finishReason"))
    if finish_reason in _FILTERED:
        return replace(answer, text=said, finish_reason=finish_reason)
    if finish_reason not in _ENDED and said is None:
        raise UnusableError(f"a 200 without text, with finishReason {finish_reason!r}")
    probabilities = _probabilities(mapping(candidates[0].get("logprobsResult")))
    return replace(
        answer,
        status=ReplyStatus.ANSWERED,
        text=said,
        finish_reason=finish_reason,
        logprobs_json=None if probabilities is None else orjson.dumps(probabilities).decode(),
    )


def _probabilities(result: dict[str, Any]) -> dict[str, Any] | None:
    """The log-probabilities in the form that replies keep them in, which is OpenAI's; None where there are none."""
    chosen, others = listed(result.get("chosenCandidates")), listed(result.get("topCandidates"))
    if not chosen:
        return None
    tops = [[_token(one) for one in listed(other.get("candidates"))] for other in others]
    tops += [[]] * (len(chosen) - len(tops))
    return {"content": [_token(one) | {"top_logprobs": top} for one, top in zip(chosen, tops, strict=False)]}


def _token(candidate: dict[str, Any]) -> dict[str, Any]:
    return {"token": candidate.get("token"), "logprob": candidate.get("logProbability", 0)}  # a number of 0 is left out


_OUTPUT = ("candidatesTokenCount", "thoughtsTokenCount")


def _said(candidate: dict[str, Any]) -> str | None:
    """The text of a candidate's parts, thoughts apart; None where it has none."""
    content = candidate.get("content", {})
    parts = content.get("parts", []) if isinstance(content, dict) else None
    if not isinstance(parts, list):
        raise UnusableError("a 200 whose first candidate has no parts")
    texts: list[str] = []
    for part in parts:
        if not isinstance(part, dict) or not (isinstance(part.get("text"), str) or part.get("thought") is True):
            kinds = sorted(part)[:3] if isinstance(part, dict) else type(part).__name__
            raise UnusableError(f"a 200 whose content has a part of {kinds!s:.60}, where text is expected")
        if part.get("thought") is not True:
            texts.append(part["text"])
    return "".join(texts)[: REPLY_TEXT_BYTES + 1] if texts else None


def read_failure(status_code: int, headers: Mapping[str, str], body: bytes) -> Answer:
    """The typed meaning of a response that is no 2xx. Never raises."""
    answer = failures.read_failure(status_code, headers, body)
    error = _error(body)
    if not error or answer.status == ReplyStatus.BAD_RESPONSE:
        return answer
    named, said = text(error.get("status")) or "error", str(error.get("message") or "no message")
    details = listed(error.get("details"))
    answer = replace(answer, detail=failures.one_line(f"HTTP {status_code}: {named}: {said}"))
    if _NO_CREDIT.search(said):
        return replace(answer, status=ReplyStatus.NO_CREDIT)
    if named in _ACCOUNT and answer.status == ReplyStatus.REJECTED:
        return replace(answer, status=ReplyStatus.UNAUTHORIZED)
    if named == CANCELLED and answer.status == ReplyStatus.REJECTED:
        return replace(answer, status=ReplyStatus.SERVER_ERROR)
    if answer.status == ReplyStatus.RATE_LIMITED or answer.retry_after_s is None:
        return replace(answer, retry_after_s=_until_tomorrow_s() if _is_of_the_day(details) else answer.retry_after_s)
    return answer


def _error(body: bytes) -> dict[str, Any]:
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    if is_too_deep(content):
        return {}
    first = content[0] if isinstance(content, list) and content else content  # where a stream would have been, it is a list
    return mapping(mapping(first).get("error"))


def _is_of_the_day(details: list[dict[str, Any]]) -> bool:
    """Whether google.rpc.QuotaFailure names a quota of a day: what it asks to wait is then far too short."""
    violations = [violation for one in details for violation in listed(one.get("violations"))]
    return any(_A_DAY.search(str(violation.get("quotaId", ""))) for violation in violations)


def _until_tomorrow_s() -> float:
    """Quotas of a day start anew at midnight in California ("Rate limits")."""
    now = datetime.now(ZoneInfo("America/Los_Angeles"))
    midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight.timestamp() - now.timestamp()
