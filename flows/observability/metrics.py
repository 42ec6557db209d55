"""A run's numbers as OpenTelemetry metrics, where the standard OTEL_* variables name a receiver; else nothing is imported."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from flows.observability.progress import Reporter
from flows.observability.redaction import redacted

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation
    from opentelemetry.sdk.metrics import MeterProvider

Measured = Iterator[tuple[float, dict[str, str]]]
END_MS: Final = 10_000
"""How long a run's end waits for a receiver that does not answer."""


@contextmanager
def metered(benchmark: str, run_date: str, reporter: Reporter) -> Iterator[None]:
    """Send the run's numbers while the block runs and at its end: every OTEL_METRIC_EXPORT_INTERVAL, by OTLP over HTTP.

    On where OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_METRICS_ENDPOINT is set, unless OTEL_SDK_DISABLED or
    OTEL_METRICS_EXPORTER=none. A receiver that is away ends nothing, nor does a variable that cannot be used.
    """
    provider = None
    try:
        provider = _provider(benchmark, run_date, reporter) if _is_on() else None
    except ImportError:
        reporter.say("OTEL_EXPORTER_OTLP_ENDPOINT is set, but the extra `otel` is not installed: no metrics (docs/alerts.md)")
    except Exception as error:  # noqa: BLE001 - what is only shown ends no run
        reporter.say(f"no metrics: a variable OTEL_* cannot be used: {redacted(str(error))}; correct or unset it")
    try:
        yield
    finally:
        if provider is not None:
            with suppress(Exception):
                provider.shutdown(END_MS)


def _provider(benchmark: str, run_date: str, reporter: Reporter) -> "MeterProvider":
    """What sends the numbers until it is shut down. Raises ImportError without the extra, and what OpenTelemetry raises."""
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource

    os.environ.setdefault("OTEL_SERVICE_NAME", "salon")
    provider = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())], Resource.create())
    meter, common = provider.get_meter("salon"), {"benchmark": benchmark, "run_date": run_date}
    for name, (unit, about, measure) in METRICS.items():
        meter.create_observable_gauge(name, [partial(_observed, partial(measure, reporter), common)], unit, about)
    return provider


def _is_on() -> bool:
    said = {name: value.strip() for name, value in os.environ.items() if name.startswith("OTEL_")}
    is_off = said.get("OTEL_SDK_DISABLED", "").lower() == "true" or said.get("OTEL_METRICS_EXPORTER") == "none"
    return not is_off and bool(said.get("OTEL_EXPORTER_OTLP_ENDPOINT") or said.get("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"))


def _observed(measure: Callable[[], Measured], common: dict[str, str], _: "CallbackOptions") -> "Iterator[Observation]":
    from opentelemetry.metrics import Observation

    for value, attributes in measure():
        yield Observation(value, common | attributes)


def _stages(which: int, reporter: Reporter) -> Measured:
    for stage, numbers in reporter.stages().items():
        yield numbers[which], {"stage": stage}


def _of_run(name: str, reporter: Reporter) -> Measured:
    value = reporter.ran.get(name)
    if isinstance(value, int | float):
        yield value, {"outcome": str(reporter.ran["outcome"])}


def _finished(reporter: Reporter) -> Measured:
    if reporter.ran:
        yield time.time(), {"outcome": str(reporter.ran["outcome"])}


def _replies(reporter: Reporter) -> Measured:
    statuses = reporter.ran.get("n_by_status")
    for status, n in statuses.items() if isinstance(statuses, dict) else ():
        yield n, {"status": status}


def _attempts(reporter: Reporter) -> Measured:
    for status, n in reporter.attempts.copy().items():
        yield n, {"status": status}


METRICS: Final[dict[str, tuple[str, str, Callable[[Reporter], Measured]]]] = {
    "salon.stage.done": ("1", "Steps of a stage that are done.", partial(_stages, 0)),
    "salon.stage.queued": ("1", "Steps of a stage that are not done yet.", partial(_stages, 1)),
    "salon.stage.duration": ("s", "Seconds since a stage began, or that it took.", partial(_stages, 2)),
    "salon.judge.attempts": ("1", "Attempts that ended, by how: `rate_limited` is a 429.", _attempts),
    "salon.run.requests": ("1", "Requests of a run.", partial(_of_run, "n_requests")),
    "salon.run.cached": ("1", "Of them stored already.", partial(_of_run, "n_cached")),
    "salon.run.attempts": ("1", "Attempts sent, retries included.", partial(_of_run, "n_asked")),
    "salon.run.replies": ("1", "Requests asked in this run, by how they ended.", _replies),
    "salon.run.input_tokens": ("1", "Tokens sent.", partial(_of_run, "n_input_tokens")),
    "salon.run.output_tokens": ("1", "Tokens received.", partial(_of_run, "n_output_tokens")),
    "salon.run.cost": ("USD", "What the run's replies cost.", partial(_of_run, "cost_usd")),
    "salon.run.finished": ("s", "When it ended, in seconds since 1970.", _finished),
}
