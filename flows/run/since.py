"""What a run says of its publication beside an earlier one: who asks otherwise, which checkpoints or samples are others now."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

from flows.nights.own_rubrics import asks_the_same
from flows.run.context import RunContext
from schemas.errors import CorruptLakeError, SalonError
from schemas.metrics import natural_key
from schemas.tables.published import BENCHMARK_LONG
from schemas.tables.stored import SAMPLES
from tasks.context import StageContext
from tasks.plan.anchors import OFF_BOARD
from tasks.publish.folders import LAYOUT, publication_folder
from tasks.publish.identity import added_or_dropped, asked_otherwise, provenance, renamed_judges, replaced_judges
from tasks.publish.pointer import read_pointer
from tasks.publish.reading import Publication, checked_file, look_again
from tasks.publish.standings.wording import counted
from tasks.verify.publication import read_provenance

Checkpoint = tuple[str, str]
_N_NAMED = 5
_ID = pl.col("sample_id").hash().alias("id")  # 8 bytes for 64: of twice ten million two are alike in one case of 90,000


@dataclass(frozen=True, slots=True)
class Before:
    """The publication that is current now: its provenance, and whom it has; nothing of either where it cannot be read."""

    provenance: Mapping[str, Any]
    checkpoints: Collection[Checkpoint]


def before(run: RunContext) -> Before:
    """What is current before the run publishes."""
    found = _current(run)
    if found is None:
        return Before({}, ())
    try:
        cells = pl.read_parquet(checked_file(found, f"{BENCHMARK_LONG.name}.parquet"), columns=["model", "checkpoint"])
    except CorruptLakeError:  # salon verify says so; a run needs nothing of it
        cells = BENCHMARK_LONG.empty()
    return Before(read_provenance(found.folder) or {}, checkpoints_in(cells))


def asks_otherwise(run: RunContext) -> list[str]:
    """In sentences, what a run that has not happened would ask otherwise than the publication that is current now."""
    found = _current(run)
    was = (read_provenance(found.folder) or {}) if found else {}
    anew = "changed requests are paid for again, and the numbers will not be comparable with the current publication"
    return [*(f"{one}: {anew}" for one in _not_comparable(run, was)), *_renamed(run, was)]


def differs_from_night(run: StageContext, publication_id: str) -> str | None:
    """In a sentence, what the file asks otherwise than the run's night, which stands whole; None where it asks the same."""
    folder = publication_folder(run.lake.root, run.benchmark.name, publication_id)
    was = read_provenance(folder) or {}
    changed, renamed = [*_asked_otherwise(run, was), *added_or_dropped(was, provenance(run))], _renamed(run, was)
    if not changed:
        return f"{'; '.join(renamed)}. The night of {run.run_date} stays as published" if renamed else None
    return (
        f"{'; '.join([*renamed, ', '.join(changed)])}: the file now asks something other than the night of {run.run_date} did. "
        "That night stays as published; the next one uses the new file. To redo this one, withdraw it first: "
        f'salon withdraw FILE {publication_id[:12]} --because "…"'
    )


def _asked_otherwise(run: StageContext, was: Mapping[str, Any]) -> list[str]:
    return asked_otherwise(was, provenance(run), partial(asks_the_same, run.lake.root, run.rubrics))


def _not_comparable(run: StageContext, was: Mapping[str, Any]) -> list[str]:
    """Who asks otherwise, or asks in place of another."""
    return [*_asked_otherwise(run, was), *replaced_judges(was, provenance(run))]


def _renamed(run: StageContext, was: Mapping[str, Any]) -> list[str]:
    """A sentence for each judge of which only the name is another than in a provenance."""
    said = []
    for old, new in renamed_judges(was, provenance(run)).items():
        keep = "remove its name" if old == run.judge(new).model else f'name = "{old}"'
        said.append(
            f"judge {new} is {old} renamed: its requests are the same, and stored replies count. But series and alarms go by "
            f"the name: those of {old} end, also alarms that are open, and {new} has none of its nights. To go on with them, "
            f"keep the old name ({keep})"
        )
    return said


def _current(run: RunContext) -> Publication | None:
    look_again(run.lake.root, run.benchmark.name)
    home = run.lake.root / "publish" / LAYOUT / run.benchmark.name
    pointer = read_pointer(home)
    if pointer is None:
        return None
    folder = home / pointer["publication_id"]
    return Publication(run.benchmark.name, folder.name, pointer["run_date"], folder, is_current=True)


def checkpoints_in(cells: pl.DataFrame) -> set[Checkpoint]:
    """Whom cells are of."""
    return set(cells.select("model", "checkpoint").unique().iter_rows())


def has_each(run: StageContext, dataset_id: str, cells: pl.DataFrame, checkpoints: Collection[Checkpoint]) -> bool:
    """Whether cells or, where a checkpoint has none, as under pairs alone, samples of a dataset are there of each checkpoint."""
    lacking = set(checkpoints) - checkpoints_in(cells)
    return not lacking or lacking <= checkpoints_in(run.lake.scan(SAMPLES, dataset_id).select("model", "checkpoint").collect())


def changed_samples(run: StageContext, publication_id: str, dataset_id: str) -> dict[str, str]:
    """In a clause by model/checkpoint, that its samples are others than in a publication of the run's benchmark.

    Of checkpoints that both have; nothing where the publication or its samples cannot be read.
    """
    folder = publication_folder(run.lake.root, run.benchmark.name, publication_id)
    return _changed_samples(run, read_provenance(folder) or {}, dataset_id)


def samples_differ(changed: Mapping[str, str], since: str) -> str:
    """The sentence of changed_samples()."""
    more = f", and those of {len(changed) - _N_NAMED:,} more checkpoints" if len(changed) > _N_NAMED else ""
    said = ", ".join([*changed.values()][:_N_NAMED])
    return f"{said}{more} since {since}: numbers from before and after this are not comparable"


def _changed_samples(run: StageContext, was: Mapping[str, Any], dataset_id: str) -> dict[str, str]:
    try:
        before_id = was["identities"]["dataset_id"]
        if before_id == dataset_id or not run.lake.is_complete(SAMPLES, before_id):
            return {}
        before, now = (_sample_ids(run, one) for one in (before_id, dataset_id))
    except (KeyError, TypeError, SalonError, OSError, pl.exceptions.PolarsError):  # salon verify says so
        return {}
    n_kept = dict(before.join(now.select("id"), on="id", how="semi")["name"].value_counts().iter_rows())
    n_before, n_now = (dict(one["name"].value_counts().iter_rows()) for one in (before, now))
    changed = {}
    for name in sorted(n_before.keys() & n_now.keys(), key=natural_key):
        n_was, n_is, n_lost = n_before[name], n_now[name], n_before[name] - n_kept.get(name, 0)
        if n_lost:
            changed[name] = f"{n_lost:,} of {n_was:,} samples of {name} changed" + (f" (now {n_is:,})" if n_is != n_was else "")
        elif n_is > n_was:
            changed[name] = f"{name} has {counted(n_is, 'sample')} in place of {n_was:,}"
    return changed


def _sample_ids(run: StageContext, dataset_id: str) -> pl.DataFrame:
    """`name`, as model/checkpoint, and `id`, of this process alone, of a dataset's samples, without anchors and twins."""
    wanted = [pl.concat_str("model", "checkpoint", separator="/").cast(pl.Categorical).alias("name"), _ID]
    return run.lake.collect(SAMPLES, dataset_id, lambda rows: rows.filter(~pl.col("model").is_in(OFF_BOARD)).select(wanted))


def say_what_changed(run: RunContext, was: Before, cells: pl.DataFrame, *, is_new: bool, is_night: bool, is_all: bool) -> None:
    """Of a publication's `cells`. `is_all`: it was to have every checkpoint there is, not such as were chosen.

    `is_night`: what changed of samples is told by its summary, since the last night.
    """
    others = _changed_samples(run, was.provenance, run.ids.dataset_id) if is_new and not is_night else {}
    if others:
        run.reporter.say(samples_differ(others, "the previously current publication"))
    changed = _not_comparable(run, was.provenance) if is_new else []
    if changed:
        run.reporter.say(f"{', '.join(changed)}: the numbers are not comparable with those of the previously current publication")
    for renamed in _renamed(run, was.provenance) if is_new else ():
        run.reporter.say(renamed)
    gone = sorted(set(was.checkpoints) - checkpoints_in(cells), key=lambda one: (one[0], natural_key(one[1]), one[1]))
    if gone and is_all:
        run.reporter.say(_gone(gone))


def _gone(gone: list[Checkpoint]) -> str:
    named = ", ".join("/".join(one) for one in gone[:_N_NAMED])
    more = f" and {len(gone) - _N_NAMED:,} more" if len(gone) > _N_NAMED else ""
    return (
        f"{named}{more}: in the previously current publication, but without samples in this one; ranks and differences "
        "cover only the other checkpoints, and are corrected for fewer comparisons"
    )
