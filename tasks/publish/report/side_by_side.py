"""What the page that lays two checkpoints side by side knows of prompts and samples. The pages of the samples are compare.py."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass

import polars as pl

from schemas.metrics import HEADLINE, headlines
from schemas.statuses.rows import ScoreStatus
from tasks.publish.report.asks import Ask, cut
from tasks.publish.report.sheets import Shown


@dataclass(frozen=True, slots=True)
class Shot:
    """One sample in its prompt's row. `asks`: by rubric what each judge said; `twin`: what other sample it equals, in words."""

    sample_id: str
    anchor: str
    model: str
    checkpoint: str
    category: str | None
    texts: Mapping[str, str]
    source_key: str
    asks: Mapping[str, list[Ask]]
    shown: Shown | None
    twin: str | None


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt: `columns` are its samples by contestant, in the publication's order of contestants."""

    anchor: str
    text: str
    category: str | None
    columns: list[tuple[tuple[str, str], list[Shot]]]


class Index:
    """What the start page knows: of each prompt its page, of each sample its picture's place, its score by rubric and judge."""

    def __init__(self, contestants: Sequence[tuple[str, str]], cells: pl.DataFrame) -> None:
        """`cells` are placed."""
        is_one_model = len({model for model, _ in contestants}) == 1
        self.contestants = [checkpoint if is_one_model else f"{model} / {checkpoint}" for model, checkpoint in contestants]
        self._number = {contestant: index for index, contestant in enumerate(contestants)}
        primary = headlines(cells)
        self.rubrics = sorted(cells["rubric_id"].unique())
        self.leading = {rubric: {key for of, key in primary if of == rubric} for rubric in self.rubrics}
        self.judges = sorted(cells["judge_model"].unique())
        self._scored_by = [(rubric, judge) for rubric in self.rubrics for judge in self.judges]
        self.prompts: list[tuple[str, str | None, str, str]] = []
        self.shots: list[list[object]] = []

    def add(self, page: str, prompts: Iterable[Prompt]) -> None:
        """The prompts of a page."""
        for prompt in prompts:
            for contestant, shots in prompt.columns:
                for shot in shots:
                    place = [] if shot.shown is None else list(astuple(shot.shown))
                    scores = [self._level(rubric, judge, shot.asks.get(rubric, ())) for rubric, judge in self._scored_by]
                    self.shots.append([len(self.prompts), self._number[contestant], shot.anchor, scores, place])
            self.prompts.append((cut(prompt.text, 200), prompt.category, page, prompt.anchor))

    def _level(self, rubric_id: str, judge: str, asks: Iterable[Ask]) -> float | str | None:
        """A sample's mean over one judge's repeats, of the scores that count in the rubric's leading dimensions.

        None where it has none, and empty where the judge was not asked: judges are never mixed in one mean.
        """
        mine = [ask for ask in asks if ask.judge_model == judge]
        if not mine:
            return ""
        leading = self.leading[rubric_id]
        found = [
            one.score for ask in mine for one in ask.all_scores if one.dimension in leading and one.status == ScoreStatus.SCORED
        ]
        scores = [score for score in found if score is not None]
        return round(sum(scores) / len(scores), 4) if scores else None

    @property
    def categories(self) -> list[str]:
        """In order of their names."""
        return sorted({category for _, category, _, _ in self.prompts if category})

    def rubric_name(self, rubric_id: str) -> str:
        """The rubric, and what is averaged of it."""
        leading = self.leading[rubric_id]
        return f"{rubric_id}: {HEADLINE if HEADLINE in leading else next(iter(leading)) if len(leading) == 1 else 'mean'}"

    def as_json(self) -> str:
        """For the page's script; it stands in a data attribute, so nothing in it can end an element. A category is its number."""
        number = {name: index for index, name in enumerate(self.categories, 1)}
        prompts = [(text, number.get(category or "", 0), page, anchor) for text, category, page, anchor in self.prompts]
        return json.dumps({"prompts": prompts, "shots": self.shots}, ensure_ascii=False, separators=(",", ":"))
