"""What a provider's HTTP response means: the one place where its statuses, codes and bodies become a ReplyStatus."""

import email.utils
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import orjson

from schemas.records import JudgeReply
from schemas.statuses import ReplyOrigin, ReplyStatus

MAX_DETAIL_CHARACTERS = 400
FILTER_CODES = frozenset({
    "content_filter", "content_policy_violation", "moderation_blocked", "responsibleaipolicyviolation",
    "image_content_policy_violation",
})  # fmt: skip
NO_CREDIT_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_balance"})
KEY_CODES = frozenset({"invalid_api_key", "account_deactivated", "model_not_found"})
# Words of providers that say it in prose alone.
_FILTER_WORDS = re.compile(r"content[ _-]?(management )?(policy|filter)|safety system|usage polic", re.IGNORECASE)
_KEY_WORDS = re.compile(r"\bapi[ _-]?key\b", re.IGNORECASE)
_SECRET = re.compile(r"\bsk-[\w-]{6,}|\b(bearer|basic)\s+[\w.+/=~-]{6,}", re.IGNORECASE)


_LIMIT_HEADERS = tuple(f"x-ratelimit-{what}-{of}" for what in ("limit", "remaining", "reset") for of in ("requests", "tokens"))


@dataclass(frozen=True, slots=True)
class Answer:
    """How one attempt ended. `retry_after_s` is what the provider asked to wait; `limits` are its x-ratelimit headers.

    `is_sent`: the request left this machine whole or in part, so that it may have been billed.
    """

    status: ReplyStatus
    detail: str | None = None
    text: str | None = None
    finish_reason: str | None = None
    refusal_text: str | None = None
    answered_model: str | None = None
    n_input_tokens: int | None = None
    n_output_tokens: int | None = None
    retry_after_s: float | None = None
    latency_s: float | None = None
    n_cached_tokens: int | None = None
    logprobs_json: str | None = None
    limits: Mapping[str, str] = field(default_factory=dict)
    is_sent: bool = True


def read_answer(status_code: int, headers: Mapping[str, str], body: bytes) -> Answer:
    """The typed meaning of a whole HTTP response. Never raises."""
    answer = _completion(body) if 200 <= status_code < 300 else _failure(status_code, headers, body)
    limits = {name: headers[name] for name in _LIMIT_HEADERS if name in headers}
    return replace(answer, limits=limits) if limits else answer


def _completion(body: bytes) -> Answer:
    try:
        content = orjson.loads(body)  # strict: no NaN, bounded depth
    except orjson.JSONDecodeError as error:
        start = body[:80].decode("utf-8", "replace")
        return _bad(f"a 200 whose body is not JSON ({str(error)[:80]}): {start!r}" if body else "a 200 with an empty body")
    if not isinstance(content, dict):
        return _bad(f"a 200 whose body is JSON {type(content).__name__}, not an object")
    choices = content.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        said = _message(content) if "error" in content else f"keys {sorted(content)[:8]}"
        return _bad(f"a 200 without choices: {said}")
    message = choices[0].get("message")
    if not isinstance(message, dict):
        return _bad("a 200 whose first choice has no message")
    text, refusal = message.get("content"), message.get("refusal")
    if not isinstance(text, str | None) or not isinstance(refusal, str | None):
        return _bad(f"a 200 whose content is {type(text).__name__} and refusal {type(refusal).__name__}, where text is expected")
    finish_reason = _word(choices[0].get("finish_reason"))
    usage = content.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    details = usage.get("prompt_tokens_details")
    return Answer(
        ReplyStatus.FILTERED if finish_reason == "content_filter" else ReplyStatus.ANSWERED,
        None,
        text,
        finish_reason,
        refusal,
        _word(content.get("model")),
        _count(usage.get("prompt_tokens")),
        _count(usage.get("completion_tokens")),
        n_cached_tokens=_count(details.get("cached_tokens")) if isinstance(details, dict) else None,
        logprobs_json=_json(choices[0].get("logprobs")),
    )


def _failure(status_code: int, headers: Mapping[str, str], body: bytes) -> Answer:
    try:
        content: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        content = body[:MAX_DETAIL_CHARACTERS].decode("utf-8", "replace")
    said = _message(content)
    if status_code < 400:
        target = urlsplit(headers.get("location", ""))
        where = f"{target.scheme}://{target.hostname}" if target.hostname else "another address"
        return _bad(f"HTTP {status_code}: redirected to {where}; redirects are not followed, set base_url to the final address")
    status = _failure_status(status_code, _codes(content), said)
    return Answer(status, one_line(f"HTTP {status_code}: {said}"), retry_after_s=retry_after_s(headers))


def _failure_status(status_code: int, codes: set[str], said: str) -> ReplyStatus:
    if codes & NO_CREDIT_CODES or status_code == 402:
        return ReplyStatus.NO_CREDIT
    if status_code == 429:
        return ReplyStatus.RATE_LIMITED
    if status_code >= 500 or status_code in (408, 409, 425):  # the server's side of things: it may do better next time
        return ReplyStatus.SERVER_ERROR
    if codes & FILTER_CODES or (status_code in (400, 403) and _FILTER_WORDS.search(said)):
        return ReplyStatus.FILTERED
    # 404 and 405: an address or a model that is not there is mended in the benchmark file or the account, and then
    # asked again; as `rejected` it would be kept for ever.
    if status_code in (401, 403, 404, 405, 407) or codes & KEY_CODES or _KEY_WORDS.search(said):
        return ReplyStatus.UNAUTHORIZED
    return ReplyStatus.REJECTED


def reply_of(
    answer: Answer,
    *,
    request_key: str,
    ask_index: int,
    judge_model: str,
    origin: ReplyOrigin,
    n_attempts: int,
    cost_usd: float | None,
) -> JudgeReply:
    """An answer as the reply that the ledger keeps."""
    return JudgeReply(
        request_key=request_key,
        ask_index=ask_index,
        status=answer.status,
        judge_model=judge_model,
        origin=origin,
        text=answer.text,
        finish_reason=answer.finish_reason,
        refusal_text=answer.refusal_text,
        error_detail=answer.detail,
        answered_model=answer.answered_model,
        n_input_tokens=answer.n_input_tokens,
        n_cached_tokens=answer.n_cached_tokens,
        n_output_tokens=answer.n_output_tokens,
        cost_usd=cost_usd,
        latency_s=answer.latency_s,
        n_attempts=n_attempts,
        logprobs_json=answer.logprobs_json,
    )


def retry_after_s(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds to wait by `retry-after-ms`, else by `retry-after` (seconds or an HTTP date); None where neither can be read."""
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _seconds(value)
    if seconds is not None or not value:
        return seconds
    try:
        moment = email.utils.parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())


def one_line(text: str) -> str:
    """A short single line without anything that looks like a key."""
    return _SECRET.sub("[removed]", " ".join(text.split()))[:MAX_DETAIL_CHARACTERS]


def _bad(detail: str) -> Answer:
    return Answer(ReplyStatus.BAD_RESPONSE, one_line(detail))


def _seconds(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _codes(content: object) -> set[str]:
    """Every code and type an error object gives, in lower case; providers nest them differently."""
    error = content.get("error") if isinstance(content, dict) else None
    inner = error.get("innererror") if isinstance(error, dict) else None
    found = [part.get(name) for part in (content, error, inner) if isinstance(part, dict) for name in ("code", "type")]
    return {word.lower() for word in found if isinstance(word, str)}


def _message(content: object) -> str:
    if isinstance(content, dict):
        error = content.get("error", content)
        if isinstance(error, dict):
            code, message = error.get("code") or error.get("type"), error.get("message")
            return ": ".join(str(part)[:MAX_DETAIL_CHARACTERS] for part in (code, message) if part) or "no message"
        return str(error)[:MAX_DETAIL_CHARACTERS]
    return str(content)[:MAX_DETAIL_CHARACTERS] or "no message"


def _word(value: object) -> str | None:
    return value[:200] if isinstance(value, str) else None


def _json(value: object) -> str | None:
    return None if value is None else orjson.dumps(value).decode()


def _count(value: object) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53
    return value if is_count and isinstance(value, int) else None
