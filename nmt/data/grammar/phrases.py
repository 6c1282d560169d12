"""Noun phrases: determiner, adjective, noun; pronouns; prepositional phrases.

Alignment: article to article, adjective to adjective, noun to noun. A contracted preposition (im, zur) is aligned to
both English words. `not a` and `no` are aligned to `kein`.
"""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple, TypeVar

from nmt.data.grammar import german
from nmt.data.grammar.nouns import Adjective, Noun
from nmt.data.grammar.tokens import Out, Phrase, Word, words
from nmt.data.grammar.verbs import Place

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


class Wish(NamedTuple):
    """What a clause asks of a noun phrase."""

    case: str
    owner: str = ""  # the subject's possessive
    adjective: float = 0.3  # how likely
    only: str = ""  # "definite", "subject" (every) or "any subject" (no): see _determiner
    negator: Word | None = None  # the English "not", if the clause is negative
    some: bool = True  # False under a negative subject: not "no dog sees some birds"


# English needs another word for these in German once a possessive stands before them (mein Mann: my husband).
_UNOWNED = frozenset(["man", "woman", "boy", "girl", "farmer", "station", "park", "forest"])
_COUNTS = (("two", "zwei"), ("three", "drei"), ("many", "viel"), ("some", "einig"))


def _determiner(rng: Random, noun: Noun, plural: bool, wish: Wish) -> str:
    """One of: the, this, my (any possessive), every, no, a, two (any number), bare."""
    if noun.kin:
        return "my"
    r = rng.random()
    if r < 0.07:
        return "this"
    if r < 0.2 and noun.en not in _UNOWNED:
        return "my"
    if r < 0.55 or wish.only == "definite":
        return "the"
    if wish.only == "any subject" and not plural and 0.62 <= r < 0.67:
        return "no"
    if wish.only in ("subject", "any subject") and not plural and r < 0.62:
        return "every"
    if plural:
        bare = r < 0.7 and wish.case != "dat"  # nothing would show the case: hilft ein Freund Frauen
        return "bare" if wish.negator or bare else "two"
    return "bare" if noun.mass else "a"


def _possessive(rng: Random, wish: Wish) -> str:
    if wish.owner and rng.random() < 0.65:
        return wish.owner
    return "my" if rng.random() < 0.6 else "our"


def _article(rng: Random, kind: str, gender: str, wish: Wish) -> tuple[Phrase, dict[str, dict[str, str]]]:
    """The determiner of both languages, and which adjective endings German wants after it."""
    case = wish.case
    if kind == "the":
        the = Word("the")
        return Phrase([the], [Out(german.DEFINITE[case][gender], (the,))]), german.WEAK
    if kind in ("this", "every"):
        word = Word("these" if gender == "p" else kind)
        stem = "jed" if kind == "every" else "dies"
        return Phrase([word], [Out(stem + german.DER_ENDING[case][gender], (word,))]), german.WEAK
    if kind == "my":
        word = Word(_possessive(rng, wish))
        form = german.POSSESSIVES[word.text] + german.EIN_ENDING[case][gender]
        return Phrase([word], [Out(form, (word,))]), german.MIXED
    if kind == "two":
        en, de = pick(rng, _COUNTS if wish.some else _COUNTS[:-1])  # some is last
        word = Word(en)
        form = de if de in ("zwei", "drei") else de + german.DER_ENDING[case][gender]
        return Phrase([word], [Out(form, (word,))]), german.STRONG
    ending = german.EIN_ENDING[case][gender]
    if kind == "no":
        word = Word("no")
        return Phrase([word], [Out("kein" + ending, (word,))]), german.MIXED
    article = [Word("a")] if kind == "a" else []
    if wish.negator:
        return Phrase(article, [Out("kein" + ending, (wish.negator, *article))]), german.MIXED
    if article:
        return Phrase(article, [Out("ein" + ending, (article[0],))]), german.MIXED
    return Phrase([], []), german.STRONG


def _adjective(rng: Random, noun: Noun, wish: Wish) -> Adjective | None:
    if noun.adjectives and rng.random() < wish.adjective:
        return pick(rng, noun.adjectives)
    return None


def _owner(noun: Noun, plural: bool) -> str:
    """The possessive of a person; none for Kind and Mädchen (his, her: sein or ihr?) nor for animals (its)."""
    if "person" not in noun.kinds:
        return ""
    return "their" if plural else {"m": "his", "f": "her", "n": ""}[noun.gender]


def noun_phrase(rng: Random, noun: Noun, wish: Wish) -> NounPhrase:
    """A noun phrase about `noun` that fits the wish."""
    plural = bool(noun.en_plural) and rng.random() < 0.3
    gender = "p" if plural else noun.gender
    kind = _determiner(rng, noun, plural, wish)
    article, endings = _article(rng, kind, gender, wish)
    en, de = list(article.en), list(article.de)
    adjective = _adjective(rng, noun, wish)
    if adjective:
        word = Word(adjective.en)
        en.append(word)
        de.append(Out(adjective.stem + endings[wish.case][gender], (word,)))
    head = Word(noun.en_plural if plural else noun.en)
    en.append(head)
    de.append(Out(german.noun_form(noun.de, noun.de_plural, noun.oblique, gender, wish.case), (head,)))
    if en[0].text == "a" and en[1].text[0] in "aeiou":
        en[0].text = "an"
    return NounPhrase(
        Phrase(en, de),
        person="p" if plural else "s",
        owner=_owner(noun, plural),
        definite=kind in ("the", "this", "my"),
        negated=kind == "no" or (wish.negator is not None and kind in ("a", "bare")),
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
    word = Word(en)
    de = [Out(german.PRONOUNS[en]["nom"], (word,))]
    return NounPhrase(Phrase([word], de), person, owner, definite=True, pronoun=True)


def object_pronoun(rng: Random, case: str, subject: NounPhrase) -> NounPhrase:
    """me, him, her, us or them; not "I see me", and nothing that makes "sie sie"."""
    choices: tuple[tuple[str, str], ...] = _OBJECT_PRONOUNS
    if subject.owner in ("my", "our"):
        choices = _THIRD_PERSON
    elif subject.pronoun and subject.owner in ("her", "their") and case == "acc":
        choices = _NOT_SIE
    en, name = pick(rng, choices)
    word = Word(en)
    de = [Out(german.PRONOUNS[name][case], (word,))]
    return NounPhrase(Phrase([word], de), "s", "", definite=True, pronoun=True)


def prepositional(en: str, de: str, inner: NounPhrase, contract: bool = False) -> Phrase:
    """Preposition and noun phrase; `contract` for place and direction: in dem -> im."""
    preposition = words(en)
    first = inner.phrase.de[0]
    short = german.CONTRACTED.get((de, first.text)) if contract else None
    if short:
        start = [Out(short, (*preposition, *first.of))]
        return Phrase(preposition + inner.phrase.en, start + inner.phrase.de[1:])
    return Phrase(preposition + inner.phrase.en, [Out(de, tuple(preposition)), *inner.phrase.de])


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
    article, endings = _article(rng, kind, noun.gender, Wish(case, owner))
    english, out = list(article.en), list(article.de)
    if noun.kinds.isdisjoint(("person",)) and rng.random() < adjective:
        chosen = pick(rng, noun.adjectives)
        word = Word(chosen.en)
        english.append(word)
        out.append(Out(chosen.stem + endings[case][noun.gender], (word,)))
    head = Word(noun.en)
    english.append(head)
    out.append(Out(noun.oblique, (head,)))
    if english[0].text == "a" and english[1].text[0] in "aeiou":
        english[0].text = "an"
    inner = NounPhrase(Phrase(english, out), "s", "", definite=True)
    return prepositional(en, de, inner, contract=True)
