"""`salon gate` where asking stopped by the tables' level before everything planned was asked: no regression passes by that."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schemas.tables.published import COMPARISONS, PREFERENCES, STANDINGS
from tasks.aggregate.gate import rulings
from tasks.aggregate.preferences.evidence import Plan
from tasks.aggregate.ruling import STOPPED_EARLY, Outcome
from tests.aggregate.preferences.conftest import said
from tests.aggregate.preferences.conftest import tables as preference_tables_of
from tests.flows.commands.test_gate import comparison
from tests.flows.commands.test_gate_finds_nothing import publish_scores, told
from tests.flows.flow_support import Said

LOOKS = [0.25, 0.5, 0.75, 1.0]
LEFT = "can't tell: asking stopped early, and the rest may show a drop"
HOW = "take [statistics.stopping] out of the benchmark file, and run again"
LEVEL = "Asking stopped early by the tables' 5 %"


@pytest.mark.parametrize(
    ("row", "looks", "arguments", "code"),
    [
        pytest.param({"delta": -0.6, "p": 0.01, "verdict": "lower", "look": 2}, LOOKS, (), 1, id="worse"),
        pytest.param({"delta": -0.6, "p": 0.01, "verdict": "lower", "look": 4}, LOOKS, (), 0, id="worse, asked to the end"),
        pytest.param({"delta": 0.6, "p": 0.01, "verdict": "higher", "look": 2}, LOOKS, (), 0, id="better"),
        pytest.param({"delta": -0.02, "verdict": "open", "look": 2}, LOOKS, (), 0, id="futile"),
        pytest.param({"delta": -0.02, "verdict": "open", "look": 1}, LOOKS, ("--alpha", "0.05"), 1, id="futile, but not so here"),
        pytest.param({"delta": -0.3, "verdict": "open", "look": 1}, LOOKS, (), 1, id="open: money ended"),
        pytest.param({"delta": 0.3, "verdict": "open", "look": 1}, LOOKS, (), 0, id="open and higher"),
        pytest.param({"delta": -0.02, "verdict": "open", "look": 2}, [], (), 1, id="looks nobody knows"),
        pytest.param({"delta": -0.02, "verdict": "open", "look": 2, "se": 0.0}, LOOKS, (), 1, id="lower by the same everywhere"),
        pytest.param({"delta": 0.0, "verdict": "open", "look": 2, "se": 0.0}, LOOKS, (), 0, id="the same everywhere"),
    ],
)
def test_a_comparison_that_looks_left(
    tmp_path: Path,
    salon: Callable[..., Said],
    monkeypatch: pytest.MonkeyPatch,
    row: dict[str, Any],
    looks: list[float],
    arguments: tuple[str, ...],
    code: int,
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    by = {"statistics": {"stopping": {"looks": looks}}}
    publish_scores(tmp_path, {"test": "paired_t", "n_looks": 4} | row, {}, {}, settings=by)
    found, pages = told(salon, *arguments)
    assert (found, [LEFT in page for page in pages]) == (code, [bool(code)] * 2), pages
    assert [HOW in page and LEVEL in page for page in pages] == [bool(code)] * 2
    assert not any("would find': " in page for page in pages), "no row has it"
    (ruling,) = json.loads(salon("gate", *arguments, "--format", "json").out)["rulings"]
    assert (ruling["outcome"], ruling["reason"] == STOPPED_EARLY) == ("unknown" if code else "no_regression", bool(code))
    assert salon("gate", *arguments, "--allow-unknown").code == 0


@pytest.mark.parametrize(("n_asked", "code"), [(1, 1), (5, 0)], ids=["alone", "one of five"])
def test_what_the_rest_may_show_is_held_to_the_level_of_all_comparisons_together(
    tmp_path: Path, salon: Callable[..., Said], n_asked: int, code: int
) -> None:
    """A drop that the rest would show at 5 % is seldom found at the fifth of it that one of five has."""
    row = {"comparison": "predecessor", "test": "paired_t", "n_looks": 4, "look": 2, "verdict": "open"}
    more = tuple(comparison(f"step-{n + 1}", f"step-{n}", -0.1, 1.0, **row) for n in range(2, 6))
    by = {"statistics": {"stopping": {"looks": LOOKS}}}
    publish_scores(tmp_path, {"delta": -0.1} | row, *({} for _ in range(6)), more=more, settings=by)
    named = [word for n in range(n_asked) for word in ("--candidate", f"pa|nter/step-{n + 2}")]
    gated = salon("gate", *named, "--alpha", "0.05", "--format", "json")
    assert (gated.code, len(json.loads(gated.out)["rulings"])) == (code, n_asked), gated.err


@pytest.mark.parametrize(
    ("words", "n_planned", "verdict", "candidate", "outcome"),
    [
        pytest.param("b " * 19 + "f " * 3, 150, "lower", "2", Outcome.UNKNOWN, id="left as worse"),
        pytest.param("b " * 19 + "f " * 3, 150, "lower", "1", Outcome.NO_REGRESSION, id="left as better"),
        pytest.param("a b " * 20, 150, "open", "2", Outcome.UNKNOWN, id="open: money ended"),
        pytest.param("a b " * 20, 40, "open", "2", Outcome.NO_REGRESSION, id="open, asked to the end"),
        pytest.param("b " * 60, 150, "lower", "2", Outcome.REGRESSION, id="worse by the gate's level too"),
    ],
)
def test_adaptive_pairs_that_were_left(words: str, n_planned: int, verdict: str, candidate: str, outcome: Outcome) -> None:
    is_whole = n_planned == len(words.split())
    plan = Plan({None: n_planned}, [(("m", "2"), ("m", "1"))] if is_whole else [])
    won = preference_tables_of(said("2", "1", words), plan)[PREFERENCES].filter(category="__macro__")
    assert won.select("verdict", "is_stopped_early").rows() == [(verdict, not is_whole)]
    pair = ("m", candidate), ("m", "1" if candidate == "2" else "2")
    (ruling,) = rulings(COMPARISONS.empty(), STANDINGS.empty(), [pair], won=won)
    assert (ruling.outcome, ruling.reason == STOPPED_EARLY) == (outcome, outcome is Outcome.UNKNOWN)
