"""Fuzzes the reading of replies for a time, and prints how many were read and which laws were broken. Nothing of it is asserted.

python -m benchmarks.fuzz_replies [--seconds 60] [--seed 1]

Replies are grown from the golden ones of every rubric and from well-formed answers by a mutator that knows their parts. Where
atheris is installed its coverage decides which to grow further; it is no requirement of ours.
"""

import argparse
import json
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from types import FunctionType

from rubrics.golden import read_replies
from rubrics.loading import SHIPPED, load_rubric
from rubrics.model import ReplyFormat, Rubric, Variant
from rubrics.replies.read import parse_reply
from schemas.input_budget import REPLY_TEXT_BYTES
from schemas.records import ReadScores, Unreadable

IDS = ("interleaved", "image_aspects", "caption", "composition", "alignment")
N_BYTES_FED_MAX = 20_000
CPU_LIMIT_S = 0.1
N_SHOWN = 3
PARTS = (
    *"{}[]()<>\"':;,=*_`#/\\|.-+~ \n\t\r0123456789", "\u2028", "\x00", "\ud800",
    "４", "“", "”", "’", "½", "−", "：", "＝", "【", "】", "[", "\u200b", "Score",
    "score", "Overall Score: ", '"score": ', '"overall_score"', "```json\n", "```", "<think>", "</think>\n", "/*",
    "*/", "//", "null", "NaN", "true", "1e9", "-0", "4.5", "10", "/10", "/5", " out of 5", "%", " or ", " to ", "3-4", "<0-5>",
    "[0-4]", "n", "...", "Reasoning: ", "Final ", "final_scores", "evaluation", "reason", "max_score",
    "I'm sorry, I cannot", "no image was provided",
)  # fmt: skip
_NUMBERS = re.compile(r"-?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_UNSIGNED = re.compile(r"[0-9]+(?:\.[0-9]+)?")


class Fuzzer:
    """The rubrics, the texts to grow from, and what was found."""

    def __init__(self, seed: int) -> None:
        self.rubrics = [load_rubric(SHIPPED / rubric_id) for rubric_id in IDS]
        self.draw = random.Random(seed)
        self.pool = [list(_seeds(rubric, self.draw)) for rubric in self.rubrics]
        self.n_seeds = [len(texts) for texts in self.pool]
        self.n_read: Counter[str] = Counter()
        self.slowest_s = 0.0
        self.broken: dict[str, list[str]] = {}

    def grown(self, index: int, text: str | None = None) -> str:
        """A text of the rubric's pool, or the given one, with a few changes."""
        if text is None:  # mostly from what is well-formed: grown texts soon are no replies at all
            n = self.n_seeds[index] if self.draw.random() < 0.7 else len(self.pool[index])
            text = self.pool[index][self.draw.randrange(n)]
        for _ in range(self.draw.choice((1, 1, 2, 3, 5, 9))):
            text = self._changed(text, index)
        return text[:N_BYTES_FED_MAX]

    def _changed(self, text: str, index: int) -> str:
        draw = self.draw
        start = draw.randint(0, len(text))
        end = min(len(text), start + draw.choice((0, 1, 1, 2, 4, 16)))
        kind = draw.randrange(7)
        if kind < 3:
            return text[:start] + draw.choice(PARTS) + text[end if kind else start :]
        if kind == 3:
            return text[:start] + text[end:]
        if kind == 4:  # a piece again, somewhere
            at = draw.randint(0, len(text))
            return text[:at] + text[start:end] * draw.choice((1, 2, 50)) + text[at:]
        if kind == 5:  # the rest of another
            other = draw.choice(self.pool[index])
            return text[:start] + other[draw.randint(0, len(other)) :]
        digits = [place for place, sign in enumerate(text) if sign in "0123456789"]
        at = draw.choice(digits) if digits else start
        return text[:at] + draw.choice("0123456789") + text[at + 1 :]

    def check(self, index: int, text: str) -> str | None:
        """Read one text and hold the laws against what was read; the result's name."""
        rubric = self.rubrics[index]
        variant = _variant(rubric)
        context = {"category": variant.category}
        started_s = time.process_time()
        try:
            found = parse_reply(rubric, text, context)
            json.dumps(found.as_dict(), allow_nan=False)
        except Exception as error:  # noqa: BLE001 - this is what is looked for
            self._breaks(rubric, f"raises {type(error).__name__}", text)
            return None
        if isinstance(found, Unreadable) and found.fault:
            self._breaks(rubric, f"raises {found.fault}", text)
        used_s = time.process_time() - started_s
        self.slowest_s = max(self.slowest_s, used_s)
        if used_s > CPU_LIMIT_S:
            self._breaks(rubric, f"takes more than {CPU_LIMIT_S} s", text)
        if isinstance(found, ReadScores):
            self._check_scores(rubric, variant, text, found)
        name = "scores" if isinstance(found, ReadScores) else found.reason.value
        self.n_read[name] += 1
        return name

    def _check_scores(self, rubric: Rubric, variant: Variant, text: str, found: ReadScores) -> None:
        said = {float(number) for pattern in (_NUMBERS, _UNSIGNED) for number in pattern.findall(text)}
        if not set(found.scores.values()) <= said:
            self._breaks(rubric, "reads a number that does not stand there", text)
        if any(not d.minimum <= found.scores[d.key] <= d.maximum for d in variant.dimensions):
            self._breaks(rubric, "reads a number off the scale", text)
        context = {"category": variant.category}
        other = {d.key: d.minimum if found.scores[d.key] != d.minimum else d.maximum for d in variant.dimensions}
        laws = ((other, "chooses between two answers"), (found.scores, "an answer said again is another"))
        # A further answer behind thinking that never ends is none.
        for scores, law in () if "think" in text.lower() else laws:
            again = parse_reply(rubric, f"{text}\n\n{plain(rubric, variant, scores)}", context)
            if isinstance(again, ReadScores) and (scores is other or again.scores != found.scores):
                self._breaks(rubric, law, text)
        spaced = parse_reply(rubric, f"\n {text} \n\n", context)
        if isinstance(spaced, Unreadable) or spaced.scores != found.scores:
            self._breaks(rubric, "white space around it changes it", text)

    def _breaks(self, rubric: Rubric, law: str, text: str) -> None:
        self.broken.setdefault(f"{rubric.id}: {law}", []).append(text)

    def report(self, about: str, started_s: float) -> None:
        """Print what was counted, and the shortest texts that broke each law."""
        n = sum(self.n_read.values())
        seconds = time.monotonic() - started_s
        print(f"{about}: {n:,} replies read in {seconds:.0f} s; the slowest took {self.slowest_s * 1000:.1f} ms of CPU")
        print("  " + ", ".join(f"{name} {count:,}" for name, count in self.n_read.most_common()))
        for law, texts in sorted(self.broken.items()):
            print(f"  {law}: {len(texts)}, the shortest:")
            for text in sorted(set(texts), key=len)[:N_SHOWN]:
                print(f"    {text[:300]!r}")
        print(f"  {len(self.broken)} laws broken")


def plain(rubric: Rubric, variant: Variant, scores: dict[str, float]) -> str:
    """The answer as the prompt asks for it."""
    pairs = [(dimension.labels[0], scores[dimension.key]) for dimension in variant.dimensions]
    if rubric.reply_format is ReplyFormat.JSON:
        return json.dumps(dict(pairs))
    listed = [f"{label}: {score:g}" for label, score in pairs]
    return f"[{'; '.join(listed)}]" if rubric.reply_format is ReplyFormat.BRACKET else "\n".join(listed)


def _variant(rubric: Rubric) -> Variant:
    return next(iter(rubric.variants.values()))


def _seeds(rubric: Rubric, draw: random.Random) -> Iterator[str]:
    yield from (str(reply["raw"]) for reply in read_replies(rubric.folder) if reply["raw"])
    variant = _variant(rubric)
    for _ in range(40):
        scores = {d.key: float(draw.randint(int(d.minimum), int(d.maximum))) for d in variant.dimensions}
        yield plain(rubric, variant, scores)
        if rubric.reply_format is ReplyFormat.JSON:
            nested = {d.labels[0]: {"score": scores[d.key], "reason": 'It\'s "so".'} for d in variant.dimensions}
            yield f"```json\n{json.dumps(nested, indent=1)}\n```"


def _at_random(fuzzer: Fuzzer, seconds: float) -> None:
    ends_s = time.monotonic() + seconds
    seen: set[tuple[int, str]] = set()
    while time.monotonic() < ends_s:
        index = fuzzer.draw.randrange(len(fuzzer.rubrics))
        text = fuzzer.grown(index)
        result = fuzzer.check(index, text)
        shape = (index, f"{result} {re.sub(r'[^{}:;=,<*#]+', 'w', text)[:60]}")
        if shape not in seen and len(seen) < 20_000:  # a new shape is grown further
            seen.add(shape)
            fuzzer.pool[index].append(text)


def _by_coverage(fuzzer: Fuzzer, seconds: float, started_s: float) -> None:
    import atheris  # type: ignore[import-not-found]

    def one(fed: bytes) -> None:
        if time.monotonic() > started_s + seconds:  # libFuzzer would end the process without a word
            fuzzer.report("by coverage", started_s)
            sys.stdout.flush()
            os._exit(0)
        if fed:
            fuzzer.check(fed[0] % len(fuzzer.rubrics), fed[1:].decode("utf-8", "surrogatepass" if fed[0] & 128 else "replace"))

    def mutate(fed: bytes, limit: int, seed: int) -> bytes:
        fuzzer.draw.seed(seed)
        index = (fed[0] if fed else seed) % len(fuzzer.rubrics)
        text = fed[1:].decode("utf-8", "replace") if len(fed) > 1 and fuzzer.draw.random() < 0.8 else None
        return (bytes([index]) + fuzzer.grown(index, text).encode("utf-8", "replace"))[:limit]

    for function in _functions_that_read():
        atheris.instrument_func(function)
    arguments = [sys.argv[0], f"-max_len={N_BYTES_FED_MAX}", "-verbosity=0"]
    atheris.Setup(arguments, one, custom_mutator=mutate)
    atheris.Fuzz()


def _functions_that_read() -> Iterator[FunctionType]:
    """Functions and methods of the parser's modules. All modules there are would take a minute."""
    modules = [module for name, module in sys.modules.items() if name.startswith("rubrics.repl")]
    for module in modules:
        for thing in vars(module).values():
            if getattr(thing, "__module__", None) == module.__name__:
                held = vars(thing).values() if isinstance(thing, type) else [thing]
                yield from (function for function in held if isinstance(function, FunctionType))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--coverage", action="store_true", help="let atheris guide it")
    given = parser.parse_args()
    fuzzer, started_s = Fuzzer(given.seed), time.monotonic()
    assert N_BYTES_FED_MAX < REPLY_TEXT_BYTES
    if given.coverage:
        _by_coverage(fuzzer, given.seconds, started_s)
    else:
        _at_random(fuzzer, given.seconds)
        fuzzer.report("at random", started_s)


if __name__ == "__main__":
    main()
