"""The login of `salon serve`'s Prefect server: what its files hold, and what a server set up by it answers pages of elsewhere."""

import base64
import tomllib
from collections.abc import Iterator
from pathlib import Path

import prefect.settings
import pytest
from prefect.server.api.server import create_app
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from flows.serving.local_login import Login, prepare

URL = "http://127.0.0.1:4200"
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def login(tmp_path_factory: pytest.TempPathFactory) -> Login:
    return prepare(tmp_path_factory.mktemp("serve"), URL)


@pytest.fixture(scope="module")
def server(login: Login) -> Iterator[TestClient]:
    """Prefect's own server with these settings; nothing that it answers here needs a database."""
    settings = {getattr(prefect.settings, name): value for name, value in login.server().items()}
    with prefect.settings.temporary_settings(settings):
        yield TestClient(create_app(ephemeral=True, ignore_cache=True), base_url=URL)


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        pytest.param(JSON, "{}", id="no login"),
        pytest.param({"origin": "http://evil.example"}, "{}", id="a page's simple request, which no preflight precedes"),
        pytest.param(JSON | {"host": "rebind.evil.example"}, "{}", id="a name that was turned to loopback"),
        pytest.param(JSON | {"authorization": "Basic " + base64.b64encode(b"salon:").decode()}, "{}", id="a wrong login"),
    ],
)
def test_a_request_without_the_login_starts_nothing(server: TestClient, headers: dict[str, str], body: str) -> None:
    assert server.post("/api/flow_runs/", headers=headers, content=body).status_code == 401


def test_pages_of_elsewhere_hear_nothing_and_the_ui_does(server: TestClient) -> None:
    asked = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}
    for origin, status in (("http://evil.example", 400), (URL, 200), ("http://localhost:4200", 200)):
        answer = server.options("/api/flow_runs/", headers=asked | {"origin": origin})
        assert answer.status_code == status
        assert answer.headers.get("access-control-allow-origin") == (origin if status == 200 else None)


def test_a_socket_without_the_login_is_closed(server: TestClient) -> None:
    with pytest.raises(WebSocketDisconnect), server.websocket_connect("/api/events/in") as socket:
        socket.receive_json()


def test_the_login_opens_and_health_needs_none(server: TestClient, login: Login) -> None:
    authorization = "Basic " + base64.b64encode(login.words.encode()).decode()
    assert server.get("/api/admin/version", headers={"authorization": authorization}).status_code == 200
    assert server.get("/api/health").status_code == 200


def test_it_is_kept_and_a_profile_says_where_the_server_is_now(tmp_path: Path) -> None:
    first, second = prepare(tmp_path, URL), prepare(tmp_path, "http://127.0.0.1:4300")
    assert first.words == second.words == (tmp_path / "login").read_text().strip()
    profile = tomllib.loads((second.home / "profiles.toml").read_text())
    assert profile["profiles"][profile["active"]] == {
        "PREFECT_API_URL": "http://127.0.0.1:4300/api", "PREFECT_API_AUTH_STRING": first.words,
    }  # fmt: skip
    assert [oct(path.stat().st_mode & 0o777) for path in (second.file, second.home / "profiles.toml")] == ["0o600", "0o600"]


@pytest.mark.parametrize(
    "held",
    [
        "",
        "short",
        'salon:"\n[profiles.x]\n"aaaaaaaaaaaa',
        "salon:\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9",
    ],
    ids=["none", "half", "TOML", "no ASCII"],
)
def test_what_is_no_login_of_ours_is_made_anew(tmp_path: Path, held: str) -> None:
    (tmp_path / "login").write_text(held, encoding="utf-8")
    words = prepare(tmp_path, URL).words
    assert words != held
    assert len(words) == len("salon:") + 32


def test_a_link_in_its_place_is_not_written_through(tmp_path: Path) -> None:
    thesis = tmp_path / "thesis.txt"
    thesis.write_text("years of work")
    (tmp_path / "serve").mkdir()
    (tmp_path / "serve" / "login").symlink_to(thesis)
    prepare(tmp_path / "serve", URL)
    assert thesis.read_text() == "years of work"
