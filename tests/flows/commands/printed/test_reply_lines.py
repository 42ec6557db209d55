"""What a run's last lines say of replies: which models gave them; which could not be read, whose, and what to do."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl
import pytest

from flows.commands.printed.replies import _advice, cost_of, print_answering, print_unreadable
from flows.observability.terminal import result_console
from schemas.benchmark.judges import Judge
from tasks.judge.outcome import Outcome
from tests.flows.flow_support import Said
from tests.support.night_world import World, write_benchmark
from tests.support.servers.provider import Play, Provider, completion

ONE, OTHER = Judge(model="[b]one[/b]", parameters={"max_tokens": 60}), Judge(model="other")
RECORDED = Judge(model="[b]one[/b]", recorded=True)
CUT = ("[b]one[/b]", "truncated", 2.0)
TOLD = {
    "over checkpoints": ([ONE], [CUT, CUT], ["truncated: 4 judgements were cut at max_tokens = 60 "]),
    "the three commonest": (
        [ONE],
        [("[b]one[/b]", reason, n) for n, reason in enumerate(("empty", "malformed", "ambiguous", "refusal", "no_reply"), 1)],
        ["refusal: 4 judgements declined", "ambiguous: 3 judgements held", "malformed: 2 judgements", "also empty 1"],
    ),
    "whose, where there are several": ([ONE, OTHER], [CUT, ("other", "empty", 9.0)], [
        "empty: 9 judgements of other held no text", "truncated: 2 judgements of [b]one[/b] were cut at",
    ]),
    "not what was never a reply": ([ONE], [("[b]one[/b]", reason, 5.0) for reason in ("rate_limited", "missing_file")], []),
    "not a rule, which the rubric declares": ([ONE], [("[b]one[/b]", "rule_violation", 5.0)], []),
    "not a recorded judge's": ([RECORDED], [CUT], []),
    "not of a judge that the file lacks": ([OTHER], [CUT], []),
    "no table of them": ([ONE], None, []),
}  # fmt: skip


FULL, SMALLER = "stopped where the model's context was full", "more max_tokens does not help: send smaller pictures"
ENDS = {
    "at the judge's bound": ({"max_tokens": 7}, "were cut at max_tokens = 60 (", "raise it in", ""),
    "at the model's context": ({"model_context_window_exceeded": 12}, f"{FULL} (", SMALLER, "raise"),
    "at either": (
        {"max_tokens": 7, "Model_Length": 12}, f"were cut at max_tokens = 60, or {FULL} (12 of 19 replies) (",
        f"raise it in the judge's parameters; for the latter, {SMALLER}", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("ended", "means", "then", "never"), ENDS.values(), ids=ENDS.keys())
def test_who_runs_out_of_context_is_not_told_to_raise_max_tokens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ended: dict[str, int], means: str, then: str, never: str
) -> None:
    rows = [("[b]one[/b]", word, "n_cut", float(n)) for word, n in ended.items()]
    rows += [("[b]one[/b]", "truncated", "n_without_score", 19.0), ("other", "max_tokens", "n_cut", 9.0)]
    pl.DataFrame(rows, schema=["judge_model", "word", "measure", "value"], orient="row").write_parquet(
        tmp_path / "health.parquet"
    )
    print_unreadable(result_console(), tmp_path, [ONE])
    (line,) = capsys.readouterr().out.splitlines()
    assert f"19 judgements {means}" in line
    assert then in line
    assert not never or never not in line


def write_health(folder: Path, measure: str, rows: Sequence[tuple[str, str, float]]) -> None:
    health = pl.DataFrame(rows, schema=["judge_model", "word", "value"], orient="row")
    health.with_columns(measure=pl.lit(measure)).write_parquet(folder / "health.parquet")


def begin_so(lines: Sequence[str], with_word: str, told: Sequence[str]) -> None:
    assert len(lines) == len(told)
    assert all(line.startswith(f"{with_word}{one}") for line, one in zip(lines, told, strict=True)), lines


@pytest.mark.parametrize(("judges", "rows", "told"), TOLD.values(), ids=TOLD.keys())
def test_the_commonest_reasons_have_a_line_each(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    judges: Sequence[Judge],
    rows: list[tuple[str, str, float]] | None,
    told: list[str],
) -> None:
    if rows is not None:
        write_health(tmp_path, "n_without_score", rows)
    print_unreadable(result_console(), tmp_path, judges)
    begin_so(capsys.readouterr().out.splitlines(), "unreadable  ", told)


PRICED = Judge(model="paid", price={"input_usd_per_million": 1.0, "output_usd_per_million": 1.0})
WHY = "no tokens reported, or a dearer tier than was asked for"
COSTS = {
    "nothing was asked": (Outcome(n_cached=5), ""),
    "all are known": (Outcome(n_asked=5, cost_usd=0.25), "; $0.25"),
    "some are": (
        Outcome(n_asked=5, cost_usd=0.25, n_without_cost=2),
        f"; $0.25 and 2 replies of unknown cost ({WHY})",
    ),
    "none is": (Outcome(n_asked=1_000, n_without_cost=999), f"; 999 replies of unknown cost ({WHY})"),
    "one is absurd": (
        Outcome(n_asked=9, cost_usd=0.25, n_without_cost=1, n_not_believed=1),
        f"; $0.25 and 1 reply of unknown cost ({WHY}); 1 of them report impossibly many tokens",
    ),
    "more may be": (
        Outcome(n_asked=9, cost_usd=0.25, n_in_doubt=33, in_doubt_usd=0.5),
        "; at least $0.25; up to 33 more may have been billed ($0.50 at most) without a reply",
    ),
    "nothing came, and it may be": (
        Outcome(n_asked=9, n_in_doubt=2, in_doubt_usd=math.inf),
        "; up to 2 may have been billed without a reply",
    ),
    "an earlier run's were fetched": (Outcome(n_replies=5, n_fetched=5, cost_usd=0.25), "; $0.25"),
    "for nothing": (Outcome(n_asked=5, cost_usd=0.0), "; $0"),
    "nothing came back": (Outcome(n_asked=5), ""),
}


@pytest.mark.parametrize(("asked", "told"), COSTS.values(), ids=COSTS.keys())
def test_what_a_run_cost_is_said_and_what_is_not_known_of_it(asked: Outcome, told: str) -> None:
    assert cost_of(asked, [PRICED]) == told


WITHOUT_PRICE = {
    "the only judge": ([ONE], "no price of [b]one[/b]: write [judges.price]"),
    "one of two": ([ONE, PRICED], f"no price of [b]one[/b]: write [judges.price], {WHY}"),
    "one whose tier is dearer than the price data say": (
        [Judge(model="gpt-4.1-2025-04-14", parameters={"service_tier": "priority"})],
        "no price of gpt-4.1-2025-04-14: write [judges.price]",
    ),
}


@pytest.mark.parametrize(("judges", "why"), WITHOUT_PRICE.values(), ids=WITHOUT_PRICE.keys())
def test_a_judge_without_a_price_is_named_where_the_cost_is_not_known(judges: list[Judge], why: str) -> None:
    assert cost_of(Outcome(n_asked=2, n_without_cost=2), judges) == f"; 2 replies of unknown cost ({why})"


DATED, GATEWAY = "[b]one[/b]-2026-01-01", Judge(model="[b]one[/b]", accept_models=["[b]one[/b]", "two"])
ANSWERED = {
    "by the one asked for": ([ONE], {"[b]one[/b]": 9}, []),
    "by one with a date": ([ONE], {DATED: 9}, [f"[b]one[/b] by {DATED} (9 replies) in this table; an undated"]),
    "by two": ([ONE], {DATED: 9, ONE.id: 1_000}, [
        f"[b]one[/b] by [b]one[/b] (1,000 replies), {DATED} (9 replies) in this table; use a dated",
    ]),
    "by two that are one": ([GATEWAY], {"[b]one[/b]": 3, "two": 4}, []),
    "not a recorded judge's": ([RECORDED], {DATED: 9}, []),
}  # fmt: skip


NAMES = {
    "a date": ("gpt-4.1", "gpt-4.1-2025-04-14", True),
    "a date in one": ("claude-sonnet-4", "claude-sonnet-4@20250514", True),
    "a month and a day": ("gpt-4", "gpt-4-0613", True),
    "a gateway's prefix": ("gpt-4.1-2025-04-14", "openai/gpt-4.1-2025-04-14", False),
    "without a gateway's prefix": ("openai/gpt-4.1-2025-04-14", "gpt-4.1-2025-04-14", False),
    "a local server's path": ("Qwen2.5-VL-7B", "/models/qwen-vl-7b", False),
    "a longer name": ("gpt-4.1", "gpt-4.1-mini", False),
    "a date of a longer name": ("gpt-4.1", "gpt-4.1-mini-2025-04-14", False),
    "another date": ("gpt-4.1-2025-04-14", "gpt-4.1-2025-06-01", False),
}


@pytest.mark.parametrize(("asked", "answered", "is_dated"), NAMES.values(), ids=NAMES.keys())
def test_only_a_name_that_lacks_its_date_is_said_to(asked: str, answered: str, *, is_dated: bool) -> None:
    dated, other = "may be another model tomorrow", "the same model under another name, list it in the judge's accept_models"
    advice = _advice(asked, [answered])
    assert (dated in advice, other in advice) == (is_dated, not is_dated)


@pytest.mark.parametrize(("judges", "models", "told"), ANSWERED.values(), ids=ANSWERED.keys())
def test_who_answered_is_said_where_it_is_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], judges: Sequence[Judge], models: dict[str, int], told: list[str]
) -> None:
    rows = [("[b]one[/b]", name, float(n)) for name, n in models.items()]
    write_health(tmp_path, "n_answered_by", rows)
    print_answering(result_console(), tmp_path, judges)
    begin_so(capsys.readouterr().out.splitlines(), "answered    ", told)


@pytest.mark.slow
def test_a_run_says_so_and_says_so_again(salon: Callable[..., Said], tmp_path: Path, provider: Provider) -> None:
    """The second time nothing is sent: what is stored is not asked again, and the line says what is."""
    World(tmp_path).make(1)
    provider.script.append(Play(body=completion("Score: 4")))
    provider.then = Play(body=completion("Score: 9"))
    file = write_benchmark(tmp_path, provider.url, models=("mine",))
    file.write_text("\n".join(line for line in file.read_text().splitlines() if not line.startswith("price")))
    for n_sent in (24, 0):
        said = salon("run", file)
        assert said.code == 1
        assert ("(no price of mine: write [judges.price])" in said.out) == (n_sent > 0)
        assert (
            "unreadable  out_of_range: 23 judgements held a number off the rubric's scale (`salon explain CELL` shows" in said.out
        )
    assert provider.n == 47
