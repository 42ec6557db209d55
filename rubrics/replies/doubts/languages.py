"""How a judge says in other languages that no picture came, or that it declines: what a way cannot do without, and the ways.

The older ways of nine of them, other scales and other numbers are other_languages.py's.
"""

# ruff: noqa: E501 - a pattern is read whole, a way to say it a line; other scripts are meant

NO_PICTURE = {
    "Arabic": (("صورة", "الصورة", "صور", "مرفق"), (
        r"(?:لا (?:أستطيع|يمكنني|أرى|تظهر|توجد|يوجد)|لم (?:أتمكن من|أستطع|يتم|تصلني|يصلني|أتلق|تظهر|تُحمّل|تحمل|تُرفق|ترفق)|تعذ?ر|تعذّر|ليست هناك|لا يظهر لي|غير قادر على)(?: (?:رؤية|عرض|فتح|تحميل|توفير|إرفاق|مشاهدة|الوصول إلى|إرسال|تقديم|أي|أية|استلام))* (?:ال)?صور(?:ة|)(?! (?:لـ|من|عن)|ة? (?:ال)?(?:قط|كلب))",
        r"(?:ال)?صورة (?:غير (?:متوفرة|متاحة|مرفقة|مرئية|موجودة)|لم (?:تصل|تُحمَّل|تحمل|تظهر|يتم تحميلها)|مفقودة)(?=[ .،,!؛]|\Z)",
    )),
    "Hindi": (("छवि", "तस्वीर", "चित्र", "इमेज", "फोटो"), (
        r"(?:छवि|तस्वीर|चित्र|इमेज|फोटो) (?:को )?(?:नहीं (?:देख|खोल|मिल|दिख)|(?:देख|खोल|लोड कर) नहीं|लोड नहीं|(?:प्रदान|संलग्न|उपलब्ध|अपलोड|प्राप्त) नहीं|दिखाई नहीं दे|उपलब्ध नहीं)",
        r"कोई (?:भी )?(?:छवि|तस्वीर|चित्र|इमेज|फोटो) (?:नहीं (?:मिली|दी|है|भेजी)|(?:प्रदान|संलग्न|उपलब्ध|अपलोड|प्राप्त) नहीं)",
    )),
    "Dutch": (("afbeelding", "foto", "plaatje", "beeld", "bijlage"), (
        r"\b(?:ik|we) (?:kan|kon|kunnen|konden) (?:helaas )?(?:geen (?:afbeelding(?:en)?|foto'?s?|plaatjes?|beeld(?:en)?|bijlage)|(?:de|het|deze|dit|uw|je) (?:bijgevoegde )?(?:afbeelding(?:en)?|foto'?s?|plaatjes?|beeld(?:en)?|bijlage) (?:helaas )?niet) (?:helaas )?(?:zien|bekijken|openen|laden|weergeven)(?=[ .,;!]|\Z)(?! (?:als|in))",
        r"\b(?:er (?:is|was|werd) |ik (?:heb|zie|ontving) (?:helaas )?)?geen (?:afbeelding|foto|plaatje|beeld|bijlage) (?:\w+ )?(?:verstrekt|meegestuurd|bijgevoegd|ontvangen|beschikbaar|aangeleverd|geüpload|gekregen|toegevoegd|aanwezig(?=[.,;!]|\Z))",
        r"\b(?:de|het) (?:afbeelding|foto|plaatje|beeld|bijlage) (?:kon|kan|werd|is|was|wordt) niet (?:\w+ )?(?:geladen|weergegeven|geopend|bijgevoegd|meegestuurd|verstrekt|beschikbaar|zichtbaar(?=[.,;!]|\Z)|ontvangen)",
        r"\bontbrekende afbeelding\b|\b(?:de|het) (?:afbeelding|foto|bijlage) ontbreekt(?=[.,;!]|\Z)",
    )),
    "Polish": (("obraz", "zdjęci", "zdjęć", "grafik", "załącznik", "plik"), (
        r"\bnie (?:widzę|mogę (?:zobaczyć|wyświetlić|otworzyć|obejrzeć|załadować)|otrzymał\w{1,3}|dostał\w{1,3}|dostarczono|przesłano|załączono|dołączono|udało się (?:załadować|otworzyć|wczytać|wyświetlić)|mam dostępu do) (?:żadnego |tego |tej |samego )?(?:obraz(?:u|ka|ków|ek)?|zdjęcia|zdjęć|grafiki|załącznika|pliku)\b(?! \w*(?:psa|kota))",
        r"\b(?:obraz|obrazek|zdjęcie|grafika|załącznik) (?:nie (?:został\w?|jest) (?:dostarczon|załączon|dołączon|przesłan|załadowan|widoczn|dostępn)\w{1,2}|nie (?:załadował|wczytał|wyświetlił)\w{0,2} się|jest niedostępn\w)(?=[ .,;!]|\Z)|\bbrak (?:obrazu|obrazka|zdjęcia|załącznika)(?=[.,;!]|\Z)",
    )),
    "Turkish": (("görsel", "resim", "resmi", "fotoğraf", "görüntü", "ek"), (
        r"\b(?:görsel|resim|fotoğraf|görüntü)(?:i|yi|ü|yü|e|ı|ler\w*)? (?:\w+ )?(?:göremiyorum|göremedim|görüntüleyemiyorum|açamıyorum|açılamadı|yüklenemedi|yüklenmedi|sağlanmadı|eklenmedi|gönderilmedi|gelmedi|bulunamadı|mevcut değil|iletilmedi|verilmedi|alamadım|erişemiyorum|açılmıyor|yüklenmiyor)|\bresmi (?:göremiyorum|göremedim|açamıyorum|yükleyemedim)",
        r"\b(?:herhangi )?bir (?:görsel|resim|fotoğraf) (?:sağlanmadı|eklenmedi|gönderilmedi|yok(?=[.,;!]|\Z)|almadım|göremiyorum)",
    )),
    "Vietnamese": (("ảnh", "hình"), (
        r"\b(?:không|chưa)(?: thể| có| được| nhận được| nhìn thấy| thấy| hề)*(?: (?:xem|tải|mở|thấy|truy cập|hiển thị|nhận|cung cấp|đính kèm|nhìn))*(?: được)?(?: bất kỳ| một)? (?:hình ảnh|bức ảnh|tấm ảnh|ảnh|hình)(?: nào)?(?: (?:được|này|đã|mà|bạn)|[.,;!]|\Z)(?! (?:chú|con))",
        r"\b(?:hình ảnh|bức ảnh|ảnh|hình) (?:\w+ )?(?:không|chưa)(?: thể)?(?: được)? (?:hiển thị|tải|mở|cung cấp|đính kèm|gửi|tồn tại|xem được|có sẵn|khả dụng)(?: được| lên)?(?=[.,;!]|\Z)",
    )),
    "Indonesian": (("gambar", "foto", "lampiran", "citra"), (
        r"\b(?:saya|kami) (?:tidak|belum) (?:dapat|bisa|mampu)? ?(?:melihat|membuka|memuat|mengakses|menerima|menampilkan) (?:adanya )?(?:gambar|foto|lampiran|citra)(?: (?:apa ?pun|tersebut|ini|itu|yang (?:diberikan|dimaksud|dilampirkan|anda))|nya)?(?=[ .,;!]|\Z)(?! (?:kucing|anjing|orang))",
        r"\b(?:tidak|belum) ada (?:gambar|foto|lampiran)(?: apa ?pun)? (?:yang )?(?:diberikan|dilampirkan|disediakan|dikirim\w*|diunggah|terlampir|diterima)|\btidak ada (?:gambar|foto|lampiran)(?=[.,;!]|\Z)",
        r"\b(?:gambar|foto|lampiran)(?:nya)? (?:tersebut |ini )?(?:tidak|gagal|belum) (?:dapat |bisa |berhasil )?(?:di)?(?:muat|tampil\w*|lampirkan|sediakan|berikan|buka|akses|kirim\w*|terlihat|tersedia|terlampir|unggah)(?=[ .,;!]|\Z)",
    )),
    "Swedish": (("bild",), (
        r"\b(?:bilden|bilderna) (?:kunde|kan|gick|har|är|blev) (?:inte|ej) (?:att )?(?:\w+ )?(?:laddas|visas|öppnas|öppna|bifogad|bifogats|tillgänglig|skickats|läsas)|\bjag (?:kan|kunde|ser) (?:inte (?:se |öppna |ladda )?bilden|(?:inte )?(?:se |öppna |ladda )?ingen bild)(?=[.,;!]|\Z)|\bingen bild (?:\w+ )?(?:bifogades|skickades|bifogad|tillhandahölls|mottogs|finns(?=[.,;!]|\Z))",
    )),
    "Czech": (("obráz", "obraz", "fotk", "fotografi"), (
        r"\b(?:obrázek|fotografie|fotka) (?:se )?(?:nenačetl|nezobrazil|nepodařilo|nebyl|není|nelze)\w{0,2} ?(?:se |načíst|otevřít|zobrazit|přiložen\w?|poskytnut\w?|k dispozici|dostupn\w)?(?=[ .,;!]|\Z)(?! (?:na|v|ve|tak)\b)|\b(?:nevidím|nemohu (?:vidět|otevřít|zobrazit)|neobdržel\w? jsem) (?:žádný )?(?:obrázek|fotografii|fotku)(?=[.,;!]|\Z)|\bžádný obrázek (?:nebyl|není)",
    )),
    "French": (("image", "photo", "fichier"), (
        r"\b(?:l['’]image|la photo|le fichier|cette image) (?:n['’]a|ne (?:s['’]est|peut|se|m['’]est)|n['’]est) (?:\w+ )?(?:pas )?(?:pu (?:être|se) )?(?:être )?(?:charg|affich|ouvert|ouvr|transmis|parven|télécharg|lue?\b|accessible|s['’]affich)\w*|\bje n['’]ai (?:pas )?(?:reçu|pu (?:voir|ouvrir|charger|consulter)) (?:aucune |d['’]|l['’]|la |de )?(?:image|photo)s?(?=[ .,;!]|\Z)|\bimage (?:manquante|indisponible|non (?:fournie|disponible|reçue))(?=[ .,;!]|\Z)|\bveuillez (?:fournir|joindre|télécharger|envoyer|transmettre) (?:une |l['’]|votre )?image",
    )),
    "Russian": (("изображени", "картинк", "фото"), (
        r"\b(?:изображени[ея]|картинк[аи]|фото(?:графия)?) (?:\w+ )?(?:не (?:загруз\w+|открыва\w+|отобрази\w+|отобража\w+|доступн\w+|прикрепл\w+|приш\w+|получен\w*|видн\w(?=[.,;!]|\Z)|удалось (?:загрузить|открыть))|отсутству\w+(?=[.,;!]|\Z)|недоступн\w+)|\bне (?:удалось|могу|смог\w{0,2}|удаётся) (?:загрузить|открыть|увидеть|просмотреть|посмотреть|получить) (?:это |само |данное )?(?:изображени[ея]|картинку|фото)|\bбез изображения (?:я )?(?:не|невозможно)",
    )),
    "Japanese": (("画像", "写真", "イメージ"), (
        r"(?:画像|写真|イメージ)(?:ファイル)?(?:が|を|は|も)?(?:まだ)?(?:読み込め|読み込み(?:が|に)?(?:でき|失敗)|開け|表示でき|閲覧でき|見られ|見え|添付されて(?:い|お)|提供されて(?:い|お)|送信されて(?:い|お)|アップロードされて(?:い|お)|届いて(?:い|お)|受け取れ|受信でき|認識でき|アクセスでき)(?:ない|ません|らず|りません|ず|なかった|ませんでした|しました|た)|(?:画像|写真)(?:が|は)(?:ないため|ありません(?=[。.、,]|\Z)|ない(?:ので|ため)|存在しません(?=[。.]|\Z))",
    )),
    "German": (("bild", "foto", "datei", "anhang"), (
        r"\b(?:mir )?(?:liegt|liegen|lag|wurde|wurden|ist|war|habe|kam) (?:mir |ich |uns |hier |leider |es )*(?:kein(?:e|en)?) (?:bild(?:er|datei)?|foto|datei|anhang) (?:vor|übermittelt|erhalten|bereitgestellt|vorhanden|angehängt|beigefügt|mitgeschickt|an)\b|\b(?:das|ein) (?:bild|foto) (?:liegt|lag|ist|wurde|konnte|kann|lässt sich|ließ sich|fehlt)(?: mir| leider| hier)* ?(?:nicht (?:vor|geladen|geöffnet|angezeigt|laden|öffnen|anzeigen|verfügbar|abrufbar|sichtbar(?=[.,;!]|\Z)))(?: werden)?|\b(?:das|ein) bild fehlt(?=[.,;!]|\Z)|\bohne (?:das |ein )?bild (?:kann|ist|lässt)",
    )),
    "Spanish": (("imagen", "imágenes", "foto", "archivo"), (
        r"\b(?:la |esta )?(?:imagen|foto) no (?:(?:se )?(?:cargó|llegó|carga|abre|ha cargado)(?=[.,;!]|\Z)|(?:se )?(?:pudo|puede|está|fue|ha|ha sido) (?:\w+ )?(?:cargar|cargad|abrir|mostrar|visualizar|procesar|disponible|adjunt|enviad|recibid|proporcionad|accesible|visible(?=[.,;!]|\Z))\w*)(?=[ .,;!]|\Z)(?! (?:el|la|los|las|un|una|al|como|tan)\b)|\bno (?:\w+ )?(?:recibí|hay|tengo|veo|se (?:proporcionó|adjuntó|recibió|ha proporcionado)) (?:ninguna|una|la) imagen(?=[.,;!]| (?:adjunt|proporcion|para|en (?:tu|su|el) mensaje))",
    )),
    "Portuguese": (("imagem", "imagens", "foto"), (
        r"\b(?:a |esta )?(?:imagem|foto) não (?:\w+ )?(?:(?:carregou|chegou|carrega|abriu|abre)(?=[.,;!]|\Z)|(?:pôde|pode|foi|está) (?:ser )?(?:carregad|abert|exibid|visualizad|processad|fornecid|anexad|enviad|recebid|disponível|acessível|visível(?=[.,;!]|\Z))\w*)(?=[ .,;!]|\Z)(?! (?:o|os|as|um|uma|ao|como|tão)\b)|\b(?:nenhuma|não há|não recebi|não vejo) (?:nenhuma |uma |a )?imagem(?=[.,;!]| (?:foi|fornecid|anexad|enviad|recebid))",
    )),
    "Italian": (("immagin", "foto"), (
        r"\b(?:l['’]immagine|la foto) non (?:\w+ )?(?:è|può|si|ha|viene|risulta) ?(?:stata |essere |è )?(?:caricat|apert|mostrat|visualizz|fornit|allegat|inviat|ricevut|disponibil|accessibil|carica|apre|visibile(?=[.,;!]|\Z))\w*|\bnon (?:riesco a|posso|ho potuto|sono in grado di) (?:vedere|aprire|visualizzare|caricare) (?:l['’]|la |alcuna |nessuna )?(?:immagine|foto)(?=[ .,;!]|\Z)(?! (?:del|della|di)\b)|\bnon (?:è stata|ho|mi è stata) (?:fornit|allegat|inviat|ricevut|caricat)\w (?:alcuna |nessuna |l['’])?immagine|\b(?:nessuna|manca l['’]) ?immagine (?:è stata |fornita|allegata|ricevuta)",
    )),
    "Korean": (("이미지", "사진", "그림"), (
        r"(?:이미지|사진|그림)(?:를|을|가|이|는|은)? ?(?:파일을 |파일이 )?(?:전혀 )?(?:불러올 수 없|불러오지 못|열 수 없|볼 수 없|로드(?:할 수 없|되지 않|하지 못)|첨부되지|업로드되지|전송되지|제공되지|받지 못|표시되지|접근할 수 없|누락)",
    )),
    "Chinese": (("图", "照片", "圖", "附件"), (
        r"(?:图片|图像|照片|圖片|圖像|附件)(?:文件)?(?:无法|不能|未能|未|没有|没|無法)(?:正常|成功|被)?(?:显示(?=[。，,.！]|\Z)|加载|打开|读取|上传|提供|收到|看到|查看|获取|载入|附上)|(?:图片|图像|照片|圖片)(?:加载|读取|上传|载入)失败|(?:图片|图像)缺失(?=[。，,.]|\Z)|(?:缺少|没有(?:收到|看到)?(?:任何)?)(?:图片|图像|照片)(?=[。，,.！]|\Z)",
    )),
}  # fmt: skip
# What sentences without other letters than ASCII's tell these languages by.
WORDS = frozenset({
    "afbeelding", "plaatje", "bijlage", "geen", "niet", "gambar", "gambarnya", "lampiran", "tidak", "belum", "obraz", "obrazu", "obrazek", "brak", "nie", "resim", "resmi", "ingen", "bilden",
    "inte", "korrektur", "berichtigung", "rettifica", "correctie", "korekta", "koreksi", "ralat", "correzione", "correccion", "correcao", "image", "photo", "imagen", "immagine", "imagem",
    "bild", "kein", "fehlt", "non", "pas", "aucune", "manca", "nessuna", "manquante", "veuillez", "eigentlich", "eher", "finalement", "endnote", "gesamtnote", "endergebnis", "bewertung",
}) - {"image", "photo"}  # fmt: skip
_BEGINS = r"(?:\A\W*|[:(] ?)"
# And no more than a reason behind it: "ich kann dieses Bild nicht besser bewerten" declines nothing.
AT_ALL = (
    r"(?= ?(?:[.,;:!)\]}…،।—–、]|\Z)|因|ため|ので|が| (?:weil|da|und|wegen|aufgrund|car|parce|puisque|en raison|porque|ya que|debido|pois|por|perché|poiché|потому|так как|поскольку|из-за|omdat|vanwege"
    r"|ponieważ|gdyż|çünkü|vì|karena|eftersom|protože|لأن|क्योंकि)\b)"
)
DECLINES = {
    "German": (("bewerten", "beurteilen", "bewertung", "helfen", "analysieren", "bewertet", "beurteilt", "note", "punktzahl", "einschätzung"), (
        r"(?:\bich (?:kann|darf|werde|möchte|konnte) (?:(?:leider|hier|daher) )*_IT(?: (?:leider|hier|daher))* nicht (?:bewerten|beurteilen|analysieren)|_IT (?:kann|darf|werde|möchte) ich (?:leider )?nicht (?:bewerten|beurteilen|analysieren)"
        rf"|{_BEGINS}(?:das|dies) kann ich (?:leider )?nicht bewerten|{_BEGINS}_IT (?:kann|konnte) (?:leider )?nicht (?:bewertet|beurteilt) werden|\bich (?:kann|darf|werde) (?:leider |daher )*keine (?:bewertung|note|punktzahl|einschätzung)(?: (?:für|zu) (?:dieses|diesem|das|dem) bild)? (?:abgeben|vergeben|geben|vornehmen)"
        r"|\bich (?:lehne es ab|muss (?:es )?ablehnen), _IT zu (?:bewerten|beurteilen)|\b(?:dabei|damit|hierbei|bei dieser anfrage) kann ich (?:(?:dir|ihnen|leider) )*nicht (?:weiter)?helfen|\bich kann (?:(?:dir|ihnen|leider) )*(?:dabei|damit|hierbei|bei dieser anfrage) (?:leider )?nicht (?:weiter)?helfen)"
    ).replace("_IT", r"(?:(?:dieses|das|solch ein|ein solches) (?:bild|foto)|solche (?:bilder|inhalte)|diese (?:bilder|anfrage|ausgabe|aufnahme)|diesen inhalt)")),
    "French": (("évaluer", "noter", "juger", "analyser", "note", "aider", "répondre", "assister", "score", "évaluation"), (
        r"(?:\bje (?:ne (?:peux|puis|pourrai|pourrais) pas|ne suis pas (?:en mesure|capable) de?|refuse de?|dois refuser de?) ?(?:d')?(?:évaluer|noter|juger|analyser) (?:cette |l'|ces |votre |ce (?:type|genre) de? ?|ce )?(?:d'|de )?(?:image|images|photo|contenu|demande|illustration)"
        rf"|{_BEGINS}impossible (?:d'|de )(?:évaluer|noter|juger) (?:cette |l')(?:image|photo)|\bje ne (?:peux|puis) pas (?:donner|attribuer|fournir) (?:de|d'une|une) (?:note|score|évaluation)(?: (?:à|pour) (?:cette |l')image)?"
        r"|\bje ne (?:peux|puis) pas (?:vous |t')?(?:aider|assister|répondre)(?: (?:avec|à|dans) (?:cela|ça|cette (?:demande|requête|tâche)|votre demande))?)"
    )),
    "Spanish": (("evaluar", "calificar", "puntuar", "juzgar", "valorar", "ayudar", "puntuación", "calificación", "analizar", "evaluación", "valoración"), (
        r"(?:\bno (?:puedo|podré|me es posible|soy capaz de|voy a) (?:evaluar|calificar|puntuar|juzgar|valorar|analizar) (?:esta|la|este|el|tu|su) (?:imagen|foto|fotografía|contenido|solicitud)|\bno puedo (?:dar|asignar|proporcionar|ofrecer) (?:una|ninguna) (?:puntuación|calificación|evaluación|valoración)(?: (?:a|para|de) (?:esta|la) imagen)?"
        r"|\bno puedo (?:ayudar|ayudarte|ayudarle)(?: (?:con|en) (?:eso|esto|(?:esa|esta|tu|su) (?:solicitud|petición|tarea)))?)"
    )),
    "Portuguese": (("avaliar", "classificar", "pontuar", "julgar", "ajudar", "pontuação", "avaliação", "analisar", "ajudá", "nota"), (
        r"(?:\bnão (?:posso|consigo|sou capaz de|vou|me é possível) (?:avaliar|classificar|pontuar|julgar|analisar) (?:esta|essa|a|este|esse|o|sua) (?:imagem|foto|fotografia|conteúdo|solicitação|pedido)|\bnão posso (?:dar|atribuir|fornecer) (?:uma|nenhuma) (?:nota|pontuação|avaliação)(?: (?:a|à|para) (?:esta|essa)? ?imagem)?"
        r"|\bnão posso (?:ajudar|ajudá-lo)(?: com (?:isso|isto|(?:esta|essa|sua) (?:solicitação|tarefa)|esse pedido))?)"
    )),
    "Italian": (("valutare", "giudicare", "votare", "aiutar", "punteggio", "valutazione", "analizz", "voto", "assist"), (
        r"(?:\bnon (?:posso|sono in grado di|riesco a) (?:valutare|giudicare|votare|analizzare|assegnare un punteggio a) (?:questa |quest'|l'|la |questo )(?:immagine|foto|contenuto|richiesta)|\bnon posso (?:dare|assegnare|fornire) (?:un|una|alcun|alcuna|nessun) (?:punteggio|voto|valutazione)(?: a (?:questa |quest')immagine)?"
        r"|\bnon posso (?:aiutar(?:e|ti|la|vi)|assister(?:e|ti|la))(?: (?:con|in) (?:questo|ciò|questa richiesta|quest'attività))?)"
    )),
    "Russian": (("оцени", "судить", "анализировать", "помочь", "оценк", "выполнить"), (
        r"(?:\b(?:не (?:могу|стану|буду|в состоянии|имею возможности)|отказываюсь) (?:оценить|оценивать|судить|анализировать|проанализировать) (?:это|данное|эту|этот|данный|такое|такой) (?:изображени[ея]|картинку|фото|фотографию|контент|запрос)|\bне могу (?:дать|поставить|выставить) оценку(?: этому изображению)?"
        r"|\bне могу (?:вам )?(?:помочь|выполнить)(?: вам)?(?: (?:с этим(?: запросом)?|этот запрос|данный запрос))?)"
    )),
    "Dutch": (("beoordelen", "evalueren", "waarderen", "helpen"), (
        r"(?:\bik (?:kan|mag|zal|wil) (?:helaas )?(?:deze|dit|de|het) (?:afbeelding|afbeeldingen|foto|beeld|plaatje|inhoud|verzoek) (?:(?:helaas|daarom) )*niet (?:beoordelen|evalueren|waarderen)|\b(?:daar|hier)(?:bij|mee)? kan ik (?:(?:je|u|helaas) )*niet (?:(?:bij|mee) )?helpen|\bik kan (?:(?:je|u|helaas) )*(?:daar|hier)(?:bij|mee) (?:helaas )?niet helpen)"
    )),
    "Polish": (("oceni", "pomóc", "spełnić"), (
        r"(?:\bnie (?:mogę|jestem w stanie|będę|potrafię) (?:ocenić|oceniać) (?:tego|tej|tych|takich) (?:obraz\w{0,3}|zdjęcia|zdjęć|grafiki|treści)|\bnie mogę (?:w tym )?(?:pomóc|spełnić tej prośby))"
    )),
    "Turkish": (("değerlendir", "puanla", "yardımcı ola"), (
        r"(?:\bbu (?:görsel|resm|resim|fotoğraf|görüntü|içeri)\w{0,4} (?:değerlendiremem|değerlendiremiyorum|puanlayamam|puanlayamıyorum)|\b(?:bu (?:konuda|istekte|isteğe) )?yardımcı olam(?:am|ıyorum))"
    )),
    "Vietnamese": (("đánh giá", "chấm điểm", "hỗ trợ", "giúp"), (
        r"(?:\btôi không (?:thể |được phép )?(?:đánh giá|chấm điểm)(?: cho)? (?:hình ảnh|bức ảnh|ảnh|hình|nội dung|yêu cầu)(?: này)?|\btôi không thể (?:hỗ trợ|giúp)(?: bạn)?(?: (?:với )?(?:yêu cầu|việc|điều) (?:này|đó))?)"
    )),
    "Indonesian": (("menilai", "mengevaluasi", "membantu", "skor", "nilai"), (
        r"(?:\bsaya tidak (?:dapat|bisa|akan|mampu) (?:menilai|mengevaluasi|memberikan (?:skor|nilai|penilaian) (?:untuk|pada|terhadap)) (?:gambar|foto|konten|permintaan)(?: (?:ini|tersebut|itu))?|\bsaya tidak (?:dapat|bisa) membantu(?: (?:dengan )?(?:permintaan|hal) (?:ini|itu|tersebut))?)"
    )),
    "Swedish": (("bedöma", "betygsätta", "utvärdera", "hjälpa"), (
        r"(?:\bjag (?:kan|får|vill|kommer) (?:tyvärr )?inte (?:att )?(?:bedöma|betygsätta|utvärdera) (?:den här |denna )?(?:bilden|bild|begäran)|\bjag kan (?:tyvärr )?inte hjälpa(?: dig| till)?(?: med (?:det|detta))?)"
    )),
    "Czech": (("hodnotit", "posoudit", "pomoci", "pomoct"), (
        r"(?:\b(?:nemohu|nemůžu|odmítám|nedokážu) (?:ohodnotit|hodnotit|posoudit|vyhodnotit) (?:tento|tuto|ten|daný) (?:obrázek|fotografii|fotku|obsah|požadavek)|\b(?:s tím(?:to)? )?(?:vám )?nemohu (?:vám )?(?:pomoci|pomoct))"
    )),
    "Arabic": (("تقييم", "الحكم", "المساعدة", "مساعدتك"), (
        r"(?:(?:لا (?:أستطيع|يمكنني)|أعتذر عن|غير قادر على) (?:تقييم|الحكم على)(?: هذه| هذا)? (?:ال)?(?:صورة|محتوى|طلب)|لا (?:أستطيع|يمكنني) (?:المساعدة|مساعدتك)(?: في (?:ذلك|هذا(?: الطلب)?))?)"
    )),
    "Hindi": (("मूल्यांकन", "आकलन", "सहायता", "मदद"), (
        r"(?:(?:छवि|तस्वीर|चित्र|इमेज|सामग्री|अनुरोध) (?:का|को) (?:मूल्यांकन|आकलन) (?:नहीं कर (?:सक|पा)\S*|करने में असमर्थ)(?: \S{1,4}){0,2}|(?:सहायता|मदद) नहीं कर सक\S*(?: \S{1,4}){0,2})"
    )),
    "Chinese": (("评", "評", "打分", "协助", "帮助"), (
        r"(?:(?:我|我们|\A\W*|[:(] ?)(?:很抱歉|抱歉|对不起)?,? ?(?:我)?(?:无法|不能|不会|拒绝|無法)(?:对_IT进行(?:评分|评价|评估|打分)|(?:为|给)_IT(?:评分|打分)|(?:评价|评估|评判|評價|評估)_IT)|\A\W*(?:(?:很抱歉|抱歉|对不起),? ?)?(?:我)?(?:无法|不能)(?:评价|评估|评分|打分)"
        r"|(?:我|抱歉,? ?|对不起,? ?)(?:无法|不能)(?:协助|帮助)(?:您|你)?(?:完成|处理)?(?:(?:这个|该|此|这一|您的)(?:请求|要求|任务))?)"
    ).replace("_IT", r"(?:该|此|这张|这幅|这个|這張|您的)?(?:图片|图像|照片|圖片|圖像|内容|请求)")),
    "Japanese": (("評価", "採点", "判定", "審査", "お手伝い", "お応え", "ご協力"), (
        r"(?:(?<!の)(?<!内の)(?:この|その|当該|提示された|\A\W*|[:(] ?|、)(?:画像|写真|コンテンツ|内容|イラスト|リクエスト)(?:を|は|の)(?:評価|採点|判定|審査)(?:を|は|が)?(?:する(?:こと)?(?:は|が)?|行うこと(?:は|が))?(?:でき(?:ません|ない|かねます)|いたしかねます|致しかねます)|(?:お手伝い|ご協力|お応え)(?:する)?(?:こと)?(?:は|が)?(?:でき(?:ません|かねます)|いたしかねます))"
    )),
    "Korean": (("평가", "채점", "점수", "도와", "도움"), (
        r"(?:(?:이|해당|제공된) ?(?:이미지|사진|그림|콘텐츠|요청)(?:를|을|은|는|에 대해|에 대한|에)? ?(?:평가|채점|점수)(?:를|을|는)? ?(?:할|해 드릴|드릴|제공할|매길|줄) 수 (?:없|가 없)\S*|(?:도와드릴|도와 드릴|도움을 드릴) 수 없\S*)"
    )),
}  # fmt: skip
