"""Whether a night that was published fell short: it did not become current, or cells of its headline are blocked.

It stands in the lake like any other, its command has long ended, and whoever looks in the morning is shown what is current.
"""

from collections import Counter
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal, TypeAlias

import polars as pl

from flows.nights.left_out import gone_night
from flows.nights.record import NightNote, notes
from schemas.errors import StoreError
from schemas.metrics import means_for_prompts_like_these
from schemas.statuses.cells import CellStatus
from schemas.statuses.rows import UNANSWERED
from schemas.tables.published import PREFERENCES
from tasks.context import StageContext
from tasks.publish.folders import LAYOUT, MANIFEST, POINTER, is_published, publication_folder
from tasks.publish.identity import judge_name
from tasks.publish.pointer import read_pointer
from tasks.publish.promotion import standing_in, why_not_current
from tasks.publish.reading import Publication, checked_file, find_in, load_cells, look_again
from tasks.publish.standings.pair_boards import boards_in, n_rates
from tasks.verify.publication import read_provenance

Counting: TypeAlias = Literal["headline", "any"]
_N_REASONS = 3


@dataclass(frozen=True, slots=True)
class Shortfall:
    """What is not as it should be with a night, in a sentence, and what to do. `is_current`: it is what everybody is shown."""

    says: str
    advice: str
    is_current: bool

    @property
    def told(self) -> str:
        """Both, on one line."""
        return f"{self.says}. Next: {self.advice}"


def shortfall(lake_root: Path, benchmark: str, day: str, note: NightNote, exit_1: Counting = "headline") -> Shortfall | None:
    """How the night of this date (ISO) fell short; None where it did not, or where a later publication shows what it lacked.

    `exit_1`: which blocked cells count, as in `[gate]`.
    """
    look_again(lake_root, benchmark)
    home, id_ = lake_root / "publish" / LAYOUT / benchmark, note.publication_id
    if not (home / id_ / MANIFEST).is_file():
        return Shortfall(*gone_night(lake_root, benchmark, day, note), is_current=False)
    current, found = read_pointer(home), find_in(home / id_)
    published = f"the night of {day} is published ({id_[:12]})"
    if current is None or current["publication_id"] != id_:
        why = _why_not_current(home, found, current, note.behind)
        if why is None:
            if current is not None:
                return _still_blocked(home, found, current, note, exit_1)
            lost = f"{published}, and nothing is current: {home / POINTER} is gone"
            return Shortfall(lost, "salon nightly FILE makes it again, and asks nothing that is stored", is_current=False)
        shown, advice = "nothing is current yet", _advice(found, day, note.max_usd)
        if current is not None:
            stays = current["publication_id"][:12]
            shown = f"{stays} of {current['run_date']} stays current"
            if current["publication_id"] == note.behind:
                advice = f'salon withdraw FILE {stays} --because "…" lets it become current; '
                advice += f"salon table --publication {id_[:12]} shows it"
        return Shortfall(f"{published} and did not become current: {why}; {shown}", advice, is_current=False)
    blocked = _blocked(found, exit_1)
    if blocked is None:
        return None
    return Shortfall(f"{published} and current, and {blocked}", _advice(found, day, note.max_usd), is_current=True)


def check_is_there(run: StageContext, note: NightNote) -> None:
    """Raise StoreError where the publication of the run's night is gone from the lake."""
    name, root = run.benchmark.name, run.lake.root
    look_again(root, name)
    if not is_published(publication_folder(root, name, note.publication_id)):
        raise StoreError("; ".join(gone_night(root, name, run.run_date.isoformat(), note)))


def night_not_current(run: StageContext) -> str | None:
    """In a sentence, that the run's night did not become current, and what to do; None where it did or is not published."""
    name, day = run.benchmark.name, run.run_date.isoformat()
    note = notes(run.lake.root, name).get(day)
    short = None if note is None else shortfall(run.lake.root, name, day, note, run.benchmark.gate.exit_1)
    return None if short is None or short.is_current else short.told


def newest_night_behind(lake_root: Path, benchmark: str) -> list[str]:
    """That the benchmark's newest night did not become current, and what to do; and the checkpoints that it lacks."""
    noted = notes(lake_root, benchmark)
    if not noted:
        return []
    day, note = max(noted.items())
    short = shortfall(lake_root, benchmark, day, note)
    return [*([] if short is None or short.is_current else [short.told]), *note.gone, *note.late]


def _why_not_current(home: Path, found: Publication, current: dict[str, str] | None, behind: str | None) -> str | None:
    if current is None:
        return why_not_current(standing_in(found.folder, date.fromisoformat(found.run_date)), None)
    if current["run_date"] > found.run_date and current["publication_id"] != behind:
        return None  # a later one took its place
    standings = [
        standing_in(home / id_, date.fromisoformat(day))
        for id_, day in ((found.publication_id, found.run_date), (current["publication_id"], current["run_date"]))
    ]
    return why_not_current(*standings)


def _still_blocked(
    home: Path, found: Publication, current: dict[str, str], note: NightNote, exit_1: Counting
) -> Shortfall | None:
    """Where a later publication took the night's place and does not show what it has blocked: a run of one checkpoint, say."""
    mended = home / current["publication_id"]
    if not (mended / MANIFEST).is_file():
        return None
    blocked = _blocked(found, exit_1, load_cells(find_in(mended)))
    if blocked is None:
        return None
    day, id_ = found.run_date, current["publication_id"][:12]
    said = (
        f"the night of {day} is published ({found.publication_id[:12]}), and {blocked}; {id_} of {current['run_date']} is current"
    )
    return Shortfall(f"{said} and does not show these", _advice(found, day, note.max_usd), is_current=True)


def _blocked(found: Publication, exit_1: Counting, later: pl.DataFrame | None = None) -> str | None:
    """In a clause, how many cells that count are blocked and for what; None where none is. Without those that `later` shows."""
    cells = means_for_prompts_like_these(load_cells(found))
    if exit_1 == "headline":
        cells = cells.filter(pl.col("is_headline"))
    blocked = cells.filter(status=CellStatus.BLOCKED.value)
    if later is not None:
        blocked = blocked.join(later.filter(pl.col("status") != CellStatus.BLOCKED.value), on="cell_id", how="anti")
    reasons, of = Counter(blocked["reason"].to_list()), " of its headline" if exit_1 == "headline" else ""
    if reasons:
        are = "is" if reasons.total() == 1 else "are"
        return f"{reasons.total()} of {cells.height} cells{of} {are} blocked ({commonest(reasons)})"
    boards = [board for board in boards_in(found.folder) if board.n_blocked and (board.is_headline or exit_1 == "any")]
    n_pairs = 0 if later is not None else n_rates(boards)[1]
    return f"{n_pairs} win rate{'s' * (n_pairs > 1)}{of} {'is' if n_pairs == 1 else 'are'} blocked" if n_pairs else None


def commonest(reasons: Counter[str]) -> str:
    """The reasons that most cells are blocked for, in words of the tables."""
    return ", ".join(str(reason) for reason, _ in reasons.most_common(_N_REASONS))


def _advice(found: Publication, day: str, max_usd: float | None) -> str:
    cells, judges = means_for_prompts_like_these(load_cells(found)), (read_provenance(found.folder) or {}).get("judges", [])
    lacks = cells.filter(pl.col("failures").list.eval(pl.element().struct.field("reason").is_in(UNANSWERED)).list.any())
    is_recorded = pl.col("judge_model").is_in([judge_name(one) for one in judges if one.get("recorded")])
    again = (
        ""
        if lacks.filter(~is_recorded).is_empty() and not _lacks_pairs(found, ~is_recorded)
        else f"salon nightly FILE --run-date {day} asks again for missing replies; "
    )
    if again and max_usd is not None:
        again = f"max_usd = {max_usd:.12g} does not suffice for all starts of this night: raise it under [limits], then {again}"
    if not lacks.filter(is_recorded).is_empty() or _lacks_pairs(found, is_recorded):
        again += "salon import FILE --replies REPLIES takes in what recorded judges lack; "
    return f"{again}salon table --publication {found.publication_id[:12]} shows what each cell lacks"


def _lacks_pairs(found: Publication, of: pl.Expr) -> bool:
    name = f"{PREFERENCES.name}.parquet"
    pairs = pl.read_parquet(checked_file(found, name)) if name in found.files else PREFERENCES.empty()
    return "n_unanswered" in pairs.columns and pairs.filter(of)["n_unanswered"].sum() > 0
