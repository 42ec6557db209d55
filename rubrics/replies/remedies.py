"""What a reply that gives no score means to people, and what they can do: a sentence for each reason. No reading here.

Said by a run's summary, by the error that stops a run of unreadable replies, and by `salon check`. Examples: docs/replies.md.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from schemas.benchmark.judge_parameters import OUTPUT_BOUNDS
from schemas.statuses.rows import ParseReason

N_SAID = 3
"""Reasons that are said where there are more: the commonest is the one to mend first."""
_FORM = "the prompt must ask for the rubric's form alone, or the judge be one that keeps to it"
_PLAIN = "with a point and the digits 0 to 9 (7.5, neither 7,5 nor ７): lint says what of the prompt invites others"

_TOLD: Mapping[ParseReason, tuple[str, str]] = MappingProxyType({
    ParseReason.EMPTY: (
        "held no text",
        "see the judge's server, and that it has room for an answer behind its thinking",
    ),
    ParseReason.REFUSAL: (
        "declined to judge, or met the provider's filter",
        "change the rubric's text, or name another judge",
    ),
    ParseReason.MISSING_INPUT: (
        "said that there was nothing to judge",
        "see that the model takes pictures and that its endpoint passes them on; then give the judge a name of its own",
    ),
    ParseReason.TRUNCATED: (
        "stopped before the answer was whole",
        "give the judge room with max_tokens in its parameters, or a shorter form",
    ),
    ParseReason.NOT_FOUND: ("held no answer in the form asked for", _FORM),
    ParseReason.TEMPLATE_ECHO: ("repeated the form unfilled", _FORM),
    ParseReason.MISSING_KEY: ("lacked a dimension", _FORM),
    ParseReason.MALFORMED: ("had the form, broken, or a number with a comma", f"{_FORM}; numbers are read {_PLAIN}"),
    ParseReason.WRONG_TYPE: ("held something else than a number", f"{_FORM}; numbers are read {_PLAIN}"),
    ParseReason.NON_INTEGER: (
        "held a fraction where whole numbers are asked for", "say so in the prompt, or take step = 1 from the rubric's scale",
    ),
    ParseReason.OUT_OF_RANGE: (
        "held a number off the rubric's scale", "the prompt must state the scale that rubric.toml declares, and no other",
    ),
    ParseReason.SCALE_MISMATCH: (
        "answered on another scale than the rubric's", "the prompt must state the scale that rubric.toml declares, and no other",
    ),
    ParseReason.AMBIGUOUS: ("held two values for one dimension, or a range", _FORM),
})  # fmt: skip
_NO_PROBABILITIES = (
    "came without the log probabilities that the rubric reads, or without those of other tokens",
    "the endpoint leaves logprobs and top_logprobs unheeded: name one that sends them, and give the judge a name of its own",
)
_ANEW = "a changed parameter, model or rubric text asks anew, and nothing else does"


def remedy(
    reason: ParseReason,
    n: int,
    parameters: Mapping[str, Any],
    *,
    whose: str = "",
    shown: str = "",
    what: tuple[str, str] = ("reply", "replies"),
    lacks_probabilities: bool = False,
) -> str:
    """What `n` replies of this reason mean and what to do.

    `parameters`: the judge's; `shown`: which command shows them; `what`: the word for one and for several of what is counted.
    `lacks_probabilities`: they are read from log probabilities and came without, or without alternatives, whatever they say.
    """
    means, then = _NO_PROBABILITIES if lacks_probabilities and reason is ParseReason.NOT_FOUND else _TOLD[reason]
    limit = next((f"{name} = {parameters[name]}" for name in OUTPUT_BOUNDS if name in parameters), None)
    if reason is ParseReason.TRUNCATED and limit is not None:
        means = f"{'was' if n == 1 else 'were'} cut at {limit}"
        then = "raise it in the judge's parameters"
    replies = f"{n:,} {what[n != 1]}{f' of {whose}' if whose else ''}"
    return f"{reason.value}: {replies} {means}{f' ({shown})' if shown else ''}; {then}: {_ANEW}"


def commonest(counts: Mapping[str, int]) -> list[tuple[ParseReason, int]]:
    """The reasons of which there is something to say, the commonest first; of as many, the earlier in the reasons' order."""
    found = [(reason, counts.get(reason.value, 0)) for reason in _TOLD]
    return sorted((one for one in found if one[1]), key=lambda one: -one[1])
