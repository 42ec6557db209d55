"""Requests and tokens a minute for one key, and the headers that tell of them. Which requests count is decided elsewhere."""

from dataclasses import dataclass
from email.utils import formatdate
from math import ceil, inf

from demo.mock_provider.scenario import Limits, RetryForm


class Bucket:
    """Fills evenly up to the burst, so that no span of t seconds grants more than burst + t * per_minute / 60."""

    def __init__(self, per_minute: int, burst: int | None, now_s: float) -> None:
        self.per_minute, self.burst = per_minute, burst or per_minute
        self._level, self._at_s = float(self.burst), now_s

    def change(self, per_minute: int, burst: int | None, now_s: float) -> None:
        """Another rate from now on; what had gathered above the new burst is lost."""
        self._fill(now_s)
        self.per_minute, self.burst = per_minute, burst or per_minute
        self._level = min(self._level, float(self.burst))

    def wait_s(self, n: float, now_s: float) -> float:
        """Seconds until `n` would be granted; infinite where it never is."""
        self._fill(now_s)
        if n > self.burst:
            return inf
        return max(0.0, (n - self._level) * 60 / self.per_minute)

    def take(self, n: float, now_s: float) -> None:
        """Use up `n`."""
        self._fill(now_s)
        self._level -= n

    def remaining(self, now_s: float) -> int:
        """What is left."""
        self._fill(now_s)
        return max(0, int(self._level))

    def reset_s(self, now_s: float) -> float:
        """Seconds until all of it is there again."""
        self._fill(now_s)
        return (self.burst - self._level) * 60 / self.per_minute

    def _fill(self, now_s: float) -> None:
        self._level = min(float(self.burst), self._level + (now_s - self._at_s) * self.per_minute / 60)
        self._at_s = now_s


class Window:
    """A count that starts anew every `window_s` seconds."""

    def __init__(self, per_minute: int, window_s: float, now_s: float) -> None:
        self.per_minute, self._window_s = per_minute, window_s
        self._used, self._start_s = 0.0, now_s

    def change(self, per_minute: int, _burst: int | None, now_s: float) -> None:
        """Another rate from now on; what the window has used stays used."""
        self._turn(now_s)
        self.per_minute = per_minute

    @property
    def most(self) -> float:
        """What one window grants."""
        return self.per_minute * self._window_s / 60

    def wait_s(self, n: float, now_s: float) -> float:
        """Seconds until `n` would be granted; infinite where it never is."""
        self._turn(now_s)
        if n > self.most:
            return inf
        return 0.0 if self._used + n <= self.most else self.reset_s(now_s)

    def take(self, n: float, now_s: float) -> None:
        """Use up `n`."""
        self._turn(now_s)
        self._used += n

    def remaining(self, now_s: float) -> int:
        """What is left."""
        self._turn(now_s)
        return max(0, int(self.most - self._used))

    def reset_s(self, now_s: float) -> float:
        """Seconds until all of it is there again."""
        self._turn(now_s)
        return self._start_s + self._window_s - now_s

    def _turn(self, now_s: float) -> None:
        n_passed = int((now_s - self._start_s) // self._window_s)
        if n_passed > 0:
            self._used = 0.0
            self._start_s += n_passed * self._window_s


@dataclass(frozen=True, slots=True)
class Refused:
    """A request over a limit: of which kind, and after how many seconds it would be granted (infinite: never)."""

    kind: str  # "requests" or "tokens"
    wait_s: float


class KeyLimits:
    """The two allowances of one key; what is not limited is absent."""

    def __init__(self, limits: Limits, now_s: float) -> None:
        self.allowances: dict[str, Bucket | Window] = {}
        self.change(limits, now_s)

    def change(self, limits: Limits, now_s: float) -> None:
        """These limits from now on."""
        given = {
            "requests": (limits.requests_per_minute, limits.burst_requests),
            "tokens": (limits.tokens_per_minute, limits.burst_tokens),
        }
        for kind, (rate, burst) in given.items():
            if rate is None:
                continue
            if kind in self.allowances:
                self.allowances[kind].change(rate, burst, now_s)
            elif limits.kind == "bucket":
                self.allowances[kind] = Bucket(rate, burst, now_s)
            else:
                self.allowances[kind] = Window(rate, limits.window_s, now_s)

    def admit(self, n_tokens: int, now_s: float) -> Refused | None:
        """Use up one request and its tokens, or nothing at all where either is not granted."""
        sizes = {"requests": 1, "tokens": n_tokens}
        waits = {kind: allowance.wait_s(sizes[kind], now_s) for kind, allowance in self.allowances.items()}
        if waits and max(waits.values()) > 0:
            kind = max(waits, key=lambda name: waits[name])
            return Refused(kind, waits[kind])
        for kind, allowance in self.allowances.items():
            allowance.take(sizes[kind], now_s)
        return None

    def headers(self, now_s: float) -> dict[str, str]:
        """The x-ratelimit headers of what is limited."""
        found = {}
        for kind, allowance in self.allowances.items():
            found[f"x-ratelimit-limit-{kind}"] = str(allowance.per_minute)
            found[f"x-ratelimit-remaining-{kind}"] = str(allowance.remaining(now_s))
            found[f"x-ratelimit-reset-{kind}"] = duration(allowance.reset_s(now_s))
        return found


def retry_headers(form: RetryForm, wait_s: float, now_epoch_s: float) -> tuple[dict[str, str], float]:
    """The headers that ask to wait in one of the forms, and the seconds they say: whole ones, or milliseconds, rounded up."""
    whole, fine = ceil(wait_s - 1e-9), ceil(wait_s * 1000 - 1e-6)
    match form:
        case "seconds":
            return {"retry-after": str(whole)}, whole
        case "milliseconds":
            return {"retry-after-ms": str(fine)}, fine / 1000
        case "both":
            return {"retry-after-ms": str(fine), "retry-after": str(whole)}, fine / 1000
        case "date":
            until = ceil(now_epoch_s + wait_s)
            return {"retry-after": formatdate(until, usegmt=True)}, until - now_epoch_s
        case "none":
            return {}, 0.0


def duration(seconds: float) -> str:
    """A span as the provider writes it: 12ms, 1.5s, 6m0s."""
    ms = ceil(seconds * 1000 - 1e-6)
    if ms < 1000:
        return f"{max(ms, 0)}ms"
    minutes, rest_ms = divmod(ms, 60_000)
    rest = f"{rest_ms / 1000:g}s"
    return f"{minutes}m{rest}" if minutes else rest
