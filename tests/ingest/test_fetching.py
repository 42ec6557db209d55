"""Remote pictures: off by default, from named hosts alone when on, and no name, redirect or server leads anywhere else."""

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from yarl import URL

from schemas.benchmark.file import Benchmark
from schemas.errors import BenchmarkFileError
from tasks.ingest.fetching import allow, fetch, is_public, shown_url
from tasks.ingest.paths import RefusedPath


class _Pages(BaseHTTPRequestHandler):
    """What a host may answer; `picture` and `asked` are the server's."""

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        path, _, query = self.path.partition("?")
        if path == "/to":
            self.send_response(302)
            self.send_header("Location", query)
            self.end_headers()
        elif path == "/once-busy":
            is_first = self.server.asked.count(self.path) == 1
            self._answer(503 if is_first else 200, b"" if is_first else self.server.picture)
        elif path == "/drip":
            self.send_response(200)
            self.end_headers()
            for _ in range(100):
                self.wfile.write(b"x")
                time.sleep(0.05)
        elif path == "/endless":
            self.send_response(200)
            self.end_headers()
            for _ in range(10_000):
                self.wfile.write(bytes(1 << 16))
        else:
            self._answer({"/a.png": 200}.get(path, 404), self.server.picture)

    def _answer(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Set-Cookie", "seen=1")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Silent."""


@pytest.fixture
def host(picture) -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    server.picture, server.asked, server.handle_error = picture(), [], lambda *_: None
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def at(host) -> str:
    return f"127.0.0.1:{host.server_port}"


def test_what_an_allowed_host_has_is_fetched(host, at):
    urls = [f"http://{at}/a.png", f"http://{at}/to?/a.png", f"http://{at}/to?http://{at}/to?/a.png", f"http://{at}/once-busy"]
    assert fetch(urls, [at]) == [host.picture] * 4


REFUSED = {
    "another host": ("http://127.0.0.1:1/a.png", "remote_refused", "remote_hosts"),
    "led to another host": ("http://{at}/to?https://example.com/a.png", "remote_refused", "remote_hosts"),
    "led to the metadata address": ("http://{at}/to?http://169.254.169.254/latest/", "remote_refused", "remote_hosts"),
    "led to a file": ("http://{at}/to?file:///etc/passwd", "remote_refused", "not an https"),
    "led in a circle": ("http://{at}/to?/to?/to?/to?/to?/a.png", "remote_refused", "more than 3"),
    "led nowhere": ("http://{at}/to?http://[::1", "missing_file", "cannot be fetched"),
    "a name that leads home": ("https://localhost:{port}/a.png", "remote_refused", "not a public address"),
    "no URL, as yarl says by an IndexError": ("http://@]-[[@#.]11%", "remote_refused", "is not a valid URL"),
    "no URL, and a password": ("https://me:secret@[bad/a.png?secret#secret", "remote_refused", "is not a valid URL"),
    "a user and password": ("http://me:secret@{at}/a.png", "remote_refused", "without them"),
    "not there": ("http://{at}/b.png", "missing_file", "answers 404"),
    "too large": ("http://{at}/endless", "file_too_large", "more than 100000 bytes"),
    "a drip": ("http://{at}/drip", "missing_file", "more than 1 s"),
    "nobody listens": ("http://127.0.0.1:9/a.png", "missing_file", "ClientConnectorError"),
}


@pytest.mark.parametrize(("url", "status", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_everything_else_is_a_status(at, url, status, why):
    url = url.format(at=at, port=at.partition(":")[2])
    hosts = [at, f"localhost:{at.partition(':')[2]}", "127.0.0.1:9"]
    (found,) = fetch([url], hosts, max_bytes=100_000, deadline_s=1.0)
    assert isinstance(found, RefusedPath), found
    assert (found.status, why in found.detail) == (status, True), found.detail
    assert "secret" not in found.detail


PUBLIC = ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"]
NOT_PUBLIC = [
    "127.0.0.1", "127.9.9.9", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.100.100.200",
    "168.63.129.16", "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "::1", "fe80::1",
    "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254",
    "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a9fe:a9fe::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:db8::1", "", "localhost", "2130706433", "0x7f000001", "127.1",
]  # fmt: skip


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_addresses_that_are_not_public(address):
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_addresses_that_are(address):
    assert is_public(address)


HOSTS = ["cdn.example.com", "img.example.com:8443", "203.0.113.7", "[2001:db8::7]", "10.0.0.7", "127.0.0.1:80"]
NAMED = {
    "https://cdn.example.com/a.png": True,
    "https://CDN.example.com:443/a.png?sig=1": True,
    " https://img.example.com:8443/a.png": True,
    "https://203.0.113.7/a.png": True,
    "https://[2001:db8::7]/a.png": True,
    "https://10.0.0.7/a.png": True,  # private, and named as the address it is
    "http://127.0.0.1/a.png": True,
    "http://cdn.example.com/a.png": False,
    "http://10.0.0.7/a.png": False,
    "https://cdn.example.com:8443/a.png": False,
    "https://img.example.com/a.png": False,
    "https://cdn.example.com.evil.org/a.png": False,
    "https://evil.org/cdn.example.com/a.png": False,
    "https://evil.org#cdn.example.com/a.png": False,
    "https://cdn.example.com@evil.org/a.png": False,
    "https://evil.org\\@cdn.example.com/a.png": False,
    "https://sub.cdn.example.com/a.png": False,
    "ftp://cdn.example.com/a.png": False,
    "data:image/png;base64,AAAA": False,
    "//cdn.example.com/a.png": False,
    "https:///a.png": False,
    "https://[::1/a.png": False,
    "https://cdn.example.com:99999/a.png": False,
}


@pytest.mark.parametrize(("url", "is_allowed"), NAMED.items(), ids=NAMED.keys())
def test_a_url_is_allowed_by_scheme_host_and_port(url, is_allowed):
    assert isinstance(allow(url, HOSTS), URL) == is_allowed


def test_naughty_strings_are_neither_allowed_nor_raise(needs_salon_data):
    import json

    for text in json.loads((needs_salon_data / "naughty_text" / "blns.json").read_text(encoding="utf-8")):
        assert isinstance(allow(text, HOSTS), RefusedPath)
        shown_url(text)


def _manifest(folder, at):
    rows = [
        f'{{"image": "http://{at}/a.png?signature=hidden", "prompt": "one"}}',
        f'{{"image": "http://{at}/b.png", "prompt": "two"}}',
    ]
    (folder / "m.jsonl").write_text("\n".join(rows))
    return {"reader": "manifest", "path": "m.jsonl", "model": "m"}


def test_off_by_default(tmp_path, ingest_rows, host, at):
    _, rows = ingest_rows(_manifest(tmp_path, at))
    assert rows["status"].to_list() == ["remote_refused", "remote_refused"]
    assert host.asked == []
    assert not any("hidden" in detail for detail in rows["detail"])


def test_on_the_bytes_are_stored_and_no_signature_is(tmp_path, ingest_rows, host, at, lake):
    result, rows = ingest_rows(_manifest(tmp_path, at) | {"remote_hosts": [at]})
    assert rows["status"].to_list() == ["ok", "missing_file"]
    assert rows["n_bytes"].to_list() == [len(host.picture), None]
    stored = b"".join(path.read_bytes() for path in lake.root.rglob("*.parquet"))
    assert result.n_ok == 1
    assert b"hidden" not in stored


@pytest.mark.parametrize("host_name", ["*", "https://cdn.example.com", "cdn.example.com/a", "", "a b", "me@cdn.example.com"])
def test_a_host_is_a_name_or_an_address_with_or_without_a_port(tmp_path, host_name):
    from schemas.benchmark.file import load_benchmark

    head = 'name = "n"\n[[rubrics]]\nid = "alignment"\n[[judges]]\nmodel = "j"\n[[sources]]\nreader = "manifest"\npath = "m"\n'
    for name in HOSTS:
        (tmp_path / "b.toml").write_text(f'{head}remote_hosts = ["{name}"]\n')
        assert isinstance(load_benchmark(tmp_path / "b.toml"), Benchmark)
    (tmp_path / "b.toml").write_text(f'{head}remote_hosts = ["{host_name}"]\n')
    with pytest.raises(BenchmarkFileError, match="remote_hosts"):
        load_benchmark(tmp_path / "b.toml")
