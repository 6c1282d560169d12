"""Right pairs of English with languages of twelve scripts are kept, in both directions, and wrong ones are not."""

from collections.abc import Sequence

import pytest

from nmt.data.cleaning import HeldOutIndex, PairFilter, Verdict
from nmt.training_settings import CleaningSettings

# A very short, a middling and a long sentence; {n} is a number, {name} a name that keeps its Latin letters.
ENGLISH = (
    "{name} swam.",
    "Teacher number {n} walks to the station every morning with {name}.",
    "The old woman who lives beside the river told her {n} grandchildren that she would come home before dark, because "
    "her neighbour {name} had promised to cook dinner for everybody.",
)
SENTENCES = {
    "zh": (
        "{name}游泳。",
        "第{n}位老师每天早上和{name}一起走到车站。",
        "住在河边的老太太告诉她的{n}个孙子孙女，她会在天黑之前回家，因为邻居{name}答应给大家做晚饭。",
    ),
    "ja": (
        "{name}は泳いだ。",
        "{n}番目の先生は毎朝{name}と一緒に駅まで歩きます。",
        "川のそばに住むおばあさんは、隣人の{name}がみんなに夕食を作ると約束したので、暗くなる前に家に帰ると{n}人の孫に言った。",
    ),
    "th": (
        "{name}ว่ายน้ำ",
        "ครูหมายเลข {n} เดินไปสถานีทุกเช้ากับ {name}",
        "หญิงชราที่อาศัยอยู่ริมแม่น้ำบอกหลาน {n} คนของเธอว่าเธอจะกลับบ้านก่อนมืดเพราะเพื่อนบ้าน {name} สัญญาว่าจะทำอาหารเย็นให้ทุกคน",
    ),
    "km": (
        "{name} បានហែលទឹក។",
        "គ្រូលេខ {n} ដើរទៅស្ថានីយ៍រៀងរាល់ព្រឹកជាមួយ {name} ។",
        "ស្ត្រីចំណាស់ដែលរស់នៅក្បែរទន្លេបានប្រាប់ចៅៗ {n} នាក់របស់គាត់ថាគាត់នឹងត្រឡប់មកផ្ទះវិញមុនពេលងងឹត ព្រោះអ្នកជិតខាង {name} បានសន្យាថានឹងចម្អិនអាហារពេលល្ងាចសម្រាប់អ្នករាល់គ្នា។",
    ),
    "my": (
        "{name} ရေကူးခဲ့သည်။",
        "ဆရာနံပါတ် {n} သည် မနက်တိုင်း {name} နှင့်အတူ ဘူတာသို့ လမ်းလျှောက်သည်။",
        "မြစ်ဘေးတွင်နေထိုင်သော အဘွားအိုက သူ၏မြေး {n} ယောက်ကို အိမ်နီးချင်း {name} က လူတိုင်းအတွက် ညစာချက်ပေးမည်ဟု ကတိပေးထားသောကြောင့် မမှောင်မီ အိမ်ပြန်လာမည်ဟု ပြောခဲ့သည်။",
    ),
    "ko": (
        "{name}은 수영했다.",
        "{n}번 선생님은 매일 아침 {name}과 함께 역까지 걸어갑니다.",
        "강가에 사는 할머니는 이웃인 {name}이 모두에게 저녁을 해 주기로 약속했기 때문에 어두워지기 전에 집에 돌아오겠다고 손주 {n}명에게 말했다.",
    ),
    "ar": (
        "سبح {name}.",
        "يمشي المعلم رقم {n} إلى المحطة كل صباح مع {name}.",
        "أخبرت المرأة العجوز التي تعيش بجانب النهر أحفادها البالغ عددهم {n} أنها ستعود إلى المنزل قبل حلول الظلام لأن جارها {name} وعد بطهي العشاء للجميع.",
    ),
    "hi": (
        "{name} तैरा।",
        "शिक्षक संख्या {n} हर सुबह {name} के साथ स्टेशन तक पैदल जाता है।",
        "नदी के किनारे रहने वाली बूढ़ी औरत ने अपने {n} पोते-पोतियों से कहा कि वह अंधेरा होने से पहले घर आ जाएगी, क्योंकि उसके पड़ोसी {name} ने सबके लिए रात का खाना बनाने का वादा किया था।",
    ),
    "ru": (
        "{name} плавал.",
        "Учитель номер {n} каждое утро ходит на станцию с {name}.",
        "Старушка, живущая у реки, сказала своим {n} внукам, что вернётся домой до темноты, потому что её сосед {name} обещал приготовить ужин для всех.",
    ),
    "el": (
        "Ο {name} κολύμπησε.",
        "Ο δάσκαλος αριθμός {n} περπατά κάθε πρωί στον σταθμό με τον {name}.",
        "Η γριά που μένει δίπλα στο ποτάμι είπε στα {n} εγγόνια της ότι θα γυρίσει σπίτι πριν νυχτώσει, επειδή ο γείτονάς της {name} υποσχέθηκε να μαγειρέψει βραδινό για όλους.",
    ),
    "he": (
        "{name} שחה.",
        "מורה מספר {n} הולך לתחנה בכל בוקר עם {name}.",
        "הזקנה שגרה ליד הנהר אמרה ל-{n} נכדיה שהיא תחזור הביתה לפני החשכה, כי שכנה {name} הבטיח לבשל ארוחת ערב לכולם.",
    ),
    "am": (
        "{name} ዋኘ።",
        "መምህር ቁጥር {n} በየቀኑ ጠዋት ከ{name} ጋር ወደ ጣቢያው ይሄዳል።",
        "በወንዙ ዳር የምትኖረው አሮጊት ጎረቤቷ {name} ለሁሉም ሰው እራት ለማብሰል ቃል ስለገባ ከመጨለሙ በፊት ወደ ቤት እንደምትመለስ ለ{n} የልጅ ልጆቿ ነገረቻቸው።",
    ),
}
NAMES = ("Tom", "Anna", "Elizabeth", "Christopher")
UNDECLARED = ("zh", "ja", "th")  # lengths by words would mean nothing there: known by their letters alone


def filled(sentences: Sequence[str], count: int = 300) -> list[str]:
    return [
        sentences[i % len(sentences)].format(n=i + 1, name=NAMES[i // len(sentences) % len(NAMES)])
        for i in range(count)
    ]


def kept(sources: Sequence[str], targets: Sequence[str], languages: tuple[str, str]) -> list[Verdict]:
    held_out = HeldOutIndex.of([], {}, one_side_words=4)
    pair_filter = PairFilter(CleaningSettings.defaults(), *languages, max_pieces=200, held_out=held_out)
    return [Verdict(value) for value in pair_filter(sources, targets).verdicts]


@pytest.mark.parametrize(
    ("language", "declared"),
    [*((language, True) for language in SENTENCES), *((language, False) for language in UNDECLARED)],
)
def test_right_pairs_with_english_are_kept_both_ways(language: str, declared: bool) -> None:
    english, other = filled(ENGLISH), filled(SENTENCES[language])
    names = ("en", language) if declared else ("", "")
    for sources, targets, languages in ((english, other, names), (other, english, names[::-1])):
        verdicts = kept(sources, targets, languages)
        assert verdicts.count(Verdict.KEPT) >= 297, [sources[verdicts.index(v)] for v in set(verdicts)]


@pytest.mark.parametrize("language", SENTENCES)
def test_wrong_pairs_with_english_are_dropped_both_ways(language: str) -> None:
    long_english, short = filled(ENGLISH[2:]), filled(SENTENCES[language][:1])
    short_english, long = filled(ENGLISH[:1]), filled(SENTENCES[language][2:])
    for direction in (1, -1):
        languages = ("en", language)[::direction]
        for english, text, verdict in (
            (long_english, short, Verdict.RATIO),
            (short_english, long, Verdict.RATIO),
            (filled(ENGLISH), filled(ENGLISH), Verdict.IDENTICAL),
            (filled(ENGLISH[1:]), filled(SENTENCES["ru" if language != "ru" else "el"][1:]), Verdict.SCRIPT),
        ):
            verdicts = kept(*(english, text)[::direction], languages)
            assert set(verdicts) == {verdict}, (english[0], text[0], set(verdicts))


@pytest.mark.parametrize("language", UNDECLARED)
def test_unequal_lengths_are_dropped_where_no_language_is_declared(language: str) -> None:
    verdicts = kept(filled(ENGLISH[2:]), filled(SENTENCES[language][:1]), ("", ""))
    assert set(verdicts) == {Verdict.RATIO}


@pytest.mark.parametrize(
    ("source", "target", "language"), [("Tom swam.", "Tom游泳。", "zh"), ("Tom swam.", "Tomは泳いだ。", "ja")]
)
def test_a_latin_name_in_a_short_sentence_is_not_another_script(source: str, target: str, language: str) -> None:
    assert kept([source], [target], ("en", language)) == [Verdict.KEPT]
