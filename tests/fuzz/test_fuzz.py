"""Every reader of input against mutated seeds, briefly; `make fuzz` is the long form. What it found: test_mutated_input.py."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.mutating import Step, mutated
from tests.fuzz.stored import SPOILED, surface
from tests.fuzz.surface import fault_of
from tests.fuzz.surfaces import SURFACES

pytestmark = pytest.mark.slow

N_EXAMPLES = 120
NUMBER = st.integers(0, 2**20 - 1)
STEPS = st.lists(st.tuples(NUMBER, NUMBER, NUMBER, NUMBER), min_size=1, max_size=4)


@pytest.mark.parametrize("name", [*SURFACES, *SPOILED])
def test_no_input_ends_in_another_error_than_salons_own(name: str, tmp_path: Path) -> None:
    attacked_one = surface(name)
    for seed in attacked_one.seeds:
        assert fault_of(attacked_one, attacked_one.mend(seed), tmp_path) is None

    @settings(
        max_examples=max(5, N_EXAMPLES // attacked_one.costs),
        derandomize=True,
        database=None,
        suppress_health_check=[*HealthCheck],
    )
    @given(st.integers(0, 255), STEPS)
    def attacked(which: int, steps: list[Step]) -> None:
        error = fault_of(attacked_one, attacked_one.mend(mutated(attacked_one.seeds, which, steps)), tmp_path)
        assert error is None, repr(error)

    attacked()
