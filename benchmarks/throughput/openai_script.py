"""The script a competent user would write: AsyncOpenAI, asyncio.gather behind a semaphore, a line of JSON for each judgement."""

import argparse
import asyncio
import base64
import json
import re
from pathlib import Path

from openai import AsyncOpenAI, DefaultAioHttpClient

SCORE = re.compile(r"Score:\s*([1-5])\b")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("items", type=Path)
    parser.add_argument("instructions", type=Path)
    parser.add_argument("base_url")
    parser.add_argument("model")
    parser.add_argument("n_at_once", type=int)
    parser.add_argument("output", type=Path)
    parser.add_argument("--aiohttp", action="store_true", help="the package's aiohttp transport in place of its default")
    given = parser.parse_args()
    client = AsyncOpenAI(base_url=given.base_url, api_key="none", http_client=DefaultAioHttpClient() if given.aiohttp else None)
    instructions = given.instructions.read_text(encoding="utf-8")
    items = [json.loads(line) for line in given.items.read_text(encoding="utf-8").splitlines()]
    gate = asyncio.Semaphore(given.n_at_once)
    with (given.output / "judgements.jsonl").open("w", encoding="utf-8") as lines:

        async def ask(item: dict[str, str]) -> None:
            async with gate:
                picture = base64.b64encode((given.items.parent / item["image"]).read_bytes()).decode()
                reply = await client.chat.completions.create(
                    model=given.model,
                    temperature=0,
                    max_tokens=600,
                    messages=[
                        {
                            "role": "user",
                            "content": [
                                {"type": "text", "text": instructions + item["prompt"]},
                                {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{picture}"}},
                            ],
                        }
                    ],
                )
            text = reply.choices[0].message.content or ""
            score = SCORE.search(text)
            row = {"item_id": item["item_id"], "score": int(score[1]) if score else None, "reply": text}
            lines.write(json.dumps(row) + "\n")

        await asyncio.gather(*(ask(item) for item in items))
    await client.close()


if __name__ == "__main__":
    asyncio.run(main())
