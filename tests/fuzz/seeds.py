"""Valid input of every kind, as bytes: what the mutations begin with. Who reads which is in surfaces.py."""

# ruff: noqa: E501, ISC002 - a seed is read whole

import io
import json
import tarfile
from collections.abc import Iterator
from functools import cache
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image


def tar() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in (("a.png", picture("PNG")), ("a.json", b'{"prompt":"a cup","seed":1}'), ("b" * 120 + ".txt", b"x")):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()


@cache
def picture(image_format: str, mode: str = "RGB", n_frames: int = 1) -> bytes:
    frames = [Image.effect_noise((13 + n, 11), 60).convert(mode) for n in range(1)] * n_frames
    made = io.BytesIO()
    options: dict[str, Any] = {"save_all": True, "append_images": frames[1:]} if n_frames > 1 else {}
    frames[0].save(made, image_format, **options)
    return made.getvalue()


def _parquet(**columns: Any) -> bytes:
    made = io.BytesIO()
    pq.write_table(pa.table(columns), made, compression="none")
    return made.getvalue()


def tables() -> Iterator[bytes]:
    image = {"bytes": picture("PNG"), "path": "a.png"}
    yield _parquet(prompt=["a", None], image=[image, image], seed=[1, 2], id=["x", "y"], split=["test"] * 2)
    yield _parquet(prompt=pa.array([b"\xff\xfe", b"a"]), image=pa.array([2.5, float("nan")]), seed=pa.array([2**64 - 1, 0], pa.uint64()),
                   id=pa.array([[1], []]), rating=pa.array(["1", "x"]).dictionary_encode(), split=["test"] * 2)  # fmt: skip
    yield _parquet(prompt=pa.array([0, 2**62], pa.timestamp("ns")), image=pa.array([1, None], pa.duration("s")),
                   id=pa.array([None, None], pa.null()), seed=pa.array([1, 2], pa.decimal128(38)), split=["test"] * 2)  # fmt: skip
    yield _parquet(prompt=pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())), seed=pa.array([1e308, -0.0]),
                   image=pa.array([{}, {}], pa.struct([("x", pa.date64())])), split=["test"] * 2)  # fmt: skip


ROWS = b'{"id":"a","prompt":"a red cube","image":null,"seed":3,"split":"test","items":[{"id":"1"}],"rating":4}\n' \
       b'{"id":"b","prompt":"two cups","image":{"path":"b.png"},"seed":"4","split":"test","rating":"2.5"}\n'  # fmt: skip
TABLE = b'id,prompt,image,seed,split,rating\na,"a red ""cube""",a.png,1,test,4\nb,two,"",2,test,x\n'
RECORDED = b'{"sample_id":"a","prompt":"p","reply":"Score: 4","finish_reason":"stop","cost_usd":0.1,"n_input_tokens":3,"a":1}\n' \
           b'{"item_id":"b","rubric":"program","distance":"1e3","judge_model":"x","score":NaN,"reply":{"a":[1]}}\n'  # fmt: skip
OPENAI = orjson.dumps({"id": "x", "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": {
    "role": "assistant", "content": "Score: 4", "refusal": None, "parsed": [{"type": "text", "text": "a"}]}, "logprobs": {"content": [
    {"token": "4", "logprob": -0.1, "top_logprobs": [{"token": "5", "logprob": -2}]}]}}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}}})  # fmt: skip
STREAM = b'data: {"choices":[{"delta":{"content":"Sco"}}]}\n\ndata: {"choices":[{"delta":{"content":"re"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n'
ANTHROPIC = orjson.dumps({"type": "message", "model": "m", "content": [{"type": "thinking", "thinking": "x"}, {"type": "text",
    "text": "Score: 4"}], "stop_reason": "end_turn", "usage": {"input_tokens": 3, "cache_read_input_tokens": 1}})  # fmt: skip
GEMINI = orjson.dumps({"candidates": [{"content": {"parts": [{"text": "Score: 4"}, {"text": "t", "thought": True}]}, "finishReason":
    "STOP", "logprobsResult": {"chosenCandidates": [{"token": "4", "logProbability": -0.1}], "topCandidates": [{"candidates": [
    {"token": "5", "logProbability": -2}]}]}}], "usageMetadata": {"promptTokenCount": 9, "thoughtsTokenCount": 1},
    "modelVersion": "m", "promptFeedback": {"blockReason": "SAFETY"}})  # fmt: skip
ERROR = orjson.dumps({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "type": "billing_error", "message": "no credit",
    "details": [{"retryDelay": "3.5s"}, {"violations": [{"quotaId": "PerDay"}]}], "innererror": {"code": "x"}}})  # fmt: skip
BATCH = orjson.dumps({"id": "b", "name": "batches/b", "status": "completed", "processing_status": "ended", "created_at": 17,
    "created_at_": "2026-01-01T00:00:00Z", "output_file_id": "f", "results_url": "https://host.example/r", "request_counts": {
    "completed": 1, "failed": 0, "succeeded": 2}, "errors": {"data": [{"code": "x", "line": 3}]}, "metadata": {"state":
    "BATCH_STATE_SUCCEEDED", "createTime": "2026-01-01T00:00:00Z", "batchStats": {"successfulRequestCount": "3"}, "output":
    {"responsesFile": "files/x"}}, "error": {"code": 8, "message": "m"}})  # fmt: skip
RESULTS = b'{"custom_id":"k-0","response":{"status_code":200,"body":' + OPENAI + b'},"error":null}\n' \
          b'{"custom_id":"k-1","response":null,"error":{"code":"batch_expired","message":"m"}}\n'  # fmt: skip
ANTHROPIC_RESULTS = b'{"custom_id":"k","result":{"type":"succeeded","message":' + ANTHROPIC + b'}}\n' \
                    b'{"custom_id":"j","result":{"type":"errored","error":{"type":"error","error":{"type":"overloaded_error"}}}}\n'  # fmt: skip
GEMINI_RESULTS = b'{"key":"k","response":' + GEMINI + b'}\n{"key":"j","error":{"code":8,"message":"m","details":[]}}\n'
LOGPROBS = (
    b'{"content":[{"token":"Yes","logprob":-0.1,"top_logprobs":[{"token":"No","logprob":-2.5},{"token":"yes","logprob":-9}]}]}'
)
REPLIES = (
    b"Reasoning: All is there.\nScore: 4", b'{"score": 3, "reason": "a \\"red\\" cup"}', b"[Text Response Quality: 4; Image Response Quality: 2]",
    b"1. Yes\n2. No\n", b"<score>[1, 0]</score>", b"Yes", b"<think>Score: 2</think>\n```json\n{'a': 1, \"overall_score\": 7.5}\n```",
    b"| Aspect | Score |\n|---|---|\n| **Overall** | 4/5 |", b'{"score": [8, 3], "reasoning": "x", "better": "first", "winner": "A"}',
    b"**Score**: 4 out of 5. I cannot see the image.", "分数：4，【总分：３】".encode(), b'{"distance": 1.5e3}',
)  # fmt: skip
ITEMS = json.dumps([{"id": "a", "text": "Is it red?", "question": "Is it red?", "answer": "yes", "kind": "answer"},
                    {"id": "b", "text": "Is it round?", "question": "Is it round?", "answer": "no", "depends_on": ["a"]}]).encode()  # fmt: skip
