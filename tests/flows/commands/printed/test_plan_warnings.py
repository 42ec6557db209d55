"""What `salon plan` says of money and of replies before any is bought: batches, limits, repeats, names of models."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.commands.printed.plan import _short, percentage
from tests.flows.commands.printed.test_plan_cells import both, write
from tests.flows.flow_support import Said

ROWS = both("cats", range(10))
LONG = "parameters = { max_tokens = 600 }"
BATCH = f'mode = "batch"\n{LONG}\n[limits]\nrequests_per_minute = 60\n'
ONLINE_TOO = (
    '[[judges]]\nname = "other"\nmodel = "gpt-4.1"\nbase_url = "http://127.0.0.1:1/v1"\nparameters = { max_tokens = 601 }\n'
)
BOTH_WAYS = BATCH.replace("[limits]", f"{ONLINE_TOO}[limits]")


def planned(folder: Path, salon: Callable[..., Said], more: str, model: str = "gpt-4.1") -> tuple[dict[str, object], str]:
    """The plan as JSON, and its table on one line."""
    file = write(folder, [dict(row) for row in ROWS], more)
    file.write_text(file.read_text().replace("salon-demo-judge", model))
    told = salon("plan", file, "--json")
    assert told.code == 0, told.err
    found: dict[str, object] = json.loads(told.out)
    return found, " ".join(str(found["text"]).split())


@pytest.mark.parametrize(
    ("more", "words"),
    [
        pytest.param(
            f"{LONG}\n[limits]\nrequests_per_minute = 60",
            ["0.23 online, each asked once time 0.3 minutes at 60 requests"],
            id="online",
        ),
        pytest.param(BATCH, ["at most $0.11 by batch, each asked once time a batch may take a day"], id="by batch"),
        pytest.param(
            f"{BATCH}max_usd = 1",
            ["by batch, each asked once budget by batch, $0.11 is reserved until replies arrive; max_usd = 1 covers all time"],
            id="by batch, covered",
        ),
        pytest.param(
            BOTH_WAYS,
            ["at most $0.34 in the judges' modes, each asked once time 0.3 minutes at 60 requests a minute; a batch may"],
            id="both ways",
        ),
    ],
)
def test_a_plan_speaks_of_the_way_a_judge_is_asked(
    more: str, words: list[str], tmp_path: Path, salon: Callable[..., Said]
) -> None:
    told, text = planned(tmp_path, salon, more)
    assert [one for one in words if one not in text] == []
    assert told["warnings"] == []
    assert told["worst_batch_usd"] == pytest.approx(float(str(told["worst_usd"])) / 2)
    assert (told["minutes"] is None) == ("batch" in more)
    assert ("budget" in text) == ("max_usd" in more)


CUT = "end a reply at {} tokens, and a usual one under alignment has 45 (output_tokens): it would be cut off and give no score"
AGAIN = "{} is asked 2 times at temperature 0: its answers may be identical, and then repeats add nothing (docs/nights.md)"
WARNED = {
    "by batch the worst case must be covered": (
        f"{BATCH}max_usd = 0.06",
        [("limits.max_usd = 0.06 covers the $0.02 expected, but not the $0.11 that batches reserve until replies arrive: "
        "requests are sent in several rounds, each of which may take a day")],
    ),
    "online what is expected": (
        f"{LONG}\n[limits]\nmax_usd = 0.06",
        [("limits.max_usd = 0.06 is above the $0.039 expected and below the $0.23 at most: if replies are long, the run stops "
        "before the end")],
    ),
    "both ways, what batches set aside and the others cost": (
        f"{BOTH_WAYS}max_usd = 0.12",
        [("limits.max_usd = 0.12 covers the $0.059 expected, but not the $0.15 that batches reserve until replies arrive: "
        "requests are sent in several rounds, each of which may take a day")],
    ),
    "no reply can be whole": ("parameters = { max_tokens = 5 }", [f"the parameters of gpt-4.1 {CUT.format(5)}"]),
    "a usual reply just fits": ("parameters = { max_tokens = 45 }", []),
    "repeats at temperature 0": ("repeats = 2\nparameters = { temperature = 0 }", [AGAIN.format("gpt-4.1")]),
    "repeats at another one": ("repeats = 2\nparameters = { temperature = 0.5 }", []),
    "repeats at the provider's own": ("repeats = 2", []),
    "once at temperature 0": ("parameters = { temperature = 0 }", []),
    "Gemini's own words": (
        'repeats = 2\nprovider = "gemini"\nparameters = { generationConfig = { temperature = 0, maxOutputTokens = 9 } }',
        [f"the parameters of gpt-4.1 {CUT.format(9)}", AGAIN.format("gpt-4.1")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("more", "sentences"), WARNED.values(), ids=WARNED.keys())
def test_what_money_would_buy_nothing_for(more: str, sentences: list[str], tmp_path: Path, salon: Callable[..., Said]) -> None:
    assert planned(tmp_path, salon, more)[0]["warnings"] == sentences


@pytest.mark.parametrize(
    ("model", "words"),
    [("gpt-4.1-nan", "gpt-4.1-nan is known (did you mean gpt-4.1-nano?); write"), ("qwen-vl", "qwen-vl is known; write")],
)
def test_a_model_whose_name_is_mistyped(model: str, words: str, tmp_path: Path, salon: Callable[..., Said]) -> None:
    assert f"no price of {words} [judges.price]" in planned(tmp_path, salon, "", model)[1]


@pytest.mark.parametrize(
    ("n", "of", "said"),
    [
        (0, 0, "0%"),
        (0, 9, "0%"),
        (1, 900, "1%"),
        (1, 2, "50%"),
        (899, 900, "99%"),
        (9, 9, "100%"),
        (9.99, 10.0, "99%"),
        (0.04, 10, "1%"),
    ],
)
def test_a_share_is_all_or_none_only_where_it_is(n: float, of: float, said: str) -> None:
    assert percentage(n, of) == said


@pytest.mark.parametrize(
    ("n", "said"),
    [
        (9_999, "9,999"), (10_000, "10k"), (12_345, "12.3k"), (999_499, "999k"), (999_700, "1M"), (999_700_000, "1G"),
        (9_999_999_999_999, "10,000G"),
    ],
)  # fmt: skip
def test_a_count_has_about_three_digits_and_a_unit(n: int, said: str) -> None:
    assert _short(n) == said
