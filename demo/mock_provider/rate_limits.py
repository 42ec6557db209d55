"""Rate limits of each API key: requests and tokens a minute, the headers that tell of them, and who was told to wait."""

from dataclasses import dataclass
from email.utils import formatdate
from math import ceil, inf

from demo.mock_provider.scenario import Change, Limits, RetryForm


class TokenBucket:
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


class FixedWindow:
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
    """The two limits of one key; what is not limited is absent."""

    def __init__(self, limits: Limits, now_s: float) -> None:
        self.limits: dict[str, TokenBucket | FixedWindow] = {}
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
            if kind in self.limits:
                self.limits[kind].change(rate, burst, now_s)
            elif limits.kind == "bucket":
                self.limits[kind] = TokenBucket(rate, burst, now_s)
            else:
                self.limits[kind] = FixedWindow(rate, limits.window_s, now_s)

    def admit(self, n_tokens: int, now_s: float) -> Refused | None:
        """Use up one request and its tokens, or nothing at all where either is not granted."""
        sizes = {"requests": 1, "tokens": n_tokens}
        waits = {kind: limit.wait_s(sizes[kind], now_s) for kind, limit in self.limits.items()}
        if waits and max(waits.values()) > 0:
            kind = max(waits, key=lambda name: waits[name])
            return Refused(kind, waits[kind])
        for kind, limit in self.limits.items():
            limit.take(sizes[kind], now_s)
        return None

    def headers(self, now_s: float) -> dict[str, str]:
        """The x-ratelimit headers of what is limited."""
        found = {}
        for kind, limit in self.limits.items():
            found[f"x-ratelimit-limit-{kind}"] = str(limit.per_minute)
            found[f"x-ratelimit-remaining-{kind}"] = str(limit.remaining(now_s))
            found[f"x-ratelimit-reset-{kind}"] = duration(limit.reset_s(now_s))
        return found


class RateLimits:
    """The keys seen so far: each has the scenario's limits for itself, and may have been told to wait. Monotonic clock."""

    def __init__(self, limits: Limits, grace_s: float) -> None:
        self._limits, self._grace_s = limits, grace_s
        self._keys: dict[str, KeyLimits] = {}
        self._pauses: dict[str, tuple[float, float]] = {}  # key: told at, until

    def admit(self, key: str, n_tokens: int, now_s: float) -> Refused | None:
        """Let a request through, or say why not; one that is refused uses up nothing."""
        return self._of(key, now_s).admit(n_tokens, now_s)

    def headers(self, key: str, now_s: float) -> dict[str, str]:
        """The x-ratelimit headers of a key."""
        return self._of(key, now_s).headers(now_s)

    def change(self, change: Change, now_s: float) -> None:
        """Other limits for every key, where the change says so."""
        names = ("requests_per_minute", "tokens_per_minute", "burst_requests", "burst_tokens")
        said = {name: getattr(change, name) for name in names if getattr(change, name) is not None}
        if not said:
            return
        self._limits = self._limits.model_copy(update=said)
        for limits in self._keys.values():
            limits.change(self._limits, now_s)

    def pause(self, key: str, now_s: float, wait_s: float) -> None:
        """The key was told to wait; a shorter wait told later does not end a longer one."""
        _, until_s = self._pauses.get(key, (0.0, 0.0))
        if wait_s > 0 and now_s + wait_s > until_s:
            # Told anew while it waits, a client that keeps still is not given another grace.
            told_s = self._pauses[key][0] if now_s < until_s else now_s
            self._pauses[key] = told_s, now_s + wait_s

    def was_paused(self, key: str, first_byte_s: float) -> str | None:
        """Whether a request began while its key was paused: "paused", or "on_the_way" within the grace after the 429."""
        pause = self._pauses.get(key)
        if pause is None or first_byte_s >= pause[1]:
            return None
        return "on_the_way" if first_byte_s <= pause[0] + self._grace_s else "paused"

    def _of(self, key: str, now_s: float) -> KeyLimits:
        if key not in self._keys:
            self._keys[key] = KeyLimits(self._limits, now_s)
        return self._keys[key]


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
