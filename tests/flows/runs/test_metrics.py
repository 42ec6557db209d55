"""A run's numbers as OpenTelemetry metrics: what a receiver on loopback is sent, one that refuses, and none unasked."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from tests.flows.flow_support import Said, runs_of
from tests.support.night_world import N_SAMPLES, World, write_benchmark

Sent = list[ExportMetricsServiceRequest]


@pytest.fixture
def receiver() -> Iterator[tuple[str, Sent, list[int]]]:
    """Its address, what it was sent, and the status it answers with."""
    sent: Sent = []
    status = [200]

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            assert self.path == "/v1/metrics"
            sent.append(ExportMetricsServiceRequest.FromString(body))
            self.send_response(status[0])
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", sent, status
    server.shutdown()
    server.server_close()


def _numbers(sent: Sent) -> dict[tuple[str, str], float]:
    """(metric, stage, status or outcome) -> the last value sent."""
    found: dict[tuple[str, str], float] = {}
    for metric in (m for one in sent for r in one.resource_metrics for s in r.scope_metrics for m in s.metrics):
        for point in metric.gauge.data_points:
            said = {pair.key: pair.value.string_value for pair in point.attributes}
            assert (said.pop("benchmark"), said.pop("run_date")) == ("nights", "2026-03-01")
            found[metric.name, "".join(said.values())] = point.as_double or float(point.as_int)
    return found


def test_a_run_is_measured_where_a_receiver_is_named_and_ends_as_ever_where_that_fails(
    tmp_path: Path, judge_url: str, salon: Callable[..., Said], receiver: tuple[str, Sent, list[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    address, sent, status = receiver
    World(tmp_path).make(1)
    file = write_benchmark(tmp_path, judge_url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    assert salon("run", file, "--run-date", "2026-03-01").code == 0
    (row,) = runs_of(tmp_path / "lake").to_dicts()
    found = _numbers(sent)
    published = "published"
    assert found["salon.run.requests", published] == N_SAMPLES == found["salon.run.replies", "answered"]
    assert found["salon.run.attempts", published] == row["n_asked"]
    assert found["salon.run.cost", published] == pytest.approx(row["cost_usd"])
    assert found["salon.run.input_tokens", published] == row["n_input_tokens"]
    assert (found["salon.stage.done", "judge"], found["salon.stage.queued", "judge"]) == (N_SAMPLES, 0)
    assert {stage for (name, stage), n in found.items() if name == "salon.stage.queued" and n} == set(), "nothing waits any more"
    assert found["salon.stage.done", "publish"] == 1
    assert 0 < found["salon.stage.duration", "judge"] < 600
    assert {key.value.string_value for one in sent for r in one.resource_metrics for key in r.resource.attributes} >= {"salon"}
    n_sent, status[0] = len(sent), 400
    assert salon("run", file, "--run-date", "2026-03-01").code == 0, "a receiver that refuses ends nothing"
    assert len(sent) > n_sent
    n_sent = len(sent)
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert salon("run", file, "--run-date", "2026-03-01").code == 0
    monkeypatch.delenv("OTEL_SDK_DISABLED")
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "0")
    unusable = salon("run", file, "--run-date", "2026-03-01")
    assert (unusable.code, "no metrics: a variable OTEL_*" in " ".join(unusable.err.split())) == (0, True), unusable
    assert len(sent) == n_sent, "nothing is sent where the standard variables say so"


def test_attempts_that_were_refused_by_the_rate_limit_are_counted(
    tmp_path: Path,
    provider: Any,
    salon: Callable[..., Said],
    receiver: tuple[str, Sent, list[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also of a run that a provider ended which says 429 alone: `salon.run.*` has nothing of it."""
    address, sent, _ = receiver
    World(tmp_path).make(1)
    file = write_benchmark(tmp_path, provider.url)
    file.write_text(file.read_text().replace("concurrency = 4", "concurrency = 1"))
    provider.script.extend([provider.play(status=429, headers={"retry-after-ms": "5"})] * 3)
    provider.then = provider.play(status=401)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    assert salon("run", file, "--run-date", "2026-03-01").code == 3
    found = _numbers(sent)
    assert found["salon.judge.attempts", "rate_limited"] == 3
    assert found["salon.judge.attempts", "unauthorized"] == provider.n - 3
    assert found["salon.stage.queued", "judge"] == N_SAMPLES
