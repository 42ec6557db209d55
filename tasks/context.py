"""What every stage knows of its run. It travels to other processes; executor and reporter: flows/run/context.py."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import NamedTuple, Self

import polars as pl

from rubrics.model import Rubric
from schemas.benchmark.file import Benchmark, source_name
from schemas.benchmark.judges import Judge
from schemas.identities import RunIds
from schemas.lineage import Lineage
from schemas.records import SAMPLE_TEXTS, PlannedPart
from schemas.tables.stored import REQUESTS
from tasks.lake.identity import lake_id
from tasks.lake.pictures import StoredDataset
from tasks.lake.reading import Lake


class Reference(NamedTuple):
    """What scores are held against: people's `ratings` and `votes` (tables of these names), or one of the judges."""

    ratings: pl.DataFrame
    votes: pl.DataFrame
    judge: str | None = None


@dataclass(frozen=True)
class StageContext:
    """The benchmark, its rubrics by id, the lake, the ledger's address, the logical date, and what the run has made so far.

    `lineage`: the order of its checkpoints, known once the dataset is.
    """

    benchmark: Benchmark
    rubrics: Mapping[str, Rubric]
    lake: Lake
    ledger_url: str
    run_date: date
    ids: RunIds = field(default_factory=RunIds)
    lineage: Lineage = field(default_factory=Lineage)

    @property
    def dataset(self) -> StoredDataset:
        """The dataset of the run."""
        return StoredDataset(self.lake, self.ids.dataset_id)

    @property
    def name_in_ledger(self) -> str:
        """What the benchmark is called in a ledger that other lakes share: one name in two lakes is two benchmarks."""
        return name_in_ledger(self.benchmark.name, lake_id(self.lake.root))

    @property
    def same_models(self) -> dict[str, list[str]]:
        """The names that are one model, by the judge that may answer under each of them; no judge that has but one."""
        return {judge.id: judge.same_models for judge in self.benchmark.judges if judge.same_models}

    def request_keys(self, part: PlannedPart) -> pl.Series:
        """The keys of a part's requests, of the run's plan."""
        return self.lake.read_part(REQUESTS, self.ids.plan_id, part.index, ["request_key"])["request_key"]

    def judge(self, judge_model: str) -> Judge:
        """The benchmark's judge that tables call so."""
        return next(judge for judge in self.benchmark.judges if judge.id == judge_model)

    def judges_for(self, rubric_id: str) -> list[Judge]:
        """The judges of a rubric, by name: of a program's numbers that program, of any other all who are none."""
        programs = {rubric.program for rubric in self.rubrics.values() if rubric.program}
        mine = self.rubrics[rubric_id].program
        judges = sorted(self.benchmark.judges, key=lambda judge: judge.id)
        return [judge for judge in judges if (judge.id == mine if mine else judge.id not in programs)]

    @property
    def own_texts(self) -> tuple[str, ...]:
        """The text columns that only the benchmark's rubrics know."""
        return tuple(sorted({name for rubric in self.rubrics.values() for name in rubric.columns} - {*SAMPLE_TEXTS}))

    def sources_for(self, rubric_id: str) -> list[str]:
        """The names of the sources a rubric is for."""
        names = [source_name(source, index) for index, source in enumerate(self.benchmark.sources)]
        choice = next(choice for choice in self.benchmark.rubrics if choice.id == rubric_id)
        return [name for name in names if choice.sources is None or name in choice.sources]

    def having(self, **made: str) -> Self:
        """The same with these identities known: `context.having(plan_id=...)`."""
        return replace(self, ids=replace(self.ids, **made))


def name_in_ledger(benchmark: str, of_lake: str) -> str:
    """StageContext.name_in_ledger of a lake with this id."""
    return f"{benchmark} of lake {of_lake}"
