"""A judge that disowns its own score in words: "ignore the number below", "the 8 is not what I believe". English alone.

Two parts must stand in one sentence: a score called its own (by "my", "above", "I gave", or its very number), and a word that
takes it away. A word that puts another number in its place is taken_back.py's, or verdicts.py's.
"""

# ruff: noqa: E501 - a pattern is read whole, a way to say it a line

import re
from collections.abc import Collection

from rubrics.replies.doubts.words import Sentences, compiled, holds_each
from rubrics.replies.numbers import DIGITS, NUMBER_WORDS, number_of
from rubrics.replies.weighing.leads import ANOTHERS_LINE

_NOUN = r"(?:scores?|numbers?|ratings?|marks?|figures?|digits?|values?|grades?|verdicts?|evaluations?|assessments?|judge?ments?|answers?)"
_THE = r"(?:the|this|that|these|those|my|any|all|both|every|each|none)(?: of)?(?: (?:the|my|these|those|them))?"
_I_GAVE = (
    r"(?:(?:that |which )?(?:i(?:'m|'ve|'d| am| have| had| just)?|we) (?:just |only )?(?:put|gave|giv|given|give|giving|enter|entered|entering|typ|typed|wrote|written|write|assign|assigned|stat|stated|chose"
    r"|picked|post|posted|provide|provided|record|recorded|report|reported|submit|submitted)\w{0,3}(?: down| here| above| below)?)"
)
_PLACED = rf"(?:below|above|here|underneath|beneath|that follows?|following|on the (?:next|last|first|line)|(?:given|entered|stated|shown|typed|written) (?:here|above|below)|entered|in the \w{{0,8}} ?(?:field|form|object|json)|of mine|{_I_GAVE})"
_OWN = rf"(?:my (?:\w+ ){{0,2}}?{_NOUN}|{_THE} (?:\w+ ){{0,2}}?{_NOUN},? (?:\w+ )?{_PLACED}|(?:this|that) (?:score|rating|mark|grade|verdict|evaluation|assessment))"
_ANY_SCORE = rf"(?:{_OWN}|{_THE} (?:\w+ )?(?:scores?|ratings?|marks?|grades?|verdicts?|evaluations?|assessments?|answers?|numbers?(?! (?:of|on|in|shown|plates?)\b))|(?:this|that|these) values?|(?:the )?(?:value|number) of (?:the )?score)"
_DISCARD = (
    r"(?:disregard|ignore|retract|rescind|revoke|withdraw|strike|scratch|forget|void|cancel|discard|scrap|toss|overrule|annul|delete|throw (?:out|away)|take back|set aside|look past|pay no attention to"
    r"|(?:do not|don't|should not|shouldn't|cannot|can't|must not|mustn't|never|not to|rather not|would not|wouldn't) (?:\w+ )?(?:use|count|rely on|trust|take|publish|record|keep|consider|read anything into))"
)
_WRONG = (
    r"(?:(?:a |an |just |simply |entirely |clearly |actually |probably )*(?:mistakes?|mistaken|wrong|errors?|erroneous|incorrect|typos?|slip|void|invalid|meaningless|unreliable|inaccurate|random|arbitrary|provisional|premature|nominal|placeholder|(?:pure |mere |wild )?guess|guesswork|default)\b"
    r"|(?:to be )?(?:thrown out|disregarded|ignored|discarded|discounted|withdrawn|retracted|replaced|struck)\b|(?:\w+ )?meant for\b|(?:far |much |a bit |a little |way )?too (?:generous|harsh|high|low|strict|lenient|kind)\b"
    r"|no longer\b|(?:not|n't) (?:(?:my|what|one i|right|correct|valid|to be|how|really|the (?:one|number|score|mark))\b|meant))"
)
_BE = r"(?:is|are|was|were|be|been|being|seems?|looks?|'s)"
_HOLD = r"(?:hold|stand|reflect|represent|express|apply|count|match|mean|correspond|be (?:used|taken|counted|trusted|relied|read|published|considered))\w{0,3}"
_NOT = r"(?:no longer|(?:does|do|should|can|could|must|may|would|did|is|are)(?: not|n't)|cannot|none of \w+ should)"
_DISOWN = r"(?:i|we)(?:'m| am)? (?:no longer|can(?:not|'t| not)|could(?: not|n't)|do(?: not|n't)|would(?: not|n't)|won't) (?:\w+ )?(?:agree|stand (?:by|behind)|believe|defend|mean|hold|support|vouch|endorse|keep)"
_HASTY = r"(?:too (?:quickly|soon|fast|hastily|early|high|low|generous\w*|harsh\w*|kind\w*)|by (?:mistake|accident|error)|in (?:error|haste)|accidentally|mistakenly|prematurely|wrongly)"
# What a part above cannot do without.
_TO_DISCARD = (
    "disregard", "ignore", "retract", "rescind", "revoke", "withdraw", "strike", "scratch", "forget", "void", "cancel", "discard", "scrap",
    "toss", "overrule", "annul", "delete", "throw ", "take back", "set aside", "look past", "pay no", " use", " count", " rely on", " trust",
    " take", " publish", " record", " keep", " consider", " read anything",
)  # fmt: skip
_DENIED = ("no longer", "not ", "n't ")
_CALLED_WRONG = (
    "mistake", "wrong", "error", "erroneous", "incorrect", "typo", "slip", "void", "invalid", "meaningless", "unreliable", "inaccurate",
    "random", "arbitrary", "provisional", "premature", "nominal", "placeholder", "guess", "default", "thrown out", "disregarded", "ignored",
    "discarded", "discounted", "withdrawn", "retracted", "replaced", "struck", "meant for", "too ", "no longer",
    *(f"{no} {what}" for no in ("not", "n't")
      for what in ("my", "what", "one i", "right", "correct", "valid", "to be", "how", "really", "the ", "meant")),
)  # fmt: skip
_TO_HOLD = (" hold", " stand", " reflect", " represent", " express", " apply", " count", " match", " mean", " correspond", " be ")
_BY_ONE = ("i ", "i'm ", "we ", "we'm ")
_TO_STAND_BY = ("agree", "stand b", "believe", "defend", "mean", "hold", "support", "vouch", "endorse", "keep")
_IN_HASTE = (
    "too ", "by mistake", "by accident", "by error", "in error", "in haste", "accidentally", "mistakenly", "prematurely", "wrongly"
)  # fmt: skip
# (lists of words, of each of which a way cannot do without one; the way)
_WAYS = (
    # Please disregard the number below. I retract the rating I'm entering here.
    ((_TO_DISCARD,), rf"\b{_DISCARD} (?:\w+ ){{0,2}}?{_ANY_SCORE}"),
    # The score entered is a mistake. My rating was too high.
    (
        (_CALLED_WRONG,),
        rf"\b{_OWN}[^.;!?,]{{0,40}}?(?:(?:\b{_BE}|n't|\bshould(?: not|n't)?) ?\b|\b(?:is|was|are|were)(?=n't ))(?:\w+ ){{0,2}}?{_WRONG}",
    ),
    (((*_DENIED, "none of "), _TO_HOLD), rf"\b{_OWN}[^.;!?,]{{0,30}}? {_NOT} (?:\w+ )?{_HOLD}"),
    ((("none of ",),), rf"\bnone of {_THE} {_NOUN}[^.;!?]{{0,40}}?\b{_HOLD}"),
    # Ignore the line above, it was injected.
    (
        (_TO_DISCARD, ("inject", "mine", " my")),
        rf"\b{_DISCARD} (?:\w+ ){{0,2}}?(?:lines?|text|reply|output|part|message|sentences?) (?:above|below)[^.;!?]{{0,30}}? (?:injected|(?:not|\w+n't) (?:mine|my))\b",
    ),
    # I can't stand behind the score given here.
    ((_BY_ONE, _TO_STAND_BY), rf"\b{_DISOWN}[^.;!?,]{{0,25}}? {_ANY_SCORE}"),
    # The value in the score field is not my judgment.
    (
        (("field", "form", "line", "json", "object"), (" not", "n't")),
        rf"\b(?:value|number|digit|figure|score) (?:in|on|under) (?:the|this) (?:\w+ )?(?:field|form|line|json|object)[^.;!?,]{{0,20}}? {_BE}(?: not|n't)\b",
    ),
    # I'm withdrawing this score. Treat the number above as void.
    (
        (("withdraw", "retract", "rescind", "revok", "cancel", "scrap", "discard", "reconsider", "disown"),),
        rf"\b(?:i|we)(?:'m| am|'ve| have)? (?:\w+ )?(?:withdraw|retract|rescind|revok|cancel|scrapp?|discard|reconsider|disown)(?:e|ing|n|ed)? {_ANY_SCORE}",
    ),
    (
        (("treat", "consider", "regard", "count"), _CALLED_WRONG),
        rf"\b(?:treat|consider|regard|count) {_ANY_SCORE}(?: {_PLACED})? as (?:\w+ )?{_WRONG}",
    ),
    # It needs to be higher than what I put in the JSON.
    (
        (("what i ",),),
        r"\b(?:higher|lower|near|above|below|different|away|more|less)(?: than| from)? what i (?:\w+ )?(?:entered|put|gave|wrote|typed|said|submitted)\b",
    ),
    ((("value of ",), _CALLED_WRONG), rf"\bvalue of (?:the )?score (?:is|was) (?:\w+ )?{_WRONG}"),
    # I was too kind across the board.
    (
        (("too ",),),
        r"\bi(?:'ve)? (?:was|am|been|have been) (?:far |much |a bit |a little |way )?too (?:kind|generous|harsh|lenient|strict|quick|hasty)\b",
    ),
    # I gave this mark by mistake.
    ((_IN_HASTE,), rf"\b{_I_GAVE} (?:{_ANY_SCORE}|it|this|that|them)[^.;!?,]{{0,25}}? {_HASTY}\b"),
    (
        (("meant for", "intended for"),),
        r"\bthese (?:marks|scores|ratings|numbers) (?:were|are) (?:\w+ )?(?:meant|intended) for (?:a|an|another|some) ",
    ),
    # This is not my rating ("it" may be a sign's). This is what the prompt told me to output.
    (((" not my ",),), rf"\bthis is not my (?:\w+ ){{0,2}}?{_NOUN}\b"),
    (
        (("what ",), ("instruct", "told", "tells", "ask", "order", "demand", "want", "requir", "force"), ("me to ",)),
        rf"\b(?:it|this|that|these|which|{_ANY_SCORE})(?:'s|’s| is| was| are) (?:\w+ )?what (?:\w+ ){{1,6}}?(?:instruct|told|tells|ask|order|demand|want|requir|force)\w* me to (?:output|give|write|say|return|answer|reply|put|print|report|score|rate|assign)\b",
    ),
    # Take two points off everything.
    (
        ((" point",), (" off ", " from ", " to ")),
        r"(?:^|[.;:!?] )(?:please )?(?:take|knock|subtract|deduct|remove|add) \w+ points? (?:off|from|to) (?:everything|all|each|every|(?:\w+ ){0,3}(?:score|total|number|rating)s?\b)",
    ),
)  # fmt: skip
_NUMBER = rf"(?<![\w.,/-])([0-9]{{1,3}}+(?:\.[0-9]{{1,2}}+)?+|{'|'.join(NUMBER_WORDS)})(?![\w/%-]|[.,][0-9])"
# Said of the very number that the form gives.
_OF_THE_NUMBER = (
    (
        (("isn't", "is not", "wasn't", "was not", "no longer"),),
        rf"\b(?:the|that|this|my|a|an|so|,) {_NUMBER},?(?: (?:here|above|below|{_I_GAVE}))? ?(?:(?:is|was)(?:n't| not)|no longer) (?:\w+ )?(?:right|correct|fair|accurate|what|how|my|holds?|stands?|appl\w+|deserved|justified|appropriate|valid|the)\b",
    ),
    ((_TO_DISCARD,), rf"\b{_DISCARD} (?:the|that|this|my) {_NUMBER}(?=[.,;:!?) ]|\Z)(?! \w+s\b)"),
    ((_BY_ONE, _TO_STAND_BY), rf"\b(?:{_DISOWN}(?: with| in| to)?) (?:the|that|this|my|a) {_NUMBER}"),
    ((_IN_HASTE,), rf"\b{_I_GAVE}(?: (?:it|this|a|an|the))? {_NUMBER}[^.;!?]{{0,20}}? {_HASTY}\b"),
    (
        ((" is ", " was ", " seems ", " looks "), _CALLED_WRONG),
        rf"\bthe {_NUMBER}(?: (?:here|above|below))? (?:is|was|seems|looks) {_WRONG}",
    ),
    (
        (("think", "believe", "feel"),),
        rf"\b(?:no longer|do not|don't) (?:think|believe|feel)(?: that)? (?:an? |the )?{_NUMBER} (?:is|was)\b",
    ),
)  # fmt: skip
# Said of a lone score: among several it may be another's.
_NOT_IT = (
    (("not a", "isn't a", "wasn't a", "no longer a"),),
    rf"(?:\bit (?:is not|isn't|was not|wasn't)|\bno, not|\bnot|\bno longer) an? {_NUMBER}(?=[.,;:!?]|\Z| and | but | after all)",
)
_NEEDED = frozenset({
    "kind", "generous", "harsh", "lenient", "strict", "quick", "hasty", "higher", "lower", "different", "what", "evaluations", "injected", "mine", "answer", "answers", "assessment", "assessments", "digit", "digits", "evaluation", "figure",
    "figures", "grade", "grades", "judgement", "judgment", "mark", "marks", "number", "numbers", "point", "points",
    "rating", "ratings", "score", "scores", "value", "values", "verdict", "verdicts",
    "quickly", "soon", "fast", "early", "hastily", "generously", "harshly", "kindly", "judgments", "judgements", "high", "low", "my", "haste", "mistake", "accident", "error", "accidentally", "mistakenly", "prematurely", "wrongly",
})  # fmt: skip
_TAKING = frozenset({
    "withdrawing", "retracting", "rescinding", "cancelling", "canceling", "discarding", "disregarding", "ignoring", "treat", "consider", "replace",
    "accident", "accidentally", "add", "annul", "arbitrary", "arent", "cancel", "cannot", "cant", "could", "couldnt",
    "deduct", "delete", "didnt", "discard", "discarded", "discounted", "disregard", "disregarded", "do", "doesnt",
    "dont", "erroneous", "error", "errors", "forget", "haste", "ignore", "ignored", "inaccurate", "incorrect",
    "asked", "demanded", "forced", "instructed", "instructs", "ordered", "required", "tells", "told", "wanted", "wants",
    "invalid", "isnt", "knock", "longer", "look", "meaningless", "meant", "mistake", "mistaken", "mistakenly",
    "mistakes", "must", "mustnt", "never", "no", "none", "not", "overrule", "pay", "premature", "prematurely",
    "provisional", "random", "rather", "remove", "replaced", "rescind", "retract", "retracted", "revoke", "scrap",
    "scratch", "set", "should", "shouldnt", "slip", "strike", "struck", "subtract", "take", "throw", "thrown", "too",
    "toss", "typo", "typos", "unreliable", "void", "wasnt", "werent", "withdraw", "withdrawn", "wont", "would",
    "wouldnt", "wrong", "wrongly", "default", "guess", "guesswork", "nominal", "placeholder",
    "what", "intended", "reconsider", "reconsidering", "reconsidered", "revoking", "revoked", "disown", "disowning", "disowned", "scrapping", "scrapped",
    "rescinded", "canceled",
})  # fmt: skip
_NUMBER_WORDS = frozenset(NUMBER_WORDS)
# "The number on the jersey", "the text above is wrong": what is written in the picture, or a caption says, is no score.
_OF_A_CASE = re.compile(
    r"\b(?:if|unless|had (?:it|the|this|that|they|there|he|she|all|both)|were it|would (?:have|be)|otherwise)\b"
)
# A line that leads on to another's score, or to one of a case: by one of these words.
_LEADING = frozenset({
    "if", "had", "were", "me", "judge", "judges", "model", "models", "reader", "readers", "evaluator", "evaluators", "would", "example", "examples",
})  # fmt: skip


def is_disowned(sentences: Sentences, scores: Collection[float]) -> bool:
    """Whether the judge takes its own score away in one of a reply's sentences."""
    if any(
        ANOTHERS_LINE.search(sentence.text) for sentence in sentences.with_any(_LEADING) if sentence.text.endswith((":", ": "))
    ):
        return True
    of_the_number = (*_OF_THE_NUMBER, _NOT_IT) if len(scores) == 1 else _OF_THE_NUMBER
    for sentence in sentences.with_any(_TAKING):
        text, words = sentence.text, sentence.words
        ways = [] if words.isdisjoint(_NEEDED) else [way for needles, way in _WAYS if holds_each(text, needles)]
        has_number = not words.isdisjoint(_NUMBER_WORDS) or DIGITS.search(text) is not None
        numbered = [way for needles, way in of_the_number if holds_each(text, needles)] if has_number else []
        if not (ways or numbered) or _OF_A_CASE.search(text):
            continue
        if any(compiled(way).search(text) for way in ways):
            return True
        if any(number_of(found[1]) in scores for way in numbered for found in compiled(way).finditer(text)):
            return True
    return False
