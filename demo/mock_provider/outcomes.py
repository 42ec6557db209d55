"""What becomes of one request: its response, when it starts and how it is sent. What is decided, provider.py decides."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Literal

from demo.mock_provider.billing import Usage
from demo.mock_provider.draws import Draws
from demo.mock_provider.faults import Fault
from demo.mock_provider.scenario import Latency

Manner = Literal["whole", "drip", "reset", "hang"]
MANNERS: dict[Fault | None, Manner] = {
    Fault.DRIP: "drip",
    Fault.RESET: "reset",
    Fault.LOST_ANSWER: "reset",
    Fault.HANG: "hang",
}
JSON = "application/json"
_REASONS = {int(status): status.phrase for status in HTTPStatus}


@dataclass(slots=True)
class Outcome:
    """What becomes of a request: the HTTP response, when it starts, how it is sent, and the answer charged for, if any."""

    status: int
    response: bytes
    delay_s: float = 0.0
    manner: Manner = "whole"
    item: bytes = b""
    model: str = ""
    usage: Usage | None = None


def http_response(status: int, body: bytes, content_type: str, headers: dict[str, str] | None = None) -> bytes:
    """A whole HTTP/1.1 response."""
    reason = _REASONS.get(status, "Unknown")
    lines = [f"HTTP/1.1 {status} {reason}", f"content-type: {content_type}", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def delay_s(latency: Latency, draws: Draws, n_in_flight: int) -> float:
    """Seconds from the request's last byte to its answer."""
    is_slow = latency.slow_share > 0 and draws.share("slow") < latency.slow_share
    drawn_s = latency.slow_s if is_slow else draws.log_normal("latency", latency.median_s, latency.sigma)
    if latency.full_speed_in_flight is not None:
        drawn_s *= max(1.0, n_in_flight / latency.full_speed_in_flight)
    return min(drawn_s, latency.at_most_s)
