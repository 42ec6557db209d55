"""`salon gate` where little or nothing was found out: the verdict, and what is said in the terminal, the comment and JSON."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schemas.tables.published import BENCHMARK_LONG, COMPARISONS, STANDINGS
from tasks.publish.folders import PublicationName
from tasks.publish.publication import Draft, publish
from tests.aggregate.preferences.conftest import said
from tests.flows.commands.printed.test_table_command import cell, table_of, tables_of
from tests.flows.commands.test_gate import DAY, comparison, publish_pairs, rows_of
from tests.flows.flow_support import Said

NOT_KNOWN = "how small a drop would have been found is not known"
_STANDING = ("cell_id", "checkpoint")
HIDDEN = "so many pairs go by order alone that no drop would be found"


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")  # no cell is broken


def told(salon: Callable[..., Said], *arguments: str) -> tuple[int, list[str]]:
    """The exit code, and what is said in the terminal and in the comment, each in one line."""
    both = [salon("gate", *arguments, "--format", form) for form in ("table", "markdown")]
    assert both[0].code == both[1].code
    return both[0].code, [" ".join(one.out.replace("\\", "").split()) for one in both]


@pytest.mark.parametrize(
    ("words", "code", "says", "is_left_out"),
    [
        ("f " * 40, 1, "can't tell: the order of showing alone decided all 40 pairs", False),
        ("b " * 9 + "f " * 91, 1, f"can't tell: {HIDDEN}; 0 wins, 9 losses, 91 of 100 pairs by order alone", True),
        ("b a = " * 20 + "f ", 0, "no drop found: 20 wins, 20 ties, 20 losses, 1 of 61 pairs by order alone", False),
        ("b a " * 20, 0, "no drop found", False),
        ("a b " * 15 + "f " * 20, 0, "no drop found: 15 wins, 15 losses, 20 of 50 pairs by order alone", False),
        (
            "f " * 20 + "= " * 20,
            0,
            f"neither won one of 40 pairs; {NOT_KNOWN}; 0 wins, 20 ties, 0 losses, 20 of 40 pairs by order alone",
            False,
        ),
    ],
    ids=["all", "most", "one", "none", "some", "the rest are ties"],
)
def test_how_many_pairs_went_by_the_order_of_showing_alone(
    tmp_path: Path, salon: Callable[..., Said], words: str, code: int, says: str, is_left_out: bool
) -> None:
    publish_pairs(tmp_path, said("2", "1", words))
    found, pages = told(salon)
    assert (found, [says in page for page in pages]) == (code, [True, True]), pages
    assert ["by order alone" in page for page in pages] == ["by order alone" in says] * 2
    assert ["no win rate can be so low" in page for page in pages] == [is_left_out] * 2
    (ruling,) = json.loads(salon("gate", "--format", "json").out)["rulings"]
    assert ruling["outcome"] == ("unknown" if code else "no_regression")
    assert (ruling["pairs"]["n_order_dependent"], sum(ruling["pairs"].values())) == (words.count("f"), len(words.split()))
    assert salon("gate", "--allow-unknown").code == 0


def publish_scores(
    home: Path, compared: dict[str, Any], *cells: dict[str, Any], more: tuple[dict[str, Any], ...] = (), **provenance: Any
) -> None:
    """step-2 against step-1, with `cells` of each, which stand beside the totals in `__micro__`."""
    names = [f"step-{n + 1}" for n in range(len(cells))]
    rows = [cell("pa|nter", 3.0, checkpoint=name, cell_id=f"{name:0<12.12}") for name in names]
    micro = [
        row | {"category": "__micro__", "cell_id": f"{n:0>12}"} | own
        for n, (row, own) in enumerate(zip(rows, cells, strict=True))
    ]
    tables = tables_of(rows) | {BENCHMARK_LONG: table_of(BENCHMARK_LONG, [*rows, *micro])}
    tables[COMPARISONS] = rows_of(
        COMPARISONS, [comparison("step-2", "step-1", compared.pop("delta"), compared.pop("p", 1.0), **compared), *more]
    )
    tables[STANDINGS] = rows_of(STANDINGS, [{name: row[name] for name in _STANDING} | {"is_headline": True} for row in rows])
    publish(home / "lake", Draft(PublicationName("nightly", "f" * 64, DAY), tables, provenance))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, f"no drop found: every score is the same: 3 on all 20 prompts; {NOT_KNOWN}"),
        ({"se": 0.4}, f"no drop found: both have the same score on each of 20 prompts; {NOT_KNOWN}"),
    ],
    ids=["every score", "on each prompt"],
)
def test_scores_that_differ_nowhere_pass_and_are_said_to(
    tmp_path: Path, salon: Callable[..., Said], changes: dict[str, Any], says: str
) -> None:
    own = {"se": 0.0, "n_scored": 20, "n_prompts": 20} | changes
    still = {"delta": 0.0, "se": 0.0, "tie": 20, "n_prompts_paired": 20, "test": "sign_flip", "reason": "no_variation"}
    publish_scores(tmp_path, still, own, own)
    code, pages = told(salon)
    assert (code, [says in page for page in pages]) == (0, [True, True]), pages


@pytest.mark.parametrize(("n_aside", "is_said"), [((3, 40), True), ((7, 7), False), ((None, None), False)])
def test_whose_judgements_a_dimension_does_not_apply_to(
    tmp_path: Path, salon: Callable[..., Said], n_aside: tuple[int | None, int | None], is_said: bool
) -> None:
    publish_scores(tmp_path, {"delta": 0.1}, *({"n_not_applicable": n} for n in n_aside))
    says = "Not applicable in small, score, judged by eye: 40 judgements of pa|nter/step-2, 3 of pa|nter/step-1."
    code, pages = told(salon)
    assert (code, [says in page for page in pages]) == (0, [is_said] * 2), pages
    assert is_said or "Not applicable" not in pages[0]
    (ruling,) = json.loads(salon("gate", "--format", "json").out)["rulings"]
    assert ruling["n_not_applicable"] == [n_aside[1] or 0, n_aside[0] or 0]


STRANGERS = "pa|nter/step-2 with pa|nter/step-1: no shared prompts."


def test_two_without_a_shared_prompt_are_named(tmp_path: Path, salon: Callable[..., Said]) -> None:
    publish_scores(tmp_path, {"delta": None, "p": None, "reason": "dataset_differs"}, {}, {})
    code, pages = told(salon)
    assert (code, [f"Undecided: nothing was compared. {STRANGERS}" in page for page in pages]) == (1, [True, True]), pages
    (unruled,) = json.loads(salon("gate", "--format", "json").out)["unruled"]
    expected = {"candidate": ["pa|nter", "step-2"], "reference": ["pa|nter", "step-1"], "reason": "dataset_differs"}
    assert unruled == expected


def test_two_without_a_shared_prompt_are_named_beside_others(tmp_path: Path, salon: Callable[..., Said]) -> None:
    other = comparison("step-3", "step-1", 0.1, 1.0)
    publish_scores(tmp_path, {"delta": None, "p": None, "reason": "dataset_differs"}, {}, {}, {}, more=(other,))
    asked = ("--baseline", "pa|nter/step-1", "--candidate", "pa|nter/step-2", "--candidate", "pa|nter/step-3")
    code, pages = told(salon, *asked)
    assert (code, [f"Not compared: {STRANGERS}" in page for page in pages]) == (0, [True, True]), pages


@pytest.mark.parametrize(("status", "is_said"), [("blocked", True), ("ok", False)])
def test_a_category_blocked_on_its_own_is_named(tmp_path: Path, salon: Callable[..., Said], status: str, is_said: bool) -> None:
    short = {"category": "x", "status": status, "estimate": None if is_said else 3.0, "coverage": 0.2}
    publish_scores(tmp_path, {"delta": 0.1}, short, {})
    code, pages = told(salon)
    assert (code, ["too few of whose judgements have a score: x of step-1 (20.0 %)." in page for page in pages]) == (
        0,
        [is_said] * 2,
    )
    assert len(json.loads(salon("gate", "--format", "json").out)["blocked"]) == is_said
