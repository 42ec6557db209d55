"""Did the judge see what it was given? A verdict of its own, made on every reply, whatever numbers stand in it. English alone.

Stricter than refusals.py, which is asked where there is no number: here "the image is missing the dog", "no picture hangs on
the wall" or "a photograph, not a generated image" must not cost a score. Every repetition is bounded.
"""

# ruff: noqa: E501, ISC004 - a pattern is read whole, a way to say it a line

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rubrics.replies.doubts.clues import hints_at_nothing
from rubrics.replies.doubts.other_languages import misses_a_picture
from rubrics.replies.doubts.words import Sentence, compiled, sentences_of

# Words that no sentence of this kind does without.
_DENIALS = frozenset({
    "no", "not", "none", "only", "just", "nothing", "never", "neither", "nor", "nowhere", "cannot", "cant", "dont", "doesnt", "didnt", "isnt", "wasnt", "arent",
    "werent", "havent", "hasnt", "hadnt", "couldnt", "without", "unable", "unavailable", "inaccessible", "unreadable", "lack", "lacking", "absence",
    "absent", "missing", "fail", "failed", "fails", "forgot", "forgotten", "neglected", "please", "kindly", "you", "youve", "youd", "youll", "need",
    "require", "ensure", "broken", "waiting", "awaiting", "hypothetical", "placeholder", "fictitious", "dummy", "simulated",
})  # fmt: skip


def _with_endings(stems: str, endings: tuple[str, ...] = ("", "s", "d", "ed", "ing")) -> frozenset[str]:
    return frozenset(stem + ending for stem in stems.split() for ending in endings)


_PICTURED = _with_endings(
    "image picture photo photograph pic visual attachment nothing score rating evaluation assessment number grade file text",
    ("", "s"),
)
_TOLD = _with_endings("caption reference response output input answer", ("", "s"))
# And words for giving, seeing or reaching, one of which stands in each of them too.
_COMING = _with_endings(
    "provide attach upload reupload include share submit receive access load deliver transmit pass embed display show detect see view render open"
    " locate retrieve process perceive look come reach arrive paste add ensure check verify send resend supply interpret analyze analyse find get"
) | frozenset(
    ["providing", "including", "sharing", "submitted", "submitting", "receiving", "embedding", "embedded", "sent", "resent", "shown", "found", "given", "give", "giving", "gives", "available", "visible", "present", "here", "there", "missing", "absent", "broken", "has", "have", "had", "having", "got", "gotten", "came", "supplied", "supplies", "without", "lack", "lacking", "absence", "waiting", "awaiting", "hypothetical", "placeholder", "fictitious", "dummy", "simulated", "nothing", "nowhere", "unreadable", "unavailable", "inaccessible", "accessible", "seen", "viewed", "through", "transmitted", "passed", "text", "prompt", "prompts", "caption", "description", "need", "needed", "require", "required", "evaluation", "judge", "evaluate", "assess", "work", "theres", "accompany", "accompanies", "accompanied", "accompanying", "files", "file", "arrived", "reached", "arrive", "came", "contains", "contain", "included", "includes"]
)  # fmt: skip

_PICTURE = (
    r"(?:(?:external |attached )?(?:images?|pictures?|photos?|photographs?|pics?|visuals?)(?:[ -](?:attachments?|files?|inputs?|contents?|data|urls?|links?))?"
    r"|attachments?|(?:attached|uploaded) files?|visual (?:inputs?|contents?|information))"
)
_TEXT = (
    r"(?:(?:model|candidate) outputs?|(?:reference )?captions?|references?(?: (?:captions?|texts?))?|answers?|responses?|inputs?)"
)
_WHICH = (
    r"(?:(?:the|an?|any|your|this|that|these|those|such|actual|valid|attached|uploaded|provided|generated|given|shared|supplied|input"
    r"|accompanying|original|corresponding|relevant|associated|specific|said|real|usable|accessible|visible|single|of|it|mentioned"
    r"|referenced|ai|to be judged) ){0,5}"
)
_ADVERB = (
    r"(?:(?:actually|currently|directly|really|ever|even|yet|successfully|properly|correctly|been|be|being|also|just|to) ){0,3}"
)
_GIVEN = (
    r"(?:provided|attached|uploaded|supplied|included|shared|sent|given|submitted|received|accessible|loaded|delivered|transmitted|passed"
    r"|embedded|available)"
)
_SHOWN = r"(?:visible|present|displayed|shown|found|detected|here|there|seen|viewable|rendered)"
_JUDGE = (
    r"(?:evaluate|judge|assess|score|rate|review|analy[sz]e|examine|inspect|look at|compare|grade|work with|base|go on|critique)"
)
_MESSAGE = r"(?:message|request|conversation|chat|prompt|query|question|input|submission|upload|thread|context|post|session|dialog(?:ue)?|turn)"
_STOP = r"\s?(?:[.,;:!?)\]}'…—–、-]|\Z)"
_SO = (
    rf"(?:{_STOP}|\s(?:so|and|but|hence|thus|therefore|which|because|due|since|at all|yet|here|properly|correctly|successfully|or|i"
    rf"|to (?:me|us|the (?:judge|evaluator|model)|{_JUDGE})|by (?:you|the user)|from (?:here|you|the user)|along|this time|with (?:which|it)"
    rf"|with (?:me|us)|for (?:me|us|evaluation|evaluating|assessment|review|reviewing|analysis|scoring|rating|judging|judgement|judgment|grading"
    rf"|comparison|this|the (?:evaluation|assessment|judg))|(?:in|with|within|to|alongside) (?:the|your|this|our|my) {_MESSAGE}"
    r"|on (?:my|this) (?:end|side)|this|it|score|reasoning|the score|no|not|any|cannot|can't|we|my|therefor|making|unable))"
)
_BE = r"(?:is|are|was|were|has been|have been|has|have|seems? to (?:be|have been)|appears? to (?:be|have been)|got)"
_BE_NOT = (
    r"(?:(?:is|are|was|were|has|have|did|does|do|could|can|would|will)(?: not|n't)|cannot|never|(?:is|are|was|were|has|have) never"
    r"|(?:does not|doesn't|did not|didn't) (?:seem|appear) to (?:be|have(?: been)?))"
)
_CANNOT = (
    r"(?:can't|cannot|can not|could not|couldn't|do not|don't|did not|didn't|am unable to|'m unable to|was unable to|unable to|am not able to"
    r"|'m not able to|not able to|wasn't able to|haven't|have not|never|don't currently|fail(?:ed)? to|have no way to|have no way of)"
)
_SENSE = (
    r"(?:see|seeing|view|viewing|access|open|load|find|locate|receive|received|get|got|gotten|detect|retrieve|have|have access to|had access to"
    r"|been given|been provided|been provided with|been shown|display|seen|viewed|perceive|look at|process|actually see)"
)
_GIVE = r"(?:provid|shar|send|sent|suppl|includ|give|giving|given|upload|re-?upload|attach|re-?attach|re-?send|re-?sent|past|add|submit|post)\w{0,4}"
_ASK = (
    r"(?:please|kindly|could you|can you|would you(?: mind)?|if you(?:'d| would| could| can)?|once you(?:'ve| have)?|after you|as soon as you|when you"
    r"|you(?:'ll| will)? need to|i(?:'ll|'d| will| would)? need(?: you to)?|need you to|i(?:'d| would)? require|make sure to|be sure to|feel free to"
    r"|try|you could|you can|let me know once you(?:'ve)?|you must)"
)
_ANOTHER = r"(?!(?:\S+ ){0,3}?(?:different|another|other|others|new|next|more|further|additional|higher|clearer|better|sharper|larger)\b)"
_MEANT = r"(?: (?:(?:that |which )?you \w+(?: to)?|that \w+|to be \w+|in question|itself|file|link))?"
_HOLDER = r"(?:inputs?|messages?|requests?|prompts?|query|submission|conversation|chat|posts?|upload|you|it)"
_HOLD = r"include|contain|have|come with|provide|carry|hold|show|give|attach|send"
_ABSENT = r"(?:missing|absent|unavailable|inaccessible|not there|not here|broken|unreadable by me|nowhere to be found)"
_MADE_UP = r"(?:hypothetical|placeholder|fictitious|dummy|simulated)"


_NOT = ("n't", "not ", "unable", "never", "fail", "no way", "no ability", "lack", "only", "just")
_Ways = tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]


def _grouped(ways: Iterable[tuple[tuple[str, ...], str]]) -> _Ways:
    patterns: dict[tuple[str, ...], list[str]] = {}
    for needles, way in ways:
        patterns.setdefault(needles, []).append(way)
    return tuple((needles, tuple(listed)) for needles, listed in patterns.items())


def _ways(thing: str, plain: str) -> tuple[tuple[tuple[str, ...], str], ...]:
    """The ways to say that `thing` never came, each behind words it cannot do without: most sentences hold none of them.

    `plain`: the things whose "there is no ..." is told without a verb.
    """
    is_there_no = r"there(?:'s| is| was| are| were| seems to be| appears to be) (?:no|not an?|not any)"
    subject = rf"{thing} (?:is|was|are|were|seems|appears|seems to be|appears to be)"
    return (
        (
            ("no ",),
            rf"no (?<=\bno ){_WHICH}{thing}(?: {_BE})? {_ADVERB}(?:{_GIVEN}|{_SHOWN}|to {_JUDGE}|for me to|came through){_SO}",
        ),
        (("no ",), rf"no (?<=\bno ){_WHICH}{thing} (?:with|in|alongside|for) (?:the|your|this) {_MESSAGE}"),
        (("there",), rf"{is_there_no} {_WHICH}{plain}{_SO}"),
        (
            ("there",),
            rf"there (?:isn't|wasn't|aren't|(?:does not|doesn't) (?:seem|appear) to be) (?:an?|any) {_WHICH}{plain}{_SO}",
        ),
        (("there",), rf"{is_there_no} {_WHICH}{thing} (?:for me to|i can|that i can|to {_JUDGE}|{_GIVEN}{_SO}|{_SHOWN}{_STOP})"),
        (
            _NOT,
            rf"{_CANNOT} {_ADVERB}{_SENSE} {_WHICH}{thing}"
            rf"(?: (?:itself|directly|you|that you|which you|mentioned|you've|in question|or|{_GIVEN}|because|was|is)\b|{_SO})",
        ),
        (
            ("without",),
            rf"without {_ADVERB}(?:seeing|viewing|access to|having(?: seen| received| viewed)?|being able to (?:see|view|access)|being (?:given|shown)|receiving)"
            rf" {_WHICH}{thing}{_SO}",
        ),
        (
            ("without",),
            rf"without {_WHICH}{thing}(?: (?:to {_JUDGE}|being {_GIVEN}|{_GIVEN}|i |it(?: is|'s) (?:not possible|impossible))"
            r"|, (?:i|it|there|no|we|this|the|a |any))",
        ),
        (_NOT, rf"{thing}{_MEANT} {_BE_NOT} {_ADVERB}{_SHOWN}(?:{_STOP}| (?:in|on|within) (?:the|this|your|our) {_MESSAGE})"),
        (
            ("missing",),
            rf"{thing} missing{_STOP}|missing {thing}{_STOP}|\b(?:a|the|your) missing (?:image|picture|photo)(?:{_STOP}| so\b| and\b| i\b)",
        ),
        (
            _NOT,
            rf"{thing} (?:that |which )?(?:i|we) (?:cannot|can't|could not|couldn't|have not|haven't|did not|didn't|never) {_ADVERB}{_SENSE}\b",
        ),
        (
            _NOT,
            rf"{thing} (?:seems|appears) not to (?:be|have been) {_ADVERB}(?:{_GIVEN}|{_SHOWN})|{thing} (?:does not|doesn't|did not|didn't) work\b",
        ),
        (
            ("need",),
            rf"\b(?:i|we)(?:'d| would| will|'ll)? need to (?:see|view|receive|have|inspect|look at|be shown|be given) {_WHICH}{thing}{_SO}",
        ),
        (("not ",), rf"not having (?:seen|received|viewed|had) {_WHICH}{thing}|{subject} \w+ or not {_GIVEN}"),
        (
            _NOT,
            rf"(?:was|were|am|are|been|being)(?: not|n't)(?: been)? (?:given|shown|sent|handed|provided(?: with)?|supplied with) {_WHICH}{thing}{_SO}",
        ),
        (_NOT, rf"{_HOLDER} (?:does not|doesn't|did not|didn't|do not|don't) {_ADVERB}(?:{_HOLD}) {_WHICH}{thing}{_SO}"),
        (_NOT, rf"(?:not|never) {_ADVERB}(?:see|seen|seeing|receive|received|view|viewed) {_WHICH}{thing}{_SO}"),
        (("no ",), rf"{_HOLDER} (?:\w+ ){{0,4}}?no {_WHICH}{thing}{_SO}"),
        (
            ("no ",),
            rf"(?:see|have|had|got|received|was given|were given|been given|and|but|,) no {_WHICH}{thing}(?: at all)?(?:{_STOP}| to (?:{_JUDGE}|see))",
        ),
        (("no ",), rf"no (?<=\bno ){_WHICH}image(?: data)?{_STOP}"),
        (("no ",), rf"no (?<=\bno ){_WHICH}{thing} (?:{_BE} )?{_ADVERB}(?:arrived?|reached?|came|accompan\w+)"),
        (
            ("only", "just"),
            rf"(?:only|just) (?:\w+ ){{0,5}}?(?:texts?|prompts?|captions?|descriptions?)\b.{{0,30}}?\b(?:no|not|without) {_WHICH}{thing}",
        ),
        (
            ("need", "require"),
            rf"need {_WHICH}{thing} (?:to |in order|before|first)|{thing} (?:is|would be) (?:required|needed) (?:to|for|before|in order)",
        ),
        (("none",), rf"{thing}.{{0,60}}?\bnone (?:was|were|has been|is|are|came) {_ADVERB}(?:{_GIVEN}|{_SHOWN})?"),
        (
            _NOT,
            rf"{thing}{_MEANT} {_BE_NOT} {_ADVERB}(?:{_GIVEN}|come through|go through|upload|uploaded|load|attach"
            rf"|(?:opened|seen|viewed|accessed|retrieved) by me|visible to me|reach(?:ed)? me|arrived?){_SO}",
        ),
        (
            _NOT,
            rf"{thing} (?:could not|couldn't|cannot|can't|can not|did not|didn't) (?:be )?"
            rf"(?:loaded|opened|accessed|retrieved|viewed|displayed|seen|load|open|display|render){_STOP}",
        ),
        (
            ("missing", "absent", "unavail", "inaccess", "not there", "not here", "broken", "unreadable", "nowhere"),
            rf"{subject} {_ABSENT}(?:{_STOP}| (?:from|in) (?:the|your|this) {_MESSAGE}| so\b| or\b)",
        ),
        (
            ("failed",),
            rf"{thing} (?:\w+ )?failed to (?:load|upload|attach|display|render|come through|open|arrive)|upload of {_WHICH}{thing} failed",
        ),
        (
            ("you ",),
            r"you (?<=\byou )(?:have not|haven't|did not|didn't|don't seem to have|forgot to|forgot|neglected to|failed to|have forgotten to"
            rf"|(?:seem to|may) have forgotten)(?: to)? {_ADVERB}{_GIVE} (?:me |us |with )?{_WHICH}{thing}",
        ),
        (_ASKING, rf"\b{_ASK} (?:\w+ ){{0,2}}?(?:me |us )?{_GIVE} (?:me |us |with |it )?{_ANOTHER}{_WHICH}{thing}"),
        (
            _ASKING,
            rf"\b{_ASK} (?:\w+ ){{0,2}}?(?:ensure|check|verify|confirm|make sure)(?: that)? {_WHICH}{thing} (?:is|was|has been) {_GIVEN}",
        ),
        (_NOT, rf"{thing} not {_ADVERB}(?:{_GIVEN}|{_SHOWN}){_STOP}"),
        (("[", "("), rf"[\[(]\s?(?:no|missing) {thing}(?: {_GIVEN})?\s?[\])]"),
        (
            ("absence", "lack", "missing", "waiting"),
            rf"\b(?:(?:in (?:the )?absence of|for lack of|lacking|because of the missing|due to the missing|waiting for|awaiting) {_WHICH}{thing}{_SO}"
            rf"|(?:lack|absence) of {_WHICH}{thing}{_STOP})",
        ),
    )


_ASKING = ("please", "kindly", "you", "need", "require", "sure to", "feel free", "try")
_BLIND: tuple[tuple[tuple[str, ...], str], ...] = (
    (("nothing",), rf"nothing (?:(?:(?:was|is|has been) )?(?:attached|uploaded)|(?:here )?(?:to|for me to) {_JUDGE}{_STOP})"),
    (
        _NOT,
        (
            r"\b(?:i am|i'm|as) (?:only |just )?an? (?:text|language)(?:[ -](?:only|based))*(?: (?:ai|language|model|assistant|system)){0,3}[^.!?]{0,60}?"
            r"(?:cannot|can't|unable to|not able to|do not have|don't have|no ability)[^.!?]{0,40}?(?:images|pictures|photos|visuals|visual)"
            r"|\b(?:cannot|can't|unable to|not able to|(?:don't|do not) have the (?:ability|capability) to) (?:\w+ )?"
            r"(?:see|view|process|analy[sz]e|perceive|interpret|look at|open|display|evaluate) (?:or \w+ )?"
            rf"(?:external |attached |any )?(?:images|pictures|photos|visuals|visual content)(?:{_SO}| as an?\b)"
            r"|\b(?:lack|no) (?:the )?(?:ability|capability|means|way) (?:to |of )?(?:\w+ )?(?:see|view|process|viewing|seeing|processing)"
            r"|\b(?:i|we) (?:can )?(?:only|just) (?:see|have|received|got|was given|know) (?:the |a |some )?(?:text|prompt|description|caption)\b"
        ),
    ),
    (
        ("hypothetical", "placeholder", "fictitious", "dummy", "simulated"),
        rf"\b{_MADE_UP} (?:\w+ )?(?:scores?|ratings?|evaluations?|assessments?|numbers?|judg\w+|grades?)",
    ),
)
_NO_PICTURE = _grouped((*_ways(_PICTURE, "(?:image(?: attachment| file| input)?|attachments?)"), *_BLIND))
_NO_TEXT = _grouped(_ways(_TEXT, r"(?:model outputs?|candidate captions?)"))
# "If no image were provided, I would ..." is said of a case, "part of the image is missing" of what is in it.
_OF_A_CASE = re.compile(
    r"\b(?:if|unless|whether|when|had|even if|as if|suppose|supposing|in case|where|means|(?:of|in|from|on|within) (?:the|this|an?))"
    r"(?: \w+){0,2} \Z"
)
_SEEN_AFTER_ALL = re.compile(
    rf"\b(?:images?|pictures?|photos?) (?:\w+ )?(?:shows?|depicts?|contains?|features?|is (?:actually |indeed )?(?:{_GIVEN}|{_SHOWN}))"
    r"|\bi (?:can |do |now |can now )?see (?:the|an?|it)\b|\blooking at (?:the|it)\b"
)


def saw_nothing(sentences: Sequence[Sentence], context: Mapping[str, Any], thoughts: str = "") -> bool:
    """Whether a reply's sentences say that its judge was given nothing to judge.

    A sample without a picture (`image_is_null`), or without a text, may be called so. In `thoughts` a question, or what is seen
    after all, takes the word back.
    """
    is_pictured, is_told = context.get("image_is_null") is not True, context.get("text_is_null") is not True
    if is_pictured and (misses_a_picture(sentences) or hints_at_nothing(sentences)):
        return True
    if any(_says(sentence, is_pictured=is_pictured, is_told=is_told) for sentence in sentences):
        return True
    if not thoughts:
        return False
    thought = sentences_of(thoughts)
    for number in range(len(thought) - 1, -1, -1):
        if "?" not in thought[number].text and _says(thought[number], is_pictured=is_pictured, is_told=is_told):
            return not any(_SEEN_AFTER_ALL.search(after.text) for after in thought[number + 1 :])
    return False


def _says(sentence: Sentence, *, is_pictured: bool, is_told: bool) -> bool:
    """Whether it denies or asks, about something that is judged, with a word for giving or seeing it, in one of the ways."""
    text, words = sentence
    if _DENIALS.isdisjoint(words) or _COMING.isdisjoint(words):
        return False
    said = [_NO_PICTURE] if is_pictured and not _PICTURED.isdisjoint(words) else []
    said += [_NO_TEXT] if is_told and not _TOLD.isdisjoint(words) else []
    for ways in said:
        for needles, patterns in ways:
            if any(needle in text for needle in needles) and any(_is_so(pattern, text) for pattern in patterns):
                return True
    return False


def _is_so(pattern: str, plain: str) -> bool:
    said = compiled(pattern).finditer(plain)
    return any(not _OF_A_CASE.search(plain, max(0, found.start() - 60), found.start()) for found in said)
