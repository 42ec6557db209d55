"""What tells a judge that saw nothing, however it says so: words that can mean nothing else, or two kinds of words together.

What it says in the usual ways is missing_input.py.

One kind of the latter alone is said of pictures every day ("no image of the moon", "I cannot see any text"); two in neighbouring sentences were in
none of 8,740 recorded reasons of real judges (VIEScore, and the recorded replies of published instruments). English alone.
"""

# ruff: noqa: E501, ISC004 - a pattern is read whole, a way to say it a line

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rubrics.replies.doubts.came_badly import CORRUPT, OF_ITS_CONTENT
from rubrics.replies.doubts.words import Sentences, holds_each

_PICTURE = (
    r"(?:images?|pictures?|photos?|photographs?|artworks?|visuals?|attachments?|uploads?|pixels?|illustrations?|files?|output)"
)
_WORDS = r"(?:prompt|text|textual|words?|wording|caption|rubric|description)s?"
_NEVER_CAME = (
    r"(?:(?:was |were |has |have |had )?never (?:reached|arrived|came|was|were|been|shown|sent|loaded)|did(?: not|n't) (?:make|reach|arrive|come|upload|load|get|open|decode)"
    rf"|was(?: not|n't) (?:sent|supplied|shown|among|given|provided|enabled|attached|included|passed|available|delivered)|unavailable|absent|missing|{CORRUPT}|expired"
    r"|empty|blank|truncated|could(?: not|n't) be (?:retrieved|opened|loaded|displayed|read|decoded|accessed)|cannot be (?:displayed|opened|decoded|viewed)|not enabled"
    rf"|does(?: not|n't) decode|gone missing|failed{OF_ITS_CONTENT}|error)"
)
_GIVE = r"(?:provid|send|sent|suppl|includ|giv|upload|re-?upload|attach|re-?attach|re-?send|add|shar)\w{0,4}"
_NO_NOUN = r"(?! (?!(?:because|since|as|just|to|for|only|so|and|but|while|until|when|if|here|due)\b)[a-z])"  # "3 (random) dots"
_CAN_NOT = r"(?:can(?:not|'t| not)|could(?: not|n't)|(?:not|un)[- ]?able to|was(?: not|n't) able to)"
# "If the picture had loaded", but not "if the picture had shown a cat".
_LOADED = (
    rf"(?:(?:i|we) (?:had |could )?(?:been able to |actually )?(?:see|seen|view|viewed|access|accessed|open|opened) (?:the|an?|any|your|this) {_PICTURE}|(?:the|an?|any|your|this) (?:\w+ )?{_PICTURE} (?:had )?(?:actually |only )?(?:been )?"
    r"(?:loaded|arrived|come through|attached|provided|uploaded|sent|delivered|supplied|accessible|visible to me)\b(?! (?:with|as|in|the|an?)\b))"
)


def _lists(words: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(one.split()) for one in words.split("|"))


# (lists of words, of each of which one must stand in the sentence; what a way cannot do without; what is enough alone there)
_ALONE = tuple((_lists(words), needles, re.compile(way)) for words, needles, way in (
    (  # no picture was sent
        "no you send attach upload resend reupload re where wheres until once before soon missing absent without"
        " |image images picture pictures photo photos photograph photographs attachment attachments illustration artwork artworks render file files visual visuals"
        " pixel pixels upload uploads output",
        (("provided", "attach", "upload", "supplied", " sent", "send ", "given", "submitted", "shared", "received", "forgot", "neglected to",
          "failed to", "omitted to", "→", "=", "- ", "means", "where is", "where's", "where are", "until", "once", "before", "as soon as",
          "missing from", "absent from", " without "),),
        rf"\bno (?:(?:actual|generated|valid|attached|uploaded|accompanying|such|visible) )?(?:images?|pictures?|photos?|attachments?) (?:was|were|has been|have been|is|got) (?:\w+ )?(?:provided|attached|uploaded|supplied|sent|given|submitted|shared|received)\b"
        rf"|\byou (?:seem to have |may have |have )?(?:forgot(?:ten)?|neglected|failed|omitted) to {_GIVE} (?:me |us )?(?:the |your |an? )?{_PICTURE}|(?:^|[.;:!?] )(?:please )?(?:send|attach|upload|resend|re-upload|re-attach) (?:me )?(?:the|your|that) (?:image|picture|photo|artwork|file)"
        r"|\bno (?:image|picture|photo)s? ?(?:→|means)|(?:\A|[.:;!?] ?)no (?:image|picture|photo)s? ?(?:= ?|- (?=[^.;]*[0-9][.!]? ?\Z))(?:(?:score|rating):? ?)?[0-9]|\bwhere(?: is|'s| are) (?:the|your|my|that|this) (?:image|picture|photo|artwork|attachment)s?\?"
        rf"|\b(?:until|once|before|as soon as) (?:the |an? |your )?(?:images?|pictures?|photos?|artwork|illustration)(?: file)? (?:is|are|was|has been|gets|(?:can|could) be) (?:\w+ )?(?:{_GIVE}|seen|opened|loaded|available|viewed)\b"
        rf"|\b{_PICTURE} (?:[\w ]{{0,40}}? )?(?:is|was) (?:missing|absent) from (?:it|your|the|this) ?(?:message|request|prompt|chat|conversation|submission|post)?\b|\b(?:submission|message|request|prompt|post) (?:\w+ )?(?:came|arrived|was sent|comes) without (?:its|the|a|any|an) (?:\w+ )?{_PICTURE}",
    ),
    (  # that and nothing else; "No pictures." may be said of a wall
        "no|image img picture",
        (("no image", "no img", "no picture"),),
        r"\A\W*(?:\w+\W{0,2}:)?\W*no (?:image|img|picture)(?: (?:input|file|attachment|data|attached|provided|given|received|here|available))?\W*\Z",
    ),
    (  # it came broken
        "error timed empty corrupt corrupted truncated damaged unreadable unsupported base64 broken preview spinner slot lost dropped stripped removed 0 bytes unable cannot blank failed missing"
        " |image images picture pictures photo photos photograph photographs attachment attachments illustration artwork render file files visual pixels base64 upload download format preview spinner transfer",
        ((" error", "cannot identify", "timed out", "failed", "spinner", "empty", "corrupt", "truncated", "damaged", "unreadable",
          "unsupported", "base64", *(f" {part} {was}" for part in ("slot", "field", "part") for was in ("is", "was")), "broken", "no preview", "lost", "dropped", "stripped", "removed"),),
        r"(?:\A|[.:;!?(] ?)image (?:[a-z]{1,12} ){0,2}error(?=[.:;!)]| ?\Z)|\bcannot identify image\b|\b(?:loading|fetching|opening|downloading) (?:of )?(?:the|your|this) (?:image|picture|file) (?:timed out|failed)|\bloading spinner\b"
        r"|(?:\A|[.:;] |\b(?:an|the|your|is an|was an?) )(?:empty|corrupt(?:ed)?|truncated|damaged|unreadable) (?:attachment|upload|image file|base64)|\bunsupported (?:image |file )?format\b|\bbase64 (?:\w+ ){0,3}?(?:is|was|appears?|seems?) (?:\w+ )?(?:truncated|corrupt|empty|broken|invalid|incomplete)"
        r"|\b(?:file|attachment|upload|download|image data) (?:is|was|looks|appears|seems)(?: to be)? (?:\w+ )?corrupt(?:ed)?\b(?! (?:by|with))"
        r"|\b(?:image|picture|attachment) (?:slot|field|part) (?:is|was) (?:empty|blank|missing)|\bbroken[- ]image (?:icon|symbol|placeholder)|\bno preview available\b"
        r"|\b(?:image|picture|photo|pixels) (?:was|were|got|seems to have been|must have been) (?:\w+ )?(?:damaged|lost|dropped|stripped|removed|truncated|corrupted)(?: \w+)? (?:in transit|in transfer|on the way|before it|during)|\btransfer dropped the\b",
    ),
    (  # the judge did not look, or cannot
        "without not having lack lacking cannot cant couldnt unable able dont doesnt didnt isnt wasnt havent arent no vision never only just"
        " |image images picture pictures photo photos photograph photographs attachment attachments illustration artwork render file files visual pixels vision seen links link output outputs result what it url urls upload uploads text words"
        " prompt caption description renders",
        (("without ", "having no", "having been given no", "not having", "i lack", "we lack", "vision ", "cannot", "can't", "can not", "could not",
          "couldn't", "able to", *(f" {to} {me}" for to in ("to", "for", "on", "at") for me in ("me", "my")), "i have", "we have", "i was",
          "we was", "i were", "we were", "you only", "you just", "you've ", "you have ", "i did", "i also ", "i never"),),
        r"\b(?:made|given|done|judged|scored|rated|written|evaluat\w+|answered|assigned) (?:\w+ )?without (?:\w+ )?(?:looking at|seeing|viewing|having seen|access to|opening) (?:the|any|an|your|this|it)\b"
        r"|\bwithout access to (?:the|any|your) (?:\w+ )?(?:output|render|result|picture|image|artwork|file)\b|\bhaving (?:no|been given no) (?:image|picture|photo)|\bnot having (?:actually )?seen (?:the|this|any|it|an)\b|\b(?:i|we) lack (?:any )?access to (?:it|the (?:image|picture|photo))"
        r"|\b(?:have|has|having|lack|with|without)(?: no| any|n't any| not| the)? vision (?:capabilit|abilit|access|input)\w*"
        rf"|\b{_CAN_NOT} (?:\w+ )?(?:see|view|open|process|load|access|look at) (?:what (?:was|you)|links\b|(?:the|your|this) (?:\w+ )?(?:file|link|attachment|output|render|upload|url)s?\b)"
        r"|\b(?:picture|image|photo)s? (?:is|are|was|do|does|did)(?:n't| not) (?:come|open|load|appear|arrive)\w* (?:to|for|on|at) (?:me|my)\b|\b(?:i|we) (?:have not|haven't|was not|wasn't|were not) (?:been )?(?:actually )?(?:shown|given|sent|handed) (?:the|any|an) (?:\w+ )?(?:image|picture|photo|output|artwork)|\byou(?:'ve| have)? (?:only|just) (?:shared|given|sent|provided) (?:me )?(?:words|text|the (?:prompt|text|caption|description))|\bi(?: also)? (?:did not|didn't|never) (?:actually )?(?:see|view|open|look at) (?:the|any) (?:image|picture|photo|file)\b",
    ),
    (  # it goes by what it imagines
        "assume assumed assuming imagine imagined picture hypothetical"
        " |image images picture pictures photo photos photograph photographs attachment attachments illustration artwork render renders file files visual pixels output outputs result results artworks it hypothetical",
        (("assum", "imagine", "i picture", "hypothetical"),),
        r"\bassum(?:ed|ing|e) (?:that )?(?:the|this|your|it) (?:\w+ )?(?:image|picture|photo|output|result|render|artwork)s? (?:depicts?|shows?|follows?|match\w*|contains?|does|would)\b"
        r"|\b(?:image|picture|photo)s? \(?as i (?:imagine|picture) it|\bmy (?:evaluation|score|rating|assessment|judge?ment) is (?:\w+ )?hypothetical\b|\bi imagine (?:it|that it|the (?:image|picture)) (?:to be|is|would|as)\b",
    ),
    (  # it says what would have been, or what an answer looks like
        "would could might example sample illustration demonstration template mock illustrative placeholder dummy default hypothetical hypothetically made fictitious random arbitrary"
        " |image images picture pictures photo attachment answer score scored rate rated rating evaluate evaluation assessment respond response reply output review"
        " file files visual visuals pixel pixels artwork artworks photos photograph photographs attachments illustration illustrations upload uploads placeholder dummy 0 1 2 3 4 5 6 7 8 9 10",
        (("if ", "had ", "once ", "example", "sample", "illustrati", "demonstration", "template", "mock", "placeholder", "dummy", "default", "hypothetical", "made up", "made-up", "fictitious", "random", "arbitrary"),),
        rf"\b(?:would|could|might) (?:\w+ )?(?:have|be|give|score|rate)\b[^.;\n]{{0,80}}?\b(?:if|had|once) {_LOADED}|\b(?:if|had) {_LOADED}[^.;\n]{{0,60}}?\b(?:would|could|might) (?:have|be|give|score|rate)\b"
        r"|\b(?:example|sample|illustration|demonstration|template) of (?:how|what) (?:i|an?|the|my|such|your|it|one)\b[^.;\n]{0,40}?\b(?:answer|score|rate|respond|reply|evaluate|evaluation|response|output|review|look)\b"
        r"|\b(?:here|this|that|following|below)(?: is|'s|:)? (?:just |only |merely )?an? (?:example|sample|mock|illustrative|hypothetical|template) (?:\w+ )?(?:answer|evaluation|score|response|reply|output|rating|review|assessment)\b"
        r"|\A\W*(?:sample|example) (?:output|answer|response|evaluation|reply|score)\b ?:"
        rf"|[0-9] ?(?:/ ?[0-9]{{1,3}} ?)?[\[(] ?(?:just |only |this is )?(?:an? |the )?(?:placeholder|dummy|default|hypothetical(?:ly)?|mock|example|sample|fictitious|made[- ]up|random|arbitrary)(?: (?:score|value|number|rating|only|one))? ?[\])]{_NO_NOUN}"
        rf"|[\[(] ?(?:placeholder|dummy)(?: (?:score|value|rating))? ?[\])]{_NO_NOUN}|\b(?:score|rating|evaluation|assessment) (?:above |below )?(?:is|was) (?:purely |only |an? |entirely )?(?:hypothetical|placeholder|dummy|made[- ]up|fictitious)\b",
    ),
))  # fmt: skip
_OF_A_CASE = re.compile(r"\b(?:if|unless|even if|as if|suppose|supposing|in case)\b[^.;]*\Z")
# (lists of words, the rarest first, of each of which one must stand in the sentence; what a way cannot do without; what is looked for then).
# What is said most stands last: it is looked for beside the others alone.
_KINDS = tuple((_lists(words), needles, re.compile(way)) for words, needles, way in (
    (  # a number that was made up, and is said to be
        "default defaults defaulted defaulting placeholder placeholders dummy midpoint midpoints mid fall falling fallback simulate simulates simulated simulating hypothetical"
        " hypothetically procedural arbitrary guess guessed guessing assume assumed assuming estimate estimated estimating lowest minimum middle neutral set real rating"
        " judging going evaluating assessing",
        (("default", "placeholder", "dummy", "midpoint", "mid-point", "fall", "simulat", "hypothetical", "procedural", "arbitrary", "guess",
          "assum", "estimat", "lowest ", "minimum ", "middle ", "neutral ", " set to", "real numbers",
          *(f" {by} {what}" for by in ("by", "on", "from") for what in ("how", "the quality"))),),
        r"\b(?:default(?:s|ed|ing)?|placeholders?|dummy|mid-?points?|fall(?:ing)? ?back|simulat(?:es?|ed|ing)|hypothetical(?:ly)?|procedural|arbitrary|guess(?:ed|ing)?"
        r"|assum(?:e|ed|ing)|estimat(?:e|ed|ing)|(?:lowest|minimum|middle|neutral) (?:value|score|rating|mark|number)s?|scores? set to|real numbers"
        r"|(?:rating|judging|evaluat\w{1,5}|assess\w{1,5}) (?:by|on|from) (?:how|the quality))\b",
    ),
    (  # that there are words and no more
        "only just nothing solely purely merely all alone based going rely relying estimated judged rated speak thats that"
        "|prompt prompts text texts textual word words wording caption captions rubric rubrics description descriptions",
        (),
        rf"\b(?:only|just(?! (?:as|like|what|how|the way))|nothing but|solely|purely|merely|all i)\b[^.;\n]{{0,50}}\b{_WORDS}\b|\b{_WORDS} alone\b"
        rf"|\b(?:based|going|rely\w{{0,3}}|estimated|judged|rated|speak) (?:on|by|from|to|off)\b[^.;\n]{{0,40}}\b{_WORDS}\b|\b{_WORDS}\b[^.;\n]{{0,25}} and that(?:'s| is) (?:it|all)\b",
    ),
    (  # that the picture did not come
        "never not didnt wasnt couldnt cannot doesnt unavailable absent missing corrupt corrupted expired empty blank truncated failed error no without lack nothing what fail fails failure"
        " failing gone dont|image images picture pictures photo photos photograph photographs artwork artworks visual visuals attachment attachments upload uploads pixel pixels"
        " illustration illustrations file files output evaluate look see check describe judge score assess rate decode content data you",
        (),
        rf"\b{_PICTURE}\b[^.;!?\n]{{0,60}}\b{_NEVER_CAME}|\b(?:no|without|absent|lack of|nothing|error|failed?{OF_ITS_CONTENT}|fail(?:ing|ure))\b[^.;!?\n]{{0,30}}\b{_PICTURE}\b(?! (?:frames?|hangs?|hung|adorns?|on the walls?)\b)"
        rf"|\bnothing (?:visual|(?:was \w+ )?(?:for me )?to (?:evaluate|look|see|check|describe|judge|score|assess|rate))|\bwhat {_PICTURE}\?|\bdoes(?: not|n't) decode\b"
        r"|\bwith no (?:content|data)\b|\byou (?:did(?: not|n't)|never) (?:send|sent|attach|attached|provide|include|upload)",
    ),
    (  # that the judge cannot
        "i we me assistant could couldnt cannot unverifiable unchecked|cannot cant couldnt unable able lack no dont have never unverifiable unchecked can could not",
        (("cannot", "can't", "can not", "could not", "couldn't", "unable", "not able", "n't able", "been able", "lack", "no means", "no way", "no ability",
          "no eyes", "do not have", "don't have", "have no", "never", "unverifiable", "unchecked"),),
        r"\b(?:i|we|me|assistant|could)\b[^.;!?\n]{0,25}(?:can(?:not|'t| not)|could(?: not|n't)|unable|not able|was(?: not|n't) able|not been able|lack|no (?:means|way|ability|eyes)"
        r"|do(?: not|n't) have|have no|have nothing|never)\b[^.;!?\n]{0,30}\b(?:see|saw|look(?:ing)?|view|open|check|tell|verify|eyes|speak|browse|access|seen|visual|means|nothing)\b"
        r"|\b(?:could not|couldn't|cannot) (?:be carried out|check|verify)|\bunverifiable\b|\bleaves? [^.\n]{0,30}\bunchecked|\b(?:i|we) have no (?:idea|way of knowing)\b",
    ),
    (  # what is said of machinery alone
        "400 401 403 404 base64 payload decode decodes decoded decoding pixel pixels bytes page server browse url modality text language vision tag image token viewer input side end call"
        " session conversation message request attachment upload uploaded link corrupt corrupted expired retrieve retrieved retrieval content access trip me chat",
        (("400", "401", "403", "404", "base64", "payload", "decod", "pixel data", "no pixels", "zero bytes", "error page", "server", "browse",
          "url", "modality", "text-only", "text only", "language model", "vision capabilit", "token", "my viewer", "my input",
          "my side", "my end", "attachment", "upload", "link", "corrupt", "expired", "retriev", "content attached", "visual access", "the trip",
          "reached me",
          *(f"{this} {what}" for this in ("this", "the") for what in ("call", "session", "conversation", "message", "request", "chat"))),),
        r"\b(?:40[0134]|base64|payload|decod(?:e|es|ed|ing)|pixel data|no pixels|zero bytes|error page|server|browse|url|modality|text-only|text only|language model"
        r"|vision capabilit\w{1,5}|token|my (?:viewer|input|side|end)|(?:this|the) (?:call|session|conversation|message|request|chat)|attachment|upload(?:ed)?|link"
        rf"|{CORRUPT}|expired|retriev\w{1,4}|content attached|visual access|made? the trip|reached me)\b",
    ),
))  # fmt: skip


def _bits() -> dict[str, int]:
    """By word, a bit for each list of words it stands in."""
    found: dict[str, int] = {}
    for number, words in enumerate(one for lists, _, _ in _ALONE + _KINDS for one in lists):
        for word in words:
            found[word] = found.get(word, 0) | 1 << number
    return found


class _Way(NamedTuple):
    """`wanted`: the bits of its lists. `kind`: a bit of its own."""

    wanted: int
    lists: tuple[frozenset[str], ...]
    needles: tuple[tuple[str, ...], ...]
    pattern: re.Pattern[str]
    kind: int


def _ways() -> list[_Way]:
    found, n_before = [], 0
    for number, (lists, needles, pattern) in enumerate(_ALONE + _KINDS):
        found.append(_Way(((1 << len(lists)) - 1) << n_before, lists, needles, pattern, 1 << number))
        n_before += len(lists)
    return found


# Whether a word of each of a way's lists stands in a reply is asked of all ways in one look at each word.
_BITS, _WAYS = _bits(), _ways()
_WORDS_ASKED = frozenset(_BITS)
_OF_KINDS = sum(way.kind for way in _WAYS[len(_ALONE) :])


def hints_at_nothing(sentences: Sentences) -> bool:
    """Whether one of a reply's sentences says it, or two kinds of clues stand in one or in neighbouring ones."""
    bits = 0
    for word in sentences.words & _WORDS_ASKED:
        bits |= _BITS[word]
    ways = [way for way in _WAYS if bits & way.wanted == way.wanted]
    kinds = [way for way in ways if way.kind & _OF_KINDS]
    if any(_says_alone(way, sentences) for way in ways if not way.kind & _OF_KINDS):
        return True
    return len(kinds) > 1 and _are_two_kinds(kinds, sentences)


def _places(way: _Way, sentences: Sentences, among: Iterable[int]) -> list[int]:
    """Which of these sentences have what the way needs."""
    first, *others = way.lists
    here = sentences.words & first
    found = []
    for place in among:
        one = sentences.each[place]
        for word in here:
            if word in one.flat:  # or in another word: most sentences hold none, and need not be taken apart
                break
        else:
            continue
        if here.isdisjoint(one.words) or any(words.isdisjoint(one.words) for words in others):
            continue
        if holds_each(one.text, way.needles):
            found.append(place)
    return found


def _says_alone(way: _Way, sentences: Sentences) -> bool:
    for place in _places(way, sentences, range(len(sentences.each))):
        text = sentences.each[place].text
        found = way.pattern.search(text)
        if found and not _OF_A_CASE.search(text, 0, found.start()):
            return True
    return False


def _are_two_kinds(kinds: Sequence[_Way], sentences: Sentences) -> bool:
    """A kind is looked for only where another may be in the same or in a neighbouring sentence."""
    may_be = [0] * (len(sentences.each) + 1)  # the last: before the first, and behind the last
    every = range(len(sentences.each))
    for way in kinds[:-1]:
        for place in _places(way, sentences, every):
            may_be[place] |= way.kind
    for place in _places(kinds[-1], sentences, [one for one in every if may_be[one - 1] | may_be[one] | may_be[one + 1]]):
        may_be[place] |= kinds[-1].kind
    before = 0
    for place, one in enumerate(sentences.each):
        here, near = may_be[place], 0
        if here and any((here | other).bit_count() > 1 for other in (may_be[place - 1], may_be[place + 1])):
            near = sum(way.kind for way in kinds if way.kind & here and way.pattern.search(one.text))
        if near and (near | before).bit_count() > 1:
            return True
        before = near
    return False
