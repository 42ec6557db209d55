"""Words said of a picture that never came, and of one that came and is bad: corrupted, failed, broken. Here the two are told apart.

It never came where the words speak of sending or opening; it came where what stands behind them belongs to what is seen:
"corrupted by artifacts", "failed to render the hands". Patterns for missing_ways.py and clues.py.
"""

# ruff: noqa: E501 - a pattern is read whole, a way to say it a line

MESSAGE = r"(?:message|request|conversation|chat|prompt|query|question|input|submission|upload|thread|context|post|session|dialog(?:ue)?|turn)"
# Not "looks corrupted", "corrupted by noise", "corrupted text"; but all the same if it cannot be opened or judged.
CORRUPT = (
    r"(?:(?<!looks )(?<!look )(?<!heavily )(?<!badly )(?<!severely )(?<!visually )(?<!partially )(?<!partly )(?<!slightly )corrupt(?:ed|ion)?\b"
    r"(?! (?:by|with) (?!(?:\w+ ){0,2}?(?:upload|transfer|transmission|download|network|server|error)\w*\b))"
    r"(?! (?:\w+ )?(?:noise|artifacts?|artefacts?|pixels|textures?|colou?rs?|hands?|fingers|limbs|anatomy|faces?|text|letters?|lettering|words?|glyphs|details?|areas?|regions?|patterns?)\b)"
    r"|corrupt(?:ed)?\b[^;\n]{0,60}?\b(?:(?:cannot|can't|could not|couldn't) be (?:opened|displayed|viewed|read|decoded|loaded|processed|accessed|judged|evaluated|assessed|rated|scored)"
    r"|(?:(?:will|would|does|did|could)(?: not|n't)|won't) (?:open|load|decode)"
    r"|(?:i|we) (?:cannot|can't|could not|couldn't|am unable to|was unable to) (?:\w+ )?(?:open|view|read|decode|load|see|judge|evaluate|assess|rate|score) (?:it|the (?:image|picture|photo))\b)"
    r"|corrupt(?:ed)? (?:on (?:my|our)|or (?:is |was )?(?:not|never|missing|unreadable))\b)"
)
# Behind "failed": to render the hands.
OF_ITS_CONTENT = (
    r"(?! to (?:\w+ly )?(?:(?:depict|show|includ|captur|follow|draw|produc|generat|add|plac|match|reproduc)\w*"
    r"|(?:render|display) (?:the|an?|any|all|its|his|her|their|this|that|these|those|both|every|each|some|two|text|words?|hands?)\b))"
)
# Failed to load, but not "the details of the face"; failed to render by itself, or for the judge.
FAILED = (
    r"(?:(?:load|upload|attach|come through|open|arrive)"
    r"(?! (?:the|an?|some|all|both|most)(?: of)?(?: the)? (?!(?:\w+ )?(?:images?|pictures?|photos?|files?|data|contents?|pixels?|page|time)\b))|(?:display|render)"
    r"(?:\s?(?:[.,;:!?/()\[\]}…—–、-]|'(?!\w)|\Z)"
    r"|\s(?:so|but|hence|thus|therefore|which|because|due|since|at all|anything|any (?:contents?|data|pixels)|as an? (?:attachment|file)|yet|or|here|i|we|by|from|during|before|when|while|after|this time|entirely|completely|fully|again|even|please"
    r"|(?:properly|correctly|successfully)(?! (?:the|an?|any|all|its|his|her|their|both|some|two)\b)|to (?:me|us)|for (?:me|us|this|evaluation|assessment|review|analysis|the (?:evaluation|assessment))"
    rf"|on (?:my|our|this|the (?:end|side|page|server|client|system|device|platform))|(?:in|within) (?:my|our|your|this|the (?:{MESSAGE}|viewer|browser|interface|window|app))|with (?:an? |the )?(?:\w+ )?(?:error|status|code|http|40[0-9]|50[0-9])"
    r"|and (?:so |thus |therefore |hence )?(?:i|we|it|there|this|that|no|nothing|is|was|could|cannot|can't|my|only|score|the (?:score|rating|evaluation|assessment|answer)))\b))"
)
# Not "broken: the hands are melted".
BROKEN = r"broken(?!(?:\s?[:—–-]|, (?:with|as)\b)(?!.*\b(?:load|open|display|view|link|file|url|icon|error|access|see|page|gone|availab|upload|attach|server|data|receiv|sent|40[0-9])))"
