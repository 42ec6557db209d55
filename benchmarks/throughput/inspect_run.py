"""The same judgements through Inspect's public API: a Task whose samples are pictures, a scorer that reads the score."""

import argparse
import json
import os
import re
from pathlib import Path

from inspect_ai import Task, eval  # noqa: A004 - Inspect's own name
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageUser, ContentImage, ContentText
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import TaskState, generate

SCORE = re.compile(r"Score:\s*([1-5])\b")


@scorer(metrics=[mean()])
def read_score() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001 - Inspect's own signature
        found = SCORE.search(state.output.completion)
        return Score(value=int(found[1]) if found else 0, answer=state.output.completion)

    return score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("items", type=Path)
    parser.add_argument("instructions", type=Path)
    parser.add_argument("base_url")
    parser.add_argument("model")
    parser.add_argument("n_at_once", type=int)
    parser.add_argument("output", type=Path)
    given = parser.parse_args()
    os.environ.setdefault("LOCAL_API_KEY", "none")
    instructions = given.instructions.read_text(encoding="utf-8")
    samples = []
    for line in given.items.read_text(encoding="utf-8").splitlines():
        item = json.loads(line)
        picture = ContentImage(image=str(given.items.parent / item["image"]))
        message = ChatMessageUser(content=[ContentText(text=instructions + item["prompt"]), picture])
        samples.append(Sample(id=item["item_id"], input=[message]))
    (log,) = eval(
        Task(dataset=MemoryDataset(samples), solver=generate(), scorer=read_score()),
        model=f"openai-api/local/{given.model}",
        model_base_url=given.base_url,
        max_connections=given.n_at_once,
        temperature=0,
        max_tokens=600,
        log_dir=str(given.output / "logs"),
        display="none",
    )
    if log.status != "success":
        raise SystemExit(f"Inspect: {log.status}: {log.error.message if log.error else ''}")


if __name__ == "__main__":
    main()
