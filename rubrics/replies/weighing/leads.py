"""Words before a score that tell whose it is: what a picture says, or the judge's own. Where they stand is mentions.py's."""

# ruff: noqa: E501 - a list of words is read whole

import re

# Words that lead on to what they hold: a score behind one is a part of its sentence.
LEADING_ON = frozenset({
    "a", "an", "the", "this", "that", "these", "those", "its", "their", "his", "her", "your", "our", "another", "any", "no", "not", "of", "from",
    "for", "to", "with", "without", "as", "at", "by", "in", "on", "into", "like", "than", "below", "above", "under", "over", "or", "and", "nor", "is",
    "are", "was", "were", "be", "been", "being", "says", "say", "said", "saying", "reads", "read", "reading", "states", "state", "stated", "writes",
    "write", "wrote", "written", "writing", "shows", "show", "showing", "showed", "shown", "displays", "display", "displaying", "bears", "bearing",
    "carries", "contains", "contain", "containing", "contained", "holds", "has", "have", "had", "wants", "want", "wanted", "asks", "ask", "asked",
    "demands", "demand", "requests", "requested", "tells", "told", "claims", "claim", "claimed", "prints", "printed", "spells", "spelled", "depicts",
    "features", "featuring", "includes", "including", "called", "labelled", "labeled", "named", "titled", "captioned", "quotes", "mentions",
    "mentioning", "mentioned", "text", "texts", "words", "word", "caption", "phrase", "line", "message", "instruction", "instructions", "command",
    "string", "sentence", "max", "maximum", "highest", "lowest", "possible", "best", "worst", "minimum", "perfect", "top", "example", "sample",
    "previous", "previously", "earlier", "expected", "target", "der", "die", "das", "den", "dem", "ein", "eine", "einen", "einer", "von", "mit",
    "für", "zu", "als", "steht", "sagt", "zeigt", "lautet", "le", "la", "les", "un", "une", "des", "du", "de", "avec", "pour", "dit", "affiche", "el",
    "los", "las", "una", "con", "para", "dice", "il", "lo", "per",
})  # fmt: skip
SAYING = re.compile(
    r"\b(?:says?|said|saying|reads?|reading|states?|stated|stating|writes?|wrote|written|writing|shows?|showing|displays?|displaying|bears?|bearing"
    r"|carries|carrying|contains?|containing|claims?|demands?|demanding|asks?|asking|tells?|telling|wants?|prints?|printed|spells?"
    r"|includ(?:es|ing)|features?|featuring|instructs?|instructing|orders?|commands?|injected|texts?|words?|phrase|caption|instructions?"
    r"|steht|sagt|zeigt|lautet|dit|affiche|dice)[ ,:：]{0,3}\Z",
    re.IGNORECASE,
)
OWN = re.compile(
    r"(?:\b(?:so|therefore|thus|hence|accordingly|finally|conclusion|overall|my(?:\s(?:final|own|overall|total|honest|revised)){0,2})"
    r"|\b(?:i|we)(?:['’](?:d|ll|ve|m)|\s(?:would|will|must|have|am|therefore|thus|do|now|then|hereby|can)){0,3}\s(?:give|gave|given|assign|award|rate|rated|conclude"
    r"|settle|choose|say|think|believe|answer|output|score|go|giving)(?:\s(?:it|this|that|the|them|image|picture|with|on|for|an?)){0,4}"
    r"|\b(?:evaluation|scores?|ratings?|answer|results?|verdict|judge?ments?|assessment|output|response|reply|json|object)(?:\s(?:is|are|as|in|the|follows|format|json|object|here)){0,4})"
    r"[ ,:：]{0,3}\Z",
    re.IGNORECASE,
)
TURNING = re.compile(
    r"\b(?:actually|corrections?|corrected|i mean|meant|should|instead|rather|revis\w{1,4}|chang\w{1,4}|mak(?:e|ing)|updat\w{1,4}|replac\w{1,4}|now|wait|better"
    r"|sorry|edit)\b",
    re.IGNORECASE,
)
