"""How a command ends: 1 is a gate's alone, what nobody foresaw is 70 with one sentence and a file, a full disk is 3."""

import os
import select
import signal
import subprocess
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from flows import cli
from tests.support.rights import without_roots_rights

ROOT = Path(__file__).parents[3]
SECRET = "sk-canary-0123456789"


def _salon(
    folder: Path, *arguments: str, stdout: int | None = subprocess.PIPE, before: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    """`salon ARGUMENTS` in a process; libraries in `before` come before those that are installed."""
    environment = os.environ | {"TMPDIR": str(folder), "PYTHONPATH": f"{before or folder}:{ROOT}"}
    command = [sys.executable, "-m", "flows", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=300, check=False
    )


@pytest.mark.parametrize(
    ("library", "arguments"), [("typer", ["--version"]), ("PIL", ["demo"])], ids=["at the start", "in a command"]
)
def test_a_broken_library_is_one_sentence_and_70(tmp_path: Path, library: str, arguments: list[str]) -> None:
    """The traceback stands in a file for its owner alone, and holds no secret."""
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / f"{library}.py").write_text(f"raise RuntimeError('this build of {library} is broken, {SECRET}')")
    ended = _salon(tmp_path, *arguments, before=broken)
    assert ended.returncode == 70
    (sentence,) = ended.stderr.splitlines()
    (details,) = tmp_path.glob("salon-fault-*.txt")
    assert sentence.startswith(f"salon: internal error in Salon (RuntimeError: this build of {library} is broken")
    assert str(details) in sentence
    assert "report" in sentence
    assert "Traceback" in details.read_text()
    assert details.stat().st_mode & 0o077 == 0
    assert SECRET not in sentence + details.read_text()


@pytest.mark.parametrize("command", ["rubrics list", "parse --rubric alignment --jsonl replies.jsonl"])
def test_a_full_disk_under_the_output_is_a_store_that_is_down(tmp_path: Path, command: str) -> None:
    (tmp_path / "replies.jsonl").write_text('{"raw": "Score: 5", "context": {}}\n')
    with Path("/dev/full").open("w") as full:
        ended = _salon(tmp_path, *command.split(), stdout=full.fileno())
    assert (ended.returncode, len(ended.stderr.splitlines())) == (3, 1)
    assert "free space" in ended.stderr
    assert "cannot be read" not in ended.stderr


def test_a_command_started_in_a_folder_that_is_gone_says_so(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    into = ["sh", "-c", 'cd gone && rmdir ../gone && exec "$@"', "sh", sys.executable, "-m", "flows", "doctor"]
    unnamed = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    ended = subprocess.run(
        into, cwd=tmp_path, env=unnamed | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=300, check=False
    )
    assert (ended.returncode, len(ended.stderr.splitlines())) == (2, 1), ended.stderr
    assert "the folder that this was started in is gone" in ended.stderr


@pytest.mark.parametrize("command", [("rubrics", "lint"), ("verify",), ("new", "b.toml", "--from")])
def test_a_name_that_no_file_can_have_is_no_fault_of_salons(tmp_path: Path, command: tuple[str, ...]) -> None:
    ended = _salon(tmp_path, *command, "A" * 300)
    assert (ended.returncode, "of 255 bytes at most" in ended.stderr) == (2, True), ended.stderr
    assert len(ended.stderr) < 300


def test_a_file_of_replies_that_does_not_exist_is_named(tmp_path: Path) -> None:
    ended = _salon(tmp_path, "parse", "--rubric", "alignment", "--jsonl", "none.jsonl")
    assert (ended.returncode, "none.jsonl: cannot be read: No such file" in ended.stderr) == (2, True)


@pytest.mark.parametrize("command", ["table", "open", "verify", "gc"])
def test_a_lake_that_one_may_not_enter_is_named_and_is_no_fault_of_salons(tmp_path: Path, command: str) -> None:
    published = tmp_path / "lake" / "publish" / "v1"
    published.mkdir(parents=True)
    (tmp_path / "lake").chmod(0)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "flows", command, "--lake", str(tmp_path / "lake")],
            cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False, preexec_fn=without_roots_rights,
        )  # fmt: skip
    finally:
        (tmp_path / "lake").chmod(0o700)
    assert (ended.returncode, len(ended.stderr.splitlines())) == (3, 1)
    assert f"Permission denied ({tmp_path / 'lake'}" in ended.stderr
    assert "get the permission, or run as its owner" in ended.stderr


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGHUP], ids=lambda told: told.name)
def test_told_to_stop_before_a_run_is_under_way_a_command_says_so(tmp_path: Path, told: signal.Signals) -> None:
    file = tmp_path / "b.toml"
    os.mkfifo(file)  # it is read for as long as nobody writes
    command = [sys.executable, "-m", "flows", "plan", str(file)]
    before = signal.signal(told, signal.SIG_DFL)  # under nohup a process that is started ignores it too
    try:
        started = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(told, before)
    with file.open("wb"):  # which waits for its reader
        started.send_signal(told)
        _, said = started.communicate(timeout=60)
    assert (started.returncode, said) == (
        143,
        "salon: stopped, nothing is in flight; run the same command again to continue\n",
    )


def test_another_encoding_shows_what_it_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("PYTHONUTF8", "0"), ("PYTHONCOERCECLOCALE", "0"), ("LC_ALL", "C")):
        monkeypatch.setenv(name, value)
    ended = _salon(tmp_path, "rubrics", "show", "caption")
    assert ended.returncode == 0, ended.stderr
    assert "within \\xb130% of" in ended.stdout


@pytest.mark.parametrize(
    ("command", "name", "value", "told"),
    [
        ("doctor", "PREFECT_API_REQUEST_TIMEOUT", "ten", "request_timeout: Input should be a valid number"),
        ("worker", "PREFECT_API_REQUEST_TIMEOUT", "ten", "request_timeout: Input should be a valid number"),
        ("deploy", "PREFECT_API_REQUEST_TIMEOUT", "ten", "request_timeout: Input should be a valid number"),
        ("doctor", "PREFECT_API_URL", "http://[::1", "Invalid IPv6 URL"),
        ("doctor", "", "", "from prefect.toml: invalid TOML"),
    ],
)
def test_a_setting_of_prefect_that_is_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, name: str, value: str, told: str
) -> None:
    if name:
        monkeypatch.setenv(name, value)
    else:
        (tmp_path / "prefect.toml").write_text("[")
    (tmp_path / "b.toml").touch()
    ended = _salon(tmp_path, command, *(["b.toml"] if command == "deploy" else []))
    assert (ended.returncode, "internal error" in ended.stderr) == (2, False), ended.stderr
    sentence = ended.stderr.splitlines()[-1]
    assert told in sentence
    assert name in sentence


@pytest.mark.parametrize(
    ("name", "value"), [("AWS_ENDPOINT_URL", "minio:9000"), ("SALON_STORE_WAIT_S", "30s"), ("SALON_STORE_WAIT_S", "nan")]
)
def test_a_setting_of_the_environment_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    for each, said in (("AWS_ENDPOINT_URL", "http://127.0.0.1:9"), ("SALON_CACHE", str(tmp_path / "cache")), (name, value)):
        monkeypatch.setenv(each, said)
    ended = _salon(tmp_path, "table", "--lake", "s3://some-bucket/lake")
    assert ended.returncode == 2, ended.stderr
    assert f"the environment variable {name} = '{value}' is no" in ended.stderr


@pytest.mark.parametrize("said", [{}, {"NO_PROXY": "intern.example"}, {"no_proxy": "intern.example", "NO_PROXY": "other"}])
def test_no_proxy_of_the_environment_stands_before_loopback(monkeypatch: pytest.MonkeyPatch, said: dict[str, str]) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"HTTPS_PROXY": "http://127.0.0.1:9"} | said).items():
        monkeypatch.setenv(name, value)
    cli._leave_loopback_to_itself()
    assert all(urllib.request.proxy_bypass(host) for host in ("127.0.0.1:4200", "localhost"))
    assert bool(urllib.request.proxy_bypass("intern.example")) == bool(said)
    assert not urllib.request.proxy_bypass("api.example")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "salon-demo").write_text("a file in the way")
    for command in ("demo", "serve"):
        ended = _salon(tmp_path, command, "--folder", "salon-demo")
        assert ended.returncode == 2, ended.stderr
        assert "--folder" in ended.stderr
        assert "name a folder that you can write to" in ended.stderr


def test_a_reader_that_leaves_is_no_failure(tmp_path: Path) -> None:
    """Also of the help, which is printed before any command runs."""
    reader, writer = os.pipe()
    os.close(reader)
    ended = _salon(tmp_path, "--help", stdout=writer)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_what_is_to_be_written_at_once_is(tmp_path: Path) -> None:
    """As python -u and the container have it: a program that asks line by line waits for each answer."""
    command = [sys.executable, "-m", "flows", "parse", "--rubric", "alignment", "--jsonl", "-"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        assert started.stdin is not None
        assert started.stdout is not None
        started.stdin.write(b'{"raw": "Score: 3"}\n')
        started.stdin.flush()
        is_answered, _, _ = select.select([started.stdout], [], [], 60)
        started.stdin.close()
        assert is_answered


def test_lines_without_end_are_read_until_nobody_reads_the_answers(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "flows", "parse", "--rubric", "alignment", "--jsonl", "-"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdin=subprocess.PIPE, stdout=writer) as started:
        os.close(writer)
        assert started.stdin is not None
        with pytest.raises(BrokenPipeError):
            started.stdin.writelines([b'{"raw": "Score: 3"}\n'] * 1_000_000)
        with suppress(BrokenPipeError):
            started.stdin.close()
        assert started.wait(timeout=60) == 0
