"""The gate: which failed checks stop publication, and what is said about them. The flow raises; this decides."""

from collections.abc import Mapping, Sequence

from schemas.statuses import CheckSeverity
from tasks.validate.great_expectations import Outcome

N_KEYS_SAID = 3

_MADE_ANEW = {
    "samples": "the samples are then read anew from their sources",
    "judgements": "the plan is then made anew",
    "requests": "the plan is then made anew",
    "replies": "the replies are then taken anew from the ledger, and what it holds is not asked again",
    "scores": "the stored replies are then read anew, and no judge is asked",
}

_ADVICE = {
    "judgements.judge_model.is_one_model_in_a_cell": (
        "The provider changed what answers under the judge's name. Name a dated snapshot as the judge's model and run again: "
        "its questions are asked anew, all by one model."
    )
}


def decide(
    outcomes: Sequence[Outcome], keys: Mapping[str, Sequence[str]], partitions: Mapping[str, str]
) -> tuple[bool, list[str]]:
    """Whether a blocking check failed, and a sentence for each failed check, the blocking ones first.

    `keys` are the failing rows' keys by check, `partitions` the partition key by table.
    """
    failed = [outcome for outcome in outcomes if not outcome.is_passed]
    blocking = [outcome for outcome in failed if outcome.check.severity is CheckSeverity.BLOCKING]
    warnings = [outcome for outcome in failed if outcome.check.severity is CheckSeverity.WARNING]
    said = [f"blocked: {_what(outcome, keys)} {_what_to_do(outcome, partitions)}" for outcome in blocking]
    return bool(blocking), said + [f"warning: {_what(outcome, keys)}" for outcome in warnings]


def _what(outcome: Outcome, keys: Mapping[str, Sequence[str]]) -> str:
    check = outcome.check
    if outcome.error is not None:
        return f"{check.name} could not be evaluated: {outcome.error}."
    if outcome.n_failing == 0:
        return f"{check.name} failed: {check.about}"
    first = keys[check.name][:N_KEYS_SAID]
    rest = ", ..." if outcome.n_failing > len(first) else ""
    rows = f"{outcome.n_failing} of {outcome.n_checked} rows of {check.table}"
    return f"{check.name} failed for {rows} ({', '.join(first)}{rest}): {check.about}"


def _what_to_do(outcome: Outcome, partitions: Mapping[str, str]) -> str:
    table = outcome.check.table
    if outcome.check.name in _ADVICE:
        return _ADVICE[outcome.check.name]
    if outcome.check.is_of_table and table == "samples":
        return "See that the benchmark file's sources hold rows."
    return (
        f"If the stored files were changed, delete complete/{table}/{partitions[table]}.json in the lake and run again: "
        f"{_MADE_ANEW[table]}. If it fails again, the rubric or Salon's code is at fault: the quarantine table lists the rows."
    )
