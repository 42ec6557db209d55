"""What is installed and what is run: pinned with hashes, and nothing that turns data into code. Read from the files."""

import ast
import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TypeVar

import pytest
from prefect import Flow
from prefect.cache_policies import NO_CACHE

from flows.executors.base import StageTask
from flows.executors.prefect_threads import prefect_task

Found = TypeVar("Found")
ROOT = Path(__file__).parents[1]
OURS = ("schemas", "rubrics", "tasks", "flows", "demo", "salon", "benchmarks", "infra", "docs")
LOCKS = ("run", "dev", "tool")
# Modules that load objects, which runs code; functions that run text or hand it to a shell.
FORBIDDEN_MODULES = {"pickle", "_pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "jsonpickle", "imp"}
FORBIDDEN_CALLS = {
    "eval", "exec", "compile", "__import__", "os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput",
    "asyncio.create_subprocess_shell", "yaml.load", "yaml.unsafe_load", "yaml.full_load", "numpy.load", "np.load", "torch.load",
    "tempfile.mktemp",
}  # fmt: skip
FORBIDDEN_ARGUMENTS = {"shell": True, "allow_pickle": True, "serializer": "pickle", "result_serializer": "pickle"}


def sources() -> list[Path]:
    return [path for folder in OURS for path in sorted((ROOT / folder).rglob("*.py"))]


def findings(tree: ast.AST) -> Iterator[str]:
    """What is forbidden in a module, with its line. A name that a library gave is no builtin."""
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    borrowed = {alias.asname or alias.name for node in imports for alias in node.names}
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            if name.split(".")[0] in FORBIDDEN_MODULES or name in FORBIDDEN_CALLS:
                yield f"line {node.lineno}: imports {name}"
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if (called in FORBIDDEN_CALLS and called not in borrowed) or called.rpartition(".")[2] in {
                "extractall",
                "read_pickle",
                "to_pickle",
            }:
                yield f"line {node.lineno}: calls {called}"
            for keyword in node.keywords:
                value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
                if keyword.arg in FORBIDDEN_ARGUMENTS and value == FORBIDDEN_ARGUMENTS[keyword.arg]:
                    yield f"line {node.lineno}: {keyword.arg}={value!r}"


def test_no_source_of_ours_turns_data_into_code() -> None:
    found = {str(path.relative_to(ROOT)): list(findings(ast.parse(path.read_bytes()))) for path in sources()}
    assert len(found) > 150
    assert {path: said for path, said in found.items() if said} == {}


@pytest.mark.parametrize(
    "text",
    [
        "import pickle", "from pickle import loads", "from os import system", "import os\nos.system('ls')", "eval('1')",
        "yaml.load(text)", "subprocess.run('ls', shell=True)", "np.load(path, allow_pickle=True)", "frame.to_pickle(path)",
        "tar.extractall(folder)", "task(result_serializer='pickle')", "import joblib.memory",
    ],
)  # fmt: skip
def test_the_search_finds_what_it_is_for(text: str) -> None:
    assert list(findings(ast.parse(text)))


def ours(kind: type[Found], *names: str) -> list[Found]:
    """What of a kind stands in these modules."""
    return [thing for name in names for thing in vars(import_module(name)).values() if isinstance(thing, kind)]


def test_prefect_keeps_no_result_of_ours() -> None:
    """A result that Prefect kept would be pickled, into a place and for a time of its own."""
    tasks = [prefect_task(task) for task in ours(StageTask, "flows.run.tasks", "flows.backfill", "flows.agreement")]
    assert len(tasks) >= 13
    assert [task.name for task in tasks if task.persist_result or task.cache_policy != NO_CACHE] == []
    flows = ours(Flow, "flows.prefect_flows")
    assert len(flows) == 4
    assert [flow.name for flow in flows if flow.persist_result or flow.result_serializer == "pickle"] == []


def test_what_prefect_would_keep_would_be_json() -> None:
    import_module("flows")  # sets it, where the environment does not
    from prefect.settings import Settings

    results = Settings().results
    assert results.persist_by_default is False
    assert results.default_serializer == "json"


def requirements(lock: str) -> dict[str, tuple[str, int]]:
    """Distribution -> (version, number of hashes) of a lock file."""
    text = (ROOT / "requirements" / f"{lock}.txt").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    found = {}
    for line in lines:
        pinned = re.match(r"([A-Za-z0-9._-]+)(?:\[[\w,-]+\])?==([\w.+!-]+)\s", line)
        assert pinned, f"requirements/{lock}.txt: not pinned: {line[:80]}"
        found[pinned[1].lower().replace("_", "-")] = (pinned[2], len(re.findall(r"--hash=sha256:[0-9a-f]{64}\b", line)))
    return found


@pytest.mark.parametrize("lock", LOCKS)
def test_every_requirement_is_pinned_with_hashes(lock: str) -> None:
    found = requirements(lock)
    assert found
    assert [name for name, (_, n_hashes) in found.items() if n_hashes == 0] == []
    assert "://" not in (ROOT / "requirements" / f"{lock}.txt").read_text(), "a lock names no address: it is the installer's"


def test_the_locks_hold_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    asked = {re.split(r"[\[<>=~! ]", line)[0].lower() for line in project["project"]["dependencies"]}
    assert asked - set(requirements("run")) == set()
    run, dev = requirements("run"), requirements("dev")
    assert {name for name in run.keys() & dev.keys() if run[name][0] != dev[name][0]} == set()


def installs() -> list[tuple[str, str]]:
    """(file, command) for every command that installs, in what sets Salon up."""
    files = [ROOT / "Makefile", *(ROOT / ".ci").glob("*"), *ROOT.rglob("Dockerfile*"), *ROOT.glob("infra/**/*.sh")]
    found = []
    for file in (file for file in files if file.is_file() and ".venv" not in file.parts):
        lines = file.read_text().replace("\\\n", " ").splitlines()
        commands = (part for line in lines if not line.lstrip().startswith("#") for part in re.split(r"&&|;(?!.*')", line))
        found += [
            (file.name, " ".join(part.split()))
            for part in commands
            if re.search(r"\bpip(?:3)?\s+(?:install|sync|download)\b", part)
        ]
    return found


def test_every_install_requires_hashes() -> None:
    """But for Salon itself, which is installed from the folder it stands in, and brings nothing with it."""
    found = installs()
    assert len(found) >= 4
    without = [(file, said) for file, said in found if "--require-hashes" not in said]
    assert [said for said in without if not re.search(r"--no-deps .*(?:-e )?(?:\.|/[\w/]+)\Z", said[1])] == []
