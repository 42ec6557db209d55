"""Where the judges of a rubric agree and where only some of them find something, in sentences. One judge's answer is answers.py.

Nothing is averaged over judges here: each has its own standings, and what they say is held side by side.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import chain

from schemas.statuses.cells import ComparisonVerdict, StandingState
from tasks.publish.standings.answers import N_NAMED, listed, measure, missing, newest_of, not_ranked
from tasks.publish.standings.wording import Row, best_first, namer

_TURNED = ComparisonVerdict.FAILURES_COULD_TURN_IT
_CLAIMS = {ComparisonVerdict.HIGHER: "better", ComparisonVerdict.LOWER: "worse"}


def between_judges(rows: Sequence[Row]) -> list[str]:
    """What the headline standings of one rubric say by all its judges together; nothing where it has one judge."""
    judges = sorted({row["judge_model"] for row in rows})
    if len(judges) < 2:
        return []
    if len({measure(row) for row in rows}) > 1:
        said = _newest_on_measures(rows, judges)
    else:
        said = [*_best(rows, judges), *_newest(rows, judges)]
    return [*said, *_not_ranked(rows, judges), *_for_themselves(rows), missing(rows)]


def _for_themselves(rows: Sequence[Row]) -> list[str]:
    """That what single judges find is corrected for each alone, where something is found and no family is over judges."""
    families = {(row["judge_model"], row["family"]) for row in rows if row.get("family")}
    is_apart = len({judge for judge, _ in families}) > 1 and len({family for _, family in families}) == len(families)
    if not is_apart or not any(row["verdict_predecessor"] in _CLAIMS or (row["rank_low"] or 0) > 1 for row in rows):
        return []
    told = (
        "Each judge's comparison of two checkpoints stands on its own"
        if _is_by_pair(rows)
        else "Each judge's claims stand on their own, corrected for that judge alone"
    )
    return [f"{told}: where nothing differs, one in twenty is wrong."]


def _is_by_pair(rows: Sequence[Row]) -> bool:
    """Whether each two checkpoints are a family (`family = "pair"`): with one comparison a measure, where a ranking has more."""
    is_of_many = any((row["n_ranked"] or 0) > 2 for row in rows)
    tested = [row for row in rows if row.get("family")]
    n_measures = len({measure(row) for row in tested})
    return is_of_many and all((row.get("n_family") or 0) <= n_measures for row in tested)


def _best(rows: Sequence[Row], judges: Sequence[str]) -> list[str]:
    """Which may be the best by all judges, and which by some of them alone."""
    name = namer(rows)
    ranked = sorted((row for row in rows if row["state"] == StandingState.RANKED), key=best_first)
    by_judge = {judge: [row for row in ranked if row["judge_model"] == judge] for judge in judges}
    by_judge = {judge: mine for judge, mine in by_judge.items() if mine}
    if len(by_judge) < 2:
        return []
    names = {judge: [name(row) for row in mine] for judge, mine in by_judge.items()}
    may_be = {judge: [name(row) for row in mine if row["rank_low"] == 1] for judge, mine in by_judge.items()}
    return best_by_each(names, may_be, [judge for judge in judges if judge not in by_judge])


def best_by_each(
    ranked: Mapping[str, Sequence[str]], may_be: Mapping[str, Sequence[str]], without: Sequence[str] = ()
) -> list[str]:
    """Which may be the best, by all judges that ranked and by some alone: by judge whom it ranked, and who leads."""
    unlike = _ranked_by_others(ranked)
    if circling := [judge for judge, names in may_be.items() if not names]:
        unlike.append(f"by {listed(circling)} each is worse than another")
        ranked, may_be = ({one: names for one, names in some.items() if one not in circling} for some in (ranked, may_be))
        if len(ranked) < 2:
            return [f"By {listed(circling)} none is the best: each is worse than another."]
    unlike += [f"{listed(without)} {'has' if len(without) == 1 else 'have'} no ranking"] if without else []
    behind = f" ({'; '.join(unlike)})" if unlike else ""
    if all(len(may_be[judge]) == len(names) for judge, names in ranked.items()):
        return [f"{_none_of(ranked)} can tell which is best{behind}."]
    common = reduce(lambda found, names: [one for one in found if one in names], may_be.values())
    if not common:
        each = "; ".join(_in_turn(may_be, lambda judges, names: f"by {judges} {names}", "by {} otherwise"))
        return [f"None may be the best by {_all_of(ranked)}{behind}: {each}."]
    further = _by_names(may_be, common)
    if not further:
        found = f"{_all_of(ranked)} find {common[0]} the best"
        told = found if len(common) == 1 else f"By {_all_of(ranked)} {listed(common)} may each be the best"
        return [f"{_capital(told)}{behind}."]
    many = "may be" if len(common) == 1 else "may each be"
    return [f"By {_all_of(ranked)} {listed(common)} {many} the best{behind}; {further}."]


def _ranked_by_others(ranked: Mapping[str, Sequence[str]]) -> list[str]:
    """Whom each judge did not rank that another did: that it does not find one of these the best says nothing against it."""
    everyone = dict.fromkeys(chain(*ranked.values()))
    missed = {judge: [one for one in everyone if one not in mine] for judge, mine in ranked.items()}
    missed = {judge: names for judge, names in missed.items() if names}
    return _in_turn(missed, lambda judges, names: f"{judges} did not rank {names}", "{} did not rank others")


def _not_ranked(rows: Sequence[Row], judges: Sequence[str]) -> list[str]:
    """Why some have no rank, as each judge's own answer says it; judges of whom the same holds are named together."""
    name = namer(rows)
    by_sentence: dict[str, list[str]] = {}
    for judge in judges:
        for sentence in not_ranked([row for row in rows if row["judge_model"] == judge], name):
            by_sentence.setdefault(sentence, []).append(judge)
    told = sorted(by_sentence.items(), key=lambda one: -len(one[1]))
    shown = told if len(told) <= N_NAMED + 1 else told[:N_NAMED]
    rest = [f"Why others have no rank, each judge's own answer says: {len(told) - len(shown)} more reasons."]
    said = [f"By {_all_of(them) if len(them) == len(judges) else listed(them)} {sentence}" for sentence, them in shown]
    return said + (rest if len(shown) < len(told) else [])


def _by_names(may_be: Mapping[str, Sequence[str]], common: Sequence[str]) -> str:
    """Who else may be the best by some judges alone; judges that name the same are named together."""
    further = {judge: [one for one in names if one not in common] for judge, names in may_be.items()}
    further = {judge: names for judge, names in further.items() if names}
    return "; ".join(_in_turn(further, lambda judges, names: f"by {judges} also {names}", "by {} others"))


def _in_turn(said: Mapping[str, Sequence[str]], told: Callable[[str, str], str], of_rest: str) -> list[str]:
    """What judges name, those that name the same together and the most first; of many the first, and how many more there are."""
    by_names: dict[frozenset[str], list[str]] = {}
    for judge, names in said.items():
        by_names.setdefault(frozenset(names), []).append(judge)
    groups = [(said[judges[0]], judges) for judges in sorted(by_names.values(), key=len, reverse=True)]
    shown = groups if len(groups) <= N_NAMED + 1 else groups[:N_NAMED]
    n_more = sum(len(judges) for _, judges in groups[len(shown) :])
    rest = [of_rest.format(f"{n_more} more judges")] if n_more else []
    return [told(listed(judges), listed(names) if names else "none") for names, judges in shown] + rest


def _newest(rows: Sequence[Row], judges: Sequence[str]) -> list[str]:
    """Each model's newest checkpoint against its predecessor: who finds it better, who cannot tell."""
    claims = []
    for (one, other), mine in _pairs(rows):
        found = {row["judge_model"]: row["verdict_predecessor"] for row in mine}
        claims += [(one, other, found.get(judge), judge) for judge in judges]
    return found_by_each(claims)


def found_by_each(claims: Iterable[tuple[str, str, str | None, str]]) -> list[str]:
    """A sentence for each two checkpoints: one, another, the verdict on the first, whose."""
    found: dict[tuple[str, str], dict[str | None, list[str]]] = {}
    for one, other, verdict, judge in claims:
        found.setdefault((one, other), {}).setdefault(verdict, []).append(judge)
    return [told for (one, other), verdicts in found.items() if (told := _told(one, other, verdicts))]


def _told(one: str, other: str, verdicts: Mapping[str | None, Sequence[str]]) -> str:
    """Who finds it better or worse, and what the others say; empty where nobody compared them."""
    if len(verdicts) == 1:
        ((verdict, them),) = verdicts.items()
        if verdict in _CLAIMS:
            return _capital(f"{_all_of(them)} find {one} {_CLAIMS[ComparisonVerdict(verdict)]} than {other}.")
        if verdict in (None, ComparisonVerdict.OPEN):
            return f"{_none_of(them)} can tell {one} from {other}." if verdict else ""
    parts: list[str] = []
    for claim, word in _CLAIMS.items():
        if finders := verdicts.get(claim):
            what = f"it {word}" if parts else f"{one} {word} than {other}"
            parts.append(f"{listed(finders)} {'finds' if len(finders) == 1 else 'find'} {what}")
    is_lone = sum(len(verdicts.get(claim, ())) for claim in _CLAIMS) == 1
    told = ("Only " if is_lone else "") + parts.pop(0) if parts else f"No judge finds {one} better or worse than {other}"
    others = {
        ComparisonVerdict.OPEN: "{} cannot tell",
        _TURNED: "by {} failures could turn it",
        None: "by {} it was not tested",
    }
    parts += [words.replace("{}", listed(verdicts[verdict])) for verdict, words in others.items() if verdict in verdicts]
    return f"{'; '.join([told, *parts])}."


def _newest_on_measures(rows: Sequence[Row], judges: Sequence[str]) -> list[str]:
    """The same over several measures: on how many of them, and by which judges it was not tested on some."""
    n, said = len({measure(row) for row in rows}), []
    for (one, other), mine in _pairs(rows):
        verdicts: dict[str, dict[tuple[str, str], str]] = {judge: {} for judge in judges}
        for row in mine:
            if row["verdict_predecessor"] is not None:
                verdicts[row["judge_model"]][measure(row)] = row["verdict_predecessor"]
        if any(verdicts.values()):
            untested = {judge: [str(n - len(found))] for judge, found in verdicts.items() if len(found) < n}
            parts = _in_turn(untested, lambda them, few: f"by {them} they were not compared on {few}", "by {} on others")
            said.append(_capital(f"{'; '.join([_on_measures(one, other, n, verdicts), *parts])}."))
    return said


def _on_measures(one: str, other: str, n: int, verdicts: Mapping[str, Mapping[tuple[str, str], str]]) -> str:
    """On how many of n measures all judges find it better or worse; where on none, on how many each does."""
    shared = Counter(verdict for _, verdict in reduce(lambda a, b: a & b, [set(found.items()) for found in verdicts.values()]))
    better, worse = (shared[claim] for claim in _CLAIMS)
    if better or worse:
        what = f"{'better' if better else 'worse'} than {other} on {better or worse} of {n} measures"
        return f"{_all_of(verdicts)} find {one} {what}" + (f", worse on {worse}" if better and worse else "")
    counts = {judge: Counter(found.values()) for judge, found in verdicts.items()}
    claims = {
        judge: [f"{word} on {mine[claim]}" for claim, word in _CLAIMS.items() if mine[claim]] for judge, mine in counts.items()
    }
    claims = {judge: found for judge, found in claims.items() if found}
    turned = {judge: [str(mine[_TURNED])] for judge, mine in counts.items() if mine[_TURNED]}
    told = f"no judge finds {one} better or worse than {other} on any of the {n} measures"
    if claims:
        told = f"on none of {n} measures do {_all_of(verdicts)} find {one} better than {other}, or worse"
    parts = _in_turn(claims, lambda them, found: f"by {them} it is {found}", "by {} otherwise")
    parts += _in_turn(turned, lambda them, few: f"by {them} failures could turn it on {few}", "by {} on others")
    return "; ".join([told, *parts])


def _pairs(rows: Sequence[Row]) -> list[tuple[tuple[str, str], list[Row]]]:
    """The rows of each model's newest checkpoint, over judges and measures, by its name and its predecessor's."""
    found: dict[tuple[str, str], list[Row]] = {}
    compared = [row for row in rows if row["state"] == StandingState.RANKED or row["delta_predecessor"] is not None]
    for one, mine in newest_of(compared, namer(rows)).items():
        for row in mine:
            found.setdefault((one, row["predecessor"]), []).append(row)
    return [*found.items()][:N_NAMED]


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _all_of(judges: Sequence[str] | Mapping[str, object]) -> str:
    return "both judges" if len(judges) == 2 else f"all {len(judges)} judges"


def _none_of(judges: Sequence[str] | Mapping[str, object]) -> str:
    return "Neither judge" if len(judges) == 2 else f"None of the {len(judges)} judges"
