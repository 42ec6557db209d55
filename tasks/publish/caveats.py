"""What must be known of a publication before its numbers: taken back, none is current, a newer one. Reading it is reading.py."""

from dataclasses import dataclass
from pathlib import Path

from tasks.publish.newer import Newer, newer_than
from tasks.publish.reading import Publication
from tasks.publish.withdrawn import Withdrawal, taken_back


@dataclass(frozen=True, slots=True)
class Caveats:
    """`withdrawn`: it was taken back. `none_current`: nobody named it, and it is shown for want of a current one, in a clause.

    `newer`: nobody named it, and it is the current one, but a newer one did not become that.
    """

    withdrawn: Withdrawal | None = None
    none_current: str | None = None
    newer: Newer | None = None

    @property
    def told(self) -> list[str]:
        """All of it, a line each."""
        return [one if isinstance(one, str) else one.told for one in (self.withdrawn, self.none_current, self.newer) if one]


def caveats_of(lake_root: Path, shown: Publication, *, is_named: bool) -> Caveats:
    """Of a publication that is shown; `is_named`: it was asked for by its id, or as the last good one."""
    withdrawn = taken_back(lake_root, shown.publication_id).get(shown.publication_id)
    if is_named:
        return Caveats(withdrawn)
    none = f"no publication of {shown.benchmark} is current; {shown.publication_id[:12]} of {shown.run_date} is the newest"
    return Caveats(withdrawn, None if shown.is_current else none, newer_than(lake_root, shown))
