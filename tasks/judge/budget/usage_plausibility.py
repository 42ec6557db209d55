"""Whether the tokens that a reply reports can be: its request has so many bytes, its text an end. What they cost is cost.py.

One absurd number would else be the run's cost, use up its budget, and multiply what all later requests are expected to cost.
The limits are wide: what a provider counts beside the text (pictures by rules of its own, a system prompt, thoughts) is believed.
"""

from dataclasses import replace

from tasks.judge.provider.exchange import Answer

NOT_BELIEVED = "the tokens it reports are not believed"
"""So begins what a reply whose usage cannot be says in its `error_detail`."""
OF_BOUND = 10
"""A picture of a model whose rule is not known may cost several times what is assumed to be the most."""
MOST_INPUT_BESIDE = 10_000
"""A gateway's own system prompt; what a tiny picture costs at the least."""
MOST_OUTPUT_BESIDE = 100_000
"""Thoughts that a server does not count against the limit of the reply."""
MOST_OUTPUT = 1_000_000
"""Where nothing bounds a reply."""
MOST_INPUT = 10_000_000
"""Where a request's own size is not at hand: no model reads as much at once."""


def most_input(n_bound: int, n_bytes: int) -> int:
    """Tokens that a request of this bound and so many bytes may be counted as; pictures are among the bytes, as base64."""
    return max(OF_BOUND * n_bound, n_bytes) + MOST_INPUT_BESIDE


def most_output(n_most: int | None) -> int:
    """Tokens that a reply may be counted as whose parameters, or model, allow so many."""
    return MOST_OUTPUT if n_most is None else OF_BOUND * n_most + MOST_OUTPUT_BESIDE


def believed(answer: Answer, n_input_most: int, n_output_most: int) -> Answer:
    """The answer, without its usage where that is more than can be: its cost is not known then, and `detail` says why."""
    n_input, n_output = answer.n_input_tokens or 0, answer.n_output_tokens or 0
    if n_input <= n_input_most and n_output <= n_output_most:
        return answer
    told = (
        f"{NOT_BELIEVED}: {n_input:,} input and {n_output:,} output, at most {n_input_most:,} and {n_output_most:,} are "
        "possible; the cost is not known"
    )
    return replace(
        answer,
        detail=f"{answer.detail}; {told}" if answer.detail else told,
        n_input_tokens=None,
        n_output_tokens=None,
        n_cached_tokens=None,
        n_cache_written_tokens=None,
    )


def is_not_believed(detail: str | None) -> bool:
    """Whether a stored reply's detail says so."""
    return detail is not None and NOT_BELIEVED in detail
