"""The answer of a rubric's and judge's standings in sentences: which is best, what the newest brought, what is missing."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from schemas.lineage import oldest_first
from schemas.statuses.cells import ComparisonVerdict, Correction, StandingState, Total
from tasks.publish.standings.wording import VERDICT_WORDS, Row, best_first, counted, delta, namer, no_rank, why_not_compared

N_NAMED = 3  # names in a sentence, models that a sentence is made for: the table has all


def answers(rows: Sequence[Row]) -> list[str]:
    """What the headline standings of one rubric and judge say: which is best, what the newest brought, what is missing."""
    ranked = [row for row in rows if row["state"] == StandingState.RANKED]
    name = namer(rows)
    # Where there are more checkpoints than are ranked, each is compared with its predecessor all the same.
    compared = [row for row in rows if row["state"] == StandingState.RANKED or row["delta_predecessor"] is not None]
    measures = {measure(row) for row in rows}
    said = _best(ranked, name, measures)
    for one, mine in [*newest_of(compared, name).items()][:N_NAMED]:
        said += [against_the_one_before(one, mine, rows, measures), *_the_very_same(one, mine)]
    return [*said, *not_ranked(rows, name), missing(rows)]


def not_ranked(rows: Sequence[Row], name: Callable[[Row], str]) -> list[str]:
    """Who has no rank by one judge, why, and in which measures if not in all: a sentence for each reason."""
    measures = {measure(row) for row in rows}
    reasons: dict[tuple[str, str], dict[tuple[str, str], None]] = {}
    for row in sorted(rows, key=oldest_first):
        if row["state"] != StandingState.RANKED:
            reasons.setdefault((no_rank(row), name(row)), {})[measure(row)] = None
    names: dict[tuple[str, str], list[str]] = {}
    for (reason, one), found in reasons.items():
        names.setdefault((reason, _in(found, measures)), []).append(one)
    return [f"{listed(ones)}{where}: {reason}." for (reason, where), ones in sorted(names.items())]


def missing(rows: Sequence[Row]) -> str:
    """How many scores are missing in a sentence, so that it is said where none is, too."""
    n_failed, n_judgements = (sum(row[column] for row in rows) for column in ("n_failed", "n_judgements"))
    are = "is" if n_failed == 1 else "are"
    said = f"{n_failed:,} of {n_judgements:,} scores {are} missing" if n_failed else "No score is missing"
    aside: Counter[str] = Counter()
    name = namer(rows)
    for row in rows:
        aside[name(row)] += row.get("n_not_applicable") or 0  # older publications do not say
    n_aside = aside.total()
    return f"{said}; {n_aside:,} more {'is' if n_aside == 1 else 'are'} not applicable{_whose(aside)}." if n_aside else f"{said}."


def _whose(aside: Counter[str]) -> str:
    """Whose they are, such as ", all of b" or " (40 of b, 3 of a)"; empty where all have as many."""
    some = [(name, n) for name, n in aside.most_common() if n]
    if len(set(aside.values())) == 1:
        return ""
    if len(some) == 1:
        return f", {'all ' * (some[0][1] > 1)}of {some[0][0]}"
    shown, rest = (some, []) if len(some) <= N_NAMED + 1 else (some[:N_NAMED], some[N_NAMED:])
    of_others = [f"{sum(n for _, n in rest):,} of {len(rest)} others"] if rest else []
    return f" ({', '.join([*(f'{n:,} of {name}' for name, n in shown), *of_others])})"


def _best(ranked: Sequence[Row], name: Callable[[Row], str], measures: set[tuple[str, str]]) -> list[str]:
    """Which may be the best of each ranking: those that no other is above, in the table's order; `measures` without one too."""
    rankings: dict[tuple[str, str], list[Row]] = {}
    for row in sorted(ranked, key=best_first):
        rankings.setdefault((row["dimension"], row["category"]), []).append(row)
    firsts = {key: [name(row) for row in mine if row["rank_low"] == 1] for key, mine in rankings.items()}
    if len(rankings) == 1:
        ((key, first),) = firsts.items()
        where = _in([key], measures)
        n, prompts = len(rankings[key]), rankings[key][0]["n_shared_prompts"]
        two_most = sorted(row["n_prompts"] for row in rankings[key])[-2:]
        # so where two of them are compared on more prompts than all share
        is_of_pairs = not prompts or (n > len(two_most) and prompts < two_most[0])
        if len(first) == n:
            what = counted(prompts, "prompt") if prompts and not is_of_pairs else "These prompts"
            return [f"{what}{_with_failures(rankings[key], listed(first), where)}."]
        if not first:
            return [f"{best_of(first, n, where)}."]
        on = f"on {counted(prompts, 'shared prompt')}"
        if is_of_pairs:
            have = f"{counted(prompts, 'prompt')} {'has' if prompts == 1 else 'have'}" if prompts else "no prompt has"
            on = f"compared in pairs: {have} a score of all {n}"
        return [f"{best_of(first, n, where)}, {on}."]
    sole = Counter(first[0] for first in firsts.values() if len(first) == 1)
    said = [f"{one} is the best on {n} of {len(measures)} measures." for one, n in sole.most_common(N_NAMED)]
    for what, n in (
        ("several may be the best", sum(len(first) > 1 for first in firsts.values())),
        ("none is the best", [*firsts.values()].count([])),
        ("nobody has a rank", len(measures) - len(rankings) if rankings else 0),
    ):
        said += [f"On {n} of {len(measures)} measures {what}."] if n else []
    return said


def best_of(first: Sequence[str], n: int, where: str = "") -> str:
    """Which of `n` is the best, or may be: `first` are those that no other is above. Who beats whom may go round in a circle."""
    if not first:
        return f"None of {n} is the best{where}: each is worse than another"
    return f"{first[0]} is the best of {n}{where}" if len(first) == 1 else f"{listed(first)} may each be the best of {n}{where}"


def _with_failures(ranking: Sequence[Row], names: str, where: str) -> str:
    """That nobody can tell, and why where failures are a cause; the row holds the verdicts of two comparisons, not of all."""
    told, n_failed = f"cannot tell which of {names} is best{where}", sum(row["n_failed"] for row in ranking)
    verdicts = [row.get(f"verdict_{other}") for row in ranking for other in ("predecessor", "baseline")]
    if ComparisonVerdict.FAILURES_COULD_TURN_IT in verdicts:
        return f" {told}, {'' if len(ranking) == 2 else 'in part '}because failures could turn what they say"
    return f", with {counted(n_failed, 'score')} missing, {told}" if n_failed else f" {told}"


def newest_of(compared: Sequence[Row], name: Callable[[Row], str]) -> dict[str, list[Row]]:
    """The rows of each model's newest checkpoint, by its name, where it has a predecessor."""
    ordered = sorted(compared, key=oldest_first)
    last = {row["model"]: row["checkpoint"] for row in ordered}
    newest: dict[str, list[Row]] = {}
    for row in ordered:
        if row["predecessor"] is not None and row["checkpoint"] == last[row["model"]]:
            newest.setdefault(name(row), []).append(row)
    return newest


def against_the_one_before(one: str, rows: Sequence[Row], everyone: Sequence[Row], measures: set[tuple[str, str]]) -> str:
    """What a checkpoint's differences to its predecessor say, one row a measure; why there is none where none was tested.

    `everyone`: the rows of all checkpoints. `measures`: all there are, also those in which the two were not compared.
    """
    other, where = rows[0]["predecessor"], _in(map(measure, rows), measures)
    tested = [row for row in rows if row["verdict_predecessor"] is not None]
    if not tested:
        reasons = ", or ".join(sorted(set(map(why_not_compared, rows))))
        if len(rows) > 1 or rows[0]["delta_predecessor"] is None:
            return f"{one} was not compared with {other}: {reasons}."
        return f"{one} against {other}{where}: {_figure(rows[0])}, not tested: {reasons}."
    sure, n = how_sure(tested[0]), Counter(row["verdict_predecessor"] for row in tested)
    n_open, n_turned = n[ComparisonVerdict.OPEN], n[ComparisonVerdict.FAILURES_COULD_TURN_IT]
    open_told = f"These prompts cannot tell {one} from {other}{where if len(rows) == 1 else ''}"
    if len(rows) == 1 and n_turned:
        held = rows[0]["model"], other, measure(rows[0])
        before = [row for row in everyone if (row["model"], row["checkpoint"], measure(row)) == held]
        missed = _missed([(one, rows[0]), *((other, row) for row in before)])
        told = f"Because of failures, {one} cannot be told from {other}{where}"
        return f"{told}: {_figure(rows[0])} ({sure}), but {missed} could turn it."
    if len(rows) == 1:
        decided = f"{one} is {VERDICT_WORDS[ComparisonVerdict(rows[0]['verdict_predecessor'])]} than {other}{where}"
        told = f"{open_told if n_open else decided}: {_figure(rows[0])}"
    elif n_open == len(rows) == len(measures):
        told = f"{open_told} on any of {n_open} measures"
    else:
        told = _on_measures(one, other, n, len(measures))
    n_untested = len(measures) - len(tested) if len(rows) > 1 else 0
    untested = f"; on {n_untested} they were not compared" if n_untested else ""
    return f"{told}{untested} ({sure})."


def how_sure(row: Row) -> str:
    """How sure the verdict of a tested comparison is, among those of its family."""
    if (n := row["n_family"]) == 1:
        return "at 95 %"
    if row["adjustment"] == Correction.BENJAMINI_HOCHBERG:
        return f"of {n} comparisons, 5 % of those found may be false"
    return f"at 95 % for all {n} comparisons together"


def _on_measures(one: str, other: str, n: Counter[str], n_measures: int) -> str:
    """On how many measures there is which verdict; the first that there is begins the sentence."""
    each = [
        (n[ComparisonVerdict.HIGHER], f"{one} is better than {other} on", ", better on {}"),
        (n[ComparisonVerdict.LOWER], f"{one} is worse than {other} on", ", worse on {}"),
        (n[ComparisonVerdict.OPEN], f"These prompts cannot tell {one} from {other} on", "; on {} these prompts cannot tell"),
        (n[ComparisonVerdict.FAILURES_COULD_TURN_IT], f"Because of failures, {one} cannot be told from {other} on",
         "; on {} failures could turn it"),
    ]  # fmt: skip
    (first, begins, _), *rest = [one for one in each if one[0]]
    return f"{begins} {first} of {n_measures} measures" + "".join(follows.format(k) for k, _, follows in rest)


def _the_very_same(one: str, rows: Sequence[Row]) -> list[str]:
    """That some of what it shows is what the one before shows: a folder exported twice, a fixed answer. Older rows do not say."""
    n, of = max((row.get("n_identical_predecessor") or 0, row["n_prompts_predecessor"] or 0) for row in rows)
    if not n:
        return []
    both = f"{one} and {rows[0]['predecessor']}"
    if n == of:
        what = "the one prompt" if n == 1 else f"all {n:,} prompts"
        return [f"For {what}, {both} show the judge the very same: no judge can tell them apart."]
    of_prompts = f"{n:,} of {of:,} prompts"
    return [f"For {of_prompts}, {both} show the judge the very same: the difference is 0 there, whatever it says."]


def _missed(rows: Sequence[tuple[str, Row]]) -> str:
    """How many scores each lacks, such as "the 12 of 60 scores that s2 lacks"."""
    lacks = [f"{row['n_failed']:,} of {row['n_judgements']:,} scores that {name} lacks" for name, row in rows if row["n_failed"]]
    return f"the {' and the '.join(lacks)}" if lacks else "missing scores"


def measure(row: Row) -> tuple[str, str]:
    """What a row is of."""
    return row["dimension"], row["category"]


def _in(found: Iterable[tuple[str, str]], measures: set[tuple[str, str]]) -> str:
    """Such as " in score and things": of which measures something is true; empty where of all, unless of a category alone."""
    named = list(found)
    names = [dimension if category == Total.MACRO else f"{dimension} ({category})" for dimension, category in named]
    is_of_one = any(category not in {*Total} for _, category in named)
    return f" in {listed(names)}" if is_of_one or len(names) < len(measures) else ""


def _figure(row: Row) -> str:
    return f"{delta(row, 'predecessor')} on {counted(row['n_prompts_predecessor'], 'prompt')}"


def listed(names: Sequence[str]) -> str:
    """In a sentence: such as "a, b and c"; of many the first."""
    shown = list(names[:N_NAMED]) if len(names) > N_NAMED + 1 else list(names)
    rest = [f"{len(names) - len(shown)} more"] if len(shown) < len(names) else []
    return " and ".join([", ".join([*shown, *rest][:-1]), [*shown, *rest][-1]]) if len(shown) + len(rest) > 1 else shown[0]
