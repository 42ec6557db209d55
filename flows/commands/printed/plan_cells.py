"""What a plan says of its samples and cells, before anything is paid: what cannot be judged, is not asked, or is too small."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeVar

from rich.text import Text

from flows.observability.terminal import Console, name_of
from flows.run.plan_counts import Blocked, CategorySize, WithoutTotal
from schemas.records import UNNAMED
from schemas.statuses.cells import Total
from schemas.statuses.rows import SampleStatus
from tasks.ingest.paths import quote
from tasks.publish.standings.wording import counted, made_by, percent

if TYPE_CHECKING:
    from flows.run.preview import Preview

T = TypeVar("T", Blocked, WithoutTotal)

N_NAMED = 5
N_CATEGORIES = 8
"""Categories that are listed."""
_ALIKE = 0.75  # "catz" and "cats" are


N_CHECKPOINTS = 10
"""Checkpoints that are listed."""


def print_samples(console: Console, preview: "Preview") -> None:
    """The checkpoints and categories that were found, the rows nobody is asked about, and the notes."""
    _print_checkpoints(console, preview)
    print_categories(console, preview)
    _print_unusable(console, preview)
    for note in preview.notes:
        console.print(name_of(f"note        {note}", "yellow"))


def _print_checkpoints(console: Console, preview: "Preview") -> None:
    found = preview.found.checkpoints
    if [one.checkpoint for one in found] == [UNNAMED]:
        n = found[0].n_samples
        advice = 'name the column that holds it in columns = { checkpoint = "…" }, or put {checkpoint} in path'
        console.print(f"checkpoints all {n:,} samples count as one checkpoint, {UNNAMED}; if they are of several, {advice}")
        return
    console.print(f"checkpoints {len(found):,}, in the order of the trend")
    for one in found[:N_CHECKPOINTS]:
        of = f" of {one.n_samples:,}" if one.n_usable < one.n_samples else ""
        console.print(name_of(f"            {one.model}/{one.checkpoint}: {one.n_usable:,}{of} usable"))
    if len(found) > N_CHECKPOINTS:
        console.print(f"            … and {len(found) - N_CHECKPOINTS:,} more")


def _print_unusable(console: Console, preview: "Preview") -> None:
    """Rows that nobody is asked about, or that stand there twice, some of each status."""
    for status in dict.fromkeys(row.status for row in preview.found.unusable):
        rows = [row for row in preview.found.unusable if row.status == status]
        n = preview.dataset.n_by_status[status]
        which = f"; the first {len(rows)}:" if n > len(rows) else ":"
        again, left_out = ("repeats", "is") if n == 1 else ("repeat", "are")
        is_again = status == SampleStatus.DUPLICATE
        told = f"{again} earlier samples, whose judgement counts for both" if is_again else f"{left_out} not judged"
        console.print(Text(f"{status:<11} {counted(n, 'row')} {told}{which}", style="yellow"))
        for row in rows:
            console.print(name_of(f"            {row.source}, {row.source_key}{': ' + row.detail if row.detail else ''}"))


def print_categories(console: Console, preview: "Preview") -> None:
    """The categories by their numbers of prompts, the smallest first, where there are several; rubrics that agree on a line."""
    listed: dict[str, list[str]] = {}
    for rubric_id, sizes in _of_all_prompts(preview).items():
        if len(sizes) > 1:
            named = [f"{_category(one)} {one.n_prompts:,}" for one in sizes[:N_CATEGORIES]]
            last = f" … the largest {_category(sizes[-1])} {sizes[-1].n_prompts:,}" if len(sizes) > N_CATEGORIES else ""
            listed.setdefault(f"{len(sizes)}, by prompts: {', '.join(named)}{last}", []).append(rubric_id)
    for said, rubrics in listed.items():
        under = f"under {_and(rubrics)} " if len(listed) > 1 else ""
        console.print(name_of(f"categories  {under}{said}"))


def asked_warnings(preview: "Preview") -> list[str]:
    """What can be known of the cells: a sentence for each matter, rubrics and checkpoints that share it together."""
    return [*_unasked(preview), *_blocked(preview), *_without_total(preview), *_too_small(preview), *_of_shares(preview)]


def _unasked(preview: "Preview") -> Iterator[str]:
    by_sentence: dict[tuple[str, str], list[str]] = {}
    for one in preview.asked.unasked:
        words = f" (category {_listed([quote(name, 40) for name in one.categories])})" if one.categories else ""
        ends = f": {one.reason}{words}; the first: {one.source}, {one.source_key}"
        by_sentence.setdefault((f"{one.n_samples:,} of {one.n_of:,} samples are not asked", ends), []).append(one.rubric_id)
    for (start, end), rubrics in by_sentence.items():
        yield f"{start} under {_and(rubrics)}{end}"


def _blocked(preview: "Preview") -> Iterator[str]:
    needed = f"{percent(preview.asked.min_coverage, 0)} needed (gate.min_coverage)"
    for (who, under), one in _together(preview, preview.asked.blocked, lambda one: (one.n_asked, one.n_samples, one.category)):
        if one.category is None:
            share = percent(one.n_asked / one.n_samples, 0, beside=preview.asked.min_coverage)
            yield f"{who} will be blocked under {under}: {share} of {one.n_samples:,} can be asked, {needed}"
        else:
            where = f"in category {_shown(one.category)}"
            yield f"{who} will be blocked under {under}: none of {one.n_samples:,} {where} can be asked"


def _without_total(preview: "Preview") -> Iterator[str]:
    for (who, under), one in _together(preview, preview.asked.without_total, lambda one: (*one.categories, one.n_unread)):
        lacked = _listed(["without a category" if name == Total.UNNAMED else f"of category {name}" for name in one.categories])
        unread = f"; of {one.n_unread:,} rows nobody could read the category (they are listed above)" if one.n_unread else ""
        yield f"{who} will have no mean over categories under {under}: no sample {lacked}, which others have{unread}"


def _together(preview: "Preview", found: Sequence[T], alike: Callable[[T], object]) -> Iterator[tuple[tuple[str, str], T]]:
    """((checkpoints, rubrics) as they are told, one of those that are alike). A judge on a share where others are not."""
    shared = {row.judge.id for row in preview.rubrics if row.judge.share is not None}
    is_one_model = len({one.model for one in preview.found.checkpoints}) == 1
    groups: dict[tuple[str, str, object], list[T]] = {}
    told: set[tuple[str, str, str]] = set()
    for one in sorted(found, key=lambda one: one.judge_model in shared):
        address = one.rubric_id, one.model, one.checkpoint
        if address not in told:
            judge = f", judged by {one.judge_model}" if one.judge_model in shared else ""
            groups.setdefault((one.rubric_id, judge, alike(one)), []).append(one)
        told.add(address)
    lines: dict[tuple[str, str, object], tuple[list[str], T]] = {}
    for (rubric_id, judge, key), mine in groups.items():
        who = _listed([made_by(one.model, one.checkpoint, is_one_model=is_one_model) for one in mine])
        lines.setdefault((who, judge, key), ([], mine[0]))[0].append(rubric_id)
    for (who, judge, _), (rubrics, one) in lines.items():
        yield (who, _and(rubrics) + judge), one


def _too_small(preview: "Preview") -> Iterator[str]:
    """Categories with fewer prompts than a comparison needs: where all are one category, only if there is whom to compare."""
    needed = preview.asked.n_prompts_needed
    units = {row.rubric_id: row.rubric.unit for row in preview.rubrics}
    told: dict[tuple[str, str], list[str]] = {}
    for rubric_id, sizes in _of_all_prompts(preview).items():
        small = [one for one in sizes if one.n_prompts < needed]
        is_compared = len(sizes) > 1 or preview.asked.n_checkpoints > 1
        if not small or not is_compared or rubric_id not in _asked_whole(preview):
            continue
        named = _listed([f"{_category(one)} has {_prompts(one.n_prompts)}" for one in small])
        start = f"category {named}" if len(sizes) > 1 else f"{_prompts(small[0].n_prompts)} in all"
        hints = "".join(_meant(one, sizes) for one in small[:N_NAMED])
        if units[rubric_id] != ("prompt",):
            hints += f"; what has the same {_and(units[rubric_id])} is one prompt (the rubric's unit)"
        told.setdefault((start, hints), []).append(rubric_id)
    for (start, hints), rubrics in told.items():
        yield f"{start} under {_and(rubrics)}, {needed} needed for a rank (statistics.min_paired_prompts){hints}"


def _of_shares(preview: "Preview") -> Iterator[str]:
    """Judges whose share of the prompts is too small for ranks, where all are enough, or for agreement with the others."""
    from tasks.aggregate.agreement.metrics import MIN_PROMPTS  # with scipy

    needed, whole, is_compared = preview.asked.n_prompts_needed, _of_all_prompts(preview), preview.asked.n_checkpoints > 1
    for judge in {row.judge.id: row.judge for row in preview.rubrics if row.judge.share is not None}.values():
        told: dict[str, list[str]] = {}
        for rubric_id, sizes in _by_rubric(preview, judge.id).items():
            n, smallest, is_whole = sum(one.n_prompts for one in sizes), sizes[0], rubric_id in _asked_whole(preview)
            is_small = smallest.n_prompts < needed and (is_compared or len(sizes) > 1)
            is_enough = not is_whole or all(one.n_prompts >= needed for one in whole[rubric_id])
            reasons = [f"{needed} in each category needed for a rank"] if is_small and is_enough else []
            reasons += [f"{MIN_PROMPTS} in all needed for agreement"] if is_whole and n < MIN_PROMPTS else []
            if reasons:
                least = f", {smallest.n_prompts} of them in category {_category(smallest)}" if len(sizes) > 1 else ""
                told.setdefault(f"{_prompts(n)}{least}: {', '.join(reasons)}", []).append(rubric_id)
        for said, rubrics in told.items():
            start = f"judge {judge.id}, share = {judge.share:g}, is asked under {_and(rubrics)} about"
            yield f"{start} {said}; with a larger share nothing is asked twice"


def _asked_whole(preview: "Preview") -> frozenset[str]:
    """The rubrics by which a judge without a share is asked."""
    return frozenset(row.rubric_id for row in preview.rubrics if row.judge.share is None)


def _of_all_prompts(preview: "Preview") -> Mapping[str, Sequence[CategorySize]]:
    """The categories of each rubric as the judge is asked who is asked about most: all prompts where one has no share."""
    found: dict[str, Sequence[CategorySize]] = {}
    for judge in dict.fromkeys(one.judge_model for one in preview.asked.sizes):
        for rubric_id, sizes in _by_rubric(preview, judge).items():
            if sum(one.n_prompts for one in sizes) > sum(one.n_prompts for one in found.get(rubric_id, ())):
                found[rubric_id] = sizes
    return dict(sorted(found.items()))


def _by_rubric(preview: "Preview", judge_model: str) -> Mapping[str, list[CategorySize]]:
    found: dict[str, list[CategorySize]] = {}
    for one in preview.asked.sizes:
        if one.judge_model == judge_model:
            found.setdefault(one.rubric_id, []).append(one)
    return found


def _meant(one: CategorySize, sizes: Iterable[CategorySize]) -> str:
    """The larger category whose name is nearly the same, as a question; empty where there is none."""
    larger = {other.category.casefold(): other for other in sizes if other.n_prompts > one.n_prompts}
    near = get_close_matches(one.category.casefold(), larger, n=1, cutoff=_ALIKE)
    return f"; {_category(one)}: did you mean {_category(larger[near[0]])}?" if near else ""


def _category(one: CategorySize) -> str:
    return _shown(one.category)


def _shown(category: str) -> str:
    return "(no category)" if category == Total.UNNAMED else category


def _prompts(n: int) -> str:
    return f"{n:,} prompt{'' if n == 1 else 's'}"


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _listed(names: Sequence[str]) -> str:
    """Some of them, and how many more there are."""
    return _and(names) if len(names) <= N_NAMED else f"{', '.join(names[:N_NAMED])} and {len(names) - N_NAMED} more"
