"""Other languages than English: sight, and numbers put right. Tables of replies."""

import pytest

from rubrics.loading import SHIPPED
from rubrics.model import Rubric
from rubrics.replies.doubts.languages import NO_PICTURE
from rubrics.replies.read import parse_reply
from schemas.records import ReadScores

NOTHING = [
    "Ich kann das Bild nicht sehen.",
    "Es wurde kein Bild bereitgestellt.",
    "Das Bild konnte nicht geladen werden.",
    "Je ne peux pas voir l'image.",
    "Aucune image n'a été fournie.",
    "L'image n'a pas pu être chargée.",
    "No puedo ver la imagen.",
    "No se proporcionó ninguna imagen.",
    "La imagen no se pudo cargar.",
    "Non posso vedere l'immagine.",
    "Non è stata fornita alcuna immagine.",
    "L'immagine non è stata caricata.",
    "Não posso ver a imagem.",
    "Nenhuma imagem foi fornecida.",
    "A imagem não pôde ser carregada.",
    "Я не вижу изображение.",
    "Изображение не предоставлено.",
    "Изображение не загрузилось.",
    "我看不到图片。",
    "没有提供图片。",
    "图片无法加载。",
    "画像を見ることができません。",
    "画像が提供されていません。",
    "画像が読み込めません。",
    "이미지를 볼 수 없습니다.",
    "이미지가 제공되지 않았습니다.",
    "이미지를 불러올 수 없습니다.",
    "لا أستطيع رؤية الصورة.",
    "لم يتم توفير صورة.",
    "تعذر تحميل الصورة.",
    "मैं छवि नहीं देख सकता।",
    "कोई छवि प्रदान नहीं की गई।",
    "छवि लोड नहीं हुई।",
    "Ik kan de afbeelding niet zien.",
    "Er is geen afbeelding verstrekt.",
    "De afbeelding kon niet worden geladen.",
    "Nie widzę obrazu.",
    "Nie dostarczono obrazu.",
    "Nie udało się załadować obrazu.",
    "Görseli göremiyorum.",
    "Görsel sağlanmadı.",
    "Görsel yüklenemedi.",
    "Tôi không thể xem hình ảnh.",
    "Không có hình ảnh nào được cung cấp.",
    "Không thể tải hình ảnh.",
    "Saya tidak dapat melihat gambar.",
    "Tidak ada gambar yang diberikan.",
    "Gambar tidak dapat dimuat.",
    "Obrázek se nenačetl.",
    "Bilden kunde inte laddas.",
    "画像が添付されていないため評価できません。",
    "Leider liegt mir kein Bild vor.",
    "Das Bild konnte leider nicht geöffnet werden.",
    "Mir wurde kein Bild übermittelt.",
    "Je n'ai pas reçu l'image.",
    "Image manquante.",
    "Не удалось открыть изображение.",
    "Картинка не открывается.",
    "画像が表示できません。",
    "写真が開けません。",
    "Ik heb geen afbeelding ontvangen.",
    "De foto kan niet worden weergegeven.",
    "Brak obrazu.",
    "Nie otrzymałem obrazu.",
    "Zdjęcie nie zostało załączone.",
    "Resim eklenmedi.",
    "Fotoğraf yüklenmedi.",
    "Hình ảnh không hiển thị.",
    "Không nhận được hình ảnh.",
    "Saya belum menerima gambar.",
    "Gambar tidak tersedia.",
    "Tidak ada gambar.",
    "لا توجد صورة مرفقة.",
    "الصورة غير متوفرة.",
    "तस्वीर उपलब्ध नहीं है।",
    "मुझे छवि दिखाई नहीं दे रही है।",
    "La foto no se pudo abrir.",
    "No recibí ninguna imagen.",
    "A imagem não carregou.",
    "L'immagine non è disponibile.",
    "Non riesco a vedere l'immagine.",
    "이미지를 열 수 없습니다.",
    "이미지가 첨부되지 않았습니다.",
    "图片加载失败。",
    "未收到图片。",
]
SEEN = [
    "Das Bild zeigt keinen Hund.",
    "Auf dem Bild ist kein Hund zu sehen.",
    "Der Hund fehlt im Bild.",
    "L'image ne montre pas de chien.",
    "Sur l'image, aucun chien n'est visible.",
    "L'image n'est pas très nette.",
    "На изображении нет собаки.",
    "Изображение не соответствует запросу полностью.",
    "画像に犬がいません。",
    "画像には犬が見えません。",
    "写真はきれいです。",
    "De afbeelding toont geen hond.",
    "Er is geen hond te zien op de afbeelding.",
    "De afbeelding is niet scherp.",
    "Na obrazie nie ma psa.",
    "Obraz nie jest ostry.",
    "Görselde köpek yok.",
    "Görsel net değil.",
    "Không có con chó nào trong hình ảnh.",
    "Hình ảnh không rõ nét.",
    "Tidak ada anjing di gambar.",
    "Gambar tidak tajam.",
    "لا يوجد كلب في الصورة.",
    "الصورة واضحة.",
    "छवि में कुत्ता नहीं है।",
    "छवि स्पष्ट नहीं है।",
    "La imagen no muestra un perro.",
    "No hay ningún perro en la imagen.",
    "La imagen no está nítida.",
    "A imagem não mostra um cachorro.",
    "L'immagine non mostra un cane.",
    "Non c'è nessun cane nell'immagine.",
    "이미지에 개가 없습니다.",
    "이미지가 선명합니다.",
    "图片中没有狗。",
    "图片没有显示狗。",
    "图像清晰。",
    "Bilden visar ingen hund.",
    "Na obrázku není pes.",
    "The café's image is fine.",
    "Ein Bild hängt an der Wand, kein Foto.",
    "Das Bild ist nicht scharf.",
    "La foto no es nítida.",
    "L'image n'a pas de chien.",
    "A photo of the Straße; naïve style.",
]
# Behind "Score: 4".
PUT_RIGHT = [
    "更正：3",
    "更正: 3分",
    "Correction : 3",
    "Corrección: 3",
    "Correção: 3",
    "Correzione: 3",
    "Исправление: 3",
    "정정: 3",
    "Correctie: 3",
    "Korekta: 3",
    "Düzeltme: 3",
    "Koreksi: 3",
    "En realidad, 3.",
    "En fait, 3.",
    "Note finale : 3",
    "最终评分：3",
    "Korrektur: 3/5",
    "Eigentlich eher 3.",
    "Nein, 3.",
    "Endgültige Bewertung: 3/5",
    "訂正：3",
    "修正：3点",
    "最終評価：3",
]
NOT_PUT_RIGHT = [
    "Korrektur: 4/5",
    "Korrektur der Farben wäre gut.",
    "Nein, 3 Hunde sind nicht da.",
    "修正：4",
    "En fait, 3 chiens sont là.",
    "Correction : 4",
]
# In words, the best of a school's marks is the least number.
OF_A_SCHOOL = ["1 (sehr gut)", "1 (Sehr gut)", "4 (1 = sehr gut)", "4\nBegründung: von 1 (sehr gut) bis 6", "4 (Schulnote)"]
NOT_OF_A_SCHOOL = [
    ("5 (sehr gut)", 5),
    ("4 (sehr gut)", 4),
    ("4 (gut)", 4),
    ("1 (sehr schlecht)", 1),
    ("5/5 (sehr gut)", 5),
    ("**5** (sehr gut)", 5),
    ("4\nBegründung: Der Hut (sehr gut) ist grün.", 4),
]


@pytest.mark.parametrize("words", NOTHING)
def test_no_picture_came(doubtful: dict[str, Rubric], words: str) -> None:
    assert parse_reply(doubtful["alignment"], f"Reasoning: {words}\nScore: 1", {}).as_dict() == {"error": "missing_input"}


@pytest.mark.parametrize("words", SEEN)
def test_something_in_the_picture_is_missing(doubtful: dict[str, Rubric], words: str) -> None:
    assert isinstance(parse_reply(doubtful["alignment"], f"Reasoning: {words}\nScore: 1", {}), ReadScores)


@pytest.mark.parametrize("words", PUT_RIGHT)
def test_another_number_in_the_score_s_place(doubtful: dict[str, Rubric], words: str) -> None:
    assert parse_reply(doubtful["alignment"], f"Score: 4\n{words}", {}).as_dict() == {"error": "ambiguous"}


@pytest.mark.parametrize("words", NOT_PUT_RIGHT)
def test_the_same_number_or_one_of_something_else(doubtful: dict[str, Rubric], words: str) -> None:
    assert isinstance(parse_reply(doubtful["alignment"], f"Score: 4\n{words}", {}), ReadScores)


@pytest.mark.parametrize("said", OF_A_SCHOOL)
def test_a_school_s_mark_is_of_another_scale(doubtful: dict[str, Rubric], said: str) -> None:
    assert "scores" not in parse_reply(doubtful["bewertung"], f"Bewertung: {said}", {}).as_dict()


@pytest.mark.parametrize(("said", "score"), NOT_OF_A_SCHOOL)
def test_very_good_in_german_is_no_scale(doubtful: dict[str, Rubric], said: str, score: int) -> None:
    assert parse_reply(doubtful["bewertung"], f"Bewertung: {said}", {}).as_dict() == {"scores": {"overall_score": score}}


def test_the_docs_name_every_language() -> None:
    docs = (SHIPPED.parent / "docs" / "replies.md").read_text(encoding="utf-8")
    assert [name for name in NO_PICTURE if name not in docs] == []
