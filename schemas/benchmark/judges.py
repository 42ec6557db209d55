"""The judges of a benchmark file: who is asked, how, and for what price. What else the file may say is benchmark.py."""

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from schemas.benchmark.judge_parameters import checked, variable_of_key
from schemas.benchmark.lines import Name, PathText, Section
from schemas.statuses.people import is_reserved

DETAIL_LOW_PX = 512
"""OpenAI shows a model a picture of this size at detail "low"."""
DEFAULT_PROVIDER = "openai"


class Price(Section):
    """What a judge costs, where Salon's price data does not know it or the contract says otherwise."""

    input_usd_per_million: float | None = Field(default=None, ge=0)
    output_usd_per_million: float | None = Field(default=None, ge=0)
    cached_usd_per_million: float | None = Field(default=None, ge=0, description="Repeated input; default: the input's price.")
    batch_share: float = Field(default=0.5, ge=0, le=1, description="Of these prices, through the Batch API.")
    gpu_hour: float | None = Field(
        default=None, ge=0, description="USD an hour of the machine that serves it, in place of tokens."
    )
    judgements_per_hour: float | None = Field(default=None, gt=0, description="How many judgements it answers in an hour.")

    @model_validator(mode="after")
    def _is_by_tokens_or_by_the_hour(self) -> Self:
        by_tokens = [self.input_usd_per_million, self.output_usd_per_million]
        by_hour = [self.gpu_hour, self.judgements_per_hour]
        said = [None not in pair for pair in (by_tokens, by_hour)]
        half = [None in pair and pair != [None, None] for pair in (by_tokens, by_hour)]
        if sum(said) != 1 or any(half) or (said[1] and self.cached_usd_per_million is not None):
            raise ValueError(
                "a price is { input_usd_per_million, output_usd_per_million } or { gpu_hour, judgements_per_hour }, with both "
                "keys; write 0 for what costs nothing"
            )
        return self


LOOPBACK = ("127.0.0.1", "localhost", "::1")


def _can_be_passed(word: str) -> str:
    if not word or "\0" in word:
        raise ValueError(f"{word!r:.60} is empty or holds a NUL character; no program can be given that")
    return word


Argument = Annotated[str, AfterValidator(_can_be_passed)]


class Server(Section):
    """The program that serves a judge on this machine, such as vLLM: `salon judge-server`, or a run, starts and ends it."""

    command: list[Argument] = Field(
        min_length=1, description="The program and its arguments; {port} is base_url's, {model} the judge's, {weights} the path."
    )
    health: str = Field(default="/health", pattern="^/", description="Answered with 200 once it can be asked.")
    start_limit_s: float = Field(default=1800.0, gt=0, description="Longest wait for that: weights take minutes to load.")
    weights: Annotated[PathText, AfterValidator(_can_be_passed)] | None = Field(
        default=None,
        description="File or folder that is served; the digest of its files is part of the request key.",
    )
    version: list[Argument] | None = Field(
        default=None, min_length=1, description="A command whose first line names the engine's version; part of the request key."
    )
    with_run: bool = Field(default=False, description="A run that has something to ask starts it, and ends it afterwards.")


def address_fault(address: str) -> str | None:
    """Why nothing can be sent to an address; None where it can be. Nothing of it is repeated: it may hold a password."""
    odd = next((one for one in address if one == " " or not one.isprintable()), None)
    if odd is not None:  # urlsplit drops some of them in silence, and a server rejects the others
        return f"it holds the character {odd!r}, which is part of no address; remove it"
    if "@" in address:  # the transport could not send a login beside a key
        return (
            "it holds a user name or a password; write https://host/v1, put the key into an environment variable and name that "
            "variable with api_key_env"
        )
    if "#" in address:
        return "what follows # is never sent; remove it"
    try:
        url = urlsplit(address)
        is_usable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        is_usable = False
    return None if is_usable else "this is not an address; write https://host/v1 (or http://localhost:8000/v1)"


def model_fault(name: str) -> str | None:
    """Why no provider has a model of this name; None where one may have."""
    odd = next((one for one in name if not one.isprintable()), None)
    why = f"it holds {odd!r}" if odd else None if name.strip() else "it is blank"
    if not why and is_reserved(name):
        why = "names that begin and end with __ are Salon's own"
    return f"{name!r:.60} is not a model's name: {why}; write the provider's" if why else None


def _can_be_a_models(name: str) -> str:
    if why := model_fault(name):
        raise ValueError(why)
    return name


ModelName = Annotated[str, StringConstraints(min_length=1), AfterValidator(_can_be_a_models)]


class Judge(Section):
    """A judge to ask, or (`recorded = true`) one whose replies are only ever imported."""

    model: ModelName
    name: Name | None = Field(default=None, description="What tables call it; default: its model.")
    provider: str = Field(
        default=DEFAULT_PROVIDER, description="Whose API it speaks: openai, anthropic or gemini; part of the request key."
    )
    base_url: str | None = None
    api_key_env: Annotated[str, AfterValidator(variable_of_key)] = Field(
        default_factory=lambda said: f"{said.get('provider', DEFAULT_PROVIDER).upper()}_API_KEY",
        description="The variable's name; default: the provider's in capitals, as in ANTHROPIC_API_KEY.",
    )
    parameters: Annotated[dict[str, Any], AfterValidator(checked)] = Field(
        default_factory=dict, description="Sent with each request as they are: any JSON; part of the request key."
    )
    deployment: str | None = Field(
        default=None,
        min_length=1,
        max_length=500,
        description="What is served there under the model's name, where the name does not tell; part of the request key.",
    )
    accept_models: list[ModelName] = Field(
        default_factory=list,
        description="Other names it may answer under, as behind a gateway; with its own they are one judge.",
    )
    repeats: int = Field(default=1, ge=1, le=100)
    recorded: bool = False
    mode: Literal["online", "batch", "auto"] = Field(
        default="online", description="How it is asked; auto: by the Batch API where the endpoint has one and enough is asked."
    )
    on_model_change: Literal["alert", "stop"] = Field(
        default="alert",
        description="Where another model answers than on the night before; stop: nothing more is asked (exit code 3).",
    )
    structured_output: bool = Field(default=False, description="Send the reply's JSON schema along; part of the request key.")
    detail: Literal["low", "high", "auto"] | None = Field(
        default=None, description="How closely the provider looks at a picture; part of the request key."
    )
    max_side_px: int | None = Field(
        default=None, ge=64, le=8192, description="A larger picture is sent shrunk to this longest side; part of the request key."
    )
    share: float | None = Field(
        default=None, gt=0, lt=1, description="Asked about this share of the prompts, the same of every checkpoint; default: all."
    )
    server: Server | None = Field(default=None, description="The program of this machine that serves it.")
    price: Price | None = Field(default=None, description="Default: Salon's price data for the model.")

    @property
    def id(self) -> str:
        """What plans, ledgers and tables call it (their `judge_model`): its name, else its model."""
        return self.name or self.model

    @property
    def same_models(self) -> list[str]:
        """The names that are this one judge: those of `accept_models` and its own; empty where none are listed."""
        return [*self.accept_models, self.model] if self.accept_models else []

    def is_called(self, answered: str) -> bool:
        """Whether a model that answered is the one asked for, by its own name or one of `accept_models`."""
        return answered == self.model or answered in self.accept_models

    def one_name(self, answered: str) -> str:
        """The name of a model that answered; the first of `same_models` for all of them, which are one."""
        return self.accept_models[0] if self.accept_models and self.is_called(answered) else answered

    @property
    def shown(self) -> dict[str, str | int]:
        """How its pictures are shown where that is not as they are: a part of the request key."""
        said = {"detail": self.detail, "max_side_px": self.max_side_px, "resampled_by": "lanczos" if self.max_side_px else None}
        return {name: value for name, value in said.items() if value is not None}

    @model_validator(mode="after")
    def _is_asked_as_it_says(self) -> Self:
        said = [name for name in ("detail", "max_side_px", "share") if getattr(self, name) is not None]
        if self.recorded and said:
            raise ValueError(f"recorded = true means nothing is sent, but {said[0]} is about what is sent: remove one of them")
        address = urlsplit(self.base_url or "")
        if self.server is not None and (self.recorded or address.hostname not in LOOPBACK or address.query):
            raise ValueError(
                'a server section is only for a judge on this machine: base_url = "http://127.0.0.1:8000/v1", not recorded'
            )
        if self.detail == "low" and self.max_side_px is not None and self.max_side_px > DETAIL_LOW_PX:
            raise ValueError(
                f'max_side_px = {self.max_side_px} beside detail = "low", which sends {DETAIL_LOW_PX} px at most; '
                f"remove one of them, or set max_side_px to {DETAIL_LOW_PX} or less"
            )
        return self

    @field_validator("base_url")
    @classmethod
    def _is_an_address(cls, address: str | None) -> str | None:
        if address is not None and (why := address_fault(address)):
            raise ValueError(why)
        return address


_ASKED = {"model", "provider", "parameters", "structured_output", "recorded", "deployment", "server"}


def refuse_same_questions(judges: Sequence[Judge]) -> None:
    """Raise ValueError for judges whose requests would have the same keys: one reply would be counted as two judges'.

    Of a server the key holds what is served, its deployment: where that is not said it is not known until the weights are read.
    """
    asked: dict[str, Judge] = {}
    for judge in judges:
        said = judge.model_dump(mode="json", include=_ASKED - ({"server"} if judge.deployment else set()))
        other = asked.setdefault(json.dumps([said, judge.shown], sort_keys=True), judge)
        if other is not judge:
            raise ValueError(
                f"judges: {other.id!r} and {judge.id!r} send {judge.model} the same requests; let them differ in provider, "
                "parameters, structured_output, detail, max_side_px or server (its weights, version or command), or in "
                "deployment, which says what is served there, such as another quantization (to ask again, use repeats)"
            )
