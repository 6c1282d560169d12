"""Words that know their translation, and the phrases made of them: noun phrases, pronouns, prepositional phrases.

An English word is an object with an identity. A German word knows the English words that it translates, so a phrase
can be moved, split and wrapped on the German side and the alignment stays right: `to_pair` reads it off at the end.

Alignment: article to article, adjective to adjective, noun to noun. A contracted preposition (im, zur) is aligned to
both English words. `not a` and `no` are aligned to `kein`.
"""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple, TypeVar

from nmt.data.corpus import Pair
from nmt.data.grammar import german
from nmt.data.grammar.lexicon import Adjective, Noun, Place


class EnglishWord:
    """One English word (or comma) of one sentence; `index` is its position once the sentence is complete."""

    __slots__ = ("index", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.index = -1


class GermanWord(NamedTuple):
    """One German word (or comma) and the English words that it translates; none for a comma."""

    text: str
    translates: tuple[EnglishWord, ...] = ()


class Phrase(NamedTuple):
    """A stretch of English and its German, each in its own order."""

    en: list[EnglishWord]
    de: list[GermanWord]


KOMMA = GermanWord(",")


def comma() -> EnglishWord:
    """An English comma: a word of its own, aligned to nothing."""
    return EnglishWord(",")


def english_words(text: str) -> list[EnglishWord]:
    """English words from text, separated by spaces."""
    return [EnglishWord(w) for w in text.split()]


def to_pair(phrase: Phrase) -> Pair:
    """The finished sentence pair.

    Every subordinate clause brings a comma before and after it; two that meet are one, and none ends the sentence.
    """
    english: list[EnglishWord] = []
    for word in phrase.en:
        if word.text == "," and (not english or english[-1].text == ","):
            continue
        english.append(word)
    german: list[GermanWord] = []
    for german_word in phrase.de:
        if german_word.text == "," and (not german or german[-1].text == ","):
            continue
        german.append(german_word)
    while english[-1].text == ",":
        english.pop()
    while german[-1].text == ",":
        german.pop()
    for i, word in enumerate(english):
        word.index = i
    links = sorted((word.index, j) for j, german_word in enumerate(german) for word in german_word.translates)
    return Pair(" ".join(w.text for w in english), " ".join(o.text for o in german), tuple(links))


T = TypeVar("T")


def pick(rng: Random, items: Sequence[T]) -> T:
    """One item, each as likely; built on `random()` because only that is the same in every Python."""
    return items[int(rng.random() * len(items))]


class NounPhrase(NamedTuple):
    """What a clause must know about one of its noun phrases."""

    phrase: Phrase
    person: str  # "I", "s" or "p": what a finite verb agrees with
    owner: str  # the possessive that means "its own": my, his, her, our, their; empty where English has none
    definite: bool  # stands before place and negation in a German clause
    pronoun: bool = False
    negated: bool = False  # it is negative itself: kein
    relative: bool = False  # a relative clause may follow
    every: bool = False  # every: not with never
    heads: tuple[Noun, ...] = ()  # whom it names: nobody phones himself by his own name


class NounPhraseSpec(NamedTuple):
    """What a clause requires of a noun phrase."""

    case: str
    owner: str = ""  # the subject's possessive
    adjective: float = 0.3  # how likely
    only: str = ""  # "definite", "subject" (every) or "any subject" (no): see _determiner
    negator: EnglishWord | None = None  # the English "not", if the clause is negative
    some: bool = True  # False under a negative subject: not "no dog sees some birds"


# English needs another word for these in German once a possessive stands before them (mein Mann: my husband).
_UNOWNED = frozenset(["man", "woman", "boy", "girl", "farmer", "station", "park", "forest"])
_COUNTS = (("two", "zwei"), ("three", "drei"), ("many", "viel"), ("some", "einig"))


def _determiner(rng: Random, noun: Noun, plural: bool, spec: NounPhraseSpec) -> str:
    """One of: the, this, my (any possessive), every, no, a, two (any number), bare."""
    if noun.kin:
        return "my"
    r = rng.random()
    if r < 0.07:
        return "this"
    if r < 0.2 and noun.en not in _UNOWNED:
        return "my"
    if r < 0.55 or spec.only == "definite":
        return "the"
    if spec.only == "any subject" and not plural and 0.62 <= r < 0.67:
        return "no"
    if spec.only in ("subject", "any subject") and not plural and r < 0.62:
        return "every"
    if plural:
        bare = r < 0.7 and spec.case != "dat"  # nothing would show the case: hilft ein Freund Frauen
        return "bare" if spec.negator or bare else "two"
    return "bare" if noun.mass else "a"


def _possessive(rng: Random, spec: NounPhraseSpec) -> str:
    if spec.owner and rng.random() < 0.65:
        return spec.owner
    return "my" if rng.random() < 0.6 else "our"


def _article(rng: Random, kind: str, gender: str, spec: NounPhraseSpec) -> tuple[Phrase, dict[str, dict[str, str]]]:
    """The determiner of both languages, and which adjective endings German wants after it."""
    case = spec.case
    if kind == "the":
        the = EnglishWord("the")
        return Phrase([the], [GermanWord(german.DEFINITE[case][gender], (the,))]), german.WEAK
    if kind in ("this", "every"):
        word = EnglishWord("these" if gender == "p" else kind)
        stem = "jed" if kind == "every" else "dies"
        return Phrase([word], [GermanWord(stem + german.DER_ENDING[case][gender], (word,))]), german.WEAK
    if kind == "my":
        word = EnglishWord(_possessive(rng, spec))
        form = german.POSSESSIVES[word.text] + german.EIN_ENDING[case][gender]
        return Phrase([word], [GermanWord(form, (word,))]), german.MIXED
    if kind == "two":
        en, de = pick(rng, _COUNTS if spec.some else _COUNTS[:-1])  # some is last
        word = EnglishWord(en)
        form = de if de in ("zwei", "drei") else de + german.DER_ENDING[case][gender]
        return Phrase([word], [GermanWord(form, (word,))]), german.STRONG
    ending = german.EIN_ENDING[case][gender]
    if kind == "no":
        word = EnglishWord("no")
        return Phrase([word], [GermanWord("kein" + ending, (word,))]), german.MIXED
    article = [EnglishWord("a")] if kind == "a" else []
    if spec.negator:
        return Phrase(article, [GermanWord("kein" + ending, (spec.negator, *article))]), german.MIXED
    if article:
        return Phrase(article, [GermanWord("ein" + ending, (article[0],))]), german.MIXED
    return Phrase([], []), german.STRONG


def _adjective(rng: Random, noun: Noun, spec: NounPhraseSpec) -> Adjective | None:
    if noun.adjectives and rng.random() < spec.adjective:
        return pick(rng, noun.adjectives)
    return None


def _owner(noun: Noun, plural: bool) -> str:
    """The possessive of a person; none for Kind and Mädchen (his, her: sein or ihr?) nor for animals (its)."""
    if "person" not in noun.kinds:
        return ""
    return "their" if plural else {"m": "his", "f": "her", "n": ""}[noun.gender]


def noun_phrase(rng: Random, noun: Noun, spec: NounPhraseSpec) -> NounPhrase:
    """A noun phrase about `noun` that fits the spec."""
    plural = bool(noun.en_plural) and rng.random() < 0.3
    gender = "p" if plural else noun.gender
    kind = _determiner(rng, noun, plural, spec)
    article, endings = _article(rng, kind, gender, spec)
    en, de = list(article.en), list(article.de)
    adjective = _adjective(rng, noun, spec)
    if adjective:
        word = EnglishWord(adjective.en)
        en.append(word)
        de.append(GermanWord(adjective.stem + endings[spec.case][gender], (word,)))
    head = EnglishWord(noun.en_plural if plural else noun.en)
    en.append(head)
    de.append(GermanWord(german.noun_form(noun.de, noun.de_plural, noun.oblique, gender, spec.case), (head,)))
    if en[0].text == "a" and en[1].text[0] in "aeiou":
        en[0].text = "an"
    return NounPhrase(
        Phrase(en, de),
        person="p" if plural else "s",
        owner=_owner(noun, plural),
        definite=kind in ("the", "this", "my"),
        negated=kind == "no" or (spec.negator is not None and kind in ("a", "bare")),
        relative=kind in ("the", "a", "two"),
        every=kind == "every",
        heads=(noun,),
    )


_SUBJECT_PRONOUNS = (
    ("I", "I", "my"),
    ("he", "s", "his"),
    ("she", "s", "her"),
    ("we", "p", "our"),
    ("they", "p", "their"),
)
_OBJECT_PRONOUNS = (("me", "I"), ("him", "he"), ("her", "she"), ("us", "we"), ("them", "they"))
_NOT_SIE = (("me", "I"), ("him", "he"), ("us", "we"))
_THIRD_PERSON = (("him", "he"), ("her", "she"), ("them", "they"))


def subject_pronoun(rng: Random) -> NounPhrase:
    """I, he, she, we or they; never `it`, whose gender English does not tell."""
    en, person, owner = pick(rng, _SUBJECT_PRONOUNS)
    word = EnglishWord(en)
    de = [GermanWord(german.PRONOUNS[en]["nom"], (word,))]
    return NounPhrase(Phrase([word], de), person, owner, definite=True, pronoun=True)


def object_pronoun(rng: Random, case: str, subject: NounPhrase) -> NounPhrase:
    """me, him, her, us or them; not "I see me", and nothing that makes "sie sie"."""
    choices: tuple[tuple[str, str], ...] = _OBJECT_PRONOUNS
    if subject.owner in ("my", "our"):
        choices = _THIRD_PERSON
    elif subject.pronoun and subject.owner in ("her", "their") and case == "acc":
        choices = _NOT_SIE
    en, name = pick(rng, choices)
    word = EnglishWord(en)
    de = [GermanWord(german.PRONOUNS[name][case], (word,))]
    return NounPhrase(Phrase([word], de), "s", "", definite=True, pronoun=True)


def prepositional(en: str, de: str, inner: NounPhrase, contract: bool = False) -> Phrase:
    """Preposition and noun phrase; `contract` for place and direction: in dem -> im."""
    preposition = english_words(en)
    first = inner.phrase.de[0]
    short = german.CONTRACTED.get((de, first.text)) if contract else None
    if short:
        start = [GermanWord(short, (*preposition, *first.translates))]
        return Phrase(preposition + inner.phrase.en, start + inner.phrase.de[1:])
    return Phrase(preposition + inner.phrase.en, [GermanWord(de, tuple(preposition)), *inner.phrase.de])


_HOME = frozenset(["garden", "kitchen", "house", "room"])
_INDEFINITE_PLACES = frozenset(["garden", "house", "park", "forest", "village", "tree", "bench"])


def place_phrase(rng: Random, place: Place, case: str, owner: str, adjective: float, definite: bool) -> Phrase:
    """Where (dative) or where to (accusative; `to` keeps the dative of zu)."""
    en, de, noun = place
    if en == "to":
        case = "dat"
    r = rng.random()
    kind = "the"
    if noun.en in _HOME and owner and r < 0.2:
        kind = "my"
    elif noun.en in _INDEFINITE_PLACES and not definite and r > 0.85:
        kind = "a"
    article, endings = _article(rng, kind, noun.gender, NounPhraseSpec(case, owner))
    english, german_words = list(article.en), list(article.de)
    if noun.kinds.isdisjoint(("person",)) and rng.random() < adjective:
        chosen = pick(rng, noun.adjectives)
        word = EnglishWord(chosen.en)
        english.append(word)
        german_words.append(GermanWord(chosen.stem + endings[case][noun.gender], (word,)))
    head = EnglishWord(noun.en)
    english.append(head)
    german_words.append(GermanWord(noun.oblique, (head,)))
    if english[0].text == "a" and english[1].text[0] in "aeiou":
        english[0].text = "an"
    inner = NounPhrase(Phrase(english, german_words), "s", "", definite=True)
    return prepositional(en, de, inner, contract=True)
