"""For each request what is answered, when, and what it costs. Sockets are protocol.py's, files admin_api.py's.

A request meets its key's limits, then what goes wrong, then the judge. What was drawn for it does not depend on the others.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from math import isinf
from typing import Any

import orjson

from demo.mock_provider.billing import Usage
from demo.mock_provider.counts import Counts
from demo.mock_provider.exam import Examined
from demo.mock_provider.faults import ANSWERED, Draws, Fault, error_object, in_place_of_answer
from demo.mock_provider.forms import Addressed
from demo.mock_provider.rate_limits import RateLimits, Refused, retry_headers
from demo.mock_provider.request import BadRequest, Body, ChatRequest, content_digest, item_of, read_body, read_request
from demo.mock_provider.responses import (
    JSON,
    MANNERS,
    PlannedResponse,
    delay_s,
    good_text,
    http_response,
    input_tokens,
    make_completion,
)
from demo.mock_provider.scenario import Scenario


class Provider:
    """One provider playing one scenario: `receive` a whole request, `charge` its response when due, `leave` when it is out."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.models = {model.id: model for model in scenario.models}
        self._names = list(self.models)
        self.counts = Counts()
        self.start_anew()

    def start_anew(self) -> None:
        """Play the scenario from its beginning: counts, limits, pauses, attempts and changes."""
        self.counts = Counts(self.counts.n_in_flight)
        self.rate_limits = RateLimits(self.scenario.limits, self.scenario.stats.grace_s)
        # By item, those the limits let through: what the limits refuse is a matter of time, and must not move the draws.
        self._attempts: Counter[bytes] = Counter()
        self._fault: Fault | None = None
        self._answering: str | None = None
        self._to_come = list(self.scenario.changes)
        self._started_s = 0.0
        exam = self.scenario.exam
        self._examined = None if exam is None else Examined(exam.lake, exam.noticed, self.scenario.seed)
        self._written: Callable[..., bytes] = http_response  # of the request that is being answered
        self._canned = self._ready_answer()

    @property
    def needs_whole_bodies(self) -> bool:
        """Whether bodies must be there whole; else their first SAMPLED_BYTES are enough."""
        return not self.scenario.answer.is_plain or self.scenario.stats.items == "content"

    def receive(self, body: Body, n_bytes: int, key: str, first_byte_s: float, form: Addressed | None = None) -> PlannedResponse:
        """Decide what becomes of a request of `n_bytes`. The time is of the monotonic clock; the body is not kept.

        `form`: the native one that it is written in, and its response will be.
        """
        self._written = http_response if form is None else form.form.response
        counts, now_s = self.counts, time.monotonic()
        counts.arrive()
        self._started_s = self._started_s or now_s
        counts.meet_pause(self.rate_limits.was_paused(key, first_byte_s))
        if self._to_come:
            self._change(now_s)
        if self._canned is not None and form is None:
            item = item_of(body, None, n_bytes, self.scenario.stats.items)
            counts.requested[item] += 1
            counts.admit()
            return PlannedResponse(200, self._canned[0], item=item, model=self._names[0], usage=self._canned[1])
        try:
            return self._decide(body, n_bytes, key, now_s, form)
        except BadRequest as error:
            content = error_object(str(error), "invalid_request_error", error.code)
            return PlannedResponse(error.status, self._written(error.status, orjson.dumps({"error": content}), JSON))

    def charge(self, response: PlannedResponse) -> None:
        """The answer is made: from now on it is paid for, whether or not it arrives."""
        if response.usage is not None:
            self.counts.bill(response.item, response.model, response.usage, is_batch=False)

    def leave(self, status: int, *, is_abandoned: bool = False) -> None:
        """The response is out; status 0: no response went out, because of a fault or because the client left."""
        self.counts.leave(status, is_abandoned=is_abandoned)

    def answer_line(self, content: Any) -> tuple[int, dict[str, Any]]:
        """Status and body for one line of a batch file, charged at once. Lines meet no limits a minute."""
        item = content_digest(content)
        draws = Draws(self.scenario.seed, item, self.counts.requested[item])
        self.counts.requested[item] += 1
        fault = draws.by_share("line", self.scenario.batch.line_faults)
        self._count_fault(fault)
        gone_wrong = None if fault is None else in_place_of_answer(fault)
        if gone_wrong is not None:
            return gone_wrong[0], orjson.loads(gone_wrong[1])
        try:
            request = read_request(content, self._names)
            body, usage = self._complete(request, fault, draws)
        except BadRequest as error:
            return error.status, {"error": error_object(str(error), "invalid_request_error", error.code)}
        if usage is not None:
            self.counts.bill(item, request.model, usage, is_batch=True)
        return 200, body

    def _decide(self, body: Body, n_bytes: int, key: str, now_s: float, form: Addressed | None) -> PlannedResponse:
        answer, items = self.scenario.answer, self.scenario.stats.items
        content = None
        try:
            content = read_body(body) if self.needs_whole_bodies or form else None
            content = form.chat(content) if form else content
        finally:
            item = item_of(body, content, n_bytes, items)
            self.counts.requested[item] += 1
        attempt = self._attempts[item]
        draws = Draws(self.scenario.seed, item, attempt)
        request = self._plain_request() if answer.is_plain and form is None else read_request(content, self._names)
        fault = self._fault or self._drawn_fault(draws, attempt)
        if fault is not Fault.UNAUTHORIZED:
            refused = self.rate_limits.admit(key, self._n_tokens(request), now_s)
            if refused is not None:
                return self._refuse(refused, key, now_s)
        self._attempts[item] += 1
        response = self._answer(request, fault, draws, key, now_s)
        response.item, response.model = item, request.model
        return response

    def _answer(self, request: ChatRequest, fault: Fault | None, draws: Draws, key: str, now_s: float) -> PlannedResponse:
        """The response of a request within its limits."""
        self._count_fault(fault)
        if fault is Fault.RATE_LIMITED:
            return self._refuse_by_chance(draws, key, now_s)
        self.counts.admit()
        wait_s = delay_s(self.scenario.latency, draws, self.counts.n_in_flight)
        headers = self.rate_limits.headers(key, now_s) | {
            "openai-processing-ms": str(round(wait_s * 1000)),
            "x-request-id": f"req_{int(draws.share('request') * 2**53):014x}",
        }
        gone_wrong = None if fault is None else in_place_of_answer(fault)
        if gone_wrong is not None:
            return PlannedResponse(gone_wrong[0], self._written(*gone_wrong, headers), wait_s)
        body, usage = self._complete(request, fault, draws)
        sent = orjson.dumps(body)
        sent = sent[: len(sent) // 2] if fault is Fault.CUT_JSON else sent
        return PlannedResponse(200, self._written(200, sent, JSON, headers), wait_s, MANNERS.get(fault, "whole"), usage=usage)

    def _complete(self, request: ChatRequest, fault: Fault | None, draws: Draws) -> tuple[dict[str, Any], Usage | None]:
        """The completion, and its usage where it is billed: an answer that was never finished is not."""
        answer = self.scenario.answer
        n_input = self._n_input(request)
        shown = request if self._examined is None else replace(request, messages=self._examined.as_seen(request.messages))
        text = good_text(answer, shown)
        answering = self.scenario.faults.wrong_model if fault is Fault.WRONG_MODEL else self._answering or request.model
        body, usage = make_completion(request, text, n_input, answering, fault, draws)
        if answer.prompt_tokens is not None and answer.completion_tokens is not None:
            usage = Usage(answer.prompt_tokens, answer.completion_tokens)
            body["usage"] = usage.as_json()
        return body, usage if fault is None or fault in ANSWERED else None

    def _refuse(self, refused: Refused, key: str, now_s: float) -> PlannedResponse:
        """A 429 of the key's limits, with the time until the request would be granted."""
        if isinf(refused.wait_s):
            message = f"Request too large: it is over the limit of {refused.kind} by itself."
            extra: dict[str, str] = {}
        else:
            message = f"Rate limit reached on {refused.kind}. Please try again in {refused.wait_s:.3f}s."
            extra, said_s = retry_headers(self.scenario.limits.retry_after, refused.wait_s, time.time())
            self.rate_limits.pause(key, now_s, said_s)
        self.counts.by_fault[f"over_limit_{refused.kind}"] += 1
        self.counts.refuse()
        error = orjson.dumps({"error": error_object(message, refused.kind, "rate_limit_exceeded")})
        return PlannedResponse(429, self._written(429, error, JSON, self.rate_limits.headers(key, now_s) | extra))

    def _refuse_by_chance(self, draws: Draws, key: str, now_s: float) -> PlannedResponse:
        """A 429 that was drawn, with its Retry-After in a drawn form."""
        faults = self.scenario.faults
        wait_s = draws.between("wait", *faults.retry_after_s)
        extra, said_s = retry_headers(draws.one_of("retry", faults.retry_after), wait_s, time.time())
        self.rate_limits.pause(key, now_s, said_s)
        self.counts.refuse()
        gone_wrong = in_place_of_answer(Fault.RATE_LIMITED)
        assert gone_wrong is not None
        return PlannedResponse(429, self._written(*gone_wrong, self.rate_limits.headers(key, now_s) | extra))

    def _drawn_fault(self, draws: Draws, attempt: int) -> Fault | None:
        faults = self.scenario.faults
        if faults.first_attempts is not None and attempt >= faults.first_attempts:
            return None
        return draws.by_share("fault", faults.shares)

    def _change(self, now_s: float) -> None:
        """Play the changes whose time has come."""
        due = [
            change
            for change in self._to_come
            if (change.at_s is not None and now_s - self._started_s >= change.at_s)
            or (change.after_requests is not None and self.counts.n_requests > change.after_requests)
        ]
        for change in due:
            self._to_come.remove(change)
            self.rate_limits.change(change, now_s)
            self._answering = change.answering_model or self._answering
            if change.fault is not None:
                self._fault = None if change.fault == "none" else change.fault

    def _n_tokens(self, request: ChatRequest) -> int:
        """What a request counts for against tokens a minute: its input, and the most it may be answered with."""
        return self._n_input(request) + (request.max_tokens or self.scenario.answer.completion_tokens or 0)

    def _n_input(self, request: ChatRequest) -> int:
        fixed = self.scenario.answer.prompt_tokens
        return fixed if fixed is not None else input_tokens(self.models[request.model], request)

    def _plain_request(self) -> ChatRequest:
        return ChatRequest(self._names[0], (), None, wants_logprobs=False)

    def _count_fault(self, fault: Fault | None) -> None:
        if fault is not None:
            self.counts.by_fault[fault.value] += 1

    def _ready_answer(self) -> tuple[bytes, Usage] | None:
        """The one response of a scenario in which every request gets the same at once, so that it costs next to nothing."""
        scenario = self.scenario
        is_same = scenario.model_copy(update={"stats": Scenario().stats}) == Scenario(
            seed=scenario.seed, answer=scenario.answer, models=scenario.models, batch=scenario.batch
        )
        if not (is_same and scenario.answer.is_plain and scenario.stats.items != "content"):
            return None
        body, usage = self._complete(self._plain_request(), None, Draws(scenario.seed, b"", 0))
        assert usage is not None
        return http_response(200, orjson.dumps(body), JSON), usage
