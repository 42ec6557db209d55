"""Fixtures every room shares: those of tests/support. A room's own stand in its folder."""

import os
import re
import time
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest

pytest_plugins = [
    f"tests.support.{name}"
    for name in ("installed", "judging", "ledgers", "servers.prefect_server", "servers.provider", "small_lake")
]

# A clock never fails a test (machines are busy), and what fails in CI fails there again.
hypothesis.settings.register_profile("salon", deadline=None, derandomize=bool(os.environ.get("CI")))
hypothesis.settings.load_profile("salon")


_OF_WHOLE_RUNS = ("flows/runs", "flows/nights", "flows/prefect", "flows/verification", "torture")
"""Rooms whose tests make whole runs: each is `slow`, as are modules that say so of themselves. `make test` leaves these out."""


_N_SECONDS_AT_MOST = 60 * float(os.environ.get("SALON_TEST_MINUTES", "inf"))
_BEGAN = time.monotonic()
_NOT_BEGUN = "not begun: the minutes of SALON_TEST_MINUTES are over"


def pytest_configure(config: pytest.Config) -> None:
    os.environ.setdefault("DO_NOT_TRACK", "1")
    config.addinivalue_line("markers", "salon_data: reads real data from the folder named by SALON_DATA")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Modules with long tests first, or one process would end long after the others; real data left out where there is none.

    Before them all, in one process, those that a Prefect server shows: to start one takes ten seconds of CPU.
    """
    here = Path(__file__).parent
    for item in items:
        if item.path.relative_to(here).as_posix().startswith(_OF_WHOLE_RUNS):
            item.add_marker("slow")
    modules = {item.path for item in items if item.get_closest_marker("slow")}
    shown = {item.path for item in items if "prefect_server" in getattr(item, "fixturenames", ())}
    items.sort(key=lambda item: (item.path not in shown, item.path not in modules))
    if os.environ.get("SALON_DATA"):
        return
    wanting = [item for item in items if "needs_salon_data" in getattr(item, "fixturenames", ())]
    if wanting:
        config.hook.pytest_deselected(items=wanting)
        items[:] = [item for item in items if item not in wanting]
        config.stash[_LEFT_OUT] = len(wanting)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """On a slow machine fewer tests run, and are counted: CI is cut off at its time, and then none of them would count."""
    if time.monotonic() - _BEGAN > _N_SECONDS_AT_MOST:
        pytest.skip(_NOT_BEGUN)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """For `--dist loadscope`: a module's tests in one process, and in one process all modules that name the server's fixtures."""
    if config.getoption("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    @cache
    def is_shown(module: str) -> bool:
        return re.search(r"\bprefect_(api\b|server: )", (config.rootpath / module).read_text(encoding="utf-8")) is not None

    class OneServer(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "one Prefect server" if is_shown(nodeid.partition("::")[0]) else super()._split_scope(nodeid)

    return OneServer(config, log)


_LEFT_OUT = pytest.StashKey[int]()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    n_left_out = config.stash.get(_LEFT_OUT, 0)
    if n_left_out:
        terminalreporter.write_line(f"SALON_DATA is not set: {n_left_out} tests on real data were left out.", yellow=True)
    n_not_begun = sum(_NOT_BEGUN in str(report.longrepr) for report in terminalreporter.getreports("skipped"))
    if n_not_begun:
        terminalreporter.write_line(f"{n_not_begun} tests were {_NOT_BEGUN}.", yellow=True)


@pytest.fixture(scope="session")
def needs_salon_data() -> Path:
    """The folder of real data; asking for it leaves the test out where SALON_DATA is not set."""
    return Path(os.environ["SALON_DATA"])
