"""The words of a reply, once: whether any of a long list stands in it is then one look. No meaning is read here."""

from rubrics.replies.numbers import ZERO_WIDTH

_APOSTROPHES = "'’‘`´ʼ＇"
_PARTING = '.,;:!?()[]{}<>"“”„«»*_#|/\\-–—…=+~&\t\n\r。，；：！？、（）【】「」《》／·'
_FLAT = str.maketrans(dict.fromkeys(_PARTING, " ") | dict.fromkeys(_APOSTROPHES + ZERO_WIDTH))

N_READ = 100_000


def flat(text: str) -> str:
    """In small letters, without apostrophes ("don't" is dont), other marks as spaces."""
    return text.lower().translate(_FLAT)


def words_of(text: str) -> frozenset[str]:
    """The distinct words of the text's first and last 100,000 characters."""
    if len(text) > 2 * N_READ:
        text = f"{text[:N_READ]} {text[-N_READ:]}"
    return frozenset(flat(text).split())
