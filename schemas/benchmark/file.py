"""The benchmark file: what one TOML file may say, with every default. What is done with it lives in flows and tasks."""

import tomllib
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from schemas.benchmark.exam import Exam
from schemas.benchmark.judges import Judge, refuse_same_questions
from schemas.benchmark.lines import Name, PathText, Section, explain, line_of, not_toml, reworded
from schemas.benchmark.nightly import Nightly
from schemas.benchmark.ratings import Ratings, Recorded
from schemas.benchmark.rounds import Pairs, Stopping
from schemas.errors import BenchmarkFileError
from schemas.statuses.cells import Correction

_N_TOLD = 20  # of the problems in one file
Runner = Literal["local", "processes", "dask"]
Role = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
"""What a picture is to its sample: `image`, the one that is judged; `source`, `reference`, … as the rubric names them."""
Place = Annotated[str, StringConstraints(min_length=1)]
Retry = Literal["rejected"]
"""Final replies that a run may be told to ask for again."""
Host = Annotated[
    str, StringConstraints(pattern=r"^([A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$")
]


class Source(Section):
    """One dataset source. `path` may hold `{model}` and `{checkpoint}`, filled from the folders that are there."""

    reader: str = Field(min_length=1, description="The dataset format: the readers there are, ingest knows.")
    path: PathText
    name: Name | None = None
    columns: dict[str, str] = Field(default_factory=dict, description="Salon's column -> where it stands in the source.")
    pictures: dict[Role, Place | list[Place]] = Field(
        default_factory=dict, description="Role of a picture -> where it stands; several in the order in which they are shown."
    )
    where: dict[str, str | int | float | bool] = Field(default_factory=dict, description="Keep only rows with these values.")
    model: str | None = Field(default=None, description="The model of every row, where the source does not say.")
    checkpoint: str | None = Field(default=None, description="The checkpoint of every row, where the source does not say.")
    remote_hosts: list[Host] = Field(default_factory=list, description="Hosts that pictures named by URL are fetched from.")
    decode: Literal["full", "header"] = Field(
        default="full", description="header: a picture that its header shows to be clean is not decoded; for pictures you trust."
    )
    follow_links: bool = Field(default=False, description="{model} and {checkpoint} may find links to folders elsewhere.")

    @model_validator(mode="after")
    def _names_its_image_once(self) -> Self:
        if "image" in self.columns and "image" in self.pictures:
            raise ValueError("image is both under columns and under pictures; keep one of them")
        return self


MAX_USD = 1_000_000_000
"""Of a budget: counted in billionths of a dollar, it is still a whole number of 64 bits."""


class RubricChoice(Section):
    """A rubric to judge by, and the named sources it is for (default: all)."""

    id: str
    sources: list[Name] | None = None


class Limits(Section):
    """How fast, how long and for how much."""

    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)
    max_usd: float | None = Field(default=None, ge=0, le=MAX_USD)
    concurrency: int = Field(default=64, ge=1, le=2000, description="Requests in flight at once.")
    deadline_s: float = Field(default=120.0, gt=0, description="Total time one request may take, retries apart.")
    attempts_per_request: int = Field(default=12, ge=1, le=1000, description="Of one ask in one run, whatever went wrong.")
    attempts_per_run: int | None = Field(
        default=None, ge=1, description="Of all requests of a run together; default: 2 for each request, and 100."
    )
    shard_size: int = Field(default=500, ge=1, le=100_000, description="Samples in a shard: the unit of a Prefect task.")


class Workers(Section):
    """The processes that shards run in, where the runner is "processes" or "dask"."""

    n: int | None = Field(
        default=None, ge=1, le=1000, description="Shards at the same time; default: the processors, or all a cluster has."
    )
    address: str | None = Field(
        default=None,
        pattern=r"^(tcp|tls|ws|wss)://[^\s/@]+:[0-9]{1,5}$",
        description='The scheduler of a running Dask cluster, as "tcp://host:8786"; default: a cluster of this machine\'s own.',
    )


class Gate(Section):
    """What must hold before a number is published."""

    min_coverage: float = Field(default=0.8, ge=0, le=1, description="A cell with fewer of its judgements scored is blocked.")
    max_missing_input: float = Field(
        default=0.02,
        ge=0,
        le=1,
        description="A larger share of replies that say they were given nothing to judge, 8 of them or more, stops the run.",
    )
    stop_when_unreadable: bool = Field(
        default=True, description="Whether a judge of which none of the first 32 requests can be read is asked no more."
    )
    exit_1: Literal["headline", "any"] = Field(
        default="headline", description="Which blocked cells end a run with 1: those of the headline rankings, or any."
    )


class Statistics(Section):
    """What is published beside the means, and how comparisons are corrected."""

    at_least: dict[str, float] = Field(
        default_factory=dict, description="dimension or rubric.dimension -> k: also publish the share of scores of k or more."
    )
    primary: list[str] = Field(
        default_factory=list,
        description="dimension or rubric.dimension: what claims are made of. Default: overall_score, else all of a rubric.",
    )
    correction: Correction = Correction.BONFERRONI
    family: Literal["benchmark", "table", "pair"] = Field(
        default="benchmark",
        description="Corrected together: all primary rankings, those of a rubric and judge, or each two checkpoints alone.",
    )
    failures: Literal["worst_case", "at_random"] = Field(
        default="worst_case",
        description="A difference counts where no failure could turn it, or as if failures were a random part of the judgements.",
    )
    min_paired_prompts: int = Field(default=5, ge=2, description="In each category; with fewer there is no comparison.")
    max_ranked: int = Field(
        default=50, ge=2, description="Above so many checkpoints the comparisons of all with all are left out."
    )
    stopping: Stopping = Stopping()


class Report(Section):
    """What stands beside a publication's report."""

    max_pictured: int = Field(
        default=20_000, ge=0, description="Judged samples on the pages with their pictures; 0: no such pages."
    )


class Benchmark(Section):
    """A whole benchmark file. Paths are relative to `folder`, the folder the file stands in."""

    name: Name
    lake: PathText = "lake/"
    ledger: str | None = Field(default=None, description="SQLAlchemy URL; default: ledger.db in the lake.")
    sources: list[Source] = Field(min_length=1)
    rubrics: list[RubricChoice] = Field(min_length=1)
    judges: list[Judge] = Field(min_length=1)
    rubric_folders: list[PathText] = Field(default_factory=list, description="Folders of your own rubrics.")
    recorded: Recorded = Recorded()
    ratings: Ratings = Ratings()
    limits: Limits = Limits()
    runner: Runner = Field(default="local", description="What runs the shards: threads of this process, processes, or Dask.")
    workers: Workers = Workers()
    gate: Gate = Gate()
    nightly: Nightly = Nightly()
    pairs: Pairs = Pairs()
    exam: Exam | None = Field(default=None, description="Faults planted in some samples: which of them a judge notices.")
    statistics: Statistics = Statistics()
    report: Report = Report()
    folder: Path = Field(default=Path(), exclude=True)

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        _refuse_repeats(
            "judges", [judge.id for judge in self.judges], "use repeats, or if one is asked differently, give it a name"
        )
        refuse_same_questions(self.judges)
        _refuse_repeats("rubrics", [rubric.id for rubric in self.rubrics], "name each rubric once")
        names = [source_name(source, index) for index, source in enumerate(self.sources)]
        _refuse_repeats("sources", names, "give each source its own name")
        for rubric in self.rubrics:
            for name in rubric.sources or []:
                if name not in names:
                    raise ValueError(f"rubric {rubric.id!r} is for the unknown source {name!r}; available: {', '.join(names)}")
        return self

    @property
    def asked_judges(self) -> list[Judge]:
        """The judges that are asked, in the file's order: all but those whose replies are recorded elsewhere."""
        return [judge for judge in self.judges if not judge.recorded]

    def path(self, relative: str) -> Path:
        """A path of the file, seen from the folder the file stands in."""
        return self.folder / relative


def source_name(source: Source, index: int) -> str:
    """The source's own name, or `source-N`."""
    return source.name or f"source-{index}"


def load_benchmark(path: Path) -> Benchmark:
    """Read one benchmark file. Raises BenchmarkFileError naming the key and the line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise BenchmarkFileError(
            f"the benchmark file {path} does not exist; salon new {path} --from FOLDER begins one (docs/benchmark-file.md)"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise BenchmarkFileError(f"{path}: cannot be read as a benchmark file: {error}") from error
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits, lists a thousand deep
        raise BenchmarkFileError(f"{path}: not valid TOML: {not_toml(text, error)}") from error
    if "folder" in content:
        raise BenchmarkFileError(f"{path}, line {line_of(text, ('folder',))}: folder is not a key of a benchmark file; remove it")
    try:
        return Benchmark.model_validate(content | {"folder": path.resolve().parent})
    except ValidationError as error:
        problems = [one for one in error.errors() if one["type"] != "default_factory_not_called"]  # it follows from another one
        told = problems[:_N_TOLD]  # each looks for its line in the whole text
        lines = [explain(path, text, Benchmark, one["loc"], reworded(one), one["type"]) for one in told]
        if len(problems) > _N_TOLD:
            lines.append(f"and {len(problems) - _N_TOLD:,} more")
        raise BenchmarkFileError("\n".join(lines)) from error


def refused(path: Path, loc: tuple[int | str, ...], why: str) -> BenchmarkFileError:
    """The error for a value that only what stands around the file shows to be wrong, with its key and its line."""
    return BenchmarkFileError(explain(path, path.read_text(encoding="utf-8-sig"), Benchmark, loc, why))


def _refuse_repeats(key: str, values: list[str], advice: str) -> None:
    for value in values:
        if values.count(value) > 1:
            raise ValueError(f"{key}: {value!r} occurs {values.count(value)} times; {advice}")
