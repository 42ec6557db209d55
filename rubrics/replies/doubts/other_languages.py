"""What takes a number away, said in another language than English: no picture came, another scale, another number.

The commonest ways in Chinese, Japanese, Korean, German, French, Spanish, Portuguese, Italian and Russian, as judges fall into them; more ways to say that
no picture came, and in more languages, are languages.py's table. What English says stands in missing_input.py, own_scales.py and taken_back.py.
"""

# ruff: noqa: E501 - a pattern is read whole, a way to say it a line; other scripts are meant

import re
from collections.abc import Collection

from rubrics.model import Dimension
from rubrics.replies.doubts.languages import AT_ALL, DECLINES, NO_PICTURE, WORDS
from rubrics.replies.doubts.words import Sentences, compiled, holds_any
from rubrics.replies.numbers import DIGITS

_PICTURE = r"(?:bild(?:er|datei)?|foto|images?|photos?|imagen|imágenes|imagem|imagens|immagine|immagini|figura|archivo|datei|fichier|изображени\w{1,2}|картинк\w{1,2}|фото)"
_NO_PICTURE = (
    r"(?:未|没有?|无法|不能|看不到|看不见|沒有|無法)(?:收到|看到|看见|接收到|提供|上传|附上|加载|打开|查看|显示|访问|获取|識別|识别|載入|任何)?(?:任何|到|这张|该|您(?:上传|提供|发送)?的|具体的|实际的)?(?:图片|图像|照片|圖片|圖像|图)(?!中|里|上|内|的(?:左|右|上|下))"
    r"|(?:图片|图像|照片|圖片)(?:没有|未能?|无法|未被|沒有)(?:成功)?(?:收到|提供|上传|附上|加载|打开|(?:显示|顯示)(?=[。.，,！!\s]|\Z)|載入|传来)|请(?:您)?(?:重新)?(?:提供|上传|发送|附上)(?:图片|图像|照片|该图)"
    r"|画像(?:が|を|は)?(?:提供されていません|添付されていません|見えません|見ることができません|確認できません|表示されません|ありません|受け取っていません)|(?:이미지|사진)(?:가|를|을|이)? ?(?:제공되지|첨부되지|보이지|볼 수 없|확인할 수 없|없습니다)"
    rf"|\bkein(?:e|en)? {_PICTURE} (?:\w+ )?(?:übermittelt|erhalten|bereitgestellt|vorhanden|angehängt|beigefügt|gesehen|mitgeschickt|vorliegend|empfangen|hochgeladen|sehen|gesendet)"
    rf"|\b(?:das|ein|dieses) {_PICTURE} (?:\w+ )?(?:nicht|nie) (?:öffnen|sehen|laden|anzeigen|erhalten|ansehen|abrufen|angekommen|übermittelt|beigefügt|angehängt|geladen|vorhanden|sichtbar)"
    rf"|\b(?:no|não|non) (?:\w+ )?(?:puedo|pude|veo|consigo|posso|riesco|recib\w+|recebi|ho ricevuto|se (?:adjuntó|proporcionó|envió|recibió|cargó)|hay|há|c'è|se ha \w+) (?:\w+ )?(?:a )?(?:ver |abrir |vedere |acceder a |cargar |aprire |visualizar )?(?:la |a |l'|ninguna |nenhuma |alcuna |el )?{_PICTURE}"
    rf"|\b(?:la |a |l')?{_PICTURE} (?:no|não|non) (?:se |è stata |foi |fue |ha sido )?(?:\w+ )?(?:adjunt|proporcion|carg|envi|recib|llegó|anexad|fornecid|allegat|carricat|caricat|fornit|inviat|disponibl|disponív|disponibil)\w*"
    rf"|\b(?:aucune|pas d['’]) ?{_PICTURE} (?:\w+ )?(?:n['’]|fourni|jointe?|reçue?|transmise?|disponible|visible)|\bje ne (?:peux|vois|parviens|pouvais|pourrais) (?:\w+ )?(?:pas|aucune) (?:(?!évaluer|noter|juger|analyser)\w+ )?(?:voir |ouvrir |accéder à )?(?:l['’]|d['’]|cette |la |votre )?{_PICTURE}"
    rf"|\bl['’]image n['’](?:a pas été|est pas) (?:\w+ )?(?:fourni|jointe?|transmis|disponible|accessible|visible|chargée?|reçue?)|\b(?:не (?:вижу|могу (?:увидеть|открыть|посмотреть)|получил\w?)|нет) (?:\w+ )?{_PICTURE}|{_PICTURE} (?:не (?:был\w|предоставлен\w?|прикреплен\w?|загруж\w+|отображается)|отсутствует)"
)
_TOP = re.compile(
    r"满分(?:是|为|：|:)? ?([0-9]{1,3})|([0-9]{1,3}) ?分制|([0-9]{1,3}) ?点満点|([0-9]{1,3}) ?점 ?만점|[0-9] (?:von|sur|sobre|su|de um total de|из) ([0-9]{1,3}) ?(?:punkten|points|puntos|pontos|punti|баллов)?(?=[.,;!?)\"\n]|\Z)"
    r"|\b(?:sobre|sur|su) ([0-9]{1,3}), ?(?:máxima|note|voto)"
)
_SPAN = re.compile(
    r"(?:skala|escala|échelle|scala|шкал\w|范围|分值|评分范围)[^.;\n0-9]{0,25}?([0-9]{1,2})(?:分)? ?(?:-|–|~|到|至|bis|zu|a|al|à|до|and) ?([0-9]{1,3})",
    re.IGNORECASE,
)
_SCALE_NAMES = {"十分制": 10, "五分制": 5, "百分制": 100, "满分十分": 10, "满分五分": 5, "满分一百": 100}
_SCHOOL = re.compile(r"\bschulnote|\bnote [1-6] im schulsystem|\bприведено к школьной", re.IGNORECASE)
_BEST_IS_ONE = re.compile(r"(?<![0-9.,/])1 ?[(=] ?sehr gut\b", re.IGNORECASE)  # a school's: 5 (sehr gut) is none
_INSTEAD = (
    r"(?:应(?:该|当)?(?:是|为|改为|改成|给)?|改(?:为|成)|只能给|最终给|更正为|修正为|降(?:为|到|至)|升(?:为|到|至)) ?([0-9]{1,2}) ?分|(?:müsste|sollte|muss|wäre|wären)\b[^.;\n0-9]{0,40}?\b([0-9]{1,2})\b(?= (?:herabgesetzt|heraufgesetzt|korrigiert|geändert|punkte?\b|sein\b))"
    r"|(?:debería ser|corrijo a|bajarl[oa] a|subirl[oa] a|deveria ser|corrigé à|devrait être(?: de)?|dovrebbe essere|должн\w быть) (?:un |de )?([0-9]{1,2})(?![0-9])"
)
CORRECTION = (
    "korrektur", "berichtigung", "correction", "corrección", "correccion", "correção", "correcao", "correzione", "rettifica", "исправление", "поправка", "更正", "修正", "订正",
    "訂正", "정정", "수정", "correctie", "korekta", "düzeltme", "đính chính", "koreksi", "ralat", "تصحيح", "सुधार", "संशोधन",
)  # fmt: skip
"""What corrections are announced by, before a colon."""
# Korrektur: 5/10. 最終評価：3. En fait, 3.
_CORRECTED = (
    rf"(?:\A|(?<=[.:;,!? \n(\[\"]))(?:{'|'.join(CORRECTION)})\s?[:–-] ?(?:[^\W\d]+ ?:? ?){{0,3}}([0-9]{{1,2}}(?:\.[0-9]{{1,2}})?)(?![0-9%])(?= ?(?:/ ?[0-9]|[.,;:!)\]\"]|\Z|分|点|점|punkte|points|puntos|pontos|punti|балл))"
    r"|\b(?:endnote|gesamtnote|endergebnis|endgültige (?:bewertung|note|punktzahl)|note finale|score final|puntuación final|nota final|pontuação final|punteggio finale|voto finale|итоговая оценка|final score|最终(?:评分|得分|分数)|最終(?:評価|スコア|点)|최종 ?점수) ?[:：] ?([0-9]{1,2}(?:\.[0-9]{1,2})?)(?![0-9%])"
    r"|(?:\A ?|[.:;,!] )(?:nein|doch(?: eher)?|eigentlich(?: eher)?|besser gesagt|genauer|en fait|plutôt|en realidad|mejor dicho|más bien|na verdade|aliás|in realtà|anzi|на самом деле|точнее|вернее|eigenlijk|właściwie|raczej|aslında|sebenarnya|thực ra|实际上|应该是|いや|やはり|아니),? ?(?:es (?:ist|wäre) )?(?:eine |un |une |um |uma |una |een )?([0-9]{1,2}(?:\.[0-9]{1,2})?)(?=[ .,;!)]|です(?!\w)|\Z)(?! ?(?:[^\W\d]{3,}|[0-9]))"
)
# What words without accents tell these languages by.
_WORDS = frozenset({
    "bild", "foto", "datei", "imagen", "imagem", "immagine", "immagini", "skala", "escala", "scala", "schulnote", "schulsystem", "punkte",
    "puntos", "pontos", "punti", "sobre", "wurde", "keine", "kein", "puedo", "posso", "vois", "peux", "aucune", "nicht", "wird",
    "correction", "finale", "doch", "nein", "realidad", "verdade", "plutot", "anzi", "eigenlijk", "raczej", "sebenarnya", "fait", "meglio", "nota", "punteggio",
    "ich", "je", "noter", "juger", "indisponible", "anhang", "keinen", "bilder", "muss", "sollte", "besser", "sehr", "bilderna", "fotonya", "lampirannya", "gagal", "fotka", "fotku",
    "fotografie", "fotografii", "nemohu", "nelze", "solicitud", "contenido", "corrijo", "deveria", "dovrebbe", "mejor", "sur", "von", "su", "um",
}) | WORDS  # fmt: skip


def _foreign(sentences: Sentences) -> list[str]:
    if sentences.text.isascii() and sentences.words.isdisjoint(_WORDS):
        return []
    return [one.text for one in sentences.each if not one.text.isascii() or not one.words.isdisjoint(_WORDS)]


def misses_a_picture(sentences: Sentences) -> bool:
    """Whether one of a reply's sentences says that no picture came."""
    foreign = _foreign(sentences)
    if any(compiled(_NO_PICTURE, re.IGNORECASE).search(text) for text in foreign):
        return True
    for text in foreign:
        for needles, ways in NO_PICTURE.values():
            if holds_any(text, needles) and any(compiled(way, re.IGNORECASE).search(text) for way in ways):
                return True
    return False


def declines_elsewhere(sentences: Sentences) -> bool:
    """Whether one of a reply's sentences says that the judge does not judge what it was asked to, or does not help."""
    return any(
        holds_any(text, needles) and compiled(way + AT_ALL).search(text)
        for text in _foreign(sentences)
        for needles, way in DECLINES.values()
    )


def is_another_number(sentences: Sentences, scores: Collection[float], dimensions: tuple[Dimension, ...]) -> bool:
    """Whether another number on a scale is put in the score's place."""
    for text in _foreign(sentences):
        ways = (compiled(way, re.IGNORECASE) for way in (_INSTEAD, _CORRECTED)) if DIGITS.search(text) else ()
        said = [float(next(filter(None, found.groups()))) for way in ways for found in way.finditer(text)]
        if any(n not in scores and any(d.minimum <= n <= d.maximum for d in dimensions) for n in said):
            return True
    return False


def is_another_scale(sentences: Sentences, dimensions: tuple[Dimension, ...]) -> bool:
    """Whether a scale is said that is none of the dimensions'."""
    maxima = {d.maximum for d in dimensions}
    for text in _foreign(sentences):
        tops = {float(next(filter(None, found.groups()))) for found in _TOP.finditer(text)} - {0.0}  # no scale ends there
        tops |= {top for name, top in _SCALE_NAMES.items() if name in text}
        spans = [{float(found[1]), float(found[2])} for found in _SPAN.finditer(text)]
        if not tops <= maxima or any(not any(span == {d.minimum, d.maximum} for d in dimensions) for span in spans):
            return True
        if _SCHOOL.search(text) or (1 not in maxima and _BEST_IS_ONE.search(text)):
            return True
    return False
