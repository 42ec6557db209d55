"""A publication's page: its tables, provenance and gallery as one HTML file. It knows nothing that is not handed to it."""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import polars as pl

from schemas.records import ALL_JUDGES
from schemas.statuses.cells import CellStatus, HealthMeasure
from schemas.statuses.people import AgreementMetric
from schemas.statuses.rows import CheckStatus
from schemas.tables.catalogue import TABLES
from schemas.tables.nights import EXAM, JURY, RELIABILITY
from schemas.tables.published import HEALTH
from schemas.tables.stored import CHECKS
from schemas.tables.table import Row, Table
from tasks.publish.folders import PublicationName
from tasks.publish.report.boards import Board, answers_first, boards, by_judge, glance, newest, rows_of
from tasks.publish.report.drawing import draw
from tasks.publish.report.environment import render
from tasks.publish.report.figures import MAX_CATEGORIES, N_DRAWN, Figure, figures
from tasks.publish.report.formats import number, words
from tasks.publish.report.gallery import Gallery
from tasks.publish.report.pairs import PairCard
from tasks.publish.standings.pair_boards import pair_boards
from tasks.publish.standings.wording import made_by

N_FAILING_SHOWN = 3  # keys of failing rows beside a failed check; the table has a thousand

N_CHARTED = 8
"""Rankings with charts: four charts take 0.2 s. The others have their tables."""


@dataclass(frozen=True, slots=True)
class Health:
    """One judge on one checkpoint. `values`: measure, then word, to the value in the table."""

    rubric_id: str
    judge_model: str
    model: str
    checkpoint: str
    values: Mapping[str, Mapping[str, float | None]]

    @property
    def is_telling(self) -> bool:
        """Whether the provider said something in place of an answer."""
        return HealthMeasure.N_SAID in self.values or HealthMeasure.N_FILTER_SAID in self.values

    def of(self, measure: str, word: str = "") -> float | None:
        """The value of one row of the table; None where it is not there."""
        return self.values.get(measure, {}).get(word)


def health(tables: Mapping[Table, pl.DataFrame]) -> list[Health]:
    """A row for each rubric, judge and checkpoint."""
    found: dict[tuple[str, str, str, str], dict[str, dict[str, float | None]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows_of(tables, HEALTH):
        found[tuple(row[name] for name in ("rubric_id", "judge_model", "model", "checkpoint"))][row["measure"]][row["word"]] = (
            row["value"]
        )
    return [Health(*key, values) for key, values in found.items()]


def failures_figure(rows: list[Health]) -> Figure | None:
    """Judgements without a score, by reason; None where every one has its score."""
    several = {(row.model, row.checkpoint) for row in rows}
    is_one_model = len({model for model, _ in several}) == 1
    found = [
        {
            "name": f"{row.rubric_id}, {made_by(row.model, row.checkpoint, is_one_model=is_one_model)}",
            "order": index, "reason": words(reason), "n": n,
        }
        for index, row in enumerate(rows)
        for reason, n in row.values.get(HealthMeasure.N_WITHOUT_SCORE, {}).items()
        if n
    ]  # fmt: skip
    names = list(dict.fromkeys(row["name"] for row in found))
    shown = [row for row in found if row["name"] in names[:N_DRAWN]]
    if not shown:
        return None
    from tasks.publish.report.charts import failures

    label = "Judgements without a score, by reason. The numbers are in the table below."
    return Figure("Judgements without a score, by reason", draw(failures(shown), shown, label), is_cut=len(names) > N_DRAWN)


@dataclass(frozen=True, slots=True)
class Checks:
    """The data checks, failed ones first, and how many passed."""

    rows: list[Row]
    failed: list[Row]
    n_passed: int


def checks(tables: Mapping[Table, pl.DataFrame]) -> Checks:
    """The outcome of the data checks; a failed one with its first failing keys."""
    rows = rows_of(tables, CHECKS)
    failed = [row for row in rows if row["status"] == CheckStatus.FAILED]
    for row in failed:
        keys = json.loads(row["failing_keys_json"] or "[]")
        row["first_keys"] = [json.dumps(key, ensure_ascii=False) for key in keys[:N_FAILING_SHOWN]]
    return Checks(failed + [row for row in rows if row not in failed], failed, len(rows) - len(failed))


def jury_told(rows: list[Row], headlines: Sequence[Board]) -> dict[str, str]:
    """Of each rubric how far all its judges agree on single samples, in a sentence. The whole table is further down."""
    main = {(board.rubric_id, board.dimension) for board in headlines}
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        is_of_all = row["judge_a"] == row["judge_b"] and row["metric"] == AgreementMetric.KRIPPENDORFF_ALPHA
        if is_of_all and (row["rubric_id"], row["dimension"]) in main and row["estimate"] is not None:
            found[row["rubric_id"]].append(row)
    return {
        rubric_id: f"On single samples they agree with Krippendorff's alpha {_from_to(mine)} "
        "(1: always, 0: no more than by chance)."
        + _rests_on([row for board in headlines if board.rubric_id == rubric_id for row in board.rows])
        for rubric_id, mine in found.items()
    }


def _from_to(rows: list[Row]) -> str:
    """The lowest and the highest estimate, and what they differ by."""
    least, most = (number(end(row["estimate"] for row in rows)) for end in (min, max))
    of = {"dimension": {row["dimension"] for row in rows}, "checkpoint": {(row["model"], row["checkpoint"]) for row in rows}}
    return least if least == most else f"{least} to {most}, by {' and '.join(name for name, some in of.items() if len(some) > 1)}"


def _rests_on(cells: list[Row]) -> str:
    """How many scores there are, where means are blocked for want of them: the agreement is over those all the same."""
    if all(row["status"] != CellStatus.BLOCKED for row in cells):
        return ""
    n_failed, n_judgements = (sum(row[name] for row in cells) for name in ("n_failed", "n_judgements"))
    return f" It rests on the {n_judgements - n_failed:,} of {n_judgements:,} scores there are, those of blocked means too."


def choices(gallery: Gallery, found: list[Board]) -> dict[str, list[str]]:
    """What the gallery's filters offer, in reading order."""
    cards = gallery.cards
    statuses = {score.reason or score.status for card in cards for ask in card.asks for score in ask.all_scores}
    statuses |= {ask.reason or ask.status for card in cards for ask in card.asks if not ask.all_scores}
    return {
        "rubric": sorted({card.rubric_id for card in cards}),
        "model": sorted({f"{card.model} / {card.checkpoint}" for card in cards}),
        "category": sorted({card.category for card in cards if card.category}),
        "dimension": list(dict.fromkeys(board.dimension for board in found)),
        "status": sorted(statuses),
    }


def report_page(
    name: PublicationName,
    tables: Mapping[Table, pl.DataFrame],
    provenance: Mapping[str, object],
    gallery: Gallery,
    *,
    is_pictured: bool = False,
    cards: Mapping[tuple[str, str], list[PairCard]] = MappingProxyType({}),
    kinds: Collection[tuple[str, str]] = (),
) -> bytes:
    """The report as UTF-8 HTML: the same inputs give the same bytes. Of the tables only benchmark_long has to be there.

    `is_pictured`: the pages of compare.py stand beside it; `cards`: by rubric and judge some pairs to lay side by side; `kinds`:
    the rubrics and dimensions that count items in place of samples.
    """
    found = boards(tables)
    headlines = [board for board in found if board.is_headline]
    standing = glance(headlines)
    judges_health = health(tables)
    pairs = pair_boards(tables)
    said = answers_first(tables, pairs)
    jury = rows_of(tables, JURY)
    for rubric_id, told in jury_told(jury, headlines).items():
        if (rubric_id, ALL_JUDGES) in said:
            said[rubric_id, ALL_JUDGES] += [told]
    return render(
        "report.html.j2",
        benchmark=name.benchmark,
        run_date=name.run_date.isoformat(),
        publication_id=name.publication_id,
        provenance=provenance,
        groups=by_judge(found),
        glance=standing,
        n_checkpoints=len({*dict(standing), *((row["model"], row["checkpoint"]) for board in pairs for row in board.ratings)}),
        newest=newest(tables),
        answers=said,
        pairs=pairs,
        pair_cards=cards,
        kinds=kinds,
        headlines=headlines,
        figures={board.anchor: figures(board) for board in headlines[:N_CHARTED]},
        max_categories=MAX_CATEGORIES,
        health=judges_health,
        n_again=sum(row.of(HealthMeasure.N_AGAIN) or 0 for row in judges_health),
        failures_figure=failures_figure(judges_health),
        checks=checks(tables),
        reliability=rows_of(tables, RELIABILITY),
        jury=jury,
        exam=rows_of(tables, EXAM),
        gallery=gallery,
        first_cards=gallery.first([made_by for made_by, _ in standing]),
        is_pictured=is_pictured,
        choices=choices(gallery, found),
        tables={table.name: table for table in TABLES.values()},
        published=sorted(table.name for table in tables),
    )
