"""What a column is, and the kinds of columns there are. The columns themselves are fields.py and its neighbours."""

from dataclasses import dataclass, replace
from enum import StrEnum

import pyarrow as pa

IMAGE_TYPE = pa.struct([pa.field("bytes", pa.binary()), pa.field("path", pa.string())])
_SHOWN = pa.struct([pa.field(name, pa.string()) for name in ("role", "sha256", "path")])
PICTURES_TYPE = pa.list_(pa.field("element", _SHOWN))  # as Parquet calls it, so that a file's schema is the declared one
UTC_TIMESTAMP = pa.timestamp("us", tz="UTC")
DIGEST_LENGTH = 64  # hexadecimal characters of a sha256


@dataclass(frozen=True, slots=True)
class Field:
    """One column. `minimum` and `maximum` are inclusive; `values` closes a text column over an enumeration."""

    name: str
    arrow_type: pa.DataType
    about: str
    is_nullable: bool = False
    unit: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    values: type[StrEnum] | None = None
    length: int | None = None

    def arrow(self) -> pa.Field:
        """The Arrow field, with the sentence and the unit as its metadata."""
        metadata = {"about": self.about} | ({"unit": self.unit} if self.unit else {})
        return pa.field(self.name, self.arrow_type, nullable=self.is_nullable, metadata=metadata)

    def or_null(self, about: str | None = None) -> "Field":
        """The same column where a table allows it to be null."""
        return replace(self, is_nullable=True, about=about or self.about)

    def not_null(self, about: str | None = None) -> "Field":
        """The same column where a table has it filled."""
        return replace(self, is_nullable=False, about=about or self.about)


def text(name: str, about: str, *, null: bool = False, values: type[StrEnum] | None = None) -> Field:
    """A column of words."""
    return Field(name, pa.string(), about, is_nullable=null, values=values)


def digest(name: str, about: str, *, null: bool = False) -> Field:
    """A sha256 in hexadecimal digits."""
    return Field(name, pa.string(), about, is_nullable=null, length=DIGEST_LENGTH)


def count(name: str, about: str, *, null: bool = False, unit: str | None = None) -> Field:
    """A column of whole numbers from 0."""
    return Field(name, pa.int64(), about, is_nullable=null, unit=unit, minimum=0)


def flag(name: str, about: str, *, null: bool = False) -> Field:
    """A column of yes and no."""
    return Field(name, pa.bool_(), about, is_nullable=null)


def number(
    name: str, about: str, *, null: bool = True, unit: str | None = None, low: float | None = None, high: float | None = None
) -> Field:
    """A column of numbers, its bounds inclusive."""
    return Field(name, pa.float64(), about, is_nullable=null, unit=unit, minimum=low, maximum=high)


def share(name: str, about: str, *, null: bool = True, low: float = 0) -> Field:
    """A column of numbers up to 1, from 0 or from -1."""
    return number(name, about, null=null, low=low, high=1)
