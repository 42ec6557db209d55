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
CONTEXT_FULL = frozenset({"model_length", "model_context_window_exceeded"})
"""How a reply ends, in providers' words, that was cut since the model's context holds no more, whatever it may still say."""
_OF_CONTEXT = (
    "stopped where the model's context was full",
    "more max_tokens does not help: send smaller pictures (max_side_px), shorten the prompt or name a judge with more context",
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
    n_cut: Mapping[str, int] = MappingProxyType({}),
) -> str:
    """What `n` replies of this reason mean and what to do.

    `parameters`: the judge's; `shown`: which command shows them; `what`: the word for one and for several of what is counted.
    `lacks_probabilities`: they are read from log probabilities and came without, or without alternatives, whatever they say.
    `n_cut`: how many replies ended with each of the provider's words for one that was cut.
    """
    means, then = _NO_PROBABILITIES if lacks_probabilities and reason is ParseReason.NOT_FOUND else _TOLD[reason]
    if reason is ParseReason.TRUNCATED:
        means, then = _truncated(n, parameters, n_cut)
    replies = f"{n:,} {what[n != 1]}{f' of {whose}' if whose else ''}"
    return f"{reason.value}: {replies} {means}{f' ({shown})' if shown else ''}; {then}: {_ANEW}"


def _truncated(n: int, parameters: Mapping[str, Any], n_cut: Mapping[str, int]) -> tuple[str, str]:
    """What cut them, and what to do: more room helps where the judge's own bound did, and not where its context was full."""
    means, then = _TOLD[ParseReason.TRUNCATED]
    limit = next((f"{name} = {parameters[name]}" for name in OUTPUT_BOUNDS if name in parameters), None)
    if limit is not None:
        means, then = f"{'was' if n == 1 else 'were'} cut at {limit}", "raise it in the judge's parameters"
    n_full, n = sum(n_cut[word] for word in n_cut if word.strip().lower() in CONTEXT_FULL), sum(n_cut.values())
    if n_full in (0, n):
        return _OF_CONTEXT if n_full else (means, then)
    return f"{means}, or {_OF_CONTEXT[0]} ({n_full:,} of {n:,} replies)", f"{then}; for the latter, {_OF_CONTEXT[1]}"


def commonest(counts: Mapping[str, int]) -> list[tuple[ParseReason, int]]:
    """The reasons of which there is something to say, the commonest first; of as many, the earlier in the reasons' order."""
    found = [(reason, counts.get(reason.value, 0)) for reason in _TOLD]
    return sorted((one for one in found if one[1]), key=lambda one: -one[1])
