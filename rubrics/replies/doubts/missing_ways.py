"""The ways to say in English that a picture or a text never came, as patterns. When they count is missing_input.py."""

# ruff: noqa: E501, ISC004 - a pattern is read whole, a way to say it a line

from rubrics.replies.doubts.came_badly import BROKEN, FAILED, MESSAGE

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
    "provided", "attached", "uploaded", "supplied", "included", "shared", "sent", "given", "submitted", "received", "accessible",
    "loaded", "delivered", "transmitted", "passed", "embedded", "available",
)  # fmt: skip
GIVEN = rf"(?:{'|'.join(_GIVEN)})"
_SHOWN = ("visible", "present", "displayed", "shown", "found", "detected", "here", "there", "seen", "viewable", "rendered")
SHOWN = rf"(?:{'|'.join(_SHOWN)})"
_JUDGE = (
    r"(?:evaluate|judge|assess|score|rate|review|analy[sz]e|examine|inspect|look at|compare|grade|work with|base|go on|critique)"
)
_STOP = r"\s?(?:[.,;:!?)\]}'…—–、-]|\Z)"
_SO = (
    rf"(?:{_STOP}|\s(?:so|and|but|hence|thus|therefore|which|because|due|since|at all|yet|here|properly|correctly|successfully|or|i"
    rf"|to (?:me|us|the (?:judge|evaluator|model)|{_JUDGE})|by (?:you|the user)|from (?:here|you|the user)|along|this time|with (?:which|it)"
    rf"|with (?:me|us)|for (?:me|us|evaluation|evaluating|assessment|review|reviewing|analysis|scoring|rating|judging|judgement|judgment|grading"
    rf"|comparison|this|the (?:evaluation|assessment|judg))|(?:in|with|within|to|alongside) (?:the|your|this|our|my) {MESSAGE}"
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
_ABSENT = rf"(?:missing|absent|unavailable|inaccessible|not there|not here|{BROKEN}|unreadable by me|nowhere to be found)"
_MADE_UP = r"(?:hypothetical|placeholder|fictitious|dummy|simulated)"


_Ways = tuple[tuple[tuple[tuple[str, ...], ...], str], ...]
"""(lists of words, of each of which a way cannot do without one; the way)"""
Ways = tuple[tuple[tuple[str, ...], _Ways], ...]
"""The same by the first of the lists, which many ways have in common."""

_NOT = ("n't", "not ", "unable", "never", "fail", "no way", "no ability", "lack", "only", "just")
_NOT_ABLE = (
    "can't",
    "cannot",
    "can not",
    "could",
    "do not",
    "don't",
    "did",
    "able to",
    "haven't",
    "have not",
    "never",
    "fail",
    "no way",
)
_NO, _DENIED = ("no ",), ("not ", "n't ", "never ")
_MESSAGES = (
    "message", "request", "conversation", "chat", "prompt", "query", "question", "input", "submission", "upload", "thread", "context",
    "post", "session", "dialog", "turn",
)  # fmt: skip
_GIVING = ("provid", "shar", "sen", "suppl", "includ", "giv", "upload", "attach", "past", "add", "submit", "post")
_ASKING = ("please", "kindly", "you", "need", "require", "sure to", "feel free", "try")


def _ways(thing: str, plain: str) -> _Ways:
    """The ways to say that `thing` never came, each behind words it cannot do without: most sentences hold none of them.

    `plain`: the things whose "there is no ..." is told without a verb.
    """
    is_there_no = r"there(?:'s| is| was| are| were| seems to be| appears to be) (?:no|not an?|not any)"
    subject = rf"{thing} (?:is|was|are|were|seems|appears|seems to be|appears to be)"
    return (
        ((_NO, (*_GIVEN, *_SHOWN, " to ", "for me", "came through")),
         rf"no (?<=\bno ){_WHICH}{thing}(?: {_BE})? {_ADVERB}(?:{GIVEN}|{SHOWN}|to {_JUDGE}|for me to|came through){_SO}"),
        ((_NO, _MESSAGES), rf"no (?<=\bno ){_WHICH}{thing} (?:with|in|alongside|for) (?:the|your|this) {MESSAGE}"),
        ((("there",), (" no ", " not a")), rf"{is_there_no} {_WHICH}{plain}{_SO}"),
        ((("there isn't", "there wasn't", "there aren't", "there does"),),
         rf"there (?:isn't|wasn't|aren't|(?:does not|doesn't) (?:seem|appear) to be) (?:an?|any) {_WHICH}{plain}{_SO}"),
        ((("there",), (" no ", " not a")),
         rf"{is_there_no} {_WHICH}{thing} (?:for me to|i can|that i can|to {_JUDGE}|{GIVEN}{_SO}|{SHOWN}{_STOP})"),
        ((_NOT_ABLE,),
         rf"{_CANNOT} {_ADVERB}{_SENSE} {_WHICH}{thing}" rf"(?: (?:itself|directly|you|that you|which you|mentioned|you've|in question|or|{GIVEN}|because|was|is|(?:that |which )?the (?:caption|prompt|response|user|output|question|text|answer|description) (?:describ|speak|mention|refer|talk|ask|want|claim)\w*)\b|{_SO})"),
        ((("without",), ("seeing", "viewing", "access to", "having", "being", "receiving")),
         rf"without {_ADVERB}(?:seeing|viewing|access to|having(?: seen| received| viewed)?|being able to (?:see|view|access)|being (?:given|shown)|receiving)" rf" {_WHICH}{thing}{_SO}"),
        ((("without",),),
         rf"without {_WHICH}{thing}(?: (?:to {_JUDGE}|being {GIVEN}|{GIVEN}|i |it(?: is|'s) (?:not possible|impossible))" r"|, (?:i|it|there|no|we|this|the|a |any))"),
        ((_DENIED, _SHOWN),
         rf"{thing}{_MEANT} {_BE_NOT} {_ADVERB}{SHOWN}(?:{_STOP}| (?:in|on|within) (?:the|this|your|our) {MESSAGE})"),
        ((("missing",),),
         rf"{thing} missing{_STOP}|missing {thing}{_STOP}|\b(?:a|the|your) missing (?:image|picture|photo)(?:{_STOP}| so\b| and\b| i\b)"),
        (((" i ", " we "), _DENIED),
         rf"{thing} (?:that |which )?(?:i|we) (?:cannot|can't|could not|couldn't|have not|haven't|did not|didn't|never) {_ADVERB}{_SENSE}\b"),
        ((("s not to ", " work"), _DENIED),
         rf"{thing} (?:seems|appears) not to (?:be|have been) {_ADVERB}(?:{GIVEN}|{SHOWN})|{thing} (?:does not|doesn't|did not|didn't) work\b"),
        ((("need to ",),),
         rf"\b(?:i|we)(?:'d| would| will|'ll)? need to (?:see|view|receive|have|inspect|look at|be shown|be given) {_WHICH}{thing}{_SO}"),
        ((("not having", "or not "),), rf"not having (?:seen|received|viewed|had) {_WHICH}{thing}|{subject} \w+ or not {GIVEN}"),
        ((_DENIED, ("given", "shown", "sent", "handed", "provided", "supplied")),
         rf"(?:was|were|am|are|been|being)(?: not|n't)(?: been)? (?:given|shown|sent|handed|provided(?: with)?|supplied with) {_WHICH}{thing}{_SO}"),
        ((_DENIED, tuple(_HOLD.split("|"))),
         rf"{_HOLDER} (?:does not|doesn't|did not|didn't|do not|don't) {_ADVERB}(?:{_HOLD}) {_WHICH}{thing}{_SO}"),
        ((("not ", "never "), ("see", "receive", "view")),
         rf"(?:not|never) {_ADVERB}(?:see|seen|seeing|receive|received|view|viewed) {_WHICH}{thing}{_SO}"),
        (((" no ",),), rf"{_HOLDER} (?:\w+ ){{0,4}}?no {_WHICH}{thing}{_SO}"),
        (((" no ",), ("see", "ha", "got", "received", "given", "and", "but", ",")),
         rf"(?:see|have|had|got|received|was given|were given|been given|and|but|,) no {_WHICH}{thing}(?: at all)?(?:{_STOP}| to (?:{_JUDGE}|see))"),
        ((_NO, ("image",)), rf"no (?<=\bno ){_WHICH}image(?: data)?{_STOP}"),
        ((_NO, ("arrive", "reach", "came", "accompan")),
         rf"no (?<=\bno ){_WHICH}{thing} (?:{_BE} )?{_ADVERB}(?:arrived?|reached?|came|accompan\w+)"),
        ((("only", "just"), ("no ", "not ", "without "), ("text", "prompt", "caption", "description")),
         rf"(?:only|just) (?:\w+ ){{0,5}}?(?:texts?|prompts?|captions?|descriptions?)\b.{{0,30}}?\b(?:no|not|without) {_WHICH}{thing}"),
        ((("need", "require"),),
         rf"need {_WHICH}{thing} (?:to |in order|before|first)|{thing} (?:is|would be) (?:required|needed) (?:to|for|before|in order)"),
        ((("none",),), rf"{thing}.{{0,60}}?\bnone (?:came\b|arrived\b|(?:was|were|has been|have been|is|are) {_ADVERB}(?:{GIVEN}|here{_STOP}|visible to me))"),
        ((_DENIED, (*_GIVEN, "come", "go through", "load", "attach", "opened", "seen", "viewed", "accessed", "retrieved", "visible", "reach", "arrive")),
         rf"{thing}{_MEANT} {_BE_NOT} {_ADVERB}(?:{GIVEN}|come through|go through|upload|uploaded|load|attach|(?:opened|seen|viewed|accessed|retrieved) by me|visible to me|reach(?:ed)? me|arrived?){_SO}"),
        ((("could", "can", "did", "would"), ("load", "open", "access", "retriev", "view", "display", "seen", "render", "process", "decod", "fetch", "download", "parsed", "read")),
         rf"{thing} (?:could not|couldn't|cannot|can't|can not|did not|didn't|would not|wouldn't) (?:be )?"
         rf"(?:(?:loaded|opened|accessed|retrieved|viewed|displayed|seen|load|open|display|render|rendered){_STOP}|(?:processed|decoded|fetched|downloaded|parsed|read|load|open)(?:{_STOP}| on my| by me| due to an? error| because of an? error))"),
        # Image content unavailable. image not found (404)
        ((("missing", "unavail", "inaccess", "not found", "not avail", "not access", "unreadable"),),
         rf"(?:\A|[.:;\[(>-]) ?{_WHICH}{thing} (?:is |was )?(?:currently )?(?:missing|unavailable|inaccessible|unreadable|not (?:found|available|accessible))(?:{_STOP}|\s?[\[(]?(?:http |error |code )?[45][0-9]{{2}}\b)"),
        ((("missing", "absent", "unavail", "inaccess", "not there", "not here", "broken", "unreadable", "nowhere"),),
         rf"{subject} {_ABSENT}(?:{_STOP}| (?:from|in) (?:the|your|this) {MESSAGE}| so\b| or\b)"),
        ((("failed",),),
         rf"{thing} (?:\w+ )?failed to {FAILED}|upload of {_WHICH}{thing} failed"),
        ((("you ",), ("not ", "n't ", "forgot", "neglected", "failed")), r"you (?<=\byou )(?:have not|haven't|did not|didn't|don't seem to have|forgot to|forgot|neglected to|failed to|have forgotten to"
         rf"|(?:seem to|may) have forgotten)(?: to)? {_ADVERB}{_GIVE} (?:me |us |with )?{_WHICH}{thing}"),
        ((_ASKING, _GIVING),
         rf"\b{_ASK} (?:\w+ ){{0,2}}?(?:me |us )?{_GIVE} (?:me |us |with |it )?{_ANOTHER}{_WHICH}{thing}"),
        ((_ASKING, ("ensure", "check", "verify", "confirm", "make sure")),
         rf"\b{_ASK} (?:\w+ ){{0,2}}?(?:ensure|check|verify|confirm|make sure)(?: that)? {_WHICH}{thing} (?:is|was|has been) {GIVEN}"),
        (((" not ",), (*_GIVEN, *_SHOWN)), rf"{thing} not {_ADVERB}(?:{GIVEN}|{SHOWN}){_STOP}"),
        ((("[", "("), ("no ", "missing ")), rf"[\[(]\s?(?:no|missing) {thing}(?: {GIVEN})?\s?[\])]"),
        ((("absence", "lack", "missing", "waiting"),),
         rf"\b(?:(?:in (?:the )?absence of|for lack of|lacking|because of the missing|due to the missing|waiting for|awaiting) {_WHICH}{thing}{_SO}" rf"|(?:lack|absence) of {_WHICH}{thing}{_STOP})"),
    )  # fmt: skip


_BLIND: _Ways = (
    ((("nothing",),), rf"nothing (?:(?:(?:was|is|has been) )?(?:attached|uploaded)|(?:here )?(?:to|for me to) {_JUDGE}{_STOP})"),
    (
        (
            _NOT,
            (
                "images",
                "pictures",
                "photos",
                "visual",
                "ability",
                "means",
                "way",
                "i only",
                "i just",
                "i can ",
                "we only",
                "we just",
                "we can ",
            ),
        ),
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
        (("hypothetical", "placeholder", "fictitious", "dummy", "simulated"),),
        rf"\b{_MADE_UP} (?:\w+ )?(?:scores?|ratings?|evaluations?|assessments?|numbers?|judg\w+|grades?)",
    ),
)


def _grouped(ways: _Ways) -> Ways:
    by_first: dict[tuple[str, ...], list[tuple[tuple[tuple[str, ...], ...], str]]] = {}
    for needles, way in ways:
        by_first.setdefault(needles[0], []).append((needles[1:], way))
    return tuple((first, tuple(others)) for first, others in by_first.items())


NO_PICTURE = _grouped((*_ways(_PICTURE, "(?:image(?: attachment| file| input)?|attachments?)"), *_BLIND))
# One of several pictures, where a rubric shows several.
_ONE_OF = (
    rf"(?:(?:first|second|third|other|left|right|last|former|latter|source|edited)(?: (?:of the|edit(?:ed)?|source))? (?:{_PICTURE}|edit)\b|{_PICTURE} (?:#|no\.? ?|number )?(?:[1-4]|[ab]|one|two)\b"
    rf"|(?:one|either|both|any) (?:of (?:the |these |your |my )?(?:two )?)?{_PICTURE}|(?:either|any|one|both) of (?:them|the two))"
)
_CAME = r"(?:loaded|came through|arrived|reached me|made it through|opened|rendered|could be (?:loaded|opened|accessed|retrieved|viewed|displayed|processed|seen by me)|can be (?:opened|accessed|viewed|loaded))"
_SINGLE = rf"(?:one|a single|1|the (?:first|second|left|right|other)|{_PICTURE} (?:[1-4]|[ab]|one|two))"
_SEVERAL: _Ways = (
    ((("neither",), (*_GIVEN, *_SHOWN, "came", "arrived", "reached", "made it", "opened", "could", "can")),
     rf"\bneither (?:of )?(?:(?:the |these |your )?(?:two )?{_PICTURE} (?:{_BE} {_ADVERB}(?:{GIVEN}|{SHOWN})|{_CAME})|(?:(?:them|the two) )?(?:{_CAME}|(?:was|is|were|has been) {_ADVERB}(?:provided|attached|uploaded|supplied|sent|received|loaded|delivered))){_SO}"),
    ((("neither",),), rf"\b(?:see|saw|view|open|load|access|have|got|received|given|shown) neither (?:of )?(?:the |these )?(?:two )?{_PICTURE}{_SO}"),
    ((("only", "just"), (*_GIVEN, "visible", "displayed", "here", "came", "arrived", "reached", "made it", "opened", "rendered", "could", "can")),
     rf"\b(?:only|just) {_SINGLE} (?:of (?:the |these |your )?(?:two )?)?(?:{_PICTURE} )?(?:(?:{_BE} )?{_ADVERB}(?:{GIVEN}|visible|displayed|here)|{_CAME}){_SO}"),
    ((("only", "just"), ("see", "saw", "receive", "have", "got", "given", "shown", "view", "access")),
     rf"\b(?:i|we)(?:'ve)? (?:can |could |have |was |were |am )?(?:(?:only|just) (?:been )?(?:see|received?|have|got|given|shown|view|access)|(?:see|saw|received|have|got|given|shown|view|access) (?:only|just)) {_SINGLE}(?: of (?:the |these )?(?:two )?)?(?: {_PICTURE})?{_SO}"),
    ((("there",), ("only", "just")), rf"\bthere(?:'s| is| was) (?:only|just) (?:one|a single|1) {_PICTURE}{_SO}"),
    ((("blank", "empty", "corrupt", "broken"),),
     rf"{_ONE_OF} (?:is|was|seems?|appears?|are|were|appears? to be|seems? to be|came through|came) (?:entirely |completely |just |simply |fully |an? )*(?:blank|empty|corrupt(?:ed)?|broken)(?:{_STOP}| (?:so|and i|on my|to me|image|file|picture|link)\b)"),
)  # fmt: skip
SEVERAL = _grouped((*_ways(_ONE_OF, _ONE_OF), *_SEVERAL))
NO_TEXT = _grouped(_ways(_TEXT, r"(?:model outputs?|candidate captions?)"))
