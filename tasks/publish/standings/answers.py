"""The answer of a rubric's and judge's standings in sentences: which is best, what the newest brought, what is missing."""

from collections import Counter
from collections.abc import Callable, Sequence

from schemas.statuses.cells import ComparisonVerdict, Correction, StandingState
from tasks.publish.standings.wording import VERDICT_WORDS, Row, delta, namer, no_rank

_N_NAMED = 3  # names in a sentence, models that a sentence is made for: the table has all


def answers(rows: Sequence[Row]) -> list[str]:
    """What the headline standings of one rubric and judge say: which is best, what the newest brought, what is missing."""
    ranked = [row for row in rows if row["state"] == StandingState.RANKED]
    name = namer(rows)
    said = _best(ranked, name) + _newest(ranked, name)
    unranked = [row for row in rows if row["state"] != StandingState.RANKED]
    reasons: dict[str, set[str]] = {}
    for row in unranked:
        reasons.setdefault(no_rank(row), set()).add(name(row))
    said += [f"{_listed(sorted(names))}: {reason}." for reason, names in sorted(reasons.items())]
    n_failed, n_judgements = (sum(row[column] for row in rows) for column in ("n_failed", "n_judgements"))
    said.append(f"{n_failed:,} of {n_judgements:,} scores are missing." if n_failed else "No score is missing.")
    return said


def _best(ranked: Sequence[Row], name: Callable[[Row], str]) -> list[str]:
    """Which may be the best of each ranking: those that no other is above."""
    rankings: dict[tuple[str, str], list[Row]] = {}
    for row in ranked:
        rankings.setdefault((row["dimension"], row["category"]), []).append(row)
    firsts = {key: [name(row) for row in mine if row["rank_low"] == 1] for key, mine in rankings.items()}
    if len(rankings) == 1:
        ((key, first),) = firsts.items()
        n, prompts = len(rankings[key]), rankings[key][0]["n_shared_prompts"]
        if len(first) == n:
            return [f"{prompts or 'These'} prompts cannot tell which of {_listed(first)} is best."]
        what = f"{first[0]} is the best" if len(first) == 1 else f"{_listed(first)} may each be the best"
        on = f"on {prompts} shared prompts" if prompts else f"compared two by two: no prompt has a score of all {n}"
        return [f"{what} of {n}, {on}."]
    sole = Counter(first[0] for first in firsts.values() if len(first) == 1)
    said = [f"{one} is the best on {n} of {len(rankings)} measures." for one, n in sole.most_common(_N_NAMED)]
    n_open = len(rankings) - sum(sole.values())
    return said + ([f"On {n_open} of {len(rankings)} measures several may be the best."] if n_open else [])


def _newest(ranked: Sequence[Row], name: Callable[[Row], str]) -> list[str]:
    """Each model's newest checkpoint against the one before it."""
    before = {(row["model"], row["predecessor"]) for row in ranked}
    newest: dict[str, list[Row]] = {}
    for row in ranked:
        if row["predecessor"] is not None and (row["model"], row["checkpoint"]) not in before:
            newest.setdefault(name(row), []).append(row)
    said = []
    for one, rows in sorted(newest.items())[:_N_NAMED]:
        other, n_family = rows[0]["predecessor"], rows[0]["n_family"]
        sure = f"at 95 % for all {n_family} comparisons together"
        if rows[0]["adjustment"] == Correction.BENJAMINI_HOCHBERG:
            sure = f"of {n_family} comparisons, 5 % of those found may be false"
        if len(rows) == 1:
            verdict, prompts = rows[0]["verdict_predecessor"], rows[0]["n_prompts_predecessor"]
            is_decided = verdict in (ComparisonVerdict.HIGHER, ComparisonVerdict.LOWER)
            told = (
                f"{one} is {VERDICT_WORDS[verdict]} than {other}"
                if is_decided
                else f"These prompts cannot tell {one} from {other}"
            )
            said.append(f"{told}: {delta(rows[0], 'predecessor')} on {prompts} prompts ({sure}).")
            continue
        n = Counter(row["verdict_predecessor"] for row in rows)
        better, worse = n["higher"], n["lower"]
        n_open = len(rows) - better - worse
        told = f"{one} is better than {other} on {better} of {len(rows)} measures" + (f", worse on {worse}" if worse else "")
        if n_open == len(rows):
            told = f"These prompts cannot tell {one} from {other} on any of {n_open} measures"
        elif n_open:
            told += f"; on {n_open} these prompts cannot tell"
        said.append(f"{told} ({sure}).")
    return said


def _listed(names: Sequence[str]) -> str:
    shown = list(names[:_N_NAMED]) if len(names) > _N_NAMED + 1 else list(names)
    rest = [f"{len(names) - len(shown)} more"] if len(shown) < len(names) else []
    return " and ".join([", ".join([*shown, *rest][:-1]), [*shown, *rest][-1]]) if len(shown) + len(rest) > 1 else shown[0]
