"""Two kinds of words that together tell a judge that saw nothing, however it says so. What it says outright is missing_input.py.

One kind alone is said of pictures every day ("no image of the moon", "I cannot see any text"); two in neighbouring sentences were in
none of 8,740 recorded reasons of real judges (VIEScore, and the recorded replies of published instruments). English alone.
"""

# ruff: noqa: E501, ISC004 - a pattern is read whole, a way to say it a line

import re
from collections.abc import Iterable

_PICTURE = (
    r"(?:images?|pictures?|photos?|photographs?|artworks?|visuals?|attachments?|uploads?|pixels?|illustrations?|files?|output)"
)
_WORDS = r"(?:prompt|text|textual|words?|wording|caption|rubric|description)s?"
_NEVER_CAME = (
    r"(?:(?:was |were |has |have |had )?never (?:reached|arrived|came|was|were|been|shown|sent|loaded)|did(?: not|n't) (?:make|reach|arrive|come|upload|load|get|open|decode)"
    r"|was(?: not|n't) (?:sent|supplied|shown|among|given|provided|enabled|attached|included|passed|available|delivered)|unavailable|absent|missing|corrupt\w*|expired"
    r"|empty|blank|truncated|could(?: not|n't) be (?:retrieved|opened|loaded|displayed|read|decoded|accessed)|cannot be (?:displayed|opened|decoded|viewed)|not enabled"
    r"|does(?: not|n't) decode|gone missing|failed|error)"
)
# (lists of words, of each of which one must stand in the reply; what is looked for then)
_KINDS = tuple((tuple(frozenset(one.split()) for one in words.split("|")), re.compile(pattern)) for words, pattern in (
    (  # a number that was made up, and is said to be
        "default defaults defaulted defaulting placeholder placeholders dummy midpoint midpoints mid fall falling fallback simulate simulates simulated simulating hypothetical"
        " hypothetically procedural arbitrary guess guessed guessing assume assumed assuming estimate estimated estimating lowest minimum middle neutral set real rating"
        " judging going evaluating assessing",
        r"\b(?:default(?:s|ed|ing)?|placeholders?|dummy|mid-?points?|fall(?:ing)? ?back|simulat(?:es?|ed|ing)|hypothetical(?:ly)?|procedural|arbitrary|guess(?:ed|ing)?"
        r"|assum(?:e|ed|ing)|estimat(?:e|ed|ing)|(?:lowest|minimum|middle|neutral) (?:value|score|rating|mark|number)s?|scores? set to|real numbers"
        r"|(?:rating|judging|evaluat\w{1,5}|assess\w{1,5}) (?:by|on|from) (?:how|the quality))\b",
    ),
    (  # what is said of machinery alone
        "400 401 403 404 base64 payload decode decodes decoded decoding pixel pixels bytes page server browse url modality text language vision tag image token viewer input side end call"
        " session conversation message request attachment upload uploaded link corrupt corrupted expired retrieve retrieved retrieval content access trip me chat",
        r"\b(?:40[0134]|base64|payload|decod(?:e|es|ed|ing)|pixel data|no pixels|zero bytes|error page|server|browse|url|modality|text-only|text only|language model"
        r"|vision capabilit\w{1,5}|<image>|token|my (?:viewer|input|side|end)|(?:this|the) (?:call|session|conversation|message|request|chat)|attachment|upload(?:ed)?|link"
        r"|corrupt(?:ed)?|expired|retriev\w{1,4}|content attached|visual access|made? the trip|reached me)\b|<image>",
    ),
    (  # that there are words and no more
        "only just nothing solely purely merely all alone based going rely relying estimated judged rated speak thats"
        "|prompt prompts text texts textual word words wording caption captions rubric rubrics description descriptions",
        rf"\b(?:only|just(?! (?:as|like|what|how|the way))|nothing but|solely|purely|merely|all i)\b[^.;\n]{{0,50}}\b{_WORDS}\b|\b{_WORDS} alone\b"
        rf"|\b(?:based|going|rely\w{{0,3}}|estimated|judged|rated|speak) (?:on|by|from|to|off)\b[^.;\n]{{0,40}}\b{_WORDS}\b|\b{_WORDS}\b[^.;\n]{{0,25}} and that(?:'s| is) (?:it|all)\b",
    ),
    (  # that the picture did not come
        "never not didnt wasnt couldnt cannot doesnt unavailable absent missing corrupt corrupted expired empty blank truncated failed error no without lack nothing what fail fails failure"
        " failing gone dont|image images picture pictures photo photos photograph photographs artwork artworks visual visuals attachment attachments upload uploads pixel pixels"
        " illustration illustrations file files output evaluate look see check describe judge score assess rate decode content data you",
        rf"\b{_PICTURE}\b[^.;!?\n]{{0,60}}\b{_NEVER_CAME}|\b(?:no|without|absent|lack of|nothing|error|failed?|fail(?:ing|ure))\b[^.;!?\n]{{0,30}}\b{_PICTURE}\b"
        rf"|\bnothing (?:visual|(?:was \w+ )?(?:for me )?to (?:evaluate|look|see|check|describe|judge|score|assess|rate))|\bwhat {_PICTURE}\?|\bdoes(?: not|n't) decode\b"
        r"|\bwith no (?:content|data)\b|\byou (?:did(?: not|n't)|never) (?:send|sent|attach|attached|provide|include|upload)",
    ),
    (  # that the judge cannot
        "cannot cant couldnt unable able lack no dont have never unverifiable unchecked can could not|i we me assistant could couldnt cannot unverifiable unchecked",
        r"\b(?:i|we|me|assistant|could)\b[^.;!?\n]{0,25}(?:can(?:not|'t| not)|could(?: not|n't)|unable|not able|was(?: not|n't) able|not been able|lack|no (?:means|way|ability|eyes)"
        r"|do(?: not|n't) have|have no|have nothing|never)\b[^.;!?\n]{0,30}\b(?:see|saw|look(?:ing)?|view|open|check|tell|verify|eyes|speak|browse|access|seen|visual|means|nothing)\b"
        r"|\b(?:could not|couldn't|cannot) (?:be carried out|check|verify)|\bunverifiable\b|\bleaves? [^.\n]{0,30}\bunchecked",
    ),
))  # fmt: skip


def hints_at_nothing(sentences: Iterable[str], words: frozenset[str]) -> bool:
    """Whether two kinds of clues stand in one of these sentences (in small letters, plain quotes) or in two neighbouring ones.

    `words` are the reply's.
    """
    near = [pattern for needles, pattern in _KINDS if not any(one.isdisjoint(words) for one in needles)]
    if len(near) < 2:
        return False
    before: frozenset[int] = frozenset()
    for sentence in sentences:
        here = frozenset(number for number, pattern in enumerate(near) if pattern.search(sentence))
        if len(here | before) > 1 and here:
            return True
        before = here
    return False
