"""A judge that this machine serves: started, waited for, watched and ended, as a process of its own; and what names it."""

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.commands.judge_server import _Telling
from flows.observability.terminal import result_console
from flows.run.context import open_run
from flows.run.judge_servers import serving
from flows.run.programs import free_port
from schemas.benchmark.judges import Judge
from schemas.errors import BenchmarkFileError, InputError, StoppedError
from tasks.judge.local_identity import weights_digest
from tasks.publish.reading import current
from tasks.stopping import STOP, heeding_sigterm
from tests.flows.flow_support import Said
from tests.support.night_world import World, write_benchmark
from tests.support.processes import mentioning

RUN = ("--run-date", "2026-03-04")
SALON = str(Path(sys.executable).parent / "salon")
PROVIDER = [sys.executable, "-m", "demo.server", "--port", "{port}"]
DYING = """
import sys
from demo import server
made = server.completion
left = [int(sys.argv[2])]
def completion(body):
    left[0] -= 1
    if left[0] < 0:
        print("CUDA out of memory", flush=True); server.os._exit(9)
    return made(body)
server.completion = completion
sys.argv[1:] = ["--port", sys.argv[1]]
server.main()
"""
SLOW_TO_END = """
import http.server, os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("unloading", flush=True), time.sleep(3), os._exit(0)))
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
OF_TLS = """
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("TLS only", flush=True)
while True:
    connection, _ = listener.accept()
    connection.recv(1000)
    connection.sendall(bytes([21, 3, 3, 0, 2, 2, 10]) + b"\\r\\n")
    connection.close()
"""
SILENT = "import time; print('loading weights', flush=True); time.sleep(600)"


def benchmark(folder: Path, command: list[str], *more: str, port: int = 0) -> Path:
    for number in (0, 1):
        World(folder).make(number)
    url = f"http://127.0.0.1:{port or free_port(0)}/v1"
    server = "\n".join(["[judges.server]", f"command = {json.dumps(command)}", 'health = "/v1/models"', "with_run = true", *more])
    return write_benchmark(folder, url, judge=server)


def port_of(file: Path) -> str:
    return file.read_text().partition("127.0.0.1:")[2].partition("/v1")[0]


def until(happened: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def test_a_run_starts_its_judge_and_ends_it(tmp_path: Path, salon: Callable[..., Said]) -> None:
    version = f"version = {json.dumps([sys.executable, '-c', 'print(); print(7.1)'])}"
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "model.safetensors").write_bytes(b"weights")
    file = benchmark(tmp_path, PROVIDER, version, 'weights = "w"')
    said = salon("run", file, *RUN)
    assert said.code in (0, 1), said.err
    home = tmp_path / "lake" / "judge-servers"
    (record,) = (json.loads(path.read_text()) for path in home.glob("*.json") if path.name != "weights.json")
    assert not Path(f"/proc/{record['process']}").exists()
    assert Path(record["log"]).is_file()
    digest = weights_digest(tmp_path / "w", tmp_path, tmp_path)
    assert record["deployment"].startswith(f"weights sha256 {digest}; engine 7.1; settings sha256 ")
    (judge,) = current(tmp_path / "lake").provenance()["settings"]["judges"]
    assert judge["deployment"] == record["deployment"]
    assert "server" not in judge, "a command may hold a key"

    again = salon("run", file, *RUN)
    assert again.code == said.code
    assert home.joinpath(f"{record['judge']}.json").stat().st_mtime_ns == max(
        path.stat().st_mtime_ns for path in home.glob("*.json") if path.name != "weights.json"
    )
    assert json.loads(home.joinpath(f"{record['judge']}.json").read_text()) == record, "nothing was left to ask: none was started"

    (tmp_path / "w" / "model.safetensors").write_bytes(b"retrained")
    assert " 0 stored" not in salon("plan", file).out
    assert open_run(file).benchmark.judges[0].deployment != record["deployment"], "other weights are another judge"


def test_a_server_that_dies_in_mid_run_ends_it_with_its_words_and_what_was_bought_stays(
    tmp_path: Path, salon: Callable[..., Said]
) -> None:
    (tmp_path / "dying.py").write_text(DYING)
    file = benchmark(tmp_path, [sys.executable, "dying.py", "{port}", "9"])
    said = salon("run", file, *RUN)
    assert said.code == 3
    assert "exited unexpectedly (code 9)" in said.err
    assert "CUDA out of memory" in said.err
    assert not mentioning(str(tmp_path))
    left = json.loads(salon("plan", file, "--json").out)["rubrics"][0]
    assert left["n_stored"] == 9, "what was answered is stored"


def counted(folder: Path) -> list[str]:
    """PROVIDER, each of whose starts is a line of `starts`."""
    return ["sh", "-c", f"echo started >> '{folder}/starts'; exec {shlex.join(PROVIDER)}"]


@pytest.mark.parametrize("runner", ["local", "processes"])
def test_a_backfill_starts_its_judge_once_for_all_checkpoints(runner: str, tmp_path: Path, salon: Callable[..., Said]) -> None:
    file = benchmark(tmp_path, counted(tmp_path))
    said = salon("backfill", file, "--all", "--runner", runner, *RUN)
    assert said.code == 0, said.err
    assert (tmp_path / "starts").read_text() == "started\n"
    assert json.loads(salon("plan", file, "--json").out)["rubrics"][0]["n_to_ask"] == 0
    assert not mentioning(f"--port\0{port_of(file)}")


def test_a_server_that_dies_in_a_backfill_ends_it_with_its_words(tmp_path: Path, salon: Callable[..., Said]) -> None:
    (tmp_path / "dying.py").write_text(DYING)
    file = benchmark(tmp_path, [sys.executable, "dying.py", "{port}", "9"])
    said = salon("backfill", file, "--all", *RUN)
    assert said.code == 3, "it was not told to stop"
    assert "exited unexpectedly (code 9)" in said.err
    assert "CUDA out of memory" in said.err
    assert json.loads(salon("plan", file, "--json").out)["rubrics"][0]["n_stored"] == 9


def test_a_run_with_looks_and_an_exam_starts_its_judge_once(tmp_path: Path, salon: Callable[..., Said]) -> None:
    file = benchmark(tmp_path, counted(tmp_path))
    more = "[statistics]\nmin_paired_prompts = 2\n[statistics.stopping]\nlooks = [0.5, 1.0]\n[exam]\nshare = 0.2\n"
    file.write_text(file.read_text() + more)
    said = salon("run", file, *RUN)
    assert said.code in (0, 1), said.err
    assert "after round 1 of 2" in said.err
    assert (tmp_path / "starts").read_text() == "started\n"


@pytest.mark.parametrize(
    ("script", "more", "log"),
    [(SILENT, [], "loading weights"), (OF_TLS, ["{port}"], "TLS only")],
    ids=["never", "what is no HTTP"],
)
def test_a_server_that_does_not_answer_is_told_with_its_log(
    script: str, more: list[str], log: str, tmp_path: Path, salon: Callable[..., Said]
) -> None:
    file = benchmark(tmp_path, [sys.executable, "-c", script, *more, str(tmp_path)], "start_limit_s = 1.5")
    said = salon("run", file, *RUN)
    assert said.code == 3
    assert "was not ready after" in said.err
    assert log in said.err
    assert not mentioning(str(tmp_path))


@pytest.mark.parametrize(
    ("command", "says"), [(["no-such-engine"], "no-such-engine"), ([sys.executable, "-c", "exit(5)"], "code 5")]
)
def test_a_server_that_cannot_be_started(command: list[str], says: str, tmp_path: Path, salon: Callable[..., Said]) -> None:
    said = salon("judge-server", benchmark(tmp_path, command))
    assert said.code == 3
    assert says in said.err


def test_a_program_that_is_not_there_is_named_where_nothing_ties_it_to_the_run(
    tmp_path: Path, salon: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine without setpriv: starting it is what fails then."""
    file = benchmark(tmp_path, ["no-such-engine"])
    monkeypatch.setenv("PATH", str(tmp_path))
    said = salon("judge-server", file)
    assert (said.code, "no-such-engine cannot be run: No such file" in " ".join(said.err.split())) == (3, True), said.err


def test_a_port_that_is_taken_is_said_before_anything_is_started(tmp_path: Path, salon: Callable[..., Said]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        file = benchmark(tmp_path, PROVIDER, port=other.getsockname()[1])
        said = salon("run", file, *RUN)
    assert said.code == 2
    assert "is taken" in said.err
    assert not list((tmp_path / "lake" / "judge-servers").glob("*.json"))


@pytest.mark.parametrize("host", ["192.0.2.1", "nobody.invalid"])
def test_an_address_of_no_machine_is_not_called_taken(host: str, tmp_path: Path) -> None:
    run = open_run(benchmark(tmp_path, PROVIDER), judge_url=f"http://{host}:8000/v1")
    with pytest.raises(InputError, match="this machine cannot serve at"), serving(run, lambda *_: None) as servers:
        servers.start(run.benchmark.judges)


@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143), (signal.SIGKILL, -9)], ids=["INT", "TERM", "KILL"]
)
def test_every_way_out_of_the_command_ends_its_server_and_no_other(sent: signal.Signals, code: int, tmp_path: Path) -> None:
    if sent == signal.SIGKILL and shutil.which("setpriv") is None:
        pytest.skip("setpriv (util-linux) tells a program that its starter was killed; it is not installed")
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "demo.server"])
    file = benchmark(tmp_path, PROVIDER)
    errors = (tmp_path / "errors").open("w+")
    process = subprocess.Popen(
        [SALON, "judge-server", str(file)], stdout=subprocess.PIPE, stderr=errors, text=True, env=os.environ | {"COLUMNS": "200"}
    )  # fmt: skip
    try:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(3)]
        assert f"answers at http://127.0.0.1:{port_of(file)}/v1" in said[0]
        assert "settings sha256" in said[1]
        process.send_signal(sent)
        process.stdout.close()
        assert process.wait(60) == code
        said_at_end = (tmp_path / "errors").read_text()
        assert ("the servers that it started are ended" in said_at_end) == (sent == signal.SIGTERM), said_at_end
        assert "replies" not in said_at_end, "it asks nothing"
        until(lambda: not mentioning(f"--port\0{port_of(file)}"), "the server outlived the command")
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
        process.kill()
        errors.close()


@pytest.mark.parametrize("between_s", [0.0, 1.2], ids=["at once", "after the server was seen to end"])
def test_who_is_told_to_stop_with_its_server_was_stopped(between_s: float, tmp_path: Path) -> None:
    """As a batch system and a shutdown do: SIGTERM for all processes. What is under way is waited for meanwhile."""
    run = open_run(benchmark(tmp_path, PROVIDER))

    def told_to_stop() -> None:
        with heeding_sigterm(), serving(run, lambda *_: None) as servers:
            servers.start(run.benchmark.judges)
            servers.up["salon-demo-judge"].process.terminate()
            time.sleep(between_s)
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(1.2)

    try:
        with pytest.raises(StoppedError):
            told_to_stop()
        assert STOP.is_set(), "nothing is begun anew"
    finally:
        STOP.clear()


def test_a_second_ctrl_c_leaves_no_server(tmp_path: Path) -> None:
    """One that takes its time to end, as engines do that unload."""
    (tmp_path / "slow.py").write_text(SLOW_TO_END)
    file = benchmark(tmp_path, [sys.executable, str(tmp_path / "slow.py"), "{port}"])
    process = subprocess.Popen([SALON, "judge-server", str(file)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert "answers at" in process.stdout.readline()
        log = tmp_path / "lake" / "judge-servers" / "logs"
        process.send_signal(signal.SIGINT)
        until(lambda: "unloading" in "".join(path.read_text() for path in log.glob("*.log")), "it was not told to stop")
        process.send_signal(signal.SIGINT)
        code = process.wait(60)
        assert not mentioning(str(tmp_path / "slow.py"))
        assert code == 0
    finally:
        process.stdout.close()
        process.kill()


def test_ctrl_c_while_it_is_waited_for_ends_it_too(tmp_path: Path) -> None:
    file = benchmark(tmp_path, [sys.executable, "-c", SILENT, str(tmp_path)])
    process = subprocess.Popen([SALON, "judge-server", str(file)])
    until(lambda: len(mentioning(SILENT)) == 1, "it was not started")
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 143
    until(lambda: not mentioning(SILENT), "it is left")


def test_the_identity_is_printed_for_a_machine_without_the_weights_and_held_where_they_are(
    tmp_path: Path, salon: Callable[..., Said]
) -> None:
    (tmp_path / "w.gguf").write_bytes(b"weights")
    file = benchmark(tmp_path, PROVIDER, 'weights = "w.gguf"')
    shown = salon("judge-server", file, "--identity").out
    line = "deployment" + shown.partition(": deployment")[2].strip()
    file.write_text(file.read_text().replace("[judges.server]", f"{line}\n[judges.server]"))
    (tmp_path / "w.gguf").unlink()
    assert salon("plan", file).code == 0, "what is stated needs no weights here"
    (tmp_path / "w.gguf").write_bytes(b"others")
    said = salon("judge-server", file)
    assert said.code == 2
    assert "correct one of them" in said.err


def test_weights_are_read_once_and_again_when_they_changed(tmp_path: Path) -> None:
    folder, home = tmp_path / "w", tmp_path / "home"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "a").write_bytes(b"one")
    (folder / ".cache").mkdir()
    first = weights_digest(folder, home, tmp_path)
    (folder / ".cache" / "when").write_text("now")
    assert weights_digest(folder, home, tmp_path) == first, "what a download left is no weight"
    stat = (folder / "sub" / "a").stat()
    (folder / "sub" / "a").write_bytes(b"two")
    os.utime(folder / "sub" / "a", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert weights_digest(folder, home, tmp_path) == first, "same path, size and time: not read again"
    os.utime(folder / "sub" / "a", ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    second = weights_digest(folder, home, tmp_path)
    assert second != first
    (home / "weights.json").write_text("{broken")
    assert weights_digest(folder, home, tmp_path) == second
    (folder / "sub" / "a").rename(folder / "sub" / "b")
    assert weights_digest(folder, home, tmp_path) != second, "a file's name is part of it"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ('weights = "nowhere"', "nowhere does not exist"),
        (f"version = {json.dumps([sys.executable, '-c', 'exit(3)'])}", "ended with exit code 3"),
        ('version = ["no-such-program"]', "no-such-program"),
    ],
    ids=["weights", "version", "program"],
)
def test_an_identity_that_cannot_be_had_is_said(more: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=says):
        open_run(benchmark(tmp_path, PROVIDER, more))


def test_each_server_that_is_waited_for_is_told_every_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    told = _Telling(result_console())
    for name in ("first", "second"):
        for waited_s in (0.0, 5.0, 11.0, 15.0, 22.0):
            told(Judge(model=name), waited_s)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"waiting for {name}, {s} s" for name in ("first", "second") for s in (11, 22)]


def test_a_server_is_for_a_judge_of_this_machine(tmp_path: Path) -> None:
    file = benchmark(tmp_path, PROVIDER)
    file.write_text(file.read_text().replace("127.0.0.1", "gpu.example"))
    with pytest.raises(BenchmarkFileError, match="judge on this machine"):
        open_run(file)


def test_judges_whose_servers_serve_the_same_are_refused_before_anything_is_sent(tmp_path: Path) -> None:
    """How long each may take to start is no part of a request key: one reply would be both judges'."""
    file = benchmark(tmp_path, PROVIDER)
    text = file.read_text()
    judge = text[text.index("[[judges]]") :].partition("\n\n")[0]
    file.write_text(
        text.replace(judge, f"{judge}\n{judge}\nstart_limit_s = 60".replace("[[judges]]", '[[judges]]\nname = "b"', 1))
    )
    with pytest.raises(InputError, match=r"'b' and .* the same requests; .*server \(its weights, version or command\)"):
        open_run(file)
    file.write_text(file.read_text().replace("start_limit_s = 60", f"version = {json.dumps([sys.executable, '-c', 'print(2)'])}"))
    assert len({one.deployment for one in open_run(file).benchmark.judges}) == 2
    stated = file.read_text().replace("\n[judges.server]", '\ndeployment = "w"\n[judges.server]')
    file.write_text(stated)
    with pytest.raises(BenchmarkFileError, match="the same requests"):
        open_run(file)
