"""What the difficult provider saw: the counts behind GET /stats. Nothing is decided here."""

import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from demo.mock_provider.billing import Price, Usage, usd


class Counts:
    """Counts since the server started, or since POST /stats/reset. Times are of the wall clock, in seconds."""

    def __init__(self, n_in_flight: int = 0) -> None:
        self.n_in_flight = self.peak_in_flight = n_in_flight
        self.n_requests = self.n_abandoned = self.n_connections = 0
        self.n_to_paused_key = self.n_on_the_way_to_paused_key = 0
        self.first_request_s = self.last_answer_s = 0.0
        self.by_status: Counter[int] = Counter()
        self.by_fault: Counter[str] = Counter()
        self.requested: Counter[bytes] = Counter()  # by item, the lines of batches included
        self.billed: Counter[bytes] = Counter()
        self.tokens: dict[tuple[str, bool], list[int]] = defaultdict(lambda: [0, 0, 0])  # (model, is_batch): n, in, out
        self.by_second: dict[int, list[int]] = defaultdict(lambda: [0, 0])  # second since the first request: admitted, 429
        self._cpu_s = time.process_time()

    def arrive(self) -> None:
        """A request is there whole."""
        if not self.n_requests:
            self.first_request_s = time.time()
        self.n_requests += 1
        self.n_in_flight += 1
        self.peak_in_flight = max(self.peak_in_flight, self.n_in_flight)

    def bill(self, item: bytes, model: str, usage: Usage, *, is_batch: bool) -> None:
        """Charge for one answer."""
        self.billed[item] += 1
        account = self.tokens[model, is_batch]
        account[0] += 1
        account[1] += usage.n_input_tokens
        account[2] += usage.n_output_tokens

    def leave(self, status: int, *, is_abandoned: bool) -> None:
        """A request's answer is out, or its connection gone (status 0)."""
        self.n_in_flight -= 1
        self.n_abandoned += is_abandoned
        self.last_answer_s = time.time()
        self.by_status[status] += 1

    def meet_pause(self, found: str | None) -> None:
        """A request may have come while its key was told to wait."""
        self.n_to_paused_key += found == "paused"
        self.n_on_the_way_to_paused_key += found == "on_the_way"

    def admit(self) -> None:
        """A request was let through in the present second."""
        self.by_second[int(time.time() - self.first_request_s)][0] += 1

    def refuse(self) -> None:
        """A request got a 429 in the present second."""
        self.by_second[int(time.time() - self.first_request_s)][1] += 1

    def as_json(self, prices: Mapping[str, Price], batch_share: float) -> dict[str, Any]:
        """What GET /stats shows."""
        bills = Counter(self.billed[item] for item in self.requested)
        accounts = [
            {"model": model, "is_batch": is_batch, "n_answers": n, "n_input_tokens": n_in, "n_output_tokens": n_out,
             "usd": usd(prices[model], Usage(n_in, n_out)) * (batch_share if is_batch else 1)}
            for (model, is_batch), (n, n_in, n_out) in self.tokens.items()
        ]  # fmt: skip
        return {
            "n_requests": self.n_requests,
            "n_connections": self.n_connections,
            "n_in_flight": self.n_in_flight,
            "peak_in_flight": self.peak_in_flight,
            "n_429": self.by_status[429],
            "n_abandoned": self.n_abandoned,
            "by_status": {str(status) if status else "none": n for status, n in sorted(self.by_status.items())},
            "by_fault": dict(sorted(self.by_fault.items())),
            "n_items": len(self.requested),
            "n_items_by_times_billed": {str(times): n for times, n in sorted(bills.items())},
            "n_answers_billed": sum(account[0] for account in self.tokens.values()),
            "n_input_tokens": sum(account[1] for account in self.tokens.values()),
            "n_output_tokens": sum(account[2] for account in self.tokens.values()),
            "usd": sum(account["usd"] for account in accounts),
            "accounts": accounts,
            "n_to_paused_key": self.n_to_paused_key,
            "n_on_the_way_to_paused_key": self.n_on_the_way_to_paused_key,
            "first_request_s": self.first_request_s or None,
            "last_answer_s": self.last_answer_s or None,
            "by_second": [[second, *counts] for second, counts in sorted(self.by_second.items())],
            "cpu_s": time.process_time() - self._cpu_s,
        }

    def items_as_json(self) -> dict[str, dict[str, int]]:
        """What GET /stats/items shows: how often each item was asked and billed."""
        return {item.hex(): {"n_asked": n, "n_billed": self.billed[item]} for item, n in self.requested.items()}
