"""What the difficult provider keeps of each API key: its allowances, and until when it was told to wait."""

from demo.mock_provider.rate_limits import KeyLimits, Refused
from demo.mock_provider.scenario import Change, Limits


class Keys:
    """The keys seen so far; each has the scenario's limits for itself. Times are of the monotonic clock."""

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
