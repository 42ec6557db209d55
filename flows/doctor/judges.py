"""Whether each judge has its key, and, when asked for, whether its replies about one sample can be read. None is stored."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
from httpx import HTTPError
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from flows.doctor.findings import Finding, guarded, ok, shortened, skipped, wrong
from flows.executors.keys import block_name, fetch_keys
from rubrics.replies.probabilities import lacks_probabilities
from rubrics.replies.remedies import remedy
from schemas.benchmark.file import Benchmark, source_name
from schemas.benchmark.judges import Judge
from schemas.errors import MissingKeyError
from schemas.identities import RunIds
from schemas.records import ParsedScore, PlannedPart, ReadScores
from schemas.statuses.rows import ParseReason, ReplyStatus
from schemas.tables.stored import REQUESTS, SAMPLES
from tasks.api_keys import key_named
from tasks.context import StageContext
from tasks.ingest.samples import find_shards, finish, open_and_write_shard
from tasks.judge.budget.budget import why_not_kept
from tasks.judge.part_pictures import part_pictures
from tasks.judge.pictures import digests_of
from tasks.judge.provider.base import provider_of
from tasks.judge.provider.exchange import Answer, RequestPicture
from tasks.judge.readings import reading_of, why_nothing
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tasks.plan.dataset import new_stagings, plan_shard, plan_shards

BUDGET, KEY, JUDGE = "budget", "key", "judge"
DEADLINE_S = 60.0


def check_keys(benchmark: Benchmark) -> Iterator[Finding]:
    """Each key by the name of its variable; its value is never shown."""
    judges = benchmark.asked_judges
    with suppress(HTTPError), temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0}):  # a server that is away was told of already
        fetch_keys(judge.api_key_env for judge in judges)
    for judge in judges:
        name = judge.api_key_env
        try:
            provider_of(judge).check(judge)
        except MissingKeyError:
            yield wrong(
                KEY,
                f"{name} is not set, for {judge.id}",
                f"export {name}, or create the Prefect Secret block {block_name(name)}",
            )
        else:
            where = "in the environment" if os.environ.get(name, "").strip() else "in a Prefect Secret block"
            found = f"{name} is set, {where}" if key_named(name) else f"{judge.id} needs none"
            yield ok(KEY, found)


def check_budget(benchmark: Benchmark) -> Iterator[Finding]:
    """Whether max_usd, where there is one, can be kept."""
    max_usd = benchmark.limits.max_usd
    why_not = why_not_kept(benchmark.judges, max_usd)
    if why_not is not None:
        yield wrong(BUDGET, why_not, "")
    elif max_usd is not None:
        yield ok(BUDGET, f"limits.max_usd = {max_usd:.12g} can be kept")


def check_judges(run: StageContext, *, is_asking: bool) -> Iterator[Finding]:
    """Each judge's answer to the first sample of the first source, one for each rubric, with nothing of the run's limits."""
    judges = run.benchmark.asked_judges
    if not judges:
        yield skipped(JUDGE, "all replies are recorded: no judge is asked")
    elif not is_asking:
        yield skipped(
            JUDGE,
            f"{', '.join(judge.id for judge in judges)} not asked",
            "--ask asks one sample under each rubric; it may cost money",
        )
    else:
        with TemporaryDirectory(prefix="salon-doctor-") as folder:
            planned, parts = _planned(run, Path(folder))
            for judge in planned.benchmark.judges:
                if judge.recorded:
                    continue
                mine = {part.rubric_id: part for part in reversed(parts) if part.judge_model == judge.id and part.n_requests}
                if not mine:
                    yield wrong(JUDGE, f"{judge.id}: the first sample cannot be judged", "salon plan FILE says why")
                for rubric_id in planned.rubrics:
                    if rubric_id in mine:
                        yield from guarded(JUDGE, partial(_ask, planned, judge, mine[rubric_id]), "run salon plan FILE")
                    elif mine and judge in planned.judges_for(rubric_id):
                        yield skipped(JUDGE, f"{judge.id}, {rubric_id}: the first sample alone makes no request")


def _planned(run: StageContext, folder: Path) -> tuple[StageContext, list[PlannedPart]]:
    """The first sample and all that it would be asked, in a lake that is thrown away."""
    benchmark = run.benchmark
    first = source_name(benchmark.sources[0], 0)
    choices = [choice for choice in benchmark.rubrics if choice.sources is None or first in choice.sources]
    limits = benchmark.limits.model_copy(update={"shard_size": 1})
    judges = [judge.model_copy(update={"share": None}) for judge in benchmark.judges]  # one may leave out the first prompt
    small = benchmark.model_copy(
        update={"sources": benchmark.sources[:1], "rubrics": choices, "judges": judges, "limits": limits}
    )
    rubrics = {choice.id: run.rubrics[choice.id] for choice in choices}
    planned = replace(run, benchmark=small, rubrics=rubrics, lake=Lake(folder), ids=RunIds(code_version=run.ids.code_version))
    staging = stage(planned.lake, SAMPLES)
    shard = next(iter(find_shards(small, staging, own_texts=planned.own_texts)))
    planned = planned.having(dataset_id=finish(staging, [open_and_write_shard(shard)]).dataset_id)
    judgements, requests = new_stagings(planned.lake)
    parts = [part for one in plan_shards(planned, judgements, requests) for part in plan_shard(planned, one)]
    if any(part.n_requests for part in parts):
        requests.commit("asked")
    return planned.having(plan_id="asked"), parts


def _ask(run: StageContext, judge: Judge, part: PlannedPart) -> Iterator[Finding]:
    requests = run.lake.read_part(REQUESTS, run.ids.plan_id, part.index)
    row, deadline_s = requests.row(0, named=True), min(DEADLINE_S, run.benchmark.limits.deadline_s)
    with closing(part_pictures(run, part, requests)) as shown:
        pictures = [shown(digest) for digest in digests_of(row["messages_json"])]
        endpoint, answer = asyncio.run(_answer(judge, deadline_s, row["parameters_json"], row["messages_json"], pictures))
    asked = f"{judge.id} at {endpoint}"
    read = reading_of(run.rubrics[part.rubric_id], row["variant"], row["facts_json"], answer)
    if read is not None:
        rubric = run.rubrics[part.rubric_id]
        is_bare = lacks_probabilities(rubric, row["variant"], answer.logprobs_json, or_alternatives=True)
        yield _read(f"{asked}, {part.rubric_id}, {answer.latency_s or 0:.1f} s", judge, answer, read, is_bare=is_bare)
    else:
        said = f"{asked}: {answer.status.value}: {shortened(answer.detail or '')}"
        known = provider_of(judge).remedy(answer.detail or "")
        if answer.status == ReplyStatus.NO_CREDIT:
            known = f"top up the account behind the environment variable {judge.api_key_env}"
        yield wrong(JUDGE, said, f"{known or 'fix what the provider names, or wait until it answers'}; then ask again")


def _read(asked: str, judge: Judge, answer: Answer, read: ParsedScore, *, is_bare: bool) -> Finding:
    """What the reply says to the rubric, as a run reads it, and the text. An alias answers by another name: no fault.

    `is_bare`: without the log probabilities that the rubric reads, or without those of other tokens.
    """
    answered, said = answer.answered_model, shortened(answer.text or answer.refusal_text or "") or "no text"
    if answered and not judge.is_called(answered):
        asked += f", answered by {shortened(answered)}, asked for {judge.model}"
    reason = why_nothing(read)
    if reason is not None or not isinstance(read, ReadScores):
        reason = reason or ParseReason.NOT_FOUND
        then = remedy(reason, 1, judge.parameters, lacks_probabilities=is_bare, n_cut={answer.finish_reason or "": 1})
        return wrong(JUDGE, f"{asked}: cannot be read ({reason.value}): {said}", then)
    found = [f"{name} = {score:g}" for name, score in read.scores.items()]
    found += [f"{name} not applicable" for name in sorted(read.not_applicable)]
    found += [f"{name} {why.value}" for name, why in read.unreadable.items()]
    found += [f"{name} against a rule of the rubric" for name in read.violated]
    return ok(JUDGE, f"{asked}: {shortened(', '.join(found))}: {said}")


async def _answer(
    judge: Judge, deadline_s: float, parameters: str, messages: str, pictures: Sequence[RequestPicture]
) -> tuple[str, Answer]:
    provider = provider_of(judge)(judge, 1, deadline_s)
    try:
        return provider.endpoint, await provider.ask(provider.payload(orjson.loads(parameters), orjson.loads(messages), pictures))
    finally:
        await provider.close()
