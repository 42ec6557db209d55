"""What all tries of one shard sent and bought: one made again, as provider or ledger is back, knows none of those before."""

from collections import Counter
from dataclasses import dataclass, field, replace

from schemas.records import JudgeReply
from tasks.judge.outcome import Outcome
from tasks.judge.provider.exchange import Answer


@dataclass(slots=True)
class Heard:
    """Of a judge that is asked by batch only the replies: how many lines are in doubt its tries count together."""

    _bought: Outcome = field(default_factory=Outcome)
    _ended: list[tuple[str, str]] = field(default_factory=list)  # (request key, status), in the order they came

    def hear(self, reply: JudgeReply) -> None:
        """One more, durable."""
        self._bought.count(reply)
        self._ended.append((reply.request_key, reply.status.value))

    def hear_attempt(self, answer: Answer) -> None:
        """One more attempt that ended."""
        self._bought.count_attempt(answer)

    def in_all_tries(self, last: Outcome) -> Outcome:
        """The outcome of the last try with what those before it sent, and what they bought, which it found stored."""
        n_before = len(self._ended) - last.n_replies
        sent = self._bought if self._bought.attempts_by_status else last
        if not n_before and sent.attempts_by_status == last.attempts_by_status:
            return last
        found = dict(self._ended[:n_before])
        for key, _ in self._ended[n_before:]:  # asked a second time by the last try, which counts it
            found.pop(key, None)
        return replace(
            last,
            n_cached=max(0, last.n_cached - len(found)),
            n_asked=sent.n_asked,
            n_replies=len(self._ended),
            n_input_tokens=self._bought.n_input_tokens,
            n_output_tokens=self._bought.n_output_tokens,
            cost_usd=self._bought.cost_usd,
            n_without_cost=self._bought.n_without_cost,
            n_not_believed=self._bought.n_not_believed,
            n_in_doubt=sent.n_in_doubt,
            in_doubt_usd=sent.in_doubt_usd,
            n_by_status=last.n_by_status + Counter(found.values()),
            attempts_by_status=sent.attempts_by_status,
        )
