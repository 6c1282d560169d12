"""Words that know their translation, and the phrases made of them: of nouns, prepositions, verbs; clauses.

An English word is an object with an identity. A German word knows the English words that it translates, so a phrase
can be moved, split and wrapped on the German side and the alignment stays right: `to_pair` reads it off at the end.

One tense of English is one tense of German: present -> Präsens (reads, liest), past -> Perfekt (read, hat gelesen;
but was -> war), will -> Futur with werden, can / must / want to -> können / müssen / wollen with the infinitive.

Alignment: article to article, adjective to adjective, noun to noun. A contracted preposition (im, zur) is aligned to
both English words. `not a` and `no` are aligned to `kein`. An English auxiliary (will, did, can) is aligned to the
German finite verb and the main verb to the infinitive or participle; where only one language has an auxiliary, its
verb is aligned to every part: bought -> hat, gekauft; does buy -> kauft; gets up -> steht, auf. `to` of an infinitive
goes with the infinitive.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple, TypeVar

from nmt.data.corpus import Pair
from nmt.data.grammar import german
from nmt.data.grammar.lexicon import Adjective, Noun, Place, Verb


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
    english, german = _without_spare_commas(phrase.en), _without_spare_commas(phrase.de)
    for i, word in enumerate(english):
        word.index = i
    links = sorted((word.index, j) for j, german_word in enumerate(german) for word in german_word.translates)
    return Pair(" ".join(w.text for w in english), " ".join(w.text for w in german), tuple(links))


Word = TypeVar("Word", EnglishWord, GermanWord)


def _without_spare_commas(words: list[Word]) -> list[Word]:
    kept: list[Word] = []
    for word in words:
        if word.text != "," or (kept and kept[-1].text != ","):
            kept.append(word)
    return kept[:-1] if kept[-1].text == "," else kept


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
    der_ending, ein_ending = german.DER_ENDING[spec.case][gender], german.EIN_ENDING[spec.case][gender]
    if kind == "my":
        en = _possessive(rng, spec)
        de, endings = german.POSSESSIVES[en] + ein_ending, german.MIXED
    elif kind == "two":
        en, de = pick(rng, _COUNTS if spec.some else _COUNTS[:-1])  # some is last
        de, endings = de if de in ("zwei", "drei") else de + der_ending, german.STRONG
    elif kind == "the":
        en, de, endings = "the", german.DEFINITE[spec.case][gender], german.WEAK
    elif kind == "this":
        en, de, endings = "these" if gender == "p" else "this", "dies" + der_ending, german.WEAK
    elif kind == "every":
        en, de, endings = "every", "jed" + der_ending, german.WEAK
    elif kind == "no":
        en, de, endings = "no", "kein" + ein_ending, german.MIXED
    else:  # a, bare
        en, de, endings = ("a" if kind == "a" else ""), "ein" + ein_ending, german.MIXED
        if spec.negator:
            article = english_words(en)
            return Phrase(article, [GermanWord("k" + de, (spec.negator, *article))]), endings
        if not en:
            return Phrase([], []), german.STRONG
    word = EnglishWord(en)
    return Phrase([word], [GermanWord(de, (word,))]), endings


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
    return NounPhrase(
        _around_noun(rng, noun, kind, gender, spec, noun.adjectives),
        person="p" if plural else "s",
        owner=_owner(noun, plural),
        definite=kind in ("the", "this", "my"),
        negated=kind == "no" or (spec.negator is not None and kind in ("a", "bare")),
        relative=kind in ("the", "a", "two"),
        every=kind == "every",
        heads=(noun,),
    )


def _around_noun(
    rng: Random, noun: Noun, kind: str, gender: str, spec: NounPhraseSpec, adjectives: tuple[Adjective, ...]
) -> Phrase:
    """Determiner, perhaps one of the adjectives, noun."""
    (en, de), endings = _article(rng, kind, gender, spec)
    if adjectives and rng.random() < spec.adjective:
        adjective = pick(rng, adjectives)
        word = EnglishWord(adjective.en)
        en.append(word)
        de.append(GermanWord(adjective.stem + endings[spec.case][gender], (word,)))
    head = EnglishWord(noun.en_plural if gender == "p" else noun.en)
    en.append(head)
    de.append(GermanWord(german.noun_form(noun.de, noun.de_plural, noun.oblique, gender, spec.case), (head,)))
    if en[0].text == "a" and en[1].text[0] in "aeiou":
        en[0].text = "an"
    return Phrase(en, de)


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
    adjectives = noun.adjectives if "person" not in noun.kinds else ()
    surrounded = _around_noun(rng, noun, kind, noun.gender, NounPhraseSpec(case, owner, adjective), adjectives)
    return prepositional(en, de, NounPhrase(surrounded, "s", "", definite=True), contract=True)


MODALS = ("can", "must", "want")
_FINITE = {"future": german.WERDEN, **german.MODALS}
_BE = {
    "present": ({"I": "am", "s": "is", "p": "are"}, german.SEIN),
    "past": ({"I": "was", "s": "was", "p": "were"}, german.WAR),
}


class Predicate(NamedTuple):
    """English before and at the main verb; German finite verb and what stands at the end of the clause."""

    en_before: list[EnglishWord]  # auxiliary and "not"; a frequency adverb follows
    en_main: list[EnglishWord]  # main verb, with "to" and with a particle that stays by it
    en_after: list[EnglishWord]  # a particle that follows a pronoun: picks him up
    finite: GermanWord
    prefix: GermanWord | None  # separated in a main clause, joined to the finite verb in a verb-final one
    end: list[GermanWord]  # participle, infinitive
    negator: EnglishWord | None  # the English "not", still to be given a German word


def predicate(verb: Verb, tense: str, person: str, negated: bool) -> Predicate:
    """The verb in a tense, agreeing with a subject of this person; must is never negated (it is not müssen + nicht)."""
    does = "does" if person == "s" else "do"
    auxiliaries = {"present": does if negated else "", "past": "did" if negated else "", "future": "will"}
    auxiliaries |= {"can": "cannot" if negated else "can", "must": "must", "want": does if negated else ""}
    before = english_words(auxiliaries[tense])
    wants = english_words("wants to" if person == "s" and not negated else "want to") if tense == "want" else []
    form = verb.base
    if not before and not wants:
        form = verb.past if tense == "past" else verb.third_en if person == "s" else verb.base
    main = EnglishWord(form)
    particle = english_words(verb.particle)
    content = (main, *particle)
    if tense == "present":
        finite = GermanWord(german.present(verb.infinitive, verb.third, person), (*before, *content))
        end = []
    elif tense == "past":
        perfect = german.SEIN if verb.aux == "sein" else german.HABEN
        finite = GermanWord(perfect[person], tuple(before) or content)
        end = [GermanWord(verb.participle, content)]
    else:
        finite = GermanWord(_FINITE[tense][person], (*before, *wants[:1]))
        end = [GermanWord(verb.prefix + verb.infinitive, (*wants[1:], *content))]
    negator = (before[0] if tense == "can" else EnglishWord("not")) if negated else None
    if negator and negator not in before:
        before.append(negator)
    prefix = GermanWord(verb.prefix, content) if verb.prefix and tense == "present" else None
    stays, follows = ([], particle) if verb.shifts else (particle, [])
    return Predicate(before, [*wants, main, *stays], follows, finite, prefix, end, negator)


def copula(tense: str, person: str, adjective: Adjective, very: bool, negated: bool) -> Predicate:
    """is (not) (very) tired; the German adjective stands at the end: `..., weil er sehr müde ist`."""
    not_ = english_words("not" if negated else "")
    adverb = english_words("very" if very else "")
    state = EnglishWord(adjective.en)
    end = [GermanWord("sehr", (word,)) for word in adverb] + [GermanWord(adjective.de, (state,))]
    english, forms = _BE.get(tense, (dict.fromkeys("Isp", "will"), german.WERDEN))
    verb = EnglishWord(english[person])
    be = english_words("be") if tense == "future" else []
    end += [GermanWord("sein", (word,)) for word in be]
    finite = GermanWord(forms[person], (verb,))
    return Predicate([verb, *not_, *be], [*adverb, state], [], finite, None, end, not_[0] if not_ else None)


@dataclass
class Clause:
    """A clause before it has been given a place in a sentence."""

    subject: NounPhrase
    predicate: Predicate
    noun: Noun | None = None  # of the subject
    verb: Verb | None = None
    aux: str = ""  # of a Perfekt: haben or sein
    en: list[EnglishWord] = field(default_factory=list)  # after the subject
    middle: list[GermanWord] = field(default_factory=list)
    front: Phrase | None = None
    extraposed: list[GermanWord] = field(default_factory=list)  # the relative clause of the object: after the last verb


def main_clause(clause: Clause) -> Phrase:
    """Verb second: after the fronted adverbial if there is one, then the subject follows."""
    subject, p = clause.subject.phrase, clause.predicate
    rest = [*clause.middle, *([p.prefix] if p.prefix else []), *p.end, *clause.extraposed]
    if clause.front:
        front = clause.front
        return Phrase(front.en + subject.en + clause.en, [*front.de, p.finite, *subject.de, *rest])
    return Phrase(subject.en + clause.en, [*subject.de, p.finite, *rest])


def final_verb(clause: Clause) -> list[GermanWord]:
    """The German clause after its subject, verb last: a prefix joins the finite verb (ankommt)."""
    p = clause.predicate
    finite = GermanWord(p.prefix.text + p.finite.text, p.finite.translates) if p.prefix else p.finite
    return [*clause.middle, *p.end, finite, *clause.extraposed]


def final_clause(clause: Clause) -> Phrase:
    """Verb last, as after weil and dass; the conjunction is not in it."""
    subject = clause.subject.phrase
    return Phrase(subject.en + clause.en, subject.de + final_verb(clause))
