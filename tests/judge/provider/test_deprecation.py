"""A judge that is about to be retired is named; an endpoint that says nothing of it is not asked twice."""

from datetime import date

import pytest

from demo.running import running_judge
from schemas.benchmark.judges import Judge
from tasks.judge.model_pin import deprecation_warning

TODAY = date(2026, 11, 21)
SCENARIO = """
[[models]]
id = "retiring"
usd_per_million_input_tokens = 1
usd_per_million_output_tokens = 1
shutdown_date = 2027-01-15
[[models]]
id = "staying"
usd_per_million_input_tokens = 1
usd_per_million_output_tokens = 1
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    path = tmp_path_factory.mktemp("scenario") / "models.toml"
    path.write_text(SCENARIO)
    with running_judge(path) as url:
        yield url


@pytest.mark.parametrize(
    ("today", "says"),
    [
        pytest.param(TODAY, "on 2027-01-15, in 55 days", id="55 days before"),
        pytest.param(date(2026, 11, 15), None, id="61 days before"),
        pytest.param(date(2026, 11, 16), "in 60 days", id="60 days before"),
        pytest.param(date(2027, 1, 14), "tomorrow", id="the day before"),
        pytest.param(date(2027, 1, 15), "today", id="the day"),
        pytest.param(date(2027, 1, 20), "5 days ago", id="after"),
    ],
)
def test_a_judge_that_ends_soon_is_named(url, today, says):
    warning = deprecation_warning(Judge(model="retiring", base_url=url), today)
    assert (warning is None) if says is None else (says in warning and "judge retiring" in warning)


@pytest.mark.parametrize("model", ["staying", "unheard-of"])
def test_nothing_is_said_of_a_judge_without_an_end(url, model):
    assert deprecation_warning(Judge(model=model, base_url=url), TODAY) is None


def test_an_endpoint_that_is_not_there_is_no_error(provider):
    assert deprecation_warning(Judge(model="m", base_url="http://127.0.0.1:9/v1"), TODAY) is None
    assert deprecation_warning(Judge(model="m", base_url=provider.url), TODAY) is None  # 404: it has no list of models
