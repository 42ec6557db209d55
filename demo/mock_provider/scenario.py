"""The scenario file: how difficult the provider is. One TOML, every key with its default. Playing it is provider.py."""

import tomllib
from datetime import date
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from demo.mock_provider.billing import Price, published
from demo.mock_provider.faults import LINE_FAULTS, Fault
from demo.world import JUDGE
from schemas.benchmark.exam import PlantedFault
from schemas.errors import InputError

Share = Annotated[float, Field(ge=0, le=1)]
RetryForm = Literal["seconds", "milliseconds", "both", "date", "none"]
Seconds = Annotated[float, Field(ge=0, le=86_400)]


class ScenarioFileError(InputError):
    """The scenario file is not valid; the message names the key."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _check_sum(key: str, shares: dict[Fault, float]) -> None:
    total = sum(shares.values())
    if total > 1 + 1e-9:
        raise ValueError(f"{key} sum to {total:g}; they are shares of the same requests and must sum to at most 1")


class Answer(_Section):
    """What an answer says. With both token numbers a canned answer is plain: nothing of the request's body is read."""

    mode: Literal["judge", "canned", "echo"] = "judge"
    text: str | None = None
    prompt_tokens: int | None = Field(default=None, ge=0)
    completion_tokens: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _fits_its_mode(self) -> Self:
        if (self.mode == "canned") != (self.text is not None):
            raise ValueError('text belongs to mode = "canned", and a canned answer needs it')
        fixed = (self.prompt_tokens is not None, self.completion_tokens is not None)
        if any(fixed) and (not all(fixed) or self.mode != "canned"):
            raise ValueError('prompt_tokens and completion_tokens go together, with mode = "canned"')
        return self

    @property
    def is_plain(self) -> bool:
        """Whether answering needs nothing from the body."""
        return self.prompt_tokens is not None


class Model(_Section):
    """A model that may be asked for. Its price is the published one, else what stands here."""

    id: str = Field(min_length=1)
    shutdown_date: date | None = None
    usd_per_million_input_tokens: float | None = Field(default=None, ge=0)
    usd_per_million_output_tokens: float | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _has_a_price(self) -> Self:
        given = (self.usd_per_million_input_tokens is not None, self.usd_per_million_output_tokens is not None)
        if any(given) != all(given):
            raise ValueError("usd_per_million_input_tokens and usd_per_million_output_tokens go together")
        if not any(given) and published(self.id) is None:
            raise ValueError(
                f"no price of {self.id!r} is known; add usd_per_million_input_tokens and usd_per_million_output_tokens"
            )
        return self

    @property
    def price(self) -> Price:
        """Its price: what the scenario says, else the published one. How pictures count is published, or the tile rule."""
        known = published(self.id)
        if self.usd_per_million_input_tokens is None or self.usd_per_million_output_tokens is None:
            assert known is not None
            return known
        given = Price(self.usd_per_million_input_tokens, self.usd_per_million_output_tokens)
        return given if known is None else Price(given.input_usd, given.output_usd, known.image)


class Latency(_Section):
    """Time from the request's last byte to the answer: log-normal around the median, and a share of slow ones."""

    median_s: Seconds = 0.0
    sigma: float = Field(default=0.0, ge=0, le=3, description="Of the logarithm; 0: always the median.")
    at_most_s: Seconds = 600.0
    slow_share: Share = 0.0
    slow_s: Seconds = 0.0
    full_speed_in_flight: int | None = Field(default=None, ge=1, description="With more in flight it slows down in proportion.")


class Limits(_Section):
    """Requests and tokens a minute for each key. A bucket fills evenly up to its burst; a window starts anew each window_s."""

    kind: Literal["bucket", "window"] = "bucket"
    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)
    burst_requests: int | None = Field(default=None, ge=1, description="Default: a minute's worth.")
    burst_tokens: int | None = Field(default=None, ge=1, description="Default: a minute's worth.")
    window_s: float = Field(default=60.0, gt=0)
    retry_after: RetryForm = "both"


class Faults(_Section):
    """Shares of requests that go wrong, each drawn from the request's content and the number of its attempt."""

    shares: dict[Fault, Share] = Field(default_factory=dict)
    first_attempts: int | None = Field(default=None, ge=1, description="Only the first n attempts of an item go wrong.")
    retry_after: list[RetryForm] = Field(default=["seconds", "milliseconds", "both", "date", "none"], min_length=1)
    retry_after_s: tuple[Seconds, Seconds] = (0.5, 2.0)
    drip_every_s: float = Field(default=0.8, gt=0)
    wrong_model: str = "another-model-2020-01-01"

    @model_validator(mode="after")
    def _shares_fit(self) -> Self:
        _check_sum("shares", self.shares)
        if self.retry_after_s[0] > self.retry_after_s[1]:
            raise ValueError("retry_after_s is [least, most]; the first must not be the larger")
        return self


class Change(_Section):
    """From a time or a number of requests on, other limits, another answering model, or one fault for every request."""

    at_s: Seconds | None = Field(default=None, description="Since the first request.")
    after_requests: int | None = Field(default=None, ge=0)
    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)
    burst_requests: int | None = Field(default=None, ge=1)
    burst_tokens: int | None = Field(default=None, ge=1)
    answering_model: str | None = None
    fault: Fault | Literal["none"] | None = None

    @model_validator(mode="after")
    def _has_one_start(self) -> Self:
        if (self.at_s is None) == (self.after_requests is None):
            raise ValueError("a change has either at_s or after_requests")
        return self


class BatchRules(_Section):
    """The Batch API. Its times are the provider's; time_scale of them pass in one real second."""

    validating_s: float = Field(default=5.0, ge=0)
    in_progress_s: float = Field(default=600.0, ge=0, description="Until the last line is answered.")
    finalizing_s: float = Field(default=5.0, ge=0)
    window_s: float = Field(default=86_400.0, gt=0, description="The completion window; what is not answered then expires.")
    time_scale: float = Field(default=1.0, gt=0)
    max_file_bytes: int = Field(default=200 * 10**6, ge=1)
    max_lines: int = Field(default=50_000, ge=1)
    line_faults: dict[Fault, Share] = Field(default_factory=dict)
    n_failing: int = Field(default=0, ge=0, description="The first n batches fail as a whole.")
    n_lost_creations: int = Field(default=0, ge=0, description="The first n batches are made, and the connection breaks.")
    price_share: Share = 0.5

    @model_validator(mode="after")
    def _faults_fit(self) -> Self:
        _check_sum("line_faults", self.line_faults)
        for fault in self.line_faults:
            if fault not in LINE_FAULTS:
                allowed = ", ".join(sorted(LINE_FAULTS))
                raise ValueError(f"line_faults: {fault} cannot happen to a line of a file; allowed: {allowed}")
        return self


class ItemRules(_Section):
    """How requests are told apart: by their whole content, by a sample of their bytes (load runs), or not at all."""

    items: Literal["content", "sample", "none"] = "content"
    grace_s: Seconds = Field(default=0.1, description="What comes so soon after a 429 may have been on its way already.")


class ExamRules(_Section):
    """What the judge notices of twins with planted faults (`salon exam`): all others it sees as they were before."""

    lake: Path = Field(description="The lake the twins stand in, seen from the scenario file.")
    noticed: dict[PlantedFault, Share] = Field(default_factory=dict, description="Fault -> share noticed; what is not named: 0.")


class Scenario(_Section):
    """A whole scenario file."""

    seed: int = 1
    answer: Answer = Answer()
    models: list[Model] = Field(default=[Model(id=JUDGE)], min_length=1)
    latency: Latency = Latency()
    limits: Limits = Limits()
    faults: Faults = Faults()
    changes: list[Change] = Field(default_factory=list)
    batch: BatchRules = BatchRules()
    stats: ItemRules = ItemRules()
    exam: ExamRules | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.faults.shares and self.stats.items == "none":
            raise ValueError(
                'stats.items = "none" cannot tell requests apart, but faults.shares are drawn per request; use "sample"'
            )
        names = [model.id for model in self.models]
        if len(set(names)) < len(names):
            raise ValueError(f"models: duplicate id in {', '.join(names)}")
        return self


def load_scenario(path: Path) -> Scenario:
    """Read one scenario file. Raises ScenarioFileError naming each wrong key."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioFileError(f"{path}: cannot be read as a scenario file: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ScenarioFileError(f"{path}: not valid TOML: {error}") from error
    try:
        scenario = Scenario.model_validate(content)
    except ValidationError as error:
        lines = [f"{path}: {_explain(problem['loc'], problem['msg'], problem['type'])}" for problem in error.errors()]
        raise ScenarioFileError("\n".join(lines)) from error
    if scenario.exam is None:
        return scenario
    return scenario.model_copy(update={"exam": scenario.exam.model_copy(update={"lake": path.parent / scenario.exam.lake})})


def _explain(loc: tuple[int | str, ...], message: str, kind: str) -> str:
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc if part != "[key]").lstrip(".")
    if kind == "extra_forbidden":
        sections: dict[str, type[BaseModel]] = {
            "answer": Answer, "models": Model, "latency": Latency, "limits": Limits, "faults": Faults,
            "changes": Change, "batch": BatchRules, "stats": ItemRules, "exam": ExamRules,
        }  # fmt: skip
        section = sections.get(str(loc[0]), Scenario) if len(loc) > 1 else Scenario
        return f"{key} is not a key here; allowed: {', '.join(section.model_fields)}"
    return f"{key + ': ' if key else ''}{message.removeprefix('Value error, ')}"
