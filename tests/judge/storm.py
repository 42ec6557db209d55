"""The ways of providers: what each sends, what Salon makes of it, what a run ends with in which every request is answered so."""

import gzip
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

from schemas.statuses.rows import ReplyStatus as S
from tests.judge.misbehaving import Play, completion, failure, head, response, whole
from tests.support.bombs import gzip_bomb, zlib_bomb

GOOD = completion()
BOMB = gzip_bomb(256)  # 260 kB
UNPACKED = "content-encoding '{}', which was not requested; it was not decompressed"
STREAM = head().replace(b"application/json", b"text/event-stream")
IN_A_MINUTE = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
TOOL = {"tool_calls": [{"id": "1", "type": "function", "function": {"name": "judge", "arguments": "{}"}}]}


@dataclass(frozen=True)
class Behaviour:
    """`words` are of what the user is told; None where a reply is stored. `code` is the run's exit code."""

    play: Play
    status: S
    words: str | None
    code: int = 3
    is_said_by_run: bool = False  # no attempt's words, the run's


def error(status: int, message: str, *lines: str, **fields: Any) -> Play:
    """A failure in the form of the API."""
    return failure(status, {"error": {"message": message} | fields}, *lines)


def packed(encoding: str, body: bytes = BOMB) -> Behaviour:
    """A small body that would be a large one."""
    return Behaviour(whole(body, f"content-encoding: {encoding}"), S.BAD_RESPONSE, UNPACKED.format(encoding))


def of_200(body: bytes, words: str, *lines: str) -> Behaviour:
    """A 200 that is no completion."""
    return Behaviour(whole(body, *lines), S.BAD_RESPONSE, words)


def late(*sent: bytes, then: Any = "hang", every_s: float = 0.0) -> Behaviour:
    """An answer that is not there in time."""
    return Behaviour(Play(sent, then, every_s), S.TIMED_OUT, "no complete reply within")


def lost(*sent: bytes, words: str, then: Any = "close") -> Behaviour:
    """An answer that ends too early, or cannot be taken for one."""
    return Behaviour(Play(sent, then), S.UNREACHABLE, words)


def limited(*lines: str, words: str = "its rate limits refused every attempt") -> Behaviour:
    """A 429."""
    return Behaviour(error(429, "slow down", *lines), S.RATE_LIMITED, words, is_said_by_run=True)


def numbered(body: bytes, status: int = 200) -> Play:
    """Another body for each request: # is its number."""
    return Play(lambda n: response(body.replace(b"#", b"%d" % n), status=status), "stay")


def in_own_words(n: int) -> bytes:
    """A rejection in words that no other has, numbers apart."""
    return response(b'{"error": "tokens: %s"}' % f"{n}".translate(str.maketrans("0123456789", "abcdefghij")).encode(), status=400)


HANGING = {
    "never answers": late(),
    "drips": late(head(f"content-length: {len(GOOD)}"), *(GOOD[at : at + 1] for at in range(len(GOOD))), every_s=0.1),
    "half of the headers, then nothing": late(b"HTTP/1.1 200 OK\r\ncontent-ty"),
    "100 Continue without end": late(b"HTTP/1.1 100 Continue\r\n\r\n" * 20, then="repeat", every_s=0.001),
    "103 Early Hints without end": late(b"HTTP/1.1 103 Hints\r\nlink: </x>\r\n\r\n" * 20, then="repeat", every_s=0.001),
    "a length longer than the body": late(head(f"content-length: {len(GOOD) + 10}") + GOOD),
    "chunks without end, slowly": late(head("transfer-encoding: chunked"), b"1\r\n \r\n", then="repeat", every_s=0.05),
    "a stream nobody asked for, kept open": late(STREAM, b": keep-alive\n\n", then="repeat", every_s=0.05),
}
BROKEN = {
    "closes at once": lost(words="the server closed it"),
    "closes in mid-body": lost(head(f"content-length: {len(GOOD)}") + GOOD[:40], words="received 40 of"),
    "half of the headers, then closes": lost(b"HTTP/1.1 200 OK\r\ncontent-ty", words="the server closed it"),
    "headers without end": lost(b"HTTP/1.1 200 OK\r\n", b"x-more: y\r\n" * 100, then="repeat", words="Too many headers"),
    "one header without end": lost(b"HTTP/1.1 200 OK\r\nx: ", b"y" * 10_000, then="repeat", words="Got more than 8190 bytes"),
    "another protocol": lost(b"SSH-2.0-OpenSSH_9.2\r\n", words="the server's response is not valid HTTP: Bad status line"),
    "TLS at a plain address": lost(b"\x15\x03\x01\x00\x02\x02\x46", words="the server's response is not valid HTTP"),
    "a length below nought": lost(head("content-length: -5") + GOOD, words="Invalid character in Content-Length"),
    "a length shorter than the body": lost(head("content-length: 60") + GOOD, words="the server's response is not valid HTTP"),
    "two lengths": lost(head("content-length: 5", f"content-length: {len(GOOD)}") + GOOD, words="Duplicate Content-Length"),
    "a chunk without a size": lost(head("transfer-encoding: chunked") + b"zz\r\nhi\r\n", words="Invalid character in chunk size"),
}
NO_COMPLETION = {
    "a redirect to itself": Behaviour(whole(b"", "location: /x", status=307), S.BAD_RESPONSE, "redirected to /x; redirects are"),
    "a redirect to another host": Behaviour(
        whole(b"", "location: http://elsewhere.invalid/?token=hidden", status=302), S.BAD_RESPONSE, "to http://elsewhere.invalid;"
    ),
    "a redirect to TLS": Behaviour(whole(b"", "location: https://127.0.0.1/v1", status=301), S.BAD_RESPONSE, "https://127.0.0.1;"),
    "204": Behaviour(Play((b"HTTP/1.1 204 No Content\r\n\r\n",), "stay"), S.BAD_RESPONSE, "an empty body"),
    "an empty 200": of_200(b"", "an empty body"),
    "HTML": of_200(b"<html>busy</html>", "not JSON"),
    "JSON cut short": of_200(GOOD[:60], "not JSON (unexpected end of data"),
    "JSON nested deep": of_200(b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "depth limit exceeded"),
    "a body of 9 MB": of_200(completion("x" * 9_000_000), "a reply of more than 8388608 bytes; it was not read"),
    "a body without end": Behaviour(
        Play((head("content-length: 99999999999"), b"x" * 65536), "repeat"), S.BAD_RESPONSE, "a reply of more than 8388608 bytes"
    ),
    "chunks without end": Behaviour(
        Play((head("transfer-encoding: chunked"), b"10000\r\n%b\r\n" % (b"x" * 65536)), "repeat"),
        S.BAD_RESPONSE, "a reply of more than 8388608 bytes",
    ),
    "a bomb": packed("gzip"),
    "a bomb, in capitals": packed("GZIP"),
    "a bomb, by its old name": packed("x-gzip"),
    "a bomb, after identity": packed("identity, gzip"),
    "a bomb in a bomb": packed("gzip, gzip", gzip.compress(BOMB)),
    "a bomb, deflated": packed("deflate", zlib_bomb(256)),
    "a bomb of brotli": packed("br"),
    "a bomb of zstd": packed("zstd"),
    "a bomb, in a header of its own": of_200(
        BOMB, "'identity,gzip', which was not", "content-encoding: identity", "content-encoding: gzip"
    ),
    "a bomb, as a transfer": Behaviour(
        Play((head("transfer-encoding: gzip, chunked") + b"%x\r\n%b\r\n0\r\n\r\n" % (len(BOMB), BOMB),)),
        S.BAD_RESPONSE, "not JSON",
    ),
    "a stream that stops": Behaviour(
        Play((STREAM + b'data: {"choices": [{"delta": {"content": "4"}}]}\n\n',)), S.BAD_RESPONSE, "stops before its end"
    ),
    "UTF-16": of_200(GOOD.decode().encode("utf-16"), "not JSON"),
    "NaN": of_200(GOOD.replace(b"900", b"NaN"), "not JSON"),
    "a key twice": of_200(GOOD.replace(b'"model":', b'"model":"judge-2","model":'), "the key 'model' occurs twice"),
    "an error in a choice": of_200(
        completion("", error={"code": 502, "message": "Provider returned error"}, finish_reason="error"),
        "a 200 whose choice is an error: 502: Provider returned error",
    ),
    "no choices": of_200(b'{"choices": []}', "without choices"),
    "content as pictures": of_200(completion([{"type": "image_url"}]), "a part of type 'image_url'"),
}  # fmt: skip
COMPLETIONS = {
    "as it should be": Behaviour(whole(GOOD), S.ANSWERED, None, 0),
    "without a length": Behaviour(Play((head() + GOOD,)), S.ANSWERED, None, 0),
    "a stream nobody asked for": Behaviour(Play((STREAM + b"data: " + GOOD + b"\n\n",)), S.ANSWERED, None, 0),
    "a byte order mark": Behaviour(whole(b"\xef\xbb\xbf" + GOOD), S.ANSWERED, None, 0),
    "content as parts": Behaviour(
        whole(completion([{"type": "text", "text": "Reasoning: it is there.\nScore: 4"}])), S.ANSWERED, None, 0
    ),
    "content null": Behaviour(whole(completion(None)), S.ANSWERED, None, 1),
    "a tool call": Behaviour(whole(completion(None, TOOL, finish_reason="tool_calls")), S.ANSWERED, None, 1),
    "a refusal": Behaviour(whole(completion(None, {"refusal": "I cannot."})), S.ANSWERED, None, 1),
    "cut off": Behaviour(whole(completion("Reasoning: it", finish_reason="length")), S.ANSWERED, None, 1),
    "filtered": Behaviour(whole(completion("", finish_reason="content_filter")), S.FILTERED, None, 1),
    "another model each time": Behaviour(
        numbered(GOOD.replace(b"judge-1", b"judge-#")), S.ANSWERED, "answered as judge-", is_said_by_run=True
    ),
}
REFUSED = {
    "400": Behaviour(error(400, "temperature must be at most 2"), S.REJECTED, "HTTP 400: temperature must be at most 2"),
    "400, a sentence": Behaviour(failure(400, {"error": "no such parameter"}), S.REJECTED, "HTTP 400: no such parameter"),
    "400, flat": Behaviour(failure(400, {"message": "bad picture"}), S.REJECTED, "HTTP 400: bad picture"),
    "400, a list": Behaviour(failure(400, [{"error": "no"}]), S.REJECTED, "HTTP 400: no"),
    "400, in a form of its own": Behaviour(failure(400, {"errors": ["no"]}), S.REJECTED, 'HTTP 400: {"errors":["no"]}'),
    "400, words": Behaviour(whole(b"bad things", status=400), S.REJECTED, "HTTP 400: bad things"),
    "400, nothing": Behaviour(whole(b"", status=400), S.REJECTED, "HTTP 400: no message"),
    "400, nested deep": Behaviour(whole(b"[" * 900 + b"]" * 900, status=400), S.REJECTED, "HTTP 400: [[["),
    "400, each in its own words": Behaviour(Play(in_own_words, "stay"), S.REJECTED, "tokens", 1),
    "400, the same but for numbers": Behaviour(numbered(b'{"error": "# tokens"}', 400), S.REJECTED, "tokens"),
    "400 of the content policy": Behaviour(error(400, "no", code="content_policy_violation"), S.FILTERED, "no", 1),
    "401": Behaviour(error(401, "Incorrect API key", code="invalid_api_key"), S.UNAUTHORIZED, "Incorrect API key"),
    "402": Behaviour(error(402, "Insufficient Balance"), S.NO_CREDIT, "Insufficient Balance"),
    "403": Behaviour(error(403, "not in your country"), S.UNAUTHORIZED, "not in your country"),
    "403 of a moderation": Behaviour(
        error(403, "your input was flagged", code=403, metadata={"reasons": ["violence"]}), S.FILTERED, "input was flagged", 1
    ),
    "404": Behaviour(error(404, "The model does not exist", code="model_not_found"), S.UNAUTHORIZED, "The model does not exist"),
    "408": Behaviour(error(408, "too slow"), S.SERVER_ERROR, "HTTP 408: too slow"),
    "409": Behaviour(error(409, "conflict"), S.SERVER_ERROR, "HTTP 409: conflict"),
    "413": Behaviour(whole(b"<html>Request Entity Too Large</html>", status=413), S.REJECTED, "Request Entity Too Large"),
    "422": Behaviour(failure(422, {"detail": "no response_format"}), S.REJECTED, "HTTP 422: no response_format"),
    "422, a list": Behaviour(
        failure(422, {"detail": [{"loc": ["max_tokens"], "msg": "must be positive"}]}), S.REJECTED, '"msg":"must be positive"'
    ),
    "429 for thirty years": limited("retry-after: 1000000000", words="asks for a pause of 1,000,000,000 s"),
    "429 for thirty years, as 1e9": limited("retry-after: 1e9", words="asks for a pause of 1,000,000,000 s"),
    "429": limited(),
    "429 for no time": limited("retry-after: 0"),
    "429 for less than no time": limited("retry-after: -5"),
    "429 until a date gone by": limited("retry-after: Sun, 01 Mar 2020 12:00:30 GMT"),
    "429 until a date": limited(f"retry-after: {IN_A_MINUTE}"),
    "429, no quota": Behaviour(error(429, "no", code="insufficient_quota"), S.NO_CREDIT, "insufficient_quota: no"),
    "499": Behaviour(error(499, "The operation was cancelled."), S.SERVER_ERROR, "HTTP 499: The operation was cancelled."),
    "500": Behaviour(error(500, "oops"), S.SERVER_ERROR, "HTTP 500: oops"),
    "502": Behaviour(whole(b"<h1>502 Bad Gateway</h1>", status=502), S.SERVER_ERROR, "502 Bad Gateway"),
    "503": Behaviour(whole(b"", status=503), S.SERVER_ERROR, "HTTP 503: no message"),
    "503 for thirty years": Behaviour(error(503, "later", "retry-after: 1000000000"), S.SERVER_ERROR, "HTTP 503: later"),
    "529": Behaviour(error(529, "busy", type="overloaded_error"), S.SERVER_ERROR, "HTTP 529: overloaded_error: busy"),
    "a status above all": Behaviour(whole(b"{}", status=999), S.SERVER_ERROR, "HTTP 999"),
}  # fmt: skip
STORM = HANGING | BROKEN | NO_COMPLETION | COMPLETIONS | REFUSED
NOBODY = {
    "no TLS at a TLS address": (("never answers", "https"), "no connection within"),
    "a name nobody has": ("http://judge.invalid/v1", "no connection"),
    "nobody listens": ("http://127.0.0.1:9/v1", "no connection"),
}


def slug(name: str) -> str:
    """A behaviour's name in an address."""
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower())
