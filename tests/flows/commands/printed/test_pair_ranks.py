"""Pairs in the terminal: ranks, of how many, with who has no rating in its place; whose points are 0; lines that fit."""

import pytest

from flows.commands.printed.pairs import print_pairs
from flows.observability.terminal import result_console
from tasks.publish.standings.pair_boards import pair_boards
from tests.aggregate.preferences.conftest import said, tables

MIXED = "a b a b = " * 6
EQUALS = said("1", "2", MIXED) + said("2", "3", MIXED) + said("1", "3", MIXED)
UNDEFEATED = [row for other in "123" for row in said("4", other, "a " * 30)]
RATED = "rating [95 %, not corrected], m/1 being 0"


@pytest.mark.parametrize(
    ("rows", "heading", "lines"),
    [
        pytest.param(EQUALS + UNDEFEATED, f"rank of 4 checkpoint {RATED}", ["1 4 won all", "2–4 1 0"], id="one won all"),
        pytest.param(EQUALS, f"rank of 3 checkpoint {RATED}", ["1–3 1 0"], id="all are rated"),
        pytest.param(
            said("1", "2", "a a"),
            "rank checkpoint rating [95 %, not corrected]",
            ["– 1 won all", "– 2 lost all"],
            id="nobody has a rank",
        ),
    ],
)
def test_a_rank_is_of_how_many(capsys: pytest.CaptureFixture[str], rows: list, heading: str, lines: list[str]) -> None:
    print_pairs(result_console(), pair_boards(tables(rows)))
    printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    place = printed.index(heading)
    assert printed[place + 1 : place + 1 + len(lines)] == lines


def test_a_baseline_whose_name_is_like_markup_is_named_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    print_pairs(result_console(), pair_boards(tables(said("[/bold]", "2", MIXED), baseline="[/bold]")))
    assert "[95 %, not corrected], [/bold] being 0" in capsys.readouterr().out


def test_on_eighty_columns_no_figure_and_no_id_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    """With counts aside and names that have to be folded, as of two models; no row takes more than two lines."""
    found = "a b = f " * 6 + "? " * 3
    rows = said("alpha/step-3000", "beta/step-2000", found)
    (board,) = pair_boards(tables(rows))
    print_pairs(result_console(), [board])
    printed = capsys.readouterr().out
    lines = printed[printed.index("\nfirst ") : printed.index("\nrank")].splitlines()[1:]
    assert max(map(len, lines)) <= 80
    assert "6–6–6" in lines[1]
    assert lines[1].split()[-3:] == ["6", "3", board.comparisons[0]["pair_id"][:6]]
    assert len(lines) == 3
