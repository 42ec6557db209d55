"""The newer publication that did not become the current one, for whoever is shown the current one. The rule is promotion.py."""

from dataclasses import dataclass
from datetime import date
from pathlib import Path

from tasks.publish.folders import MANIFEST
from tasks.publish.promotion import standing_in, why_not_current
from tasks.publish.reading import Publication, publications
from tasks.publish.withdrawn import taken_back


@dataclass(frozen=True, slots=True)
class Newer:
    """A publication newer than the current one, and why it did not become that, in a clause."""

    publication_id: str
    run_date: str
    why: str

    @property
    def told(self) -> str:
        """All of it and what to do, on one line."""
        return (
            f"a newer publication, {self.publication_id[:12]} of {self.run_date}, did not become current: {self.why}. Next: the "
            f"same command again asks for missing replies; salon table --publication {self.publication_id[:12]} shows what it has"
        )


def newer_than(lake_root: Path, shown: Publication) -> Newer | None:
    """The newest publication behind the current one; None where there is none, it was taken back, or `shown` is not current."""
    if not shown.is_current:
        return None
    others = [one for one in publications(lake_root) if one.benchmark == shown.benchmark and _age(one) > _age(shown)]
    gone = taken_back(lake_root) if others else set()
    for one in sorted(others, key=_age, reverse=True):
        ways = (standing_in(each.folder, date.fromisoformat(each.run_date)) for each in (one, shown))
        if one.publication_id not in gone and (why := why_not_current(*ways)) is not None:
            return Newer(one.publication_id, one.run_date, why)
    return None


def _age(publication: Publication) -> tuple[str, int]:
    """Of one run date the one that was written last is the newest."""
    return publication.run_date, (publication.folder / MANIFEST).stat().st_mtime_ns
