"""What an HTTP error means: the one place where a provider's statuses, codes and words become a ReplyStatus, and a remedy."""

import email.utils
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import orjson

from schemas.input_budget import is_too_deep
from schemas.statuses.rows import ReplyStatus
from tasks.judge.provider.exchange import Answer

MAX_DETAIL_CHARACTERS = 400
FILTER_CODES = frozenset({
    "content_filter", "content_policy_violation", "moderation_blocked", "responsibleaipolicyviolation",
    "image_content_policy_violation",
})  # fmt: skip
NO_CREDIT_CODES = frozenset({
    "insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_balance", "budget_exceeded",
})  # fmt: skip
KEY_CODES = frozenset({"invalid_api_key", "account_deactivated", "model_not_found"})
_PASSING = frozenset({408, 409, 424, 425, 498, 499})
"""It may do better next time: 424 where a hosted model's container failed (Bedrock, Azure), 498 without room (Groq's flex)."""
# Words of providers that say it in prose alone.
_FILTER_WORDS = re.compile(r"content[ _-]?(management )?(policy|filter)|safety system|usage polic", re.IGNORECASE)
_BARRED = re.compile(
    r"\b(?:(?:resource|account|organi[sz]ation|project|workspace|subscription|your access)(?: \S+){0,2}?"
    r" (?:has been|have been|was|is|were)(?: \w+)? (?:blocked|banned|disabled|suspended|terminated|deactivated)"
    r"|(?:blocked|banned|disabled|suspended|terminated|deactivated) your (?:resource|account|organi[sz]ation|project|access))\b",
    re.IGNORECASE,
)
"""Azure's, OpenAI's and Anthropic's of an account: where they name their content policy, no single request is meant."""
_KEY_WORDS = re.compile(r"\bapi[ _-]?key\b", re.IGNORECASE)
_BLIND = re.compile(r"image input is not supported|mmproj", re.IGNORECASE)
"""llama.cpp's, in a 500 or in a 400: it was started without the model's picture encoder."""
_NO_PATH = re.compile(r"unexpected endpoint or method", re.IGNORECASE)
"""LM Studio's, in a 200."""
_NUMBERED = re.compile(r"(?<!HTTP )(?<![\w-])[\w-]*\d[\w-]*")
_CLOUDFLARE = re.compile(r"just a moment|cloudflare", re.IGNORECASE)
_DELAY = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)s")
_SECRET = re.compile(r"\bsk-[\w-]{6,}|\b(bearer|basic)\s+[\w.+/=~-]{6,}", re.IGNORECASE)

_REFUSED = re.compile(
    r"not (be )?(supported|available|permitted|allowed)|unsupported|(un|not )(recognized|known|expected)|extra input"
    r"|does not support|only the default|deprecated",
    re.IGNORECASE,
)
_BASE_URL = "check that base_url ends where the API begins: most end in /v1"
_REMEDIES = tuple((re.compile(words, re.IGNORECASE | re.DOTALL), is_of_refusals, advice) for words, is_of_refusals, advice in (
    ((r"invalid_image|unsupported image\b(?!.(input|url|content))|image: unknown format|valid image|image is valid"
     r"|(?:could not|unable to|cannot) (?:process|decode|identify|read)(?: input)?(?: the)? image"),
     False, "the picture is to blame, not the model: open it, and save it again as a plain PNG or JPEG"),
    (r"mmproj", False, "start the server with the model's picture encoder (llama.cpp: --mmproj), or name another model"),
    (r"support image input", False, "name a model that accepts pictures"),
    (r"only supports? stream|enable the stream", False, "name a model that need not stream: Salon reads replies whole"),
    (r"no endpoints found", False, "change the account's settings that the message names, or name another model"),
    (r"DeploymentNotFound", False, "name the deployment at the end of base_url: …/openai/deployments/NAME?api-version=…"),
    (r"\bmax_tokens\b.*\bmax_completion_tokens\b", True, "replace max_tokens with max_completion_tokens in its parameters"),
    (r"\bmax_completion_tokens\b", True, "replace max_completion_tokens with max_tokens in its parameters"),
    (r"response_format|json_schema|guided|structured.output", True,
     "set structured_output = false for the judge, and remove response_format from its parameters"),
    (r"\btemperature\b", True, "remove temperature from its parameters"),
    (r"\btop_p\b", True, "remove top_p from its parameters"),
    (r"image|vision|multi-?modal", True, "name a model that accepts pictures"),
    (r"at most \d+ image|limit[-_]mm[-_]per[-_]prompt", False,
     "start the server so that it accepts more pictures per request (vLLM: --limit-mm-per-prompt)"),
    (r"is not a multimodal model", False, "name a model that accepts pictures"),
    (r"maximum context|context.(length|size)|max_model_len|too many tokens|prompt is too long", False,
     'send smaller pictures (max_side_px, or detail = "low"), lower max_tokens, or give the server a longer context'),
    (r"model.{0,200}(does not|doesn't|not) (exist|found)|model.{0,200}not found|no such model|unknown model|invalid model",
     False, "name the model as the server lists it at /models"),
    (_NO_PATH.pattern, False, _BASE_URL),
    (r"^HTTP 40[45]\b", False, _BASE_URL),
))  # fmt: skip
"""(A server's words, whether they are to refuse something, what to do): OpenAI's, Azure's, OpenRouter's, vLLM's, llama.cpp's,
Ollama's and LM Studio's among them; the first that fits."""


def remedy(detail: str) -> str | None:
    """What to change in the benchmark file, or at the server, about an error with these words; None where nothing fits."""
    is_refused = _REFUSED.search(detail) is not None
    fitting = (advice for words, is_of_refusals, advice in _REMEDIES if is_refused >= is_of_refusals and words.search(detail))
    return next(fitting, None)


def unnumbered(detail: str | None) -> str | None:
    """An error's words without its numbers and ids, which differ from request to request; its HTTP status stays."""
    return None if detail is None else _NUMBERED.sub("#", detail)


def read_failure(status_code: int, headers: Mapping[str, str], body: bytes) -> Answer:
    """The typed meaning of a response that is no 2xx. Never raises."""
    try:
        content: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        content = None
    if content is None or is_too_deep(content):
        content = body[:MAX_DETAIL_CHARACTERS].decode("utf-8", "replace")
    if isinstance(content, list) and content and isinstance(content[0], dict):
        content = content[0]  # Google's, where a stream of them would have been
    said = message_of(content)
    if status_code < 400:
        where = _without_secrets(headers.get("location", ""))
        return bad(f"HTTP {status_code}: redirected to {where}; redirects are not followed, set base_url to the final address")
    if status_code == 407:
        advice = "add its user and password to the environment variable http_proxy, or name the judge's host in no_proxy"
        return Answer(ReplyStatus.UNREACHABLE, one_line(f"HTTP 407: a proxy requires a login ({said}); {advice}"), is_sent=False)
    is_barred = status_code == 403 and isinstance(content, str) and _is_cloudflares(headers, content)
    status = ReplyStatus.SERVER_ERROR if is_barred else _failure_status(status_code, content, said)
    asked_for_s = retry_after_s(headers)
    asked_for_s = _retry_delay_s(content) if asked_for_s is None else asked_for_s
    return Answer(status, one_line(f"HTTP {status_code}: {said}"), retry_after_s=asked_for_s)


def read_told(error: object, detail: str) -> Answer:
    """The meaning of a 200 that holds nothing but an error: that of the HTTP status that the error names, where it names one."""
    said = message_of({"error": error})
    code = error.get("code") if isinstance(error, dict) else None
    number = int(code) if isinstance(code, int) or (isinstance(code, str) and re.fullmatch(r"[0-9]{3}", code)) else 0
    if _NO_PATH.match(said):
        number = 404
    if number in {401, 402, 403, 404, 405, 429} | _PASSING or 500 <= number < 600 or _codes({"error": error}) & NO_CREDIT_CODES:
        status = _failure_status(number, {"error": error}, said)
        return Answer(status, one_line(detail), retry_after_s=_retry_delay_s({"error": error}))
    return bad(detail)


def _is_cloudflares(headers: Mapping[str, str], page: str) -> bool:
    """Whether a page is of the network in front of a provider, which takes a program for an attacker for a while."""
    is_its = "cf-mitigated" in headers or "cloudflare" in headers.get("server", "").lower() or _CLOUDFLARE.search(page)
    return page.lstrip().startswith("<") and bool(is_its)


def _retry_delay_s(content: object) -> float | None:
    """What google.rpc.RetryInfo asks to wait, among the details of an error of Google's."""
    error = content.get("error") if isinstance(content, dict) else None
    details = error.get("details") if isinstance(error, dict) else None
    told = [one.get("retryDelay") for one in details if isinstance(one, dict)] if isinstance(details, list) else []
    found = (_DELAY.fullmatch(delay) for delay in told if isinstance(delay, str))
    return next((float(match[1]) for match in found if match), None)


def _without_secrets(address: str) -> str:
    """Where a redirect leads, without login and query."""
    try:
        target = urlsplit(address)
    except ValueError:  # brackets that hold no IPv6 address
        return "something that is not an address"
    return f"{target.scheme}://{target.hostname}" if target.hostname else target.path or "another address"


def _failure_status(status_code: int, content: object, said: str) -> ReplyStatus:
    # An address, a model or an encoder that is not there (404, 405) is `unauthorized`: it is mended in the benchmark file,
    # the account or the server, and then asked again. As `rejected` it would be kept for ever.
    codes = _codes(content)
    if codes & NO_CREDIT_CODES or status_code == 402:
        return ReplyStatus.NO_CREDIT
    if status_code == 429:
        return ReplyStatus.RATE_LIMITED
    is_blind = _BLIND.search(said) is not None
    if not is_blind and (status_code >= 500 or status_code in _PASSING):  # it may do better next time
        return ReplyStatus.SERVER_ERROR
    is_barred = status_code in (400, 403) and _BARRED.search(said) is not None
    is_about_content = _is_flagged(content) or (_FILTER_WORDS.search(said) and not is_barred)
    if codes & FILTER_CODES or (status_code in (400, 403) and is_about_content):
        return ReplyStatus.FILTERED
    if is_barred or status_code in (401, 403, 404, 405) or codes & KEY_CODES or _KEY_WORDS.search(said) or is_blind:
        return ReplyStatus.UNAUTHORIZED
    return ReplyStatus.REJECTED


def retry_after_s(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds to wait by `retry-after-ms`, else by `retry-after` (seconds or an HTTP date); None where neither can be read.

    A date is reckoned from the response's own: the clock of this machine may be minutes off.
    """
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _seconds(value)
    if seconds is not None or not value:
        return seconds
    moment = _http_date(value)
    now = _http_date(headers.get("date", "")) or now or datetime.now(UTC)
    return None if moment is None else max(0.0, (moment - now).total_seconds())


def _http_date(value: str) -> datetime | None:
    try:
        moment = email.utils.parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def one_line(text: str) -> str:
    """A short single line without anything that looks like a key."""
    return _SECRET.sub("[removed]", " ".join(text.split()))[:MAX_DETAIL_CHARACTERS]


def bad(detail: str) -> Answer:
    """A response that cannot be taken, and why."""
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


def _is_flagged(content: object) -> bool:
    """Whether a moderation says what it found in the request, as OpenRouter's does in a 403: the key is not to blame."""
    error = content.get("error") if isinstance(content, dict) else None
    metadata = error.get("metadata") if isinstance(error, dict) else None
    return isinstance(metadata, dict) and any(metadata.get(name) for name in ("reasons", "flagged_input"))


def message_of(content: object) -> str:
    """What an error object says, in a line: its code, and its words."""
    if isinstance(content, dict):
        error = content.get("error", content)
        if isinstance(error, dict):
            code, message = error.get("code") or error.get("type"), error.get("message") or error.get("detail")
            return ": ".join(_said(part) for part in (code, message) if part) or (_said(error) if error else "no message")
        return _said(error)
    return _said(content) or "no message"


def _said(part: object) -> str:
    """Words as they are, anything else in the JSON it came in."""
    return (part if isinstance(part, str) else orjson.dumps(part).decode())[:MAX_DETAIL_CHARACTERS]
