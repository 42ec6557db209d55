"""A reply in words and sentences, once: whether any of a long list stands in it is then one look. No meaning is read here."""

import functools
import html
import re
import unicodedata
from collections.abc import Iterable, Mapping

from rubrics.replies.cleaning import with_plain_blanks
from rubrics.replies.numbers import WHITE_SPACE, ZERO_WIDTH

_APOSTROPHES = "'’‘`´ʼ＇"
_PARTING = '.,;:!?()[]{}<>"“”„«»*_#|/\\-–—…=+~&\t\n\r。，；：！？、（）【】「」《》／·'


class _Table:
    """Signs that become another, or nothing. None of the others is one of the signs."""

    def __init__(self, moved: Mapping[str, str]) -> None:
        self.moved = moved
        self.every = str.maketrans(dict(moved))
        self.narrow = bytes(ord(moved.get(chr(code), "") or chr(code)) for code in range(256))
        self.deleted = bytes(ord(sign) for sign, other in moved.items() if not other and sign <= _LAST_NARROW)


_LAST_NARROW = "\xff"  # of the characters that are a byte each
_N_MOVED_MAX = 40
_FLAT = dict.fromkeys(_PARTING, " ") | dict.fromkeys(_APOSTROPHES + ZERO_WIDTH, "")
_AS_WORDS = _Table(_FLAT)
_AS_LINES_OF_WORDS = _Table({sign: other for sign, other in _FLAT.items() if sign != "\n"})

N_READ = 100_000
_N_HEAD, _N_TAIL = 6000, 2000
_SENTENCE = re.compile(r"[^.!?;\n]*+(?:\.(?=[0-9])[^.!?;\n]*+)*+[.!?;\n]?+")
# Plain quotes and marks; and for a blank whatever parts words and ends no sentence.
_PLAIN = _Table(
    dict(zip("’‘`´ʼ＇，。；：！？（）【】", "'''''',.;:!?()[]", strict=True))
    | dict.fromkeys({*WHITE_SPACE, *'_#>"“”„«»\\', *ZERO_WIDTH} - {" ", "\n"}, " ")
    | dict.fromkeys("\u00ad\u200c\u200d\u2060", "")  # these part no words
)
_NO_SENTENCE = frozenset({"", " ", "\n"})
# Each opens with the sign itself, not with what stands before it: re skips from one to the next.
_SINGLE = (
    r"(?<=[\w,;:(] ')(?=[^'\n]{1,120} )(?:[^'\n]|'(?=\w)){1,200}'(?!\w)"
    r"|(?<=[\w,;:(] [“‘«„])(?=[^”’»“\n]{1,120} )[^”»“\n]{1,200}[”’»“]"
)  # fmt: skip
_QUOTED = re.compile(rf"""['“‘«„"](?:{_SINGLE}|(?<=[a-z,;] ")(?=[^"\n]{{1,120}} )[^"\n]{{1,200}}")""")
_QUOTED_IN_JSON = re.compile(rf"""['“‘«„\\](?:{_SINGLE}|(?<=[\w,;:(] \\)"(?=[^"\n]{{1,120}} )[^"\n]{{1,200}}\\")""")
# Before either stands a word and a blank: most replies hold none of these.
_OPENINGS = (" '", ' "', " “", " ‘", " «", " „")
_OPENINGS_IN_JSON = (" '", ' \\"', " “", " ‘", " «", " „")
_CURLY_KEY = re.compile(r"[{,]\s*+“[^”\n]{1,60}”\s*+:")
_HAS_NO_WIDTH = re.compile(f"[{ZERO_WIDTH}]")


class Sentence:
    """In small letters, with plain quotes and marks, without emphasis, one space between words; `flat`: its words alone."""

    __slots__ = ("_words", "flat", "text")

    def __init__(self, text: str, flat: str) -> None:
        self.text, self.flat = text, flat
        self._words: frozenset[str] | None = None

    @property
    def words(self) -> frozenset[str]:
        """The distinct ones."""
        if self._words is None:
            self._words = frozenset(self.flat.split())
        return self._words


class Sentences:
    """Those of a text's first 6,000 and last 2,000 characters: at one of them a judge says what it thinks of the whole.

    `lines` is all of it, `text` with a blank for a line's end, and `words` its distinct words: what these do not hold is in no
    sentence.
    """

    def __init__(self, text: str) -> None:
        self.is_whole = len(text) <= _N_HEAD + _N_TAIL
        if not self.is_whole:
            head, tail = text[:_N_HEAD], text[-_N_TAIL:]  # and no word or number of which a part alone is there
            text = f"{head.rpartition(' ')[0] or head}\n{tail.partition(' ')[2] or tail}"
        plain = _translated(unadorned(text).lower(), _PLAIN)
        while "  " in plain:
            plain = plain.replace("  ", " ")
        self.lines = plain
        self.text = plain.replace("\n", " ")
        self.words = frozenset(_translated(plain, _AS_WORDS).split())

    @functools.cached_property
    def each(self) -> list[Sentence]:
        """The sentences, in their order. A number's point ends none."""
        found = _SENTENCE.findall(self.lines.replace(" \n", "\n"))
        texts = [one.replace("\n", " ") for one in found if one not in _NO_SENTENCE]
        flats = _translated("\n".join(texts), _AS_LINES_OF_WORDS).split("\n") if texts else []
        return [Sentence(text, flat) for text, flat in zip(texts, flats, strict=True)]

    def with_any(self, words: frozenset[str]) -> list[Sentence]:
        """The sentences that hold one of the words."""
        here = self.words & words
        found = []
        for one in self.each if here else ():
            for word in here:
                if word in one.flat:  # or in another word: most sentences hold none, and need not be taken apart
                    if not here.isdisjoint(one.words):
                        found.append(one)
                    break
        return found


_NO_CHARACTER = re.compile(r"&#(?=[0-9]{400})")  # html.unescape raises for thousands of digits
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([nrt\"]))")
_ESCAPED = {"n": "\n", "r": "\n", "t": " ", '"': '"'}
_CODE = re.compile(r"`(?:(?<!\w`)`*+|`*+(?!\w))")
_FORMULA = re.compile(r"\$([0-9]{1,3}(?:\.[0-9]{1,2})?)\$")
_POINT_NOTHING = re.compile(r"(?<=[0-9])\.0{1,2}+(?![0-9])")
_DOTS = re.compile(r"(?<!\.)\.{2,}+(?![0-9])")
_ELLIPSIS = re.compile(r"(?<! )…(?=\s+[A-Z])")
_PICTOGRAM = re.compile("[\u2600-\u2604\u2607-\u2712\u2719-\u27bf\U0001f000-\U0001faff\ufe0f]")  # but stars and check marks
_LINE_BEGINS = re.compile(r"\n(?:[ >•◦·#–—]|-(?= ))++")
_AFTER_A_FORM = re.compile(r" (?<=[\]}] )(?=[A-Z])")
# What parts the words of a key is a blank: FinalScore, final_score, final-score. One word each: iPhone, img_3, well-lit, "a_key".
_CAMEL = re.compile(r"[A-Z](?<=[a-z]{2}.)(?=[a-z])")
_UNDERSCORE = re.compile(r"_(?:(?<=[^\W\d]_)|(?<!\w_)(?=[A-Za-z_]))(?=[A-Za-z_]*+(?![\w\"]))")
_HYPHEN = re.compile(r"-(?<=[a-z]-)(?=(?:scores?|ratings?|marks?|grades?|verdict|answer|evaluation|assessment)\b)", re.IGNORECASE)


def unadorned(text: str) -> str:
    """The text without emphasis, code, formulas, pictograms, escapes; 3 for 3.0, a dot for three, two words for FinalScore."""
    if "&" in text:
        text = with_plain_blanks(html.unescape(_NO_CHARACTER.sub("", text)))
    if "\\" in text:
        text = _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else _ESCAPED[found[2]], text)
    text = text.replace("*", "")
    text = _CAMEL.sub(r" \g<0>", text)
    if "`" in text:
        text = _CODE.sub("", text)
    if "$" in text:
        text = _FORMULA.sub(r"\1", text)
    if ".0" in text:
        text = _POINT_NOTHING.sub("", text)
    if ".." in text:
        text = _DOTS.sub(".", text)
    return text if text.isascii() else _PICTOGRAM.sub("", _ELLIPSIS.sub(".", unicodedata.normalize("NFC", text)))


def squeezed(text: str) -> str:
    """`unadorned`, one blank where several part words, none where a line begins, nothing without width: what patterns expect."""
    text = unadorned(text)
    if not text.isascii():
        text = _HAS_NO_WIDTH.sub("", text).replace("：", ": ")
    if "_" in text:
        text = _UNDERSCORE.sub(" ", text)
    if "-" in text:
        text = _HYPHEN.sub(" ", text)
    text = text.replace("\t", " ")
    while "  " in text:
        text = text.replace("  ", " ")
    return _AFTER_A_FORM.sub("\n", _LINE_BEGINS.sub("\n", f"\n{text}")[1:])


_NOT_AS_LOWER = re.compile("[\u0130\u0131\u017f\u212a]")  # what re.IGNORECASE takes for i, s and k, and lower() does not


def lowered(text: str) -> str | None:
    """The text in small letters, for `holds_any`; None where it has letters that only re.IGNORECASE takes for others."""
    return None if not text.isascii() and _NOT_AS_LOWER.search(text) else text.lower()


def is_plain(text: str) -> bool:
    """Whether no other script, escape or entity may hide a word, so that needles are looked for in the text as it is."""
    return text.isascii() and "\\" not in text and "&" not in text


def holds_any(lower: str | None, needles: Iterable[str]) -> bool:
    """Whether one of the needles, in small letters, may be in a text that was `lowered`.

    What a pattern cannot do without is looked for first: that is some fifty times cheaper than the pattern.
    """
    if lower is None:
        return True
    for needle in needles:  # noqa: SIM110 - a generator takes three times as long
        if needle in lower:
            return True
    return False


def holds_each(lower: str | None, needles: Iterable[Iterable[str]]) -> bool:
    """Whether `holds_any` of each of several lists."""
    if lower is None:
        return True
    for one_of in needles:
        for needle in one_of:
            if needle in lower:
                break
        else:
            return False
    return True


@functools.cache
def compiled(way: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """A pattern, compiled when it is first looked for: a process meets few of them, and all take a third of a second."""
    return re.compile(way, flags)


def words_of(text: str, sentences: Sentences, *, is_unquoted: bool) -> frozenset[str]:
    """The distinct words of the text's first and last 100,000 characters: its sentences', where they are all of it.

    `is_unquoted`: nothing of the text was blanked. What has no width parts words for sentences alone.
    """
    if is_unquoted and sentences.is_whole and (text.isascii() or not _HAS_NO_WIDTH.search(text)):
        return sentences.words
    if len(text) > 2 * N_READ:
        text = f"{text[:N_READ]} {text[-N_READ:]}"
    return frozenset(_translated(unadorned(text).lower(), _AS_WORDS).split())


def without_quotations(text: str, *, is_json: bool) -> str:
    """The text with its quotations of several words blanked, every other character in its place.

    What is quoted is written in the picture or in the prompt: a sign that reads "no image available" says nothing of the judge. A
    whole reply in quotes, and the strings of an object, are no quotations: one follows a word.
    """
    if is_json and "“" in text and _CURLY_KEY.search(text):
        return text  # of such an object every string would be one
    for opening in _OPENINGS_IN_JSON if is_json else _OPENINGS:
        if opening in text:
            return (_QUOTED_IN_JSON if is_json else _QUOTED).sub(lambda found: " " * len(found[0]), text)
    return text


def _translated(text: str, table: _Table) -> str:
    """As str.translate, which is slow where a character is not ASCII. That of bytes never is, and few signs stand in one text."""
    if text.isascii():
        return text.encode("ascii").translate(table.narrow, table.deleted).decode("ascii")
    signs = frozenset(text)
    moved = table.moved.keys() & signs
    if len(moved) > _N_MOVED_MAX:
        return text.translate(table.every)
    wide = {sign for sign in moved if sign > _LAST_NARROW}
    is_narrow = max(signs - wide, default="") <= _LAST_NARROW
    for sign in wide if is_narrow else moved:
        text = text.replace(sign, table.moved[sign])
    return text.encode("latin-1").translate(table.narrow, table.deleted).decode("latin-1") if is_narrow else text
