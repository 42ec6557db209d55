"""For each expectation a fault is planted in the stored Parquet, and exactly the checks listed beside the fault fail.

All row faults are planted at once, each in a world of its own (see conftest.py), and the checks run once over the lot.
Where one fault is rightly seen by two checks, both stand in the table.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from schemas.tables.field import IMAGE_TYPE, Field
from schemas.tables.stored import JUDGEMENTS, REPLIES, REQUESTS, SAMPLES, SCORES
from tasks.validate.expectations import all_checks

HOSTILE = "<script>alert(1)</script>"
ELSEWHERE = "b" * 64
FAULTED_ROW = {"samples": 0, "judgements": 0, "requests": 0, "replies": 5, "scores": 0}
VIOLATION = "scores.status.keeps_the_rules"

# A null or a short digest in a key also leaves its row unmatched in the tables that name it.
UNMATCHED = {
    "samples.sample_id": {"judgements.sample_id.is_a_sample"},
    "requests.request_key": {
        "judgements.request_key.is_a_request", "replies.request_key.is_a_request", "scores.request_key.is_a_request",
    },
    "replies.request_key": {"requests.request_key.has_a_reply_row"},
    "scores.request_key": {"requests.request_key.has_all_its_scores"},
    "scores.dimension": {"requests.request_key.has_all_its_scores"},
}  # fmt: skip
UNKNOWN = {
    "samples.sample_id": {"samples.sample_id.has_a_judgement"},
    "judgements.sample_id": {"judgements.sample_id.is_a_sample"},
    "judgements.request_key": {"judgements.request_key.is_a_request"},
    "requests.request_key": {"requests.request_key.is_of_a_judgement", "requests.request_key.has_a_reply_row",
                             "requests.request_key.has_all_its_scores"},
    "replies.request_key": {"replies.request_key.is_a_request"},
    "scores.request_key": {"scores.request_key.is_a_request"},
}  # fmt: skip

Rows = dict[str, list[dict[str, object]]]


@dataclass(frozen=True)
class Fault:
    name: str
    plant: Callable[[Rows], object]
    seen_by: set[str]


def declared_faults() -> Iterator[Fault]:
    """One fault for each thing a field declares: null, a word outside its set, another length, outside its bounds."""
    for table in (SAMPLES, JUDGEMENTS, REQUESTS, REPLIES, SCORES):
        for field in table.fields:
            if field.arrow_type != IMAGE_TYPE:
                yield from _of_field(table.name, field)


def _of_field(table: str, field: Field) -> Iterator[Fault]:
    column = f"{table}.{field.name}"

    def put(value: object) -> Callable[[Rows], object]:
        return lambda rows: rows[table][FAULTED_ROW[table]].update({field.name: value})

    def shorten(rows: Rows) -> None:
        row = rows[table][FAULTED_ROW[table]]
        row[field.name] = str(row[field.name])[:-1]

    if not field.is_nullable:
        yield Fault(f"{column} null", put(None), {f"{column}.is_not_null"} | UNMATCHED.get(column, set()))
    if field.values is not None:
        yield Fault(f"{column} no known word", put(HOSTILE), {f"{column}.is_a_known_word"})
    if field.length is not None:
        also = UNMATCHED.get(column, set()) | UNKNOWN.get(column, set())
        yield Fault(f"{column} one character short", shorten, {f"{column}.has_its_length"} | also)
    if field.minimum is not None:
        yield Fault(f"{column} under its minimum", put(field.minimum - 1), {f"{column}.is_within_bounds"})


def change(table: str, index: int, **values: object) -> Callable[[Rows], object]:
    return lambda rows: rows[table][index].update(values)


def add(table: str, index: int, **values: object) -> Callable[[Rows], object]:
    """Append a copy of a row with other values."""
    return lambda rows: rows[table].append(rows[table][index] | values)


def add_stranger(table: str, index: int, column: str) -> Callable[[Rows], object]:
    """Append a copy of a row whose key belongs to nothing in the world, though it says which world it is in."""
    return lambda rows: rows[table].append(rows[table][index] | {column: str(rows[table][index][column])[:4] + "f" * 60})


def drop(table: str, index: int) -> Callable[[Rows], object]:
    return lambda rows: rows[table].pop(index)


def both(*plants: Callable[[Rows], object]) -> Callable[[Rows], object]:
    return lambda rows: [plant(rows) for plant in plants]


# Scores of a world: 0, 1 marks, read at ask 1; 2, 3 marks without text (words is 0); 4, 5 aspects; 6-8 refused; 9, 10 timed out.
VIOLATED = {"score": 3.0, "status": "rule_violation", "reason": "rule_violation", "is_rule_kept": False, "bound_high": 0.0}
INVENTED = {
    "score": 5.0, "status": "scored", "reason": None, "ask_index": 0, "bound_low": 5.0, "bound_high": 5.0,
    "is_in_range": True, "is_on_step": True, "is_rule_kept": True,
}  # fmt: skip
NO_REQUEST = {"status": "no_prompt", "reason": "no_prompt", "request_key": None}

FAULTS = [
    *declared_faults(),
    Fault("no fault", both(), set()),
    Fault("sample twice", add("samples", 0), {"samples.key.is_unique"}),
    Fault("a text that addresses the judge", change("samples", 0, text_flags="prompt:addresses_judge"),
          {"samples.text_flags.is_null"}),
    Fault("judgement twice", add("judgements", 0), {"judgements.key.is_unique"}),
    Fault("request twice", add("requests", 0), {"requests.key.is_unique"}),
    Fault("reply twice", add("replies", 5), {"replies.key.is_unique"}),
    Fault("score twice", add("scores", 0), {"scores.key.is_unique"}),
    Fault("judgement of no sample", add_stranger("judgements", 0, "sample_id"), {"judgements.sample_id.is_a_sample"}),
    Fault("planned without a request", change("judgements", 0, request_key=None), {"judgements.request_key.fits_status"}),
    Fault("not planned, with a request", change("judgements", 0, **NO_REQUEST | {"request_key": "0" * 64}),
          {"judgements.request_key.fits_status", "judgements.request_key.is_a_request"}),
    Fault("planned with a reason", change("judgements", 0, reason="why"), {"judgements.reason.fits_status"}),
    Fault("not planned, no reason", change("judgements", 2, reason=None), {"judgements.reason.fits_status"}),
    Fault("another model answered a re-ask", change("replies", 1, answered_model="j-2"),
          {"judgements.judge_model.is_one_model_in_a_cell"}),
    Fault("another model answered", change("replies", 2, answered_model="j-2"),
          {"judgements.judge_model.is_one_model_in_a_cell"}),
    Fault("request gone", change("judgements", 0, request_key=ELSEWHERE), {"judgements.request_key.is_a_request"}),
    Fault("nobody's request", change("judgements", 4, **NO_REQUEST), {"requests.request_key.is_of_a_judgement"}),
    Fault("reply row missing", drop("replies", 5), {"requests.request_key.has_a_reply_row"}),
    Fault("re-ask missing", drop("replies", 1), {"scores.ask_index.is_an_answered_reply"}),
    Fault("reply to nothing", add_stranger("replies", 5, "request_key"), {"replies.request_key.is_a_request"}),
    Fault("score row missing", drop("scores", 10), {"requests.request_key.has_all_its_scores"}),
    Fault("all scores of a request missing", both(drop("scores", 10), drop("scores", 9)),
          {"requests.request_key.has_all_its_scores"}),
    Fault("extra dimension", add("scores", 0, dimension=HOSTILE), {"scores.dimension.is_of_the_variant"}),
    Fault("another variant's dimension", add("scores", 4, dimension="colour"), {"scores.dimension.is_of_the_variant"}),
    Fault("score of no request", add_stranger("scores", 0, "request_key"), {"scores.request_key.is_a_request"}),
    Fault("score of another rubric", change("scores", 0, rubric_id="aspects"), {"scores.rubric_id.is_as_asked"}),
    Fault("score of another version", change("scores", 0, rubric_version="2"), {"scores.rubric_id.is_as_asked"}),
    Fault("score of another judge", change("scores", 0, judge_model="k"), {"scores.rubric_id.is_as_asked"}),
    Fault("score of another variant", change("scores", 4, variant="two"), {"scores.rubric_id.is_as_asked"}),
    Fault("invented score", change("scores", 9, **INVENTED), {"scores.ask_index.is_an_answered_reply"}),
    Fault("score of no ask", change("scores", 4, ask_index=None), {"scores.ask_index.is_an_answered_reply"}),
    Fault("no score, yet an ask", change("scores", 6, ask_index=0), {"scores.ask_index.is_an_answered_reply"}),
    Fault("unknown rubric", both(change("requests", 4, rubric_id=HOSTILE), change("scores", 9, rubric_id=HOSTILE),
                                 change("scores", 10, rubric_id=HOSTILE)), {"requests.rubric_id.is_a_known_rubric"}),
    Fault("unknown variant", both(change("requests", 4, variant="three"), change("scores", 9, variant="three"),
                                  change("scores", 10, variant="three")), {"requests.variant.is_a_known_variant"}),
    Fault("variant where none is", both(change("requests", 0, variant="one"), change("scores", 0, variant="one"),
                                        change("scores", 1, variant="one")), {"requests.variant.is_a_known_variant"}),
    Fault("facts cut off", change("requests", 1, facts_json='{"text_is_null":'), {"requests.facts_json.is_a_json_object"}),
    Fault("facts a list", change("requests", 1, facts_json="[]"), {"requests.facts_json.is_a_json_object"}),
    Fault("latency not a number", change("replies", 5, latency_s=float("nan")), {"replies.latency_s.is_within_bounds"}),
    Fault("score over the scale", change("scores", 0, score=6.0), {"scores.score.is_at_most_the_scale"}),
    Fault("score under the scale", change("scores", 0, score=-1.0), {"scores.score.is_at_least_the_scale"}),
    Fault("score not a number", change("scores", 0, score=float("nan")), {"scores.score.is_at_least_the_scale"}),
    Fault("score infinite", change("scores", 0, score=float("inf")), {"scores.score.is_at_most_the_scale"}),
    Fault("another variant's scale", change("scores", 4, score=10.5), {"scores.score.is_at_most_the_scale"}),
    Fault("score off its step", change("scores", 1, score=3.5), {"scores.score.is_on_step"}),
    Fault("score off its half step", change("scores", 0, score=2.25), {"scores.score.is_on_step"}),
    Fault("scored without a score", change("scores", 0, score=None), {"scores.score.fits_status"}),
    Fault("unreadable with a score", change("scores", 6, score=5.0), {"scores.score.fits_status"}),
    Fault("no reply with a score", change("scores", 9, score=5.0), {"scores.score.fits_status"}),
    Fault("unknown reason", change("scores", 6, reason=HOSTILE), {"scores.reason.is_a_known_word"}),
    Fault("unreadable, no reason", change("scores", 6, reason=None), {"scores.reason.fits_status"}),
    Fault("unreadable, a reply's reason", change("scores", 6, reason="timed_out"), {"scores.reason.fits_status"}),
    Fault("unreadable for a rule", change("scores", 6, reason="rule_violation"), {"scores.reason.fits_status"}),
    Fault("no reply, a reading's reason", change("scores", 9, reason="empty"), {"scores.reason.fits_status"}),
    Fault("scored with a reason", change("scores", 0, reason="empty"), {"scores.reason.fits_status"}),
    Fault("rule broken but scored", change("scores", 3, score=3.0, bound_low=3.0, bound_high=3.0),
          {"scores.status.fits_the_rules"}),
    Fault("rule kept but struck out", change("scores", 1, **VIOLATED | {"bound_low": 0.0, "bound_high": 5.0}),
          {"scores.status.fits_the_rules", VIOLATION}),
    Fault("rule violation", change("scores", 3, **VIOLATED), {VIOLATION}),
    Fault("rule violation without its reason", change("scores", 3, **VIOLATED | {"reason": None}),
          {VIOLATION, "scores.reason.fits_status"}),
    Fault("rule violation called kept", change("scores", 3, **VIOLATED | {"is_rule_kept": True}),
          {VIOLATION, "scores.is_rule_kept.agrees"}),
    Fault("rule violation bounded by the scale", change("scores", 3, **VIOLATED | {"bound_high": 5.0}),
          {VIOLATION, "scores.bound_high.is_what_is_left"}),
    Fault("range verdict false", change("scores", 0, is_in_range=False), {"scores.is_in_range.agrees"}),
    Fault("range verdict null", change("scores", 0, is_in_range=None), {"scores.is_in_range.agrees"}),
    Fault("range verdict of nothing", change("scores", 6, is_in_range=True), {"scores.is_in_range.agrees"}),
    Fault("step verdict false", change("scores", 0, is_on_step=False), {"scores.is_on_step.agrees"}),
    Fault("step verdict of nothing", change("scores", 6, is_on_step=True), {"scores.is_on_step.agrees"}),
    Fault("rule verdict false", change("scores", 0, is_rule_kept=False), {"scores.is_rule_kept.agrees"}),
    Fault("rule verdict of nothing", change("scores", 6, is_rule_kept=False), {"scores.is_rule_kept.agrees"}),
    Fault("lower bound off the score", change("scores", 0, bound_low=2.0), {"scores.bound_low.is_what_is_left"}),
    Fault("upper bound off the score", change("scores", 0, bound_high=5.0), {"scores.bound_high.is_what_is_left"}),
    Fault("lower bound off the scale", change("scores", 6, bound_low=-1.0), {"scores.bound_low.is_what_is_left"}),
    Fault("upper bound off the scale", change("scores", 6, bound_high=11.0), {"scores.bound_high.is_what_is_left"}),
    Fault("overall over its aspects", change("scores", 4, score=9.0, bound_low=9.0, bound_high=9.0),
          {"scores.score.is_within_its_aspects"}),
    Fault("overall under its aspects", change("scores", 4, score=1.0, bound_low=1.0, bound_high=1.0),
          {"scores.score.is_within_its_aspects"}),
    Fault("sample not accounted for", drop("judgements", 2), {"samples.sample_id.has_a_judgement"}),
]  # fmt: skip

EMPTY_TABLES = ("samples", "judgements", "requests", "replies", "scores")
OF_TABLES = {*(f"{table}.table.is_not_empty" for table in EMPTY_TABLES), "scores.score.is_not_all_null"}
OF_TABLES |= {"scores.reason.saw_its_input"}  # a share of replies, more than a world holds: test_checks.py


@pytest.fixture(scope="session")
def seen(lakes, tmp_path_factory) -> dict[int, set[str]]:
    """Which checks failed in which world, after all faults were planted at once. World n holds FAULTS[n]."""
    worlds = [lakes.world(number) for number in range(len(FAULTS))]
    lake = lakes.write(tmp_path_factory.mktemp("faults"), lakes.together(worlds))
    for fault, rows in zip(FAULTS, worlds, strict=True):
        fault.plant(rows)
    for table, rows in lakes.together(worlds).items():
        lakes.plant(lake, table, rows)
    result = lakes.check(lake)
    assert not result.quarantine.is_duplicated().any(), "rows that share a key are one"
    found: dict[int, set[str]] = {number: set() for number in range(len(FAULTS))}
    for row in result.quarantine.iter_rows(named=True):
        number = lakes.world_of(json.loads(row["row_key_json"]))
        if number is None:  # the key is the null: its check says whose it is
            number = next(n for n, fault in enumerate(FAULTS) if row["check"] in fault.seen_by and fault.name.endswith("null"))
        found[number].add(row["check"])
    return found


@pytest.mark.parametrize("number", range(len(FAULTS)), ids=[fault.name for fault in FAULTS])
def test_a_fault_is_seen_by_its_checks_and_no_other(seen, number):
    assert seen[number] == FAULTS[number].seen_by


def test_every_check_has_a_fault_that_it_sees(lakes):
    planted = set().union(*(fault.seen_by for fault in FAULTS)) | OF_TABLES
    assert planted == {check.name for check in all_checks(lakes.rubrics)}


@pytest.mark.parametrize("table", EMPTY_TABLES)
def test_an_empty_table_fails_one_check_and_blocks(lakes, tmp_path, table):
    lake = lakes.write(tmp_path, lakes.together([lakes.world(0)]))
    lakes.plant(lake, table, [])
    result = lakes.check(lake)
    assert result.checks.filter(status="failed")["check"].to_list() == [f"{table}.table.is_not_empty"]
    assert result.is_blocked


def test_scores_all_null_fail_one_check_and_do_not_block(lakes, tmp_path):
    """Pictures that the judge refuses: every cell must still be published, null, with its reason."""
    rows = lakes.together([lakes.world(0)])
    lake = lakes.write(tmp_path, rows)
    for row in rows["scores"][:6]:
        high = 5.0 if row["rubric_id"] == "marks" else 10.0
        if (row["request_key"], row["dimension"]) == (rows["scores"][3]["request_key"], "words"):
            high = 0.0  # the rule of an answer without text
        row |= {
            "score": None, "status": "unreadable", "reason": "refusal", "ask_index": None, "bound_low": 0.0, "bound_high": high,
            "is_in_range": None, "is_on_step": None, "is_rule_kept": None,
        }  # fmt: skip
    lakes.plant(lake, "scores", rows["scores"])
    result = lakes.check(lake)
    assert result.checks.filter(status="failed")["check"].to_list() == ["scores.score.is_not_all_null"]
    assert not result.is_blocked
    assert result.sentences[0].startswith("warning: scores.score.is_not_all_null failed for 11 of 11 rows of scores")
