"""`salon plan` and `--max-usd` as a user sees them, held against what the difficult provider says it was asked and charged."""

import json
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from demo.running import running_judge
from flows.observability.progress import Reporter
from flows.run.preview import preview
from tasks.judge.budget.prices import known_price
from tests.flows.flow_support import Said
from tests.support.painting import paint

pytestmark = pytest.mark.slow

MODEL = "gpt-4.1-2025-04-14"
BENCHMARK = """\
name = "priced"
lake = "{lake}"
[[sources]]
name = "answers"
reader = "manifest"
path = "answers.jsonl"
[[sources]]
name = "captions"
reader = "manifest"
path = "captions.jsonl"
[[rubrics]]
id = "interleaved"
sources = ["answers"]
[[rubrics]]
id = "caption"
sources = ["captions"]
[[judges]]
model = "{model}"
base_url = "{url}"
parameters = {{ temperature = 0, max_tokens = 600 }}
[limits]
{limits}
"""


@pytest.fixture(scope="module")
def priced_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The honest judge under the name, and at the price, of a model people pay for."""
    scenario = tmp_path_factory.mktemp("priced") / "scenario.toml"
    scenario.write_text(f'[[models]]\nid = "{MODEL}"\n')
    with running_judge(scenario) as url:
        yield url


@pytest.fixture(scope="module")
def painted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("painted")
    paint(folder)
    return folder


@pytest.fixture
def write(tmp_path: Path, painted: Path, priced_url: str) -> Callable[..., Path]:
    def write(limits: str = "", model: str = MODEL) -> Path:
        file = painted / "b.toml"
        file.write_text(BENCHMARK.format(model=model, url=priced_url, limits=limits, lake=tmp_path / "lake"))
        return file

    return write


def _stats(url: str) -> dict[str, float]:
    with urllib.request.urlopen(url.removesuffix("/v1") + "/stats") as response:
        stats: dict[str, float] = json.load(response)
        return stats


def test_a_plan_says_what_a_run_costs_within_ten_percent_of_the_bill(
    write: Callable[..., Path], salon: Callable[..., Said], priced_url: str
) -> None:
    file = write("requests_per_minute = 60\nmax_usd = 0.5")
    before = _stats(priced_url)
    said = salon("plan", file, "--checkpoints", "step-1000")
    assert said.code == 0, said.err
    assert "$2 in, $0.5 repeated, $8 out per million tokens" in said.out
    price = known_price(MODEL)
    assert price is not None
    assert f"as of {price.as_of}" in said.out
    assert "0.8 minutes at 60 requests a minute" in said.out
    assert "nothing was sent" in said.out
    flat = " ".join(said.out.split())
    assert 'by batch (mode = "batch"): 50% less' in flat
    assert "with max_side_px = 1024" not in flat, "the painted scenes have 256 px: it saves nothing"
    assert _stats(priced_url)["n_requests"] == before["n_requests"]
    first = preview(file, ["step-1000"], Reporter())
    assert first.n_to_ask == 49

    assert salon("run", write(), "--run-date", "2026-01-02", "--checkpoints", "step-1000").code in (0, 1)
    bill = _stats(priced_url)
    billed_usd = bill["usd"] - before["usd"]
    assert bill["n_requests"] - before["n_requests"] == 49
    assert first.expected_usd == pytest.approx(billed_usd, rel=0.10)  # before any reply
    assert sum(row.forecast.n_input_tokens for row in first.rubrics) == pytest.approx(
        bill["n_input_tokens"] - before["n_input_tokens"], rel=0.05
    )
    after = preview(file, ["step-1000"], Reporter())
    assert (after.n_to_ask, after.expected_usd) == (0, 0)
    assert sum(row.forecast.saved_usd or 0 for row in after.rubrics) == pytest.approx(billed_usd, rel=0.10)


@pytest.mark.parametrize(
    ("limits", "model", "words"),
    [
        pytest.param("max_usd = 0.05", MODEL, "it pays for about", id="below what is expected"),
        pytest.param("max_usd = 0.5", MODEL, "if replies are long", id="below the worst case"),
        pytest.param("max_usd = 50", MODEL, "", id="above it"),
        pytest.param("max_usd = 50", "qwen-vl", "limits.max_usd = 50 cannot be kept: no price", id="no price"),
        pytest.param("", "o4-mini", "thinks before it answers", id="thinking nobody has counted"),
    ],
)
def test_what_a_plan_warns_of(
    limits: str, model: str, words: str, write: Callable[..., Path], salon: Callable[..., Said]
) -> None:
    said = salon("plan", write(limits, model), "--checkpoints", "step-1000")
    assert said.code == 0, said.err
    flat = " ".join(said.out.split())
    assert ("warning" in flat) == bool(words)
    assert words in flat
    assert ("no price of qwen-vl is known; write [judges.price]" in flat) == (model == "qwen-vl")


@pytest.mark.parametrize("option", [(), ("--max-usd", "3")], ids=["in the file", "on the command line"])
def test_a_limit_without_a_price_stops_a_run_before_anything_is_read_or_sent(
    option: tuple[str, ...], write: Callable[..., Path], salon: Callable[..., Said], priced_url: str, tmp_path: Path
) -> None:
    before = _stats(priced_url)["n_requests"]
    said = salon("run", write("" if option else "max_usd = 3", "qwen-vl"), *option)
    assert said.code == 2
    assert "limits.max_usd = 3 cannot be kept: no price of qwen-vl is known; write [judges.price]" in said.err
    assert _stats(priced_url)["n_requests"] == before
    assert not (tmp_path / "lake").exists()


def test_pictures_shown_otherwise_are_asked_anew_and_priced_so(write: Callable[..., Path], salon: Callable[..., Said]) -> None:
    file = write()
    assert salon("run", file, "--run-date", "2026-01-02", "--checkpoints", "step-1000").code in (0, 1)
    plan = ("plan", file, "--json", "--checkpoints", "step-1000,step-2000")
    before = json.loads(salon(*plan).out)
    levers = {one["lever"]: one for one in before["levers"]}
    assert 0 < before["n_stored"] < before["n_requests"]
    flat = " ".join(before["text"].split())
    assert levers["max_side_px_512"]["usd"] == pytest.approx(before["online_usd"] + before["saved_usd"])  # of 256 px: no smaller
    assert "max_side_px" not in flat, "it is dearer than what is left"
    file.write_text(file.read_text().replace("parameters =", 'detail = "low"\nparameters ='))
    after = json.loads(salon(*plan).out)
    assert (after["n_stored"], after["n_to_ask"]) == (0, before["n_requests"])
    assert levers["detail_low"]["usd"] == pytest.approx(after["online_usd"])
    assert levers["detail_low"]["saved_share"] == pytest.approx(1 - after["online_usd"] / before["online_usd"])


def test_a_limit_that_the_replies_seen_keep_is_not_warned_of(write: Callable[..., Path], salon: Callable[..., Said]) -> None:
    file = write()
    assert salon("run", file, "--run-date", "2026-01-02", "--checkpoints", "step-1000").code in (0, 1)
    for longest, is_told in ((20, True), (59, False)):
        file.write_text(write().read_text().replace("max_tokens = 600", f"max_tokens = {longest}"))
        told = salon("plan", file, "--checkpoints", "step-1000", "--json")
        assert any("caption has 60" in one for one in json.loads(told.out)["warnings"]) == is_told
