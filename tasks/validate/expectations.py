"""Every expectation of a run: those the schemas declare, and those between tables and with the rubrics. It evaluates nothing.

Columns no schema names (has_request, off_step, ...) are made in frames.py and score_frame.py, null where they do not apply.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from schemas.statuses.rows import CheckSeverity, ScoreStatus
from schemas.tables.field import IMAGE_TYPE, Field
from schemas.tables.table import Table
from tasks.validate.buckets import PARTITIONS
from tasks.validate.scales import STEP_TOLERANCE
from tasks.validate.score_frame import KNOWN_REASONS

N_UNSEEN_ALLOWED = 7
"""Replies that may say they were given nothing to judge, whatever share that is: a few judges say so of a picture they have."""


@dataclass(frozen=True, slots=True)
class Check:
    """One expectation: the Great Expectations class it is, its arguments, and what it means in one sentence.

    A check `is_of_table` holds for a table cut into batches where it holds for one of them.
    """

    name: str  # table.column.expectation
    expectation: str
    arguments: Mapping[str, object]
    about: str
    severity: CheckSeverity = CheckSeverity.BLOCKING
    is_of_table: bool = False
    share_allowed: float = 0.0  # of the rows checked may fail, and n_allowed in any case
    n_allowed: int = 0

    @property
    def table(self) -> str:
        """The checked table's name."""
        return self.name.partition(".")[0]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the checked frame that the expectation reads."""
        named = (self.arguments.get(key) for key in ("column", "column_A", "column_B"))
        listed = self.arguments.get("column_list", ())
        assert isinstance(listed, tuple)
        return (*(name for name in named if isinstance(name, str)), *listed)


def declared_checks(table: Table) -> list[Check]:
    """What every table must satisfy by its declaration: rows, key, nullness, closed sets, lengths, bounds."""
    kind, key = "ExpectColumnValuesToBeUnique", dict[str, object](column=table.key[0])
    if len(table.key) > 1:
        kind, key = "ExpectCompoundColumnsToBeUnique", {"column_list": table.key, "ignore_row_if": "any_value_is_missing"}
    checks = [
        Check(
            f"{table.name}.table.is_not_empty", "ExpectTableRowCountToBeBetween", {"min_value": 1}, "The table has rows.",
            is_of_table=True,
        ),
        Check(f"{table.name}.key.is_unique", kind, key, f"No two rows have the same {', '.join(table.key)}."),
    ]  # fmt: skip
    for field in table.fields:
        if field.arrow_type != IMAGE_TYPE:
            checks.extend(_of_field(table.name, field))
    return checks


def _of_field(table: str, field: Field) -> Iterator[Check]:
    start = f"{table}.{field.name}"
    column: dict[str, object] = {"column": field.name}
    if not field.is_nullable:
        yield Check(f"{start}.is_not_null", "ExpectColumnValuesToNotBeNull", column, f"{field.name} is never null.")
    if field.values is not None:
        words = tuple(word.value for word in field.values)
        yield Check(
            f"{start}.is_a_known_word", "ExpectColumnValuesToBeInSet", column | {"value_set": words},
            f"{field.name} is one of {', '.join(words)}.",
        )  # fmt: skip
    if field.length is not None:
        yield Check(
            f"{start}.has_its_length", "ExpectColumnValueLengthsToEqual", column | {"value": field.length},
            f"{field.name} is {field.length} characters long.",
        )  # fmt: skip
    if field.minimum is not None or field.maximum is not None:
        bounds = {"min_value": field.minimum, "max_value": field.maximum}
        yield Check(
            f"{start}.is_within_bounds", "ExpectColumnValuesToBeBetween", column | bounds,
            f"{field.name} is {_interval(field)}{f' {field.unit}' if field.unit else ''}.",
        )  # fmt: skip


def _interval(field: Field) -> str:
    if field.maximum is None:
        return f"at least {field.minimum:g}"
    return f"at most {field.maximum:g}" if field.minimum is None else f"from {field.minimum:g} to {field.maximum:g}"


# Names of checks that a made column is true, wherever it is not null: name, column, what it means.
_BETWEEN_TABLES = (
    ("judgements.sample_id.is_a_sample", "has_sample", "Each judgement is about a sample of the dataset."),
    ("judgements.request_key.fits_status", "key_fits_status", "A judgement has a request if, and only if, it is planned."),
    ("judgements.reason.fits_status", "reason_fits_status", "A judgement has a reason if, and only if, it is not planned."),
    ("judgements.request_key.is_a_request", "has_request", "The request of each planned judgement is in requests."),
    (
        "judgements.judge_model.is_one_model_in_a_cell",
        "is_answered_as_its_cell",
        "All replies of a rubric, judge, model and checkpoint are by one answering model.",
    ),
    ("requests.request_key.is_of_a_judgement", "has_judgement", "Each request is asked for some judgement."),
    ("replies.request_key.is_a_request", "has_request", "Each reply belongs to a request of the plan."),
    ("scores.request_key.is_a_request", "has_request", "Each score belongs to a request of the plan."),
    ("scores.rubric_id.is_as_asked", "is_as_asked", "A score's rubric, version, judge and variant are its request's."),
    (
        "scores.ask_index.is_an_answered_reply",
        "has_answered_reply",
        "A score names the answered reply it was read from; a row without a score names none.",
    ),
)
_WITH_RUBRICS = (
    ("requests.variant.is_a_known_variant", "has_variant", "Each request's variant is one its rubric has."),
    ("requests.facts_json.is_a_json_object", "facts_are_readable", "The facts that rules look at are a JSON object."),
    ("scores.dimension.is_of_the_variant", "is_of_variant", "The dimension is one the request asked for."),
    ("scores.score.fits_status", "score_fits_status", "There is a number if, and only if, it is scored or a rule_violation."),
    ("scores.reason.fits_status", "reason_fits_status", "Nothing scored has a reason; every other row has one of its status."),
    ("scores.status.fits_the_rules", "status_fits_rules", "A score is a rule_violation if, and only if, a rule forbids it."),
    ("scores.is_in_range.agrees", "in_range_agrees", "The verdict is true of a score on its scale, null without a score."),
    ("scores.is_on_step.agrees", "on_step_agrees", "The verdict is true of a score on its step, null without a score."),
    ("scores.is_rule_kept.agrees", "rule_kept_agrees", "The verdict says if a rule forbids the score; null without a score."),
)


def all_checks(rubric_ids: Iterable[str], max_missing_input: float = 1.0) -> list[Check]:
    """Every check of a run under these rubrics. Names are unique."""
    declared = [check for table in PARTITIONS for check in declared_checks(table)]
    witnessed = [_is_true(*row) for row in (*_BETWEEN_TABLES, *_WITH_RUBRICS)]
    return [*declared, *witnessed, *_accounts(), *_words(rubric_ids), *_numbers(), *_warnings(), _sight(max_missing_input)]


def _accounts() -> list[Check]:
    """Nothing is lost between the plan and the scores."""
    return [
        _is_between("requests.request_key.has_a_reply_row", "n_replies", "Each request has a row in replies.", low=1),
        _is_between(
            "requests.request_key.has_all_its_scores",
            "n_missing_dimensions",
            "Each request has a row in scores for every dimension it asks for.",
            low=0,
            high=0,
        ),
    ]


def _words(rubric_ids: Iterable[str]) -> list[Check]:
    reasons = {"column": "reason", "value_set": tuple(KNOWN_REASONS)}
    rubrics = {"column": "rubric_id", "value_set": tuple(sorted(rubric_ids))}
    kind = "ExpectColumnValuesToBeInSet"
    return [
        Check("requests.rubric_id.is_a_known_rubric", kind, rubrics, "Each request's rubric is one of this run's."),
        Check("scores.reason.is_a_known_word", kind, reasons, "The reason is one of the declared values."),
    ]


def _sight(max_missing_input: float) -> Check:
    """Too many replies that say they were given nothing: the endpoint drops pictures, whatever coverage is left."""
    about = f"At most {max_missing_input:.3g} of the replies say that there was nothing to judge."
    check = _is_true("scores.reason.saw_its_input", "saw_its_input", about)
    return replace(check, share_allowed=max_missing_input, n_allowed=N_UNSEEN_ALLOWED)


def _numbers() -> list[Check]:
    """The scores against their scales and steps, and the bounds against what is left."""
    beyond_scale = "ExpectColumnPairValuesAToBeGreaterThanB"
    left = "is the score where scored, else what scale and rules leave."
    return [
        _is_pair("scores.score.is_at_least_the_scale", beyond_scale, "score", "scale_low", "No score is under its scale."),
        _is_pair("scores.score.is_at_most_the_scale", beyond_scale, "scale_high", "score", "No score is over its scale."),
        _is_between("scores.score.is_on_step", "off_step", "The score lies on its dimension's step.", high=STEP_TOLERANCE),
        *(
            _is_pair(f"scores.{bound}.is_what_is_left", "ExpectColumnPairValuesToBeEqual", bound, due, f"{bound} {left}")
            for bound, due in (("bound_low", "due_low"), ("bound_high", "due_high"))
        ),
    ]


def _warnings() -> list[Check]:
    """What is published beside the table. An all-null table is one: its cells say why, and their coverage blocks them."""
    violation = {"column": "status", "value_set": (ScoreStatus.RULE_VIOLATION.value,)}
    some = {"column": "score", "mostly": 1e-12}
    warning = CheckSeverity.WARNING
    return [
        _is_true(
            "samples.sample_id.has_a_judgement", "has_judgement", "Each sample of a checkpoint is accounted for in judgements.",
            warning,
        ),
        Check(
            "samples.text_flags.is_null", "ExpectColumnValuesToBeNull", {"column": "text_flags"},
            "No text of a sample addresses the judge or imitates an answer.", warning,
        ),
        Check(
            "scores.score.is_not_all_null", "ExpectColumnValuesToNotBeNull", some,
            "At least one reply gave a score.", warning, is_of_table=True,
        ),
        Check(
            "scores.status.keeps_the_rules", "ExpectColumnValuesToNotBeInSet", violation,
            "No reply gave a score that a declared rule forbids.", warning,
        ),
        _is_between(
            "scores.score.is_within_its_aspects", "beyond_aspects",
            "An overall score lies between the lowest and the highest aspect of its reply.", high=STEP_TOLERANCE,
            severity=warning,
        ),
    ]  # fmt: skip


def _is_true(name: str, column: str, about: str, severity: CheckSeverity = CheckSeverity.BLOCKING) -> Check:
    arguments = {"column": column, "value_set": (True,)}
    return Check(name, "ExpectColumnValuesToBeInSet", arguments, about, severity)


def _is_between(
    name: str, column: str, about: str, *, low: float | None = None, high: float | None = None,
    severity: CheckSeverity = CheckSeverity.BLOCKING,
) -> Check:  # fmt: skip
    arguments = {"column": column, "min_value": low, "max_value": high}
    return Check(name, "ExpectColumnValuesToBeBetween", arguments, about, severity)


def _is_pair(name: str, kind: str, first: str, second: str, about: str) -> Check:
    """The first column equals, or is at least, the second wherever both have a value."""
    arguments: dict[str, object] = {"column_A": first, "column_B": second, "ignore_row_if": "either_value_is_missing"}
    if kind == "ExpectColumnPairValuesAToBeGreaterThanB":
        arguments["or_equal"] = True
    return Check(name, kind, arguments, about)
