"""What a night is held to: the model of the night before, also by a start after one at which another model answered."""

import asyncio
from pathlib import Path

import pytest

from schemas.benchmark.judges import Judge
from schemas.errors import JudgeChangedError
from schemas.records import ModelChange
from tasks.judge.model_pin import ModelPin, adopt, hold, model_changes
from tasks.ledger.ledger import Ledger
from tasks.ledger.open_ledgers import opened

STOP = Judge(model="eye", on_model_change="stop")
ALERT = Judge(model="eye")
ONE = Judge(model="eye", on_model_change="stop", accept_models=["march", "april"])


def adopted(ledger: Ledger, plan_id: str, judge: Judge) -> list[ModelChange]:
    """What changed, as a night notes it before it takes the new model over; afterwards nothing is found."""
    changes = model_changes(ledger, "nights", plan_id, [judge])
    adopt(ledger, "nights", plan_id, [judge])
    assert model_changes(ledger, "nights", plan_id, [judge]) == []
    return changes


@pytest.mark.parametrize(
    ("answers", "again", "is_stopped", "told"),
    [
        (["april"], STOP, True, []),
        (["march", "april"], STOP, True, []),
        (["march"], STOP, False, []),
        (["april"], ALERT, False, [ModelChange("eye", "march", "april")]),
        (["april"], ONE, False, []),
    ],
    ids=["another from the first reply on", "another in the middle", "the same", "then accepted", "then listed as one judge"],
)
def test_a_start_after_one_at_which_another_model_answered(
    tmp_path: Path, answers: list[str], again: Judge, is_stopped: bool, told: list[ModelChange]
) -> None:
    with opened(f"sqlite:///{tmp_path}/ledger.db") as ledger:

        async def asked(plan_id: str, judge: Judge, *models: str) -> list[bool]:
            pin = ModelPin(ledger, plan_id, judge)
            return [await pin.check(model) is not None for model in models]

        hold(ledger, "nights", "first", [STOP])
        assert asyncio.run(asked("first", STOP, "march")) == [False]
        assert adopted(ledger, "first", STOP) == []

        hold(ledger, "nights", "second", [STOP])
        assert asyncio.run(asked("second", STOP, *answers)) == [model != "march" for model in answers]
        for _ in range(2):
            if not is_stopped:
                hold(ledger, "nights", "second", [again])
                continue
            with pytest.raises(JudgeChangedError, match="answered as march on the nights before, and answered as april when"):
                hold(ledger, "nights", "second", [again])
        assert is_stopped or adopted(ledger, "second", again) == told
        hold(ledger, "nights", "third", [STOP])  # another night is asked: the judge may be back


@pytest.mark.parametrize(
    ("listed", "advice"),
    [
        (["january", "february", "march"], 'add "april" to its accept_models'),
        ([], 'list them: accept_models = ["march", "april"]'),
    ],
    ids=["beside a list", "without a list"],
)
def test_a_change_names_the_models_that_answered_on_each_night(tmp_path: Path, listed: list[str], advice: str) -> None:
    stops, alerts = (Judge(model="eye", on_model_change=on, accept_models=listed) for on in ("stop", "alert"))
    with opened(f"sqlite:///{tmp_path}/ledger.db") as ledger:

        def night(plan_id: str, judge: Judge, answered: str) -> JudgeChangedError | None:
            hold(ledger, "nights", plan_id, [judge])
            return asyncio.run(ModelPin(ledger, plan_id, judge).check(answered))

        for plan_id, answered in (("first", "february"), ("second", "march")) if listed else (("second", "march"),):
            assert night(plan_id, stops, answered) is None
            assert adopted(ledger, plan_id, stops) == []
        stopped = str(night("third", stops, "april"))
        assert "answered as march on the nights before, and answers as april now" in stopped
        assert advice in stopped
        assert night("third", alerts, "april") is None
        assert adopted(ledger, "third", alerts) == [ModelChange("eye", "march", "april")]
