"""What of a reply is no answer: thinking aloud, tokens that leaked, the prompt said back. Nothing is moved: spans stay true.

What is taken out is blanked, so that a character of the cleaned answer stands where it stood in the reply.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from rubrics.replies.numbers import BLANK, WHITE_SPACE, ZERO_WIDTH

_N_QUOTED_LINES_MAX = 4000
_N_LEAST_QUOTED = 40
_N_NESTED_MAX = 3
_N_BLANKED_MAX = 1000  # more are no reply's
# Other tags are only a part of what some judges write: without their end they are no thinking that never ended.
_ASIDE = re.compile(rf"[{BLANK}]*+<(thoughts?|reasoning|analysis|reflection|scratchpad|seed:think)>", re.IGNORECASE)
_THINKING = re.compile(rf"[{BLANK}]*+(?:<think(?:ing)?>|\[THINK\]|◁think▷|<\|begin_of_thought\|>)", re.IGNORECASE)
_THOUGHT = re.compile(r"</think(?:ing)?>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>", re.IGNORECASE)
# Some models' opening tag is part of their prompt. Alone at a line's end: a text may speak of the tag.
_THOUGHT_UNOPENED = re.compile(r"(?:</think(?:ing)?>|\[/THINK\]|◁/think▷)[ \t\r]*+(?:\n|\Z)", re.IGNORECASE)
_THOUGHT_AGAIN = re.compile(r"(?:^|\n)[ \t]*+<think(?:ing)?>", re.IGNORECASE)
_THOUGHT_ENDS = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_TOKEN = re.compile(
    r"(?P<struck><s>(?:(?<=[^\s>\]]<s>)|(?<=[^\s>\]] <s>))[^<>\n:：]{1,80}</s>)"
    r"|<\|[A-Za-z_/][A-Za-z0-9_ /]{0,40}\|>|<｜[^<>|｜\n]{1,40}｜>|</?s>|<(?:start|end)_of_turn>|<eos>|<bos>|<pad>|\[/?INST\]"
)
_MARKUP = re.compile(r"</?(?:div|p|br|span|strong|em|b|i|center|body|html)\s?/?>", re.IGNORECASE)
# \textbf{Score:} 7, \boxed{Score: 7}, \(7/10\). A number alone in a box may be a second answer, and stays one.
_COMMAND = re.compile(
    r"(?<!\\)\\(?:text|textbf|textit|textrm|emph|mathbf|mathrm|mathsf|boxed|fbox)\{"
    r"(?P<inside>[^{}\\\n\":：]{1,60}+[:：][ ~$]{0,6}(?:[0-9][0-9./ ]{0,12}+\$?)?|[ ~]?out of[ ~]?)\}"
)
_FORMULA = re.compile(r"(?<!\\)\\[(\[](?P<inside>[^\\\n{}]{0,80}[0-9:：][^\\\n{}]{0,12})\\[)\]]")
_NOT_BREAK = re.compile(r"[^\n]")
_LINE_ENDS = "\x85\u2028\u2029"
_PLAIN = str.maketrans(
    dict.fromkeys(set(WHITE_SPACE) - {*" \t\n\r", *_LINE_ENDS}, " ") | dict.fromkeys(_LINE_ENDS, "\n") | dict.fromkeys("ʼ＇", "'")
)


def with_plain_blanks(text: str) -> str:
    """The text with a blank for whatever else parts words, a line feed for what else ends a line. No place moves."""
    if "\r" in text:
        text = text.replace("\r\n", " \n").replace("\r", "\n")
    if text.isascii():
        return text
    begun = text.lstrip(ZERO_WIDTH)
    return (" " * (len(text) - len(begun)) + begun).translate(_PLAIN)


def thoughts_and_answer(text: str) -> tuple[str, int | None]:
    """(what a reasoning model thought aloud, where its answer begins); None where the thinking never ended.

    What it thinks again within its answer is among its thoughts, and `cleaned` blanks it.
    """
    if "<" not in text and "[/" not in text and "◁" not in text:
        return "", 0
    thoughts, at = _first_thoughts(text)
    if at is not None and text.find("<think", at) >= 0:
        answer = text[at:]
        thoughts = "\n".join([thoughts, *(answer[start:end] for start, end in _later_thoughts(answer))])
    return thoughts, at


def _first_thoughts(text: str) -> tuple[str, int | None]:
    is_opened = _THINKING.match(text) is not None
    end = (_THOUGHT if is_opened else _THOUGHT_UNOPENED).search(text)
    if end:
        return text[: end.start()], end.end()
    if not is_opened and (aside := _ASIDE.match(text)):
        closing = text.find(f"</{aside[1]}>", aside.end())
        if closing >= 0:
            return text[:closing], closing + len(aside[1]) + 3
    return "", None if is_opened else 0


def cleaned(answer: str, prompt: str | None) -> str:
    """The answer with leaked tokens, thinking within it and what it quotes of its prompt as blanks: places stay."""
    if "<" in answer or "[" in answer:
        if "think" in answer:
            answer = _without_thoughts(answer)
        answer = _TOKEN.sub(_blank_token, answer, _N_BLANKED_MAX)
        if ">" in answer:
            answer = _MARKUP.sub(_blank, answer)
    return _unquoted(answer, prompt) if prompt and len(answer) > _N_LEAST_QUOTED else answer


def without_formulas(answer: str, *, is_json: bool) -> str:
    """The answer with LaTeX around its labels as blanks: places stay. In JSON a backslash escapes."""
    if is_json or not 0 < answer.count("\\") < _N_BLANKED_MAX:
        return answer
    for _ in range(_N_NESTED_MAX):
        bare = _COMMAND.sub(_uncovered, answer)
        if bare == answer:
            break
        answer = bare
    return _FORMULA.sub(_uncovered, answer)


def _uncovered(found: re.Match[str]) -> str:
    """What stands inside, where it stood."""
    start, end = found.span("inside")
    return f"{' ' * (start - found.start())}{found['inside']}{' ' * (found.end() - end)}"


def _without_thoughts(answer: str) -> str:
    """Thinking within the answer as blanks."""
    pieces: list[str] = []
    done = 0
    for start, end in _later_thoughts(answer):
        pieces += [answer[done:start], _NOT_BREAK.sub(" ", answer[start:end])]
        done = end
    return "".join([*pieces, answer[done:]])


def _later_thoughts(answer: str) -> Iterator[tuple[int, int]]:
    """From each opening to the next end: one look at each character. Thinking that never ended goes on to the answer's."""
    at = 0
    for _ in range(_N_BLANKED_MAX):
        opening = _THOUGHT_AGAIN.search(answer, at)
        if opening is None:
            return
        ending = _THOUGHT_ENDS.search(answer, opening.end())
        at = len(answer) if ending is None else ending.end()
        yield opening.start(), at


def _blank_token(found: re.Match[str]) -> str:
    """A token as blanks; what is struck through within a line is none."""
    return found["struck"] or _blank(found)


def _blank(found: re.Match[str]) -> str:
    return _NOT_BREAK.sub(" ", found[0])


def _unquoted(answer: str, prompt: str) -> str:
    """Runs of lines that stand in the prompt in the same order, a long one among them. The prompt's examples hold numbers."""
    lines = answer.split("\n")
    if len(lines) > _N_QUOTED_LINES_MAX:
        return answer
    following = _following(prompt)
    if not any(len(line) >= _N_LEAST_QUOTED and _bare(line.strip()) in following for line in lines):
        return answer
    plain = [line.strip() for line in lines]
    index = 0
    while index < len(lines):
        run = _run(plain, index, following)
        if any(len(_bare(plain[at])) >= _N_LEAST_QUOTED for at in run):
            for at in run:
                lines[at] = " " * len(lines[at])
        index = run[-1] + 1 if run else index + 1
    return "\n".join(lines)


def _run(plain: list[str], index: int, following: dict[str, frozenset[str]]) -> list[int]:
    """The indices of lines from `index` on that follow one another in the prompt; blank lines between them do not count."""
    run: list[int] = []
    expected: frozenset[str] | None = None
    for at in range(index, len(plain)):
        line = _bare(plain[at])
        if not line and run:
            continue
        if line not in following or (expected is not None and line not in expected):
            break
        run.append(at)
        expected = following[line]
    return run


def _bare(line: str) -> str:
    return line.lstrip("> \t") if line[:1] == ">" else line


@lru_cache(maxsize=64)
def _following(prompt: str) -> dict[str, frozenset[str]]:
    """Each line of the prompt, without white space around it -> the lines that come after it."""
    lines = [line for line in map(str.strip, prompt.split("\n")) if line]
    after: dict[str, set[str]] = {}
    for line, then in zip(lines, [*lines[1:], ""], strict=True):
        after.setdefault(line, set()).add(then)
    return {line: frozenset(thens) for line, thens in after.items()}
