"""The same judgements through curator's public API (`curator.LLM`), its rate limits set out of the way, its cache off."""

import argparse
import json
import os
import re
from pathlib import Path

from bespokelabs import curator

SCORE = re.compile(r"Score:\s*([1-5])\b")
NO_LIMIT = 10**9  # requests and tokens a minute: without them it would pace itself by defaults of its own


class Judge(curator.LLM):
    """One picture, one score."""

    instructions = ""

    def prompt(self, input: dict) -> tuple:  # noqa: A002 - curator's own name
        return self.instructions + input["prompt"], curator.types.Image(url=input["image"], mime_type="image/jpeg")

    def parse(self, input: dict, response: str) -> dict:  # noqa: A002 - curator's own name
        score = SCORE.search(response)
        return {"item_id": input["item_id"], "score": int(score[1]) if score else None, "reply": response}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("items", type=Path)
    parser.add_argument("instructions", type=Path)
    parser.add_argument("base_url")
    parser.add_argument("model")
    parser.add_argument("n_at_once", type=int)
    parser.add_argument("output", type=Path)
    given = parser.parse_args()
    os.environ.setdefault("OPENAI_API_KEY", "none")
    Judge.instructions = given.instructions.read_text(encoding="utf-8")
    items = [json.loads(line) for line in given.items.read_text(encoding="utf-8").splitlines()]
    for item in items:
        item["image"] = str(given.items.parent / item["image"])
    judge = Judge(
        model_name=given.model,
        backend="openai",
        generation_params={"temperature": 0, "max_tokens": 600},
        backend_params={
            "base_url": given.base_url,
            "max_concurrent_requests": given.n_at_once,
            "max_requests_per_minute": NO_LIMIT,
            "max_tokens_per_minute": NO_LIMIT,
        },
    )
    judged = judge(items, working_dir=str(given.output / "curator"))
    judged.dataset.to_json(given.output / "judgements.jsonl")


if __name__ == "__main__":
    main()
