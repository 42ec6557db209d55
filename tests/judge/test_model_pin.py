"""What a night is held to: the model of the night before, also by a start after one at which another model answered."""

import asyncio
from pathlib import Path

import pytest

from schemas.benchmark.judges import Judge
from schemas.errors import JudgeChangedError
from tasks.judge.model_pin import ModelChange, ModelPin, adopt, hold
from tasks.ledger.open_ledgers import opened

STOP = Judge(model="eye", on_model_change="stop")
ALERT = Judge(model="eye")
ONE = Judge(model="eye", on_model_change="stop", accept_models=["march", "april"])


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
        assert adopt(ledger, "nights", "first", [STOP]) == []

        hold(ledger, "nights", "second", [STOP])
        assert asyncio.run(asked("second", STOP, *answers)) == [model != "march" for model in answers]
        for _ in range(2):
            if not is_stopped:
                hold(ledger, "nights", "second", [again])
                continue
            with pytest.raises(JudgeChangedError, match="answered as march on the nights before, and answered as april when"):
                hold(ledger, "nights", "second", [again])
        assert is_stopped or adopt(ledger, "nights", "second", [again]) == told
        hold(ledger, "nights", "third", [STOP])  # another night is asked: the judge may be back
