"""What is planned for which sample, and what a request key depends on."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rubrics.messages import Message, Part
from rubrics.model import Condition, ReplyFormat, Rubric, Rule, Variant
from schemas.benchmark.judges import Judge
from schemas.errors import InputError, NothingToJudgeError
from schemas.identities import RunIds
from schemas.records import TEXT_COLUMNS, PlannedPart
from schemas.tables.stored import JUDGEMENTS, REQUESTS, SAMPLES
from schemas.tables.table import conform
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tasks.plan import dataset, questions
from tasks.plan.checks import SeenRequests, check_something_to_ask, keep_first, plan_id, summarise
from tasks.plan.dataset import PlanShard, new_stagings, plan_shard
from tasks.plan.questions import IMAGE_STATUSES
from tasks.plan.request_key import DIGEST_SLOT
from tasks.plan.rows import Planner
from tests.support.asking import context_of

JUDGE = Judge(model="judge", parameters={"temperature": 0, "seed": 1})
Samples = Callable[..., pl.DataFrame]


def plan_part(samples: pl.DataFrame, rubric: Rubric, judge: Judge, occasion: str = "") -> tuple[pl.DataFrame, pl.DataFrame]:
    """(judgements, requests) of one part of samples."""
    planned = Planner(rubric, judge, occasion).plan(samples)
    return planned.judgements, planned.requests(planned.asked)


def keys(samples: pl.DataFrame, rubric: Rubric, judge: Judge = JUDGE, occasion: str = "") -> list[str]:
    return plan_part(samples, rubric, judge, occasion)[0]["request_key"].to_list()


def test_the_key_is_this_one(make_samples: Samples, rubric: Rubric) -> None:
    """Golden: a key that changes here buys every stored reply again."""
    samples = make_samples(1, prompt=["ein Bär"], image_sha256=["e" * 64])
    judgements, requests = plan_part(samples, rubric, JUDGE)
    conform(judgements, JUDGEMENTS)
    conform(requests, REQUESTS)
    messages = (
        '[{"content":"Judge this.","role":"system"},{"content":[{"text":"ein Bär","type":"text"},{"sha256":"'
        + "e" * 64
        + '","type":"image"}],"role":"user"}]'
    )
    canonical = (
        f'{{"facts":{{}},"messages":{messages},"model":"judge","occasion":"","parameters":{{"seed":1,"temperature":0}},'
        '"repeat":0,"rubric_id":"plain","rubric_version":"1"}'
    )
    assert requests["messages_json"].to_list() == [messages]
    assert requests["request_key"].to_list() == [sha256(canonical.encode()).hexdigest()]
    assert requests["parameters_json"].to_list() == ['{"seed":1,"temperature":0}']


CHANGES: dict[str, Callable[[Rubric, Judge], tuple[Rubric, Judge, str]]] = {
    "model": lambda r, j: (r, j.model_copy(update={"model": "other"}), ""),
    "parameters": lambda r, j: (r, j.model_copy(update={"parameters": {"temperature": 1}}), ""),
    "provider": lambda r, j: (r, j.model_copy(update={"provider": "gemini"}), ""),
    "detail": lambda r, j: (r, j.model_copy(update={"detail": "low"}), ""),
    "max-side": lambda r, j: (r, j.model_copy(update={"max_side_px": 512}), ""),
    "rubric-id": lambda r, j: (replace(r, id="other"), j, ""),
    "rubric-version": lambda r, j: (replace(r, version="2"), j, ""),
    "prompt-byte": lambda r, j: (replace(r, variants={None: replace(r.variants[None], prompt="Judge this!")}), j, ""),
    "occasion": lambda r, j: (r, j, "2026-01-01"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_everything_that_can_change_the_answer_changes_the_key(make_samples: Samples, rubric: Rubric, change: Any) -> None:
    samples = make_samples(3)
    assert not set(keys(samples, rubric)) & set(keys(samples, *change(rubric, JUDGE)))


def test_how_a_picture_is_shown_stands_beside_its_digest_and_in_keys_without_a_picture(make_samples: Samples) -> None:
    low = JUDGE.model_copy(update={"detail": "low", "max_side_px": 512})
    rubric = replace(_text_rubric(), needs=("prompt", "image"), may_be_null=frozenset({"image"}))
    one_without = make_samples(1, image_sha256=[None])
    assert not set(keys(one_without, rubric)) & set(keys(one_without, rubric, low)), "a reply is one judge's alone"
    pictured = replace(rubric, messages=(Message("user", (Part("column", "prompt"), Part("image"))),))
    (messages,) = plan_part(make_samples(1), pictured, low)[1]["messages_json"]
    assert '","shown":{"detail":"low","max_side_px":512,"resampled_by":"lanczos"},"type":"image"}' in messages


def test_a_share_holds_whole_prompts_for_every_checkpoint_and_every_smaller_share(make_samples: Samples, rubric: Rubric) -> None:
    prompts = [f"prompt {index}" for index in range(1000)]
    one, other = (make_samples(1000, prompt=prompts, checkpoint=[name] * 1000) for name in ("step-1", "step-2"))

    def drawn(samples: pl.DataFrame, share: float | None, occasion: str = "") -> list[str]:
        planner = Planner(rubric, JUDGE.model_copy(update={"share": share}), occasion)
        return planner.drawn(samples)["prompt"].to_list()

    few, more = drawn(one, 0.1), drawn(one, 0.3)
    assert set(few) < set(more)
    assert few == drawn(other.reverse(), 0.1)[::-1]
    assert 70 <= len(few) <= 130  # 100 ± 3 standard deviations
    assert 257 <= len(more) <= 343
    assert drawn(one, None) == prompts
    assert drawn(one, 0.1, "2026-01-01") == prompts, "anchors are few and are all asked"


def test_what_cannot_change_the_answer_does_not_change_the_key(make_samples: Samples, rubric: Rubric) -> None:
    samples = make_samples(3)
    elsewhere = JUDGE.model_copy(
        update={"base_url": "http://localhost:1/v1", "api_key_env": "OTHER", "name": "other", "share": 0.5}
    )
    renamed = samples.with_columns(source_key=pl.lit("moved.png"), sample_id=pl.lit("f" * 64), checkpoint=pl.lit("c2"))
    assert keys(samples, rubric) == keys(samples, rubric, elsewhere) == keys(renamed, rubric)
    reordered = JUDGE.model_copy(update={"parameters": dict(reversed(JUDGE.parameters.items()))})
    assert keys(samples, rubric) == keys(samples, rubric, reordered)


def test_one_byte_of_a_picture_changes_exactly_its_key(make_samples: Samples, rubric: Rubric) -> None:
    before = make_samples(4)
    digests = before["image_sha256"].to_list()
    after = make_samples(4, image_sha256=[*digests[:2], "9" * 64, digests[3]])
    assert [a == b for a, b in zip(keys(before, rubric), keys(after, rubric), strict=True)] == [True, True, False, True]


def test_two_samples_that_ask_the_same_share_a_request(make_samples: Samples, rubric: Rubric) -> None:
    samples = make_samples(3, prompt=["a", "a", "b"], image_sha256=["1" * 64] * 3)
    judgements, requests = plan_part(samples, rubric, JUDGE)
    assert (judgements.height, requests.height) == (3, 2)  # one picture under two prompts: two questions


def test_repeats_are_requests_of_their_own(make_samples: Samples, rubric: Rubric) -> None:
    judgements, requests = plan_part(make_samples(2), rubric, JUDGE.model_copy(update={"repeats": 3}))
    assert (judgements.height, requests["request_key"].n_unique(), sorted(judgements["repeat"])) == (6, 6, [0, 0, 1, 1, 2, 2])


@settings(max_examples=50)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), min_size=2, max_size=2, unique=True))
def test_different_prompts_have_different_keys_and_texts_are_kept(texts: list[str]) -> None:
    rubric = _text_rubric()
    row = {name: [None, None] for name in TEXT_COLUMNS if name != "prompt"}
    samples = pl.DataFrame(
        {
            "sample_id": ["1" * 64, "2" * 64],
            "status": "ok",
            "model": "m",
            "checkpoint": "c",
            "image_sha256": None,
            "pictures": None,
            "duplicate_of_sample_id": None,
            "prompt": texts,
        }
        | row,
        schema_overrides=dict.fromkeys([*row, "image_sha256", "duplicate_of_sample_id"], pl.String),
    )
    requests = plan_part(samples, rubric, JUDGE)[1]
    assert requests.height == sum(bool(text.strip()) for text in texts)
    assert DIGEST_SLOT not in str(requests.to_dicts())


def _text_rubric(**changes: Any) -> Rubric:
    from rubrics.model import Dimension, ReplyFormat

    variant = Variant(None, "P", "p.txt", (Dimension("score", ("score",), 0, 4, 1),))
    rubric = Rubric(
        "words", "1", "t", "s", None, "d" * 64, ReplyFormat.JSON, ("prompt",), frozenset(), ("prompt",), None, None, {},  # type: ignore[arg-type]
        (Message("user", (Part("prompt"), Part("column", "prompt"))),), {None: variant}, (), 20,
    )  # fmt: skip
    return replace(rubric, **changes)


def _statuses(judgements: pl.DataFrame) -> list[tuple[str, str | None]]:
    return judgements.select("status", "reason").rows()


def test_every_sample_is_accounted_for(make_samples: Samples, rubric: Rubric) -> None:
    samples = make_samples(
        5, status=["ok", "broken_image", "duplicate", "ok", "ok"], prompt=["p", "p", "p", None, " "],
        image_sha256=["1" * 64, None, "1" * 64, None, "2" * 64],
    )  # fmt: skip
    judgements, requests = plan_part(samples, rubric, JUDGE)
    assert _statuses(judgements) == [
        ("planned", None), ("unusable_sample", "broken_image"), ("duplicate", "same_sample"),
        ("missing_column", "missing:prompt,image"), ("missing_column", "missing:prompt"),
    ]  # fmt: skip
    assert judgements["request_key"].null_count() == 4
    assert requests.height == 1
    conform(judgements, JUDGEMENTS)


@pytest.mark.parametrize("is_recorded", [False, True])
def test_a_duplicate_is_asked_what_its_twin_is_and_asked_once(make_samples: Samples, rubric: Rubric, is_recorded: bool) -> None:
    """Also where nothing is sent and the key is made of the sample's id, under two repeats, and where its twin is elsewhere."""
    judge = JUDGE.model_copy(update={"recorded": is_recorded, "repeats": 2})
    samples = make_samples(
        3, prompt=["p", "p", "p"], image_sha256=["1" * 64, "2" * 64, "1" * 64], status=["ok", "ok", "duplicate"]
    )
    again = pl.when(pl.col("status") == "duplicate").then(pl.lit(samples["sample_id"][0]))
    samples = samples.with_columns(duplicate_of_sample_id=again)
    judgements, requests = plan_part(samples, rubric, judge)
    first, other, copy = (judgements.filter(sample_id=one)["request_key"].to_list() for one in samples["sample_id"])
    assert first == copy
    assert not {*first}.intersection(other)
    assert _statuses(judgements) == [("planned", None)] * 6
    assert judgements["duplicate_of_sample_id"].to_list() == [None] * 4 + [samples["sample_id"][0]] * 2
    assert requests["request_key"].to_list() == [*first, *other]
    assert keys(samples[2:], rubric, judge) == first, "a rubric may be for the copy's source alone"
    assert plan_part(samples[:2], rubric, judge)[1].equals(requests), "nothing more is asked"


@pytest.mark.parametrize("status", sorted(IMAGE_STATUSES))
def test_a_picture_that_is_missing_harms_only_who_needs_it(make_samples: Samples, rubric: Rubric, status: str) -> None:
    samples = make_samples(1, status=[status], image_sha256=[None])
    assert _statuses(plan_part(samples, rubric, JUDGE)[0]) == [("unusable_sample", status)]
    assert _statuses(plan_part(samples, _text_rubric(), JUDGE)[0]) == [("planned", None)]
    assert _statuses(plan_part(samples, replace(rubric, messages=()), JUDGE)[0]) == [("planned", None)]
    assert _statuses(plan_part(samples, rubric, JUDGE.model_copy(update={"recorded": True}))[0]) == [("planned", None)]


def test_where_nothing_is_sent_the_sample_stands_for_the_messages(make_samples: Samples, rubric: Rubric) -> None:
    samples = make_samples(2, prompt=["same", "same"], image_sha256=["1" * 64] * 2)
    requests = plan_part(samples, replace(rubric, messages=()), JUDGE)[1]
    assert requests.height == 2
    assert requests.select("messages_json", "image_sha256").rows() == [(None, None)] * 2
    assert _statuses(plan_part(make_samples(1, prompt=[None]), replace(rubric, messages=()), JUDGE)[0]) == [
        ("missing_column", "missing:prompt")
    ]


def test_a_recorded_answer_with_a_lost_picture_is_no_answer_without_one(make_samples: Samples, rubric: Rubric) -> None:
    rule = Rule("no_image", (Condition("image", is_null=True),), ("score",), 0, 0)
    recorded = replace(rubric, messages=(), rules=(rule,))
    samples = make_samples(2, status=["missing_file", "ok"], image_sha256=[None, None])
    facts = plan_part(samples, recorded, JUDGE)[1]["facts_json"].to_list()
    assert facts == ['{"image_is_null":false}', '{"image_is_null":true}']


def test_a_category_without_a_prompt_is_said_and_dispatch_chooses(make_samples: Samples, rubric: Rubric) -> None:
    variant = replace(rubric.variants[None], category="colors")
    dispatching = replace(
        rubric, dispatch="category", variants={"colors": variant}, value_maps={"category": {"colours": "colors"}}
    )
    samples = make_samples(3, category=["colors", "colours", "shapes"])
    for judge in (JUDGE, JUDGE.model_copy(update={"recorded": True})):
        judgements, requests = plan_part(samples, dispatching, judge)
        assert _statuses(judgements)[2] == ("no_prompt", "no_prompt")
        assert requests["variant"].to_list() == ["colors", "colors"]


def _own(**texts: str) -> str:
    return json.dumps(texts, sort_keys=True, separators=(",", ":"))


def test_columns_of_a_rubrics_own_are_asked_counted_and_told_where_missing(make_samples: Samples) -> None:
    """What they say is in the key and in the unit; what the rubric does not need is in neither."""
    messages = (Message("user", (Part("prompt"), Part("column", "prompt"), Part("column", "instruction"))),)
    rubric = _text_rubric(needs=("prompt", "instruction"), unit=("instruction",), messages=messages)
    samples = make_samples(
        4, prompt=["p"] * 4,
        texts_json=[_own(instruction="add a hat"), _own(instruction="a cat"), _own(instruction="add a hat", mood="sad"), None],
    )  # fmt: skip
    judgements, requests = plan_part(samples, rubric, JUDGE)
    assert _statuses(judgements) == [("planned", None)] * 3 + [("missing_column", "missing:instruction")]
    assert judgements["request_key"][0] == judgements["request_key"][2] != judgements["request_key"][1]
    assert judgements["prompt_id"][0] == judgements["prompt_id"][2] != judgements["prompt_id"][1]
    assert ["add a hat" in text for text in requests["messages_json"]] == [True, False]
    assert not any("sad" in text for text in requests["messages_json"])


def test_samples_of_a_release_without_own_columns_have_the_keys_they_had(make_samples: Samples, rubric: Rubric) -> None:
    before = plan_part(make_samples(2), rubric, JUDGE)[1]["request_key"]
    assert plan_part(make_samples(2, texts_json=[_own(mood="sad")] * 2), rubric, JUDGE)[1]["request_key"].equals(before)


def test_a_word_the_rubric_does_not_know_is_a_row_and_no_category(make_samples: Samples, rubric: Rubric) -> None:
    rule = Rule("length", (Condition("caption_type", one_of=("brief",)),), ("score",), None, 1)
    closed = replace(
        rubric, report_by="caption_type", rules=(rule,), words={"caption_type": ("brief", "style")},
        value_maps={"caption_type": {"theme": "style"}},
    )  # fmt: skip
    samples = make_samples(4, caption_type=["brief", "Brief", "theme", None])
    for judge in (JUDGE, JUDGE.model_copy(update={"recorded": True})):
        judgements, requests = plan_part(samples, closed, judge)
        assert _statuses(judgements) == [
            ("planned", None), ("unknown_value", "unknown_value:caption_type"), ("planned", None), ("planned", None),
        ]  # fmt: skip
        assert judgements["category"].to_list() == ["brief", None, "style", None]
        assert requests["facts_json"].to_list() == ['{"caption_type":"brief"}', '{"caption_type":"style"}', "{}"]


def test_where_no_word_is_known_the_plan_stops_and_says_which_are(make_samples: Samples, rubric: Rubric) -> None:
    closed = replace(rubric, words={"caption_type": ("brief", "style")})
    samples = make_samples(2, caption_type=["Brief", "Brief"])
    summary = summarise(plan_part(samples, closed, JUDGE)[0].lazy())
    with pytest.raises(
        NothingToJudgeError, match=r"does not know the word in caption_type of all 2 .*'brief', 'style'.*value_maps"
    ):
        check_something_to_ask(summary, {closed.id: closed}, ["s"])


def _plan(samples: pl.DataFrame, rubric: Rubric) -> pl.LazyFrame:
    return plan_part(samples, rubric, JUDGE)[0].lazy()


def test_nothing_to_judge_names_every_missing_column(make_samples: Samples, rubric: Rubric) -> None:
    samples = make_samples(3, prompt=[None] * 3, image_sha256=[None] * 3)
    with pytest.raises(NothingToJudgeError) as raised:
        check_something_to_ask(summarise(_plan(samples, rubric)), {"plain": rubric}, ["drawn"])
    assert str(raised.value) == (
        "rubric plain needs image and prompt, and all 3 samples lack them; "
        'map them under columns = { image = "…", prompt = "…" } of source drawn'
    )


def test_samples_are_counted_once_however_often_they_are_to_be_asked(make_samples: Samples, rubric: Rubric) -> None:
    judgements = plan_part(make_samples(3, prompt=[None] * 3), rubric, JUDGE.model_copy(update={"repeats": 3}))[0]
    assert judgements.height == 9
    with pytest.raises(NothingToJudgeError, match="all 3 samples lack it"):
        check_something_to_ask(summarise(judgements.lazy()), {"plain": rubric}, ["drawn"])


def test_what_one_sample_lacks_too_is_not_what_to_map(make_samples: Samples, rubric: Rubric) -> None:
    """Two pictures are good, one file is none: mapping `image` would mend nothing."""
    samples = make_samples(3, prompt=[None] * 3, image_sha256=["a" * 64, "b" * 64, None])
    with pytest.raises(NothingToJudgeError) as raised:
        check_something_to_ask(summarise(_plan(samples, rubric)), {"plain": rubric}, ["drawn"])
    assert str(raised.value) == (
        "rubric plain needs prompt, and all 3 samples lack it, 1 of them image too; "
        'map it under columns = { prompt = "…" } of source drawn'
    )


def test_lists_of_items_that_cannot_be_read_are_no_missing_column(make_samples: Samples, rubric: Rubric) -> None:
    judgements = plan_part(make_samples(3, prompt=["p", "p", None]), rubric, JUDGE)[0]
    asked = pl.col("reason").is_null()
    malformed = judgements.with_columns(
        status=pl.when(asked).then(pl.lit("missing_column")).otherwise("status"),
        reason=pl.when(asked).then(pl.lit("malformed:items")).otherwise("reason"),
    )
    with pytest.raises(NothingToJudgeError) as raised:
        check_something_to_ask(summarise(malformed.lazy()), {"plain": rubric}, ["drawn"])
    said = str(raised.value)
    assert "needs prompt, and 1 of the 3 samples lack it" in said
    assert "cannot read the items of 2 of the 3 samples: to see why, run salon rubrics try plain --sample FILE" in said


def test_nothing_to_judge_names_the_categories(make_samples: Samples, rubric: Rubric) -> None:
    dispatching = replace(rubric, dispatch="category", variants={"colors": replace(rubric.variants[None], category="colors")})
    samples = make_samples(3, category=["shapes", "shapes", None])
    with pytest.raises(
        NothingToJudgeError, match=r"has no prompt for the category .*: found .*'shapes'.* it has prompts for 'colors'"
    ):
        check_something_to_ask(summarise(_plan(samples, dispatching)), {"plain": dispatching}, ["drawn"])


def test_one_sample_is_enough_to_go_on(make_samples: Samples, rubric: Rubric) -> None:
    samples = make_samples(3, prompt=[None, None, "p"])
    check_something_to_ask(summarise(_plan(samples, rubric)), {"plain": rubric}, ["drawn"])
    with pytest.raises(NothingToJudgeError, match="no samples"):
        check_something_to_ask(summarise(_plan(samples[:0], rubric)), {"plain": rubric}, ["drawn"])


def test_a_plan_is_named_by_its_lines_however_they_are_stored(make_samples: Samples, rubric: Rubric) -> None:
    judgements = plan_part(make_samples(40, prompt=["p", None] * 20), rubric, JUDGE)[0]
    lines = sorted(
        f"{row['sample_id']} {row['rubric_id']} {row['judge_model']} {row['repeat']} {row['occasion']} "
        f"{row['request_key'] or row['reason']}"
        for row in judgements.to_dicts()
    )
    expected = sha256("\n".join(lines).encode()).hexdigest()
    assert plan_id(judgements.lazy()) == plan_id(judgements.reverse().lazy()) == expected
    assert plan_id(judgements.lazy(), n_rows_held=1) == expected  # in 40 ranges
    assert plan_id(judgements[:39].lazy()) != expected
    assert plan_id(judgements.lazy(), [rubric]) != plan_id(judgements.lazy(), [replace(rubric, digest="0" * 64)])


def test_a_request_of_an_earlier_part_is_not_listed_again(make_samples: Samples, rubric: Rubric) -> None:
    requests = plan_part(make_samples(4), rubric, JUDGE)[1]
    seen = SeenRequests()
    assert keep_first(requests[:3], seen).height == 3
    assert keep_first(requests, seen)["request_key"].to_list() == requests["request_key"].to_list()[3:]


def test_a_request_of_any_earlier_part_is_known() -> None:
    drawn = [sha256(str(number).encode()).hexdigest() for number in range(300)]
    seen, listed = SeenRequests(), []
    for start in range(0, 280, 20):  # each part repeats a third of the one before, and one of the first
        keys = list(dict.fromkeys([drawn[start // 20], *drawn[start : start + 30]]))
        listed += keep_first(pl.DataFrame({"request_key": keys}), seen)["request_key"].to_list()
    assert listed == drawn[:290]


def test_planning_stays_linear(make_samples: Samples, rubric: Rubric) -> None:
    samples = make_samples(2_000)
    assert math.isclose(plan_part(samples, rubric, JUDGE)[1].height, 2_000)


STRUCTURED = JUDGE.model_copy(update={"structured_output": True})


def test_structured_output_has_its_own_keys_and_off_is_as_ever(make_samples: Samples, rubric: Rubric) -> None:
    samples = make_samples(3)
    assert not set(keys(samples, rubric)) & set(keys(samples, rubric, STRUCTURED))
    assert keys(samples, rubric) == keys(samples, rubric, JUDGE.model_copy(update={"structured_output": False}))
    requests = plan_part(samples, rubric, STRUCTURED)[1]
    schema = (
        '{"name":"plain_reply","strict":true,"schema":{"type":"object","properties":{"score":{"type":"integer","minimum":0,'
        '"maximum":4},"reason":{"type":"string"}},"required":["score","reason"],"additionalProperties":false}}'
    )
    expected = f'{{"response_format":{{"type":"json_schema","json_schema":{schema}}},"seed":1,"temperature":0}}'
    assert requests["parameters_json"].unique().to_list() == [expected]


def test_each_variant_has_its_schema_and_the_schema_its_part_in_the_key(make_samples: Samples, rubric: Rubric) -> None:
    colors = replace(rubric.variants[None], category="colors")
    wider = replace(colors, category="shapes", dimensions=(replace(colors.dimensions[0], maximum=9),))
    two = replace(rubric, dispatch="category", variants={"colors": colors, "shapes": wider})
    samples = make_samples(2, category=["colors", "shapes"])
    requests = plan_part(samples, two, STRUCTURED)[1]
    assert ['"maximum":4' in text for text in requests["parameters_json"]] == [True, False]
    narrow = replace(two, variants={"colors": colors, "shapes": replace(wider, dimensions=colors.dimensions)})
    assert [a == b for a, b in zip(keys(samples, two, STRUCTURED), keys(samples, narrow, STRUCTURED), strict=True)] == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("form", "parameters", "said"),
    [
        (ReplyFormat.LABEL, {}, "judge judge has structured_output = true, but rubric plain does not ask for a JSON object"),
        (ReplyFormat.JSON, {"response_format": {"type": "json_object"}}, "a response_format among its parameters"),
    ],
    ids=["no-json", "twice"],
)
def test_structured_output_that_cannot_be_is_said(
    make_samples: Samples, rubric: Rubric, form: ReplyFormat, parameters: dict[str, Any], said: str
) -> None:
    judge = STRUCTURED.model_copy(update={"parameters": parameters})
    with pytest.raises(InputError, match=said):
        plan_part(make_samples(1), replace(rubric, reply_format=form), judge)


def _stored(tmp_path: Path, *parts: pl.DataFrame) -> Lake:
    lake = Lake(tmp_path)
    staging = stage(lake, SAMPLES)
    for index, part in enumerate(parts):
        staging.write_part(index, part)
    staging.commit("1" * 64)
    return lake


def _plan_whole(lake: Lake, rubric: Rubric) -> tuple[list[PlannedPart], list[pl.DataFrame], pl.DataFrame]:
    """The parts, the requests of each, and all judgements."""
    judgements, requests = new_stagings(lake)
    context = context_of(lake, {rubric.id: rubric}, JUDGE, "", RunIds(dataset_id="1" * 64))
    parts = plan_shard(context, PlanShard(rubric.id, JUDGE.model, ("s",), judgements, requests))
    found = pl.concat([pl.read_parquet(path) for path in judgements.part_paths()])
    return parts, [pl.read_parquet(path) for path in requests.part_paths()], found


@pytest.mark.parametrize("n_at_once", [1, 7, 1_000])
def test_parts_planned_together_are_the_parts_planned_alone(
    tmp_path: Path, make_samples: Samples, rubric: Rubric, monkeypatch: pytest.MonkeyPatch, n_at_once: int
) -> None:
    monkeypatch.setattr(dataset, "ROWS_AT_ONCE", n_at_once)
    samples = make_samples(9, prompt=["p", "q", None] * 3, image_sha256=[str(n % 4) * 64 for n in range(9)])
    elsewhere = make_samples(2, source=["t", "t"])
    lake = _stored(tmp_path, samples[:2], elsewhere, samples[2:7], samples[7:])
    parts, requests, judgements = _plan_whole(lake, rubric)
    assert [(part.index, part.samples_part) for part in parts] == [(0, 0), (1, 2), (2, 3)]
    seen = SeenRequests()
    for part, found, alone in zip(parts, requests, (samples[:2], samples[2:7], samples[7:]), strict=True):
        expected = keep_first(plan_part(alone, rubric, JUDGE)[1], seen)
        assert found.equals(expected)
        assert part.n_requests == expected.height
    assert judgements.equals(plan_part(samples, rubric, JUDGE)[0])


def test_what_is_remembered_is_bounded_and_changes_nothing(
    make_samples: Samples, rubric: Rubric, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = make_samples(50, prompt=[f"p{n % 9}" for n in range(50)])
    before = plan_part(samples, rubric, JUDGE)
    monkeypatch.setattr(questions, "N_REMEMBERED", 2)
    after = plan_part(samples, rubric, JUDGE)
    assert all(a.equals(b) for a, b in zip(before, after, strict=True))


def test_a_plan_is_of_its_dataset(make_samples: Samples, rubric: Rubric) -> None:
    judgements = _plan(make_samples(3), rubric)
    assert len({plan_id(judgements, [rubric], dataset_id=name * 64) for name in "ab"} | {plan_id(judgements, [rubric])}) == 3
