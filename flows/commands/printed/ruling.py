"""What `salon gate` says in sentences, in the terminal and in a pull request's comment. Its table is gating.py's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.commands.printed.judge_moves import sentence
from flows.nights.judge_between import JudgeMove
from tasks.aggregate.gate import RISE_TURNED, TOO_FEW, TURNED, Outcome, Ruling, prompts_needed, summary
from tasks.publish.reading import Publication
from tasks.publish.standings.wording import counted


@dataclass(frozen=True, slots=True)
class Told:
    """A publication's rulings, and what there is to know about them. `judges`: those looked at alone, empty where all are.

    `n_categories`: single ones that were compared, and are not ruled on. `blind`: what judges are blind to,
    as their exam found: rubric_id, judge_model, dimension, blind_to.
    """

    found: Publication
    ruled: Sequence[Ruling]
    alpha: float
    n_again: int
    blind: Sequence[Mapping[str, Any]]
    judges: Sequence[str]
    moves: Sequence[JudgeMove]
    n_categories: int

    @property
    def outcome(self) -> str:
        """The whole in a sentence."""
        n_of = {one: sum(ruling.outcome is one for ruling in self.ruled) for one in Outcome}
        return {
            Outcome.REGRESSION: f"Regression: worse in {n_of[Outcome.REGRESSION]} of {len(self.ruled)} comparisons.",
            Outcome.UNKNOWN: f"Undecided: {n_of[Outcome.UNKNOWN]} of {len(self.ruled)} comparisons are inconclusive.",
            Outcome.NO_REGRESSION: f"No regression found in {counted(len(self.ruled), 'comparison')}.",
        }[summary(self.ruled)]

    @property
    def judge_moved(self) -> list[str]:
        """A sentence for each comparison behind which the judge moved. The ruling stays: it is of what was published."""
        several = len({move.rubric_id for move in self.moves}) > 1 or len({move.judge_model for move in self.moves}) > 1
        return [(f"{move.rubric_id}, {move.judge_model}: " if several else "") + sentence(move) for move in self.moves]

    @property
    def notes(self) -> str:
        """Of which publication, how it is tested, what was left out."""
        found, n_needed = self.found, prompts_needed(self.ruled, self.alpha)
        return (
            f"{found.benchmark}, {found.run_date}, publication {found.publication_id[:16]}. Paired by prompt, two-sided at "
            f"{self.alpha:g} for all comparisons together; 'would find': the drop found in 80 % of cases."
            + (f" Only the rankings of {', '.join(self.judges)} are considered." if self.judges else "")
            + (f" Judgements taken from an earlier identical sample: {self.n_again:,}." if self.n_again else "")
            + (
                f" At least {n_needed} shared prompts are needed to rule on a difference at that level."
                if any(ruling.reason == TOO_FEW for ruling in self.ruled)
                else ""
            )
            + (
                " A verdict that failures could reverse is not claimed: `salon table` shows how many scores are missing, and why."
                if any(ruling.reason in (TURNED, RISE_TURNED) for ruling in self.ruled)
                else ""
            )
            + (
                f" Single categories ({self.n_categories}) are not considered: `salon table` names the clearest fall."
                if self.n_categories
                else ""
            )
            + "".join(
                f" In {row['rubric_id']}, {row['dimension']}, {row['judge_model']} is blind to {row['blind_to']}."
                for row in self.blind
            )
        )
