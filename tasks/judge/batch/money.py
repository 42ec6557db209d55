"""The money of batches: every line's worst case set aside for good before it is handed over. Batches themselves are elsewhere."""

from collections.abc import Mapping, Sequence

from rubrics.model import Rubric
from schemas.benchmark import Judge
from tasks.judge.budget.budget import reserve_for_good
from tasks.judge.budget.cost import Costs
from tasks.judge.provider.responses import Answer
from tasks.judge.work_queue import Ask
from tasks.ledger.ledger import opened


class BatchMoney:
    """What lines to one judge may cost and did cost. Nothing set aside is given back: the replies may come in another run."""

    def __init__(self, judge: Judge, rubrics: Mapping[str, Rubric], max_usd: float | None, ledger_url: str, run_id: str) -> None:
        declared = max(rubric.n_output_tokens_expected for rubric in rubrics.values())
        self._costs = Costs(judge, declared, is_batch=True)
        self._max_usd, self._ledger_url, self._run_id = max_usd, ledger_url, run_id

    def cost_of(self, answer: Answer) -> float | None:
        """What a line's answer cost; None where its tokens or the price are not known."""
        return self._costs.cost_usd(answer)

    def reserve(self, asks: Sequence[Ask]) -> int:
        """How many of these asks, from the first on, `max_usd` has room for. A picture counts at the largest size."""
        if self._max_usd is None:
            return len(asks)
        worst = [self._costs.estimate(ask.messages_json, ask.image_sha256).worst_usd or 0.0 for ask in asks]
        with opened(self._ledger_url) as ledger:
            return reserve_for_good(ledger, self._run_id, self._max_usd, worst)
