"""What `health` says: counts that add up, reasons, and only what the snapshot knows."""

import json
from dataclasses import replace

import polars as pl
import pytest

from rubrics.model import Items, Rubric
from tasks.aggregate.tables import Settings, aggregated


def said(tables, **address):
    found = tables["health"].filter(**address)
    return {(row["measure"], row["word"]): row["value"] for row in found.iter_rows(named=True)}


def test_judgements_requests_and_failures_by_reason(make_rubric, all_tables):
    rows = [
        {"prompt": "p", "sample": "a", "scores": {"q": 3, "r": 4}},
        {"prompt": "p", "sample": "b", "scores": {"q": "refusal", "r": "refusal"}},
        {"prompt": "r", "sample": "c", "scores": {"q": ("rule_violation", "rule_violation", 7.0, 0.0, 1.0), "r": 4}},
        {"prompt": "r", "sample": "d", "status": "unusable_sample", "reason": "broken_image"},
        {"prompt": "r", "sample": "e", "checkpoint": "2", "scores": {"q": 3, "r": 4}},
    ]
    first, second = (said(all_tables(rows, make_rubric({None: ("q", "r")})), checkpoint=name) for name in "12")
    assert (first["n_judgements", ""], first["n_planned", ""], first["n_requests", ""]) == (4, 3, 3)
    reasons = {word: value for (measure, word), value in first.items() if measure == "n_without_score"}
    assert reasons == {"refusal": 1, "rule_violation": 1, "broken_image": 1}  # a judgement counts once for each reason
    assert second["n_judgements", ""] == 1
    assert not [word for measure, word in second if measure == "n_without_score"]


def test_failures_are_rows_that_add_up_to_each_cell_s_count(make_rubric, all_tables):
    rows = [{"prompt": p, "sample": p, "scores": {"q": 3, "r": 2}} for p in "abc"]
    rows += [
        {"prompt": "a", "sample": "d", "scores": {"q": "refusal", "r": "refusal"}},
        {"prompt": "e", "sample": "e", "status": "unusable_sample", "reason": "broken_image"},
    ]
    tables = all_tables(rows, make_rubric({None: ("q", "r")}))
    cells = tables["benchmark_long"].filter(metric="mean", estimand="prompts_like_these").filter(pl.col("n_failed") > 0)
    summed = tables["failures"].group_by("cell_id").agg(pl.col("n_failed").sum())
    assert dict(summed.iter_rows()) == dict(cells.select("cell_id", "n_failed").iter_rows())
    assert set(tables["failures"]["reason"]) == {"refusal", "broken_image"}


def test_replies_latency_tokens_and_cost_where_somebody_said(make_rubric, all_tables, make_frames, make_answers):
    rows = [{"prompt": p, "sample": p, "scores": {"q": 3}} for p in "abcd"]
    asked = make_rubric({None: ("q",)})
    answered = make_answers(make_frames(rows, asked)[0], n_input_tokens=900, answered_model="eye-2").with_columns(
        latency_s=pl.Series([1.0, 2.0, 3.0, 40.0]), cost_usd=pl.Series([0.1, 0.2, None, None]),
        status=pl.Series(["answered", "answered", "answered", "timed_out"]),
    )  # fmt: skip
    again = answered.head(1).with_columns(ask_index=pl.lit(1, pl.Int64), n_attempts=pl.lit(3, pl.Int64))
    tables = all_tables(rows, asked, replies=pl.concat([answered, again]))
    found = said(tables)
    assert (found["n_replies", "answered"], found["n_replies", "timed_out"], found["n_reasked", ""]) == (4, 1, 1)
    assert (found["n_attempts", ""], found["n_input_tokens", ""], found["n_answered_by", "eye-2"]) == (7, 4500, 5)
    assert found["cost_usd", ""] == pytest.approx(0.4)
    assert found["latency_s", "p99"] == 3.0  # a timeout is no answer's latency
    assert found["n_output_tokens", ""] is None  # nobody said: not 0
    known = {row["measure"]: row["n_known"] for row in tables["health"].iter_rows(named=True)}
    assert (known["cost_usd"], known["n_output_tokens"], known["latency_s"]) == (3, 0, 4)


def test_what_filters_say_and_where_answers_were_cut_is_counted_apart(make_rubric, all_tables, make_frames, make_answers):
    rows = [{"prompt": p, "sample": p, "scores": {"q": 3}} for p in "abcdef"]
    asked = make_rubric({None: ("q",)})
    replies = make_answers(make_frames(rows, asked)[0]).with_columns(
        status=pl.Series(["answered", "answered", "answered", "filtered", "filtered", "server_error"]),
        error_detail=pl.Series([None, None, None, "blocked", "blocked", "overloaded"]),
        finish_reason=pl.Series(["stop", "max_tokens", "Model_Length", "max_tokens", None, None]),
    )
    found = said(all_tables(rows, asked, replies=replies))
    apart = {key: n for key, n in found.items() if key[0] in ("n_said", "n_filter_said", "n_cut")}
    assert apart == {
        ("n_said", "overloaded"): 1, ("n_filter_said", "blocked"): 2, ("n_cut", "max_tokens"): 1, ("n_cut", "Model_Length"): 1,
    }  # fmt: skip


def test_a_request_that_answers_for_two_checkpoints_counts_in_both(make_rubric, make_frames, run_arguments, make_answers):
    asked = make_rubric({None: ("q",)})
    judgements, scores = make_frames([{"prompt": "p", "sample": "a", "checkpoint": c, "scores": {"q": 3}} for c in "12"], asked)
    shared = judgements.with_columns(request_key=pl.lit(judgements["request_key"][0]))
    one = scores.head(1).with_columns(request_key=pl.lit(judgements["request_key"][0]))
    run = Settings(**run_arguments, min_coverage=0.0)
    tables = aggregated(shared.lazy(), one.lazy(), make_answers(shared).lazy(), {asked.id: asked}, run)
    named = {table.name: frame for table, frame in tables.items()}
    assert [said(named, checkpoint=c)["n_requests", ""] for c in "12"] == [1, 1]
    assert named["benchmark_long"].filter(category="__micro__", estimand="prompts_like_these")["estimate"].to_list() == [3, 3]


def test_where_nothing_applies_all_is_counted_and_nothing_failed(make_rubric, all_tables):
    aside = ("not_applicable", None, None, 0.0, 10.0)
    found = said(all_tables([{"prompt": p, "sample": p, "scores": {"q": aside}} for p in "abc"], make_rubric({None: ("q",)})))
    assert (found["n_judgements", ""], found["n_replies", "answered"]) == (3, 3)
    assert not [word for measure, word in found if measure == "n_without_score"]


def _of_items(rubric: Rubric) -> Rubric:
    return replace(rubric, items=Items("items", False, {}, {}))


def _of_requests(rubric: Rubric) -> Rubric:
    return replace(rubric, requests={"sense": rubric, "looks": rubric})


@pytest.mark.parametrize(
    ("kind", "n_requests"),
    [(lambda rubric: rubric, 6), (_of_items, 7), (_of_requests, 7)],
    ids=["one request", "items one by one", "several requests"],
)
@pytest.mark.parametrize("other", ["eye-2", "eye-1"], ids=["another model", "the same model"])
def test_every_request_of_a_judgement_is_counted_and_its_model_known(
    kind, n_requests, other, make_rubric, make_frames, make_answers, run_arguments
):
    """The judgements of a checkpoint that name lists have one request each, and one that they all share."""
    asked = kind(make_rubric({None: ("q",)}))
    rows = [{"prompt": p, "sample": p, "checkpoint": c, "scores": {"q": 3 + n % 2}} for c in "12" for n, p in enumerate("abcdef")]
    judgements, scores = make_frames(rows, asked)
    sent = judgements.select("checkpoint", "request_key")
    if asked.is_of_lists:
        keys = [(key[::-1], checkpoint.ljust(64, "0")) for checkpoint, key in sent.iter_rows()]
        listed = [json.dumps([{"request_key": key} for key in two]) for two in keys]
        judgements = judgements.with_columns(items_json=pl.Series(listed))
        sent = sent.with_columns(request_key=pl.Series(keys)).explode("request_key")
    replies = pl.concat([
        make_answers(sent.filter(checkpoint=c), answered_model=model, n_input_tokens=900, n_output_tokens=20, cost_usd=0.5)
        for c, model in zip("12", ("eye-1", other), strict=True)
    ])  # fmt: skip
    run = Settings(**run_arguments, min_coverage=0.0)
    tables = {t.name: f for t, f in aggregated(judgements.lazy(), scores.lazy(), replies.lazy(), {asked.id: asked}, run).items()}
    found = said(tables, checkpoint="2")
    assert (found["n_judgements", ""], found["n_requests", ""], found["n_replies", "answered"]) == (6, n_requests, n_requests)
    assert (found["n_input_tokens", ""], found["cost_usd", ""]) == (900 * n_requests, 0.5 * n_requests)
    assert found["n_answered_by", other] == n_requests
    is_differing = tables["comparisons"]["reason"].fill_null("") == "answering_model_differs"
    assert tables["comparisons"].height > 0
    assert is_differing.to_list() == [other == "eye-2"] * len(is_differing)


def test_replies_that_name_no_model_are_no_other_judges(make_rubric, make_frames, make_answers, run_arguments):
    """As recorded ones that only one of two checkpoints has: nobody said that another model answered."""
    asked = make_rubric({None: ("q",)})
    rows = [{"prompt": p, "sample": p, "checkpoint": c, "scores": {"q": 3 + n % 2}} for c in "12" for n, p in enumerate("abcdef")]
    judgements, scores = make_frames(rows, asked)
    replies = pl.concat(
        make_answers(judgements.filter(checkpoint=c), answered_model=model) for c, model in (("1", "eye-1"), ("2", None))
    )
    run = Settings(**run_arguments, min_coverage=0.0)
    tables = {t.name: f for t, f in aggregated(judgements.lazy(), scores.lazy(), replies.lazy(), {asked.id: asked}, run).items()}
    assert set(tables["comparisons"]["delta"]) == {0.0}
