"""A key that a provider repeats: in whatever way an encoder writes its signs, in capitals, and in the tokens of a reply."""

import html
import json
import os
from dataclasses import replace
from urllib.parse import quote

import orjson
import pytest

from flows.observability.redaction import redacted, watch
from schemas.statuses.rows import ReplyStatus
from tasks.judge.provider.exchange import Answer
from tasks.judge.provider.transport import Secrets

KEY = "sk-Proj_4f/9a+B=c7.Zz~12"
SIGNS = [character for character in KEY if not character.isalnum()]
ANSWERED = Answer(ReplyStatus.ANSWERED)


def each(write: dict[str, str]) -> str:
    return "".join(write.get(character, character) for character in KEY)


WRITTEN = {
    "as it is": KEY,
    "in capitals": KEY.upper(),
    "in small letters": KEY.lower(),
    "an address": quote(KEY, safe=""),
    "an address of every sign": each({sign: f"%{ord(sign):02X}" for sign in SIGNS}),
    "the same in small letters": each({sign: f"%{ord(sign):02x}" for sign in SIGNS}),
    "HTML": html.escape(KEY),
    "HTML of every sign, as numbers": each({sign: f"&#{ord(sign)};" for sign in SIGNS}),
    "HTML as numbers to sixteen": each({sign: f"&#x{ord(sign):x};" for sign in SIGNS}),
    "HTML as numbers with noughts": each({sign: f"&#x00{ord(sign):X};" for sign in SIGNS}),
    "HTML by names": each({"_": "&lowbar;", "/": "&sol;", "+": "&plus;", "=": "&equals;", ".": "&period;"}),
    "JSON": json.dumps(KEY)[1:-1],
    "JSON of every sign": each({sign: f"\\u{ord(sign):04x}" for sign in SIGNS}),
    "JSON of every sign in capitals": each({sign: f"\\u{ord(sign):04X}" for sign in SIGNS}),
    "JSON within JSON": each({sign: f"\\\\u{ord(sign):04x}" for sign in SIGNS}),
    "PHP": KEY.replace("/", "\\/"),
}


@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN)
def test_a_key_is_found_however_it_is_written(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets, said = Secrets(KEY, "https://judge.example/v1"), f"your key {written} is not one"
    without = "your key [key removed] is not one"
    assert secrets.out_of_bytes(said.encode()).decode() == without
    assert secrets.out_of_text(said) == without
    assert secrets.out_of(replace(ANSWERED, text=said)).text == without
    monkeypatch.setenv("SALON_TEST_WRITTEN", KEY)
    watch(["SALON_TEST_WRITTEN"])
    assert redacted(said) == "your key [removed] is not one"


def test_a_secret_that_is_no_utf_8_is_taken_out_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python reads a byte of the environment that is none as a half character: a password in Latin-1, of any program."""
    secret = b"caf\xe9-geheim-1".decode(errors="surrogateescape")
    monkeypatch.setenv("SALON_TEST_PASSWORD", secret)
    assert redacted("the judge cannot be reached") == "the judge cannot be reached"
    assert redacted(f"{secret}, {ascii(secret)[1:-1]}, {json.dumps(secret)}") == '[removed], [removed], "[removed]"'
    as_text = "caf\ufffd-geheim-1"
    for written in (quote(secret, errors="surrogateescape"), as_text, quote(as_text), r"caf\uFFFD-geheim-1"):
        assert redacted(f"to {written}") == "to [removed]"
        assert Secrets(secret, "https://judge.example/v1").out_of_bytes(written.encode()) == b"[key removed]"
    assert Secrets(secret, "https://judge.example/v1").out_of_bytes(b"caf\xe9-geheim-1") == b"[key removed]"


def test_a_secret_with_half_a_character_of_no_byte_ends_nothing() -> None:
    """As a Secret block's JSON may hold."""
    secret = json.loads('"\\ud83d-geheim-12"')
    secrets = Secrets(secret, "https://judge.example/v1")
    assert secrets.out_of_bytes(b"\\ud83d-geheim-12, ?-geheim-12") == b"[key removed], ?-geheim-12"
    assert secrets.out_of_text(f"{secret}, \ufffd-geheim-12") == "[key removed], [key removed]"
    assert secrets.out_of_text("%ED%A0%BD-geheim-12, %3d-geheim-12") == "[key removed], %3d-geheim-12"


@pytest.mark.parametrize("raw", [b"caf\xe9\xa3-geheim-1", "你好-geheim-1".encode("gbk"), "pässword£1-é»geheim".encode("latin-1")])
def test_a_secret_with_several_bytes_that_are_no_utf_8_is_taken_out_as_others_decode_them(raw: bytes) -> None:
    """One replacement character stands for a beginning of a character, however many bytes that has."""
    secrets, read = Secrets(os.fsdecode(raw), "https://judge.example/v1"), raw.decode(errors="replace")
    assert len(read) < len(raw)
    for written in (read, quote(raw), quote(read), repr(raw)[2:-1], json.dumps(read)):
        assert secrets.out_of_text(f"to {written}").strip('"') in ("to [key removed]", 'to "[key removed]')
        assert secrets.out_of_bytes(written.encode()).strip(b'"') == b"[key removed]"
    assert secrets.out_of_bytes(raw) == b"[key removed]"


@pytest.mark.parametrize(
    "said", ["sk-Proj", "4f 9a B c7 Zz 12", "Zz and 12", "the task's Proj: 4f/9a+B=c7", KEY[:-1]],
    ids=["its beginning", "without its signs", "words", "its middle", "all but one letter"],
)  # fmt: skip
def test_what_is_not_the_key_stays(said: str) -> None:
    secrets = Secrets(KEY, "https://judge.example/v1")
    assert (secrets.out_of_text(said), secrets.out_of_bytes(said.encode())) == (said, said.encode())


def tokens(said: str, **more: object) -> list[dict[str, object]]:
    return [{"token": said[at : at + 3], "logprob": -0.1, **more} for at in range(0, len(said), 3)]


def as_bytes(said: str) -> list[dict[str, object]]:
    return [{"token": f"token_id:{number}", "bytes": [number], "logprob": -0.1} for number in said.encode()]


PIECES: dict[str, dict[str, object]] = {
    "tokens": {"content": tokens(f"the key is {KEY}.")},
    "tokens beside others": {"content": tokens(f"it is {KEY}.", top_logprobs=[{"token": "no", "logprob": -3.0}])},
    "of a refusal": {"content": [], "refusal": tokens(KEY)},
    "bytes": {"content": as_bytes(KEY)},
    "the older form": {"tokens": [one["token"] for one in tokens(KEY)], "token_logprobs": [-0.1]},
    "in capitals": {"content": tokens(KEY.upper())},
}


@pytest.mark.parametrize("found", PIECES.values(), ids=PIECES)
def test_log_probabilities_whose_tokens_say_the_key_are_not_kept(found: dict[str, object]) -> None:
    answer = replace(ANSWERED, text="Score: 4", logprobs_json=orjson.dumps(found).decode())
    assert Secrets(KEY, "https://judge.example/v1").out_of(answer) == replace(answer, logprobs_json=None)


@pytest.mark.parametrize(
    "said",
    ["", "[]", "null", "{", '{"content": 1}', '{"content": [1, null, {"token": 3, "bytes": 10000000000}]}',
     '{"content": [{"token": "4", "bytes": [-1, 300, "x"], "logprob": -0.1}]}', json.dumps({"content": tokens("Score: 4")})],
    ids=["nothing", "a list", "null", "broken", "a number for tokens", "tokens of other kinds", "bytes that are none", "a score"],
)  # fmt: skip
def test_other_log_probabilities_are_kept_as_they_are(said: str) -> None:
    answer = replace(ANSWERED, text="Score: 4", logprobs_json=said)
    assert Secrets(KEY, "https://judge.example/v1").out_of(answer) == answer
