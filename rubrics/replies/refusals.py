"""Does the judge decline? Asked strictly beside a number, which is then none, and loosely where a reply has no answer.

The latter is English alone, and asks too whether there was nothing to judge. Every repetition is bounded, and of a reply its head
alone or its sentences are read, so that the cost does not grow with it.
"""

# ruff: noqa: E501 - a pattern is read whole

import re
from functools import lru_cache

from rubrics.replies.doubts.other_languages import declines_elsewhere
from rubrics.replies.doubts.words import Sentences
from schemas.statuses.rows import ParseReason

_N_CHARACTERS_READ = 4000
_APOSTROPHES = str.maketrans("’‘`´ʼ＇", "''''''")
_SPACES = re.compile(r"[\s*_#>\"“”\u200b\ufeff]+")

_SHOWN = (
    r"(?:images?|pictures?|photos?|photographs?|illustrations?|visuals?|attachments?|files?|prompts?|captions?|references?"
    r"|(?:model\s)?outputs?|inputs?)\b"
)
_THING = rf"(?:{_SHOWN}|(?:responses?|answers?|conversations?|questions?)\b)"
_WHICH = (
    r"(?:(?:the|an?|any|your|this|that|these|those|actual|valid|attached|uploaded|provided|generated|given|shared"
    r"|accompanying|original|corresponding|relevant|specific|visible|model|text|or|and|image|caption|both|of|contents?|details?"
    r"|itself|directly)\s){0,5}"
)
_NOT_ABLE = (
    r"(?:don't|do not|can't|cannot|can not|couldn't|could not|n't able to|not (?:currently )?able to|unable to|didn't|did not"
    r"|haven't|have not|hasn't|no way to)"
)
_SENSE = (
    r"(?:see|view|find|access|open|load|locate|detect|receive|received|get|have|been given|been provided(?:\swith)?"
    r"|display|have access to|retrieve|look at)"
)
_GIVEN = (
    r"(?:provided|attached|uploaded|included|given|supplied|shared|sent|visible|present|available|found|received|here|loaded"
    r"|accessible|displayed|to (?:evaluate|judge|assess|score|analy[sz]e|review|rate))"
)
_GIVE = r"(?:provide|share|send|supply|include|give|upload|re-?upload|attach|re-?attach|resend|paste)"
_ASK = (
    r"(?:please|kindly|could you|can you|would you|if you(?:'d| would| could| can)?|once you(?:'ve)?|need to|need you to"
    r"|will need)"
)
_BE_NOT = r"(?:isn't|is not|aren't|are not|wasn't|weren't|doesn't (?:seem|appear) to be|does not (?:seem|appear) to be)"

_ANOTHER = r"(?!(?:\w+ ){0,2}(?:different|another|other|new)\b)"

_MISSING_WAYS = (
    rf"\bno (?:\w+ ){{0,2}}{_THING}(?: \S+){{0,5}}? {_GIVEN}",
    rf"\bthere(?: is|'s| are| was| were) (?:no|not) (?:an? |any )?(?:\w+ )?{_THING}",
    rf"\bthere {_BE_NOT} (?:an? |any )?(?:\w+ )?{_THING}",
    rf"{_NOT_ABLE} (?:\w+ )?(?:actually |currently |directly )?{_SENSE} {_WHICH}{_SHOWN}",
    rf"\byou {_NOT_ABLE} (?:\w+ )?(?:provided?|upload(?:ed)?|attach(?:ed)?|shared?|included?|sent) {_WHICH}{_THING}",
    rf"{_THING}(?: \S+){{0,4}}? (?:missing|(?:not|never)(?: been| be| appear to be| seem to be| successfully)? {_GIVEN})",
    rf"{_THING}(?: \S+){{0,3}}? (?:wasn't|weren't|isn't|aren't|hasn't been|haven't been) (?:\w+ ){{0,2}}{_GIVEN}",
    (
        rf"{_THING} (?:did not|didn't|does not|doesn't|failed to|has not|hasn't|have not|haven't) (?:seem to |appear to )?"
        r"(?:come|load|upload|display|appear|attach|go)"
    ),
    rf"{_ASK} (?:\w+ ){{0,3}}{_GIVE} (?:me |us |it |with )?{_ANOTHER}{_WHICH}{_THING}",
    rf"(?:forgot|forgotten|neglected|failed) to {_GIVE} {_WHICH}{_THING}",
    rf"(?:without|waiting for|lack(?:ing)?|missing) {_WHICH}{_THING}",
    rf"{_THING}(?: \w+){{0,2}} (?:is|are|was|were|appears?(?: to be)?|seems?(?: to be)?) (?:missing|empty|blank|null|absent)",
    r"(?:\A|[:.!?] ?)no (?:images?|pictures?|photos?|photographs?|inputs?|attachments?)(?: (?:here|found|data))?(?:[.,;!)]|\Z| [a-z]\w{0,8}:)",
    r"\Ano access to (?:the |any )?(?:images?|pictures?|photos?|attachments?)\b",
)
_MISSING = re.compile("|".join(_MISSING_WAYS))

_DOING = (
    r"(?:assist|help|comply|evaluat(?:e|ing)|judge|rate|rating|score|scoring|assess|analy[sz](?:e|ing)|provid(?:e|ing)|give|giving"
    r"|answer|respond|review|process|fulfil|fulfill|do|engage|continue|complete|discuss|describe|identify|participate|support|offer"
    r"|grade|critique|comment|proceed|perform|produce|generate|make|share|accommodate|carry|handle|view|see|examine|interpret"
    r"|determine|create|be able)(?:ing)?\b"
)
_REFUSAL_WAYS = (
    (
        r"\b(?:can't|cannot|can not|couldn't|could not|won't|will not|unable to|not able to|not comfortable|not going to"
        rf"|refuse to|decline to|not allowed to|not permitted to|must not|prefer not to|rather not) (?:\w+ ){{0,3}}?{_DOING}"
    ),
    r"\bi (?:\w+ ){0,2}?(?:decline|refuse)\b",
    r"\b(?:i'm|i am|we're|we are|we|i) (?:\w+ ){0,2}(?:sorry|apologi[sz]e),? but\b",
    r"\b(?:sorry|apologies),? (?:but )?(?:i|we) (?:can't|cannot|can not|won't|am unable|are unable|will not)",
    r"\bas an ai\b",
    (
        r"\b(?:against|violat\w{1,4}|not (?:comply|align) with|contrary to|conflicts? with|breach\w{0,3}|due to)"
        r" (?:\w+ ){0,5}?(?:polic(?:y|ies)|guidelines|terms|safety rules)"
    ),
    (
        r"\b(?:request|content|image|prompt|response|question|this) (?:cannot|can't|can not|could not|was not|will not) be"
        r" (?:evaluated|judged|scored|processed|assessed|rated|fulfilled|completed|analy[sz]ed|answered)"
    ),
    (
        r"\b(?:request|prompt|content|image|response) (?:was|has been|is|were) (?:\w+ ){0,2}"
        r"(?:flagged|rejected|blocked|filtered|refused|denied|declined)"
    ),
    r"\brequest (?:declined|denied|refused|rejected|blocked)\b",
)
_MARK = r"(?:scores?|ratings?|grades?|verdict|evaluation|assessment)"
_GIVES_NONE = re.compile(
    rf"\b(?:i|we) (?:(?:will|would|can|must|do|shall|therefore|thus|also|hereby) )*(?:give|assign|provide|award|offer|issue|submit) no {_MARK}\b"
    rf"(?! (?:of|above|below|over|under|higher|lower))"
    rf"|\band (?:therefore |so )?(?:give|assign|provide|award) no {_MARK}\b"
    rf"|\b(?:i|we)(?:'ll)? (?:do not|don't|will not|won't|cannot|can't|refuse to|decline to) (?:give|assign|provide|award|offer) (?:it |this |this (?:image|picture) )?"
    rf"(?:an? |any ){_MARK}(?! (?:of|above|below|over|under|higher|lower))\b"
    rf"|\b(?:i|we) (?:will not|won't|refuse to|decline to) (?:score|rate|grade|judge|evaluate) (?:it|this|this (?:image|picture|one)|the (?:image|picture))(?:\Z|[.,;!?])"
    rf"|\bno {_MARK} (?:is |was |will be |has been |can be )?(?:given|assigned|awarded)(?:\Z|[.,;!?])"
    r"|\bi (?:must |will |therefore |have to )?abstain\b"
)
_OF_NONE = frozenset(["no", "not", "dont", "wont", "cannot", "cant", "refuse", "decline", "abstain"])
_GIVING = frozenset(["given", "assigned", "awarded", "give", "assign", "award", "provide"])
_I = frozenset({"i", "we"})
_OF_WHAT_IS_JUDGED = frozenset({"response", "output", "model", "caption", "says", "states", "claims"})  # a refusal that is judged
_REFUSAL = re.compile("|".join((*_REFUSAL_WAYS, _GIVES_NONE.pattern)))


# Beside a number: "I cannot rate this image", but not "I cannot rate it above a 3", "I can't assess the back", "cannot be rated as good".
_TO_RATE = r"(?:rat(?:e|ing)|scor(?:e|ing)|grad(?:e|ing))"
_TO_JUDGE = rf"(?:evaluat(?:e|ing)|assess(?:ing)?|judg(?:e|ing)|analy[sz](?:e|ing)|{_TO_RATE})"
_IT = r"(?:it|this|that|them|these)"
_ADVERB = r"(?:(?:currently|actually|therefore|thus|also|unfortunately|ethically|responsibly|directly|personally|simply|in good conscience),? ){0,2}"
_CAN_NOT = r"(?:can't|cannot|can not|couldn't|could not|won't|will not|unable to|not (?:able|allowed|permitted|going|willing) to|not comfortable(?: with)?)"
_WILL_NOT = r"(?:(?:must |have to |will )?(?:respectfully |politely )?(?:refuse|decline) to|(?:rather|prefer) not(?: to)?)"
_SOME = (
    r"(?:(?:this|that|the|these|those|your|any|either|such(?: an?)?|(?:this|that|these) (?:kind|type|sort) of) )?"
    r"(?:(?:ai|ai-generated|model|candidate|given|provided|generated|edited|attached|submitted|sexual|explicit|violent|graphic|nsfw|adult) ){0,2}"
)
_PICTURES = (
    r"images?|imagery|pictures?|photos?|photographs?|illustrations?|artworks?|content|material|requests?|submission|outputs?"
)
_REQUEST = (
    r"(?:this|that|your|the|such|these|those) (?:\w+ )?(?:requests?|tasks?|prompts?|query|evaluation|content|images?|pictures?)"
)
_PEOPLE = r"(?:people|persons?|individuals?|anyone|someone|faces?)(?: (?:in|from) (?:\w+ ){0,2}(?:images?|pictures?|photos?))?"
_AT_ALL = (
    r"(?! ?, ?(?:only|just|fully|properly|at least)\b)(?= ?(?:[.,;:!)\]}…—–]|- |\Z)"
    r"| (?:because|due to|since|under|per|according|as (?:it|this|i|doing)\b|for (?:policy|safety|ethical|legal|content|this|that|these)\b|in (?:accordance|line|good conscience)"
    r"|on (?:policy|safety|ethical|moral)|at (?:this|the) (?:time|moment)|so (?:i|the|it|no|this|score)\b|and (?:must|will|have|therefore|so|decline|refuse|cannot|can't|won't)\b))"
)
# What is told of a text or a picture, and a supposed case: "the caption says: I can't assist with that".
_TOLD = re.compile(
    r"\b(?:says|said|saying|reads|reading|states|stating|claims|claimed|claiming|writes|wrote|writing|replies|replied|responds|responded|answers|answered|admits|insists|apologi[sz](?:es|ed|ing)|refused|if|when)\b"
    r"|\b(?:outputs?|captions?|responses?|answers?|descriptions?|texts?|reply|refusals?)(?: (?:is|was)(?: just| only| simply)? ?[:(]?| ?[:(]) ?(?:i'?m |i am )?(?:sorry,? )?(?:but )?\Z"
)
_TRIGGERS = frozenset([
    "cannot", "cant", "couldnt", "wont", "unable", "able", "allowed", "permitted", "willing", "comfortable", "refuse", "decline", "refusing", "declining", "rather", "prefer",
])  # fmt: skip
_AUXILIARIES = frozenset(["can", "could", "will", "going"])
_DEEDS = frozenset([
    "evaluate", "evaluating", "evaluated", "evaluation", "assess", "assessing", "assessed", "assessment", "judge", "judging", "judged", "rate", "rating", "rated", "score",
    "scoring", "scored", "grade", "grading", "graded", "analyze", "analyse", "analyzing", "analysing", "analyzed", "analysed", "assist", "help", "comply", "request", "task",
    "refuse", "decline", "scores", "ratings", "grades", "verdict", "verdicts", "fulfil", "fulfill", "complete", "process", "answer", "respond", "engage", "participate", "tasks",
])  # fmt: skip


def declines(sentences: Sentences, *, has_text: bool) -> bool:
    """Whether a judge says of itself that it does not judge, or gives no score, whatever stands beside that.

    `has_text`: the rubric judges a text, which it may decline to judge.
    """
    words = sentences.words
    if not (_OF_NONE.isdisjoint(words) or (_GIVING.isdisjoint(words) and _I.isdisjoint(words))) and any(
        _GIVES_NONE.search(one.text.strip()) for one in sentences.with_any(_OF_NONE) if one.words.isdisjoint(_OF_WHAT_IS_JUDGED)
    ):
        return True
    triggers = _TRIGGERS if "not" not in words else _TRIGGERS | _AUXILIARIES
    if not (triggers.isdisjoint(words) or _DEEDS.isdisjoint(words)):
        for one in sentences.with_any(triggers):
            said = None if _DEEDS.isdisjoint(one.words) else _does_not_judge(has_text=has_text).search(one.text)
            if said and not _TOLD.search(one.text, 0, said.start()):
                return True
    return declines_elsewhere(sentences)


@lru_cache(maxsize=2)
def _does_not_judge(*, has_text: bool) -> re.Pattern[str]:
    things = rf"{_SOME}(?:{_PICTURES}{'|captions?|responses?|answers?|descriptions?' if has_text else ''})"
    mark = rf"(?:(?:an?|any|the|your|this) )?(?:(?:numerical|numeric|meaningful|valid|requested) )?{_MARK}(?: (?:for|of|on|to) (?:{things}|{_IT}))?"
    helping = (
        rf"(?:give|giving|provide|providing|assign|offer|issue|perform|conduct|complete)(?: it| this(?: (?:image|picture))?)? {mark}"
        rf"|(?:assist|help|comply)(?: you)?(?: (?:with|in) (?:{_IT}|{_REQUEST}|{_TO_JUDGE} (?:{things}|{_IT})|identifying (?:\w+ ){{0,2}}{_PEOPLE}))?"
        rf"|(?:fulfil|fulfill|complete|process|answer|respond to|engage with|participate in) {_REQUEST}"
    )
    i = r"\b(?:i|we)(?:'m| am|'re| are| was|'d| would)?"
    begins = (
        r"(?:\A\W*|\b(?:reason(?:ing)?|explanation|comments?|rationale|notes?|justification|analysis) ?: ?|[0-9] ?[(\[–—-] ?)"
    )
    ways = (
        rf"{i} {_ADVERB}{_CAN_NOT} {_ADVERB}(?:{_TO_JUDGE} {things}|{_TO_RATE} {_IT}|{helping})",
        rf"{i} {_ADVERB}{_WILL_NOT} {_ADVERB}(?:{_TO_JUDGE} (?:{things}|{_IT})|{helping})",
        rf"\b(?:sorry|apologi[sz]e),? (?:but )?{i} {_ADVERB}{_CAN_NOT} {_ADVERB}{_TO_JUDGE} {_IT}",
        rf"{begins}{i} {_ADVERB}{_CAN_NOT} {_ADVERB}{_TO_JUDGE} this",
        rf"{i} (?:must |have to |will |therefore ){{0,2}}(?:respectfully |politely )?(?:decline|refuse)(?: {_REQUEST})?",
        # without a subject: the judge's own where a sentence, a reason or a remark on the score begins
        rf"(?:{begins}|[:(\[] ?)(?:sorry,? (?:but )?)?(?:{_CAN_NOT}|(?:refus|declin)(?:e|ing) to) {_ADVERB}(?:{_TO_JUDGE} {things}|{_TO_RATE} {_IT})",
        rf"{begins}(?:sorry,? (?:but )?)?(?:i |we )?(?:am |'m )?{_CAN_NOT} (?:evaluate|assess|rate|score|grade)",
        rf"{begins}(?:this )?(?:cannot|can't|can not|could not|couldn't) be (?:evaluated|assessed|judged|rated|scored|graded|analy[sz]ed)",
        r"(?<!of )(?<!in )(?<!on )(?<!from )(?<!for )(?<!to )\b(?:this|the) (?:generated |given |provided )?(?:image|picture|photo|content|request) (?:cannot|can't|can not|could not|couldn't|will not) be (?:evaluated|assessed|judged|rated|scored|graded|analy[sz]ed)",
    )
    return re.compile(rf"(?:{'|'.join(ways)}){_AT_ALL}")


def declined(text: str) -> ParseReason | None:
    """MISSING_INPUT, REFUSAL, or None where the reply says neither in its first 4,000 characters."""
    head = _SPACES.sub(" ", text[:_N_CHARACTERS_READ].translate(_APOSTROPHES)).lower()
    if _MISSING.search(head):
        return ParseReason.MISSING_INPUT
    return ParseReason.REFUSAL if _REFUSAL.search(head) else None
