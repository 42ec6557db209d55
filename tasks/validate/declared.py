"""What a check is, and the checks that follow from a table's declaration alone. All others are in expectations.py."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from schemas.fields import IMAGE_TYPE, Field
from schemas.statuses import CheckSeverity
from schemas.tables import Table


@dataclass(frozen=True, slots=True)
class Check:
    """One expectation: the Great Expectations class it is, its arguments, and what it means in one sentence.

    A check `is_of_table` holds for a table cut into batches where it holds for one of them.
    """

    table: str
    name: str  # table.column.expectation
    expectation: str
    arguments: Mapping[str, object]
    about: str
    severity: CheckSeverity = CheckSeverity.BLOCKING
    is_of_table: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the checked frame that the expectation reads."""
        named = (self.arguments.get(key) for key in ("column", "column_A", "column_B"))
        listed = self.arguments.get("column_list", ())
        assert isinstance(listed, tuple)
        return (*(name for name in named if isinstance(name, str)), *listed)


def declared_checks(table: Table) -> list[Check]:
    """What every table must satisfy by its declaration: rows, key, nullness, closed sets, lengths, bounds."""
    checks = [
        Check(
            table.name, f"{table.name}.table.is_not_empty", "ExpectTableRowCountToBeBetween", {"min_value": 1},
            "The table has rows.", is_of_table=True,
        ),
        Check(
            table.name, f"{table.name}.key.is_unique", "ExpectCompoundColumnsToBeUnique",
            {"column_list": table.key, "ignore_row_if": "any_value_is_missing"},
            f"No two rows have the same {', '.join(table.key)}.",
        ),
    ]  # fmt: skip
    if len(table.key) == 1:
        checks[1] = Check(
            table.name, f"{table.name}.key.is_unique", "ExpectColumnValuesToBeUnique", {"column": table.key[0]},
            f"No two rows have the same {table.key[0]}.",
        )  # fmt: skip
    for field in table.fields:
        if field.arrow_type != IMAGE_TYPE:
            checks.extend(_of_field(table.name, field))
    return checks


def _of_field(table: str, field: Field) -> Iterator[Check]:
    start = f"{table}.{field.name}"
    column: dict[str, object] = {"column": field.name}
    if not field.is_nullable:
        yield Check(table, f"{start}.is_not_null", "ExpectColumnValuesToNotBeNull", column, f"{field.name} is never null.")
    if field.values is not None:
        words = tuple(word.value for word in field.values)
        yield Check(
            table, f"{start}.is_a_known_word", "ExpectColumnValuesToBeInSet", column | {"value_set": words},
            f"{field.name} is one of {', '.join(words)}.",
        )  # fmt: skip
    if field.length is not None:
        yield Check(
            table, f"{start}.has_its_length", "ExpectColumnValueLengthsToEqual", column | {"value": field.length},
            f"{field.name} is {field.length} characters long.",
        )  # fmt: skip
    if field.minimum is not None or field.maximum is not None:
        bounds = {"min_value": field.minimum, "max_value": field.maximum}
        yield Check(
            table, f"{start}.is_within_bounds", "ExpectColumnValuesToBeBetween", column | bounds,
            f"{field.name} is {_interval(field)}{f' {field.unit}' if field.unit else ''}.",
        )  # fmt: skip


def _interval(field: Field) -> str:
    if field.maximum is None:
        return f"at least {field.minimum:g}"
    return f"at most {field.maximum:g}" if field.minimum is None else f"from {field.minimum:g} to {field.maximum:g}"
