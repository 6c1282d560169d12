"""The parts of a clause and their order: the verb in its tense, the slots of the clause, adverbials.

One tense of English is one tense of German: present -> Präsens (reads, liest), past -> Perfekt (read, hat gelesen;
but was -> war), will -> Futur with werden, can / must / want to -> können / müssen / wollen with the infinitive.

Alignment: an English auxiliary (will, did, can) is aligned to the German finite verb and the main verb to the
infinitive or participle; where only one language has an auxiliary, its verb is aligned to every part: bought -> hat,
gekauft; does buy -> kauft; gets up -> steht, auf. `to` of an infinitive goes with the infinitive.

The German middle field, between the finite verb (or the conjunction) and the end of the clause, is filled in this
order; what is empty is left out:

    pronoun objects, time, definite dative, frequency, definite accusative, nicht, manner, place,
    indefinite objects, prepositional object or direction

In a negative clause time stands after the objects (er hat das Buch gestern nicht gelesen); `nie` stands where
`nicht` would. English: subject, auxiliary, frequency, verb, objects, company, manner, place, time.
"""

from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from nmt.data.grammar import german
from nmt.data.grammar.lexicon import EXTRAS, FREQUENCY, MANNER, TIMES, Adjective, Noun, Verb
from nmt.data.grammar.phrases import (
    EnglishWord,
    GermanWord,
    NounPhrase,
    NounPhraseSpec,
    Phrase,
    english_words,
    noun_phrase,
    object_pronoun,
    pick,
    place_phrase,
    prepositional,
)

MODALS = ("can", "must", "want")


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
    particle = [EnglishWord(verb.particle)] if verb.particle else []
    if tense == "present":
        before, main, finite, end, negator = _present(verb, person, negated, particle)
    elif tense == "past":
        before, main, finite, end, negator = _past(verb, person, negated, particle)
    elif tense == "future":
        before, main, finite, end, negator = _future(verb, person, negated, particle)
    else:
        before, main, finite, end, negator = _modal(verb, tense, person, negated, particle)
    prefix = GermanWord(verb.prefix, (main[-1], *particle)) if verb.prefix and tense == "present" else None
    if verb.shifts:
        return Predicate(before, main, particle, finite, prefix, end, negator)
    return Predicate(before, main + particle, [], finite, prefix, end, negator)


_Parts = tuple[list[EnglishWord], list[EnglishWord], GermanWord, list[GermanWord], EnglishWord | None]


def _negation(auxiliary: str, negated: bool) -> tuple[list[EnglishWord], EnglishWord | None]:
    """An auxiliary and, if wanted, `not`."""
    negator = EnglishWord("not") if negated else None
    return [EnglishWord(auxiliary)] + ([negator] if negator else []), negator


def _present(verb: Verb, person: str, negated: bool, particle: list[EnglishWord]) -> _Parts:
    form = german.present(verb.infinitive, verb.third, person)
    if negated:
        before, negator = _negation("does" if person == "s" else "do", True)
        main = EnglishWord(verb.base)
        return before, [main], GermanWord(form, (before[0], main, *particle)), [], negator
    main = EnglishWord(verb.third_en if person == "s" else verb.base)
    return [], [main], GermanWord(form, (main, *particle)), [], None


def _past(verb: Verb, person: str, negated: bool, particle: list[EnglishWord]) -> _Parts:
    form = (german.SEIN if verb.aux == "sein" else german.HABEN)[person]
    if negated:
        before, negator = _negation("did", True)
        main = EnglishWord(verb.base)
        return before, [main], GermanWord(form, (before[0],)), [GermanWord(verb.participle, (main, *particle))], negator
    main = EnglishWord(verb.past)
    of = (main, *particle)
    return [], [main], GermanWord(form, of), [GermanWord(verb.participle, of)], None


def _future(verb: Verb, person: str, negated: bool, particle: list[EnglishWord]) -> _Parts:
    before, negator = _negation("will", negated)
    main = EnglishWord(verb.base)
    end = [GermanWord(verb.prefix + verb.infinitive, (main, *particle))]
    return before, [main], GermanWord(german.WERDEN[person], (before[0],)), end, negator


def _modal(verb: Verb, modal: str, person: str, negated: bool, particle: list[EnglishWord]) -> _Parts:
    form = german.MODALS[modal][person]
    main = EnglishWord(verb.base)
    infinitive = verb.prefix + verb.infinitive
    if modal != "want":
        finite = EnglishWord("cannot" if negated else modal)
        end = [GermanWord(infinitive, (main, *particle))]
        return [finite], [main], GermanWord(form, (finite,)), end, finite if negated else None
    to = EnglishWord("to")
    end = [GermanWord(infinitive, (to, main, *particle))]
    if negated:
        before, negator = _negation("does" if person == "s" else "do", True)
        modal_verb = EnglishWord("want")
        return before, [modal_verb, to, main], GermanWord(form, (before[0], modal_verb)), end, negator
    modal_verb = EnglishWord("wants" if person == "s" else "want")
    return [], [modal_verb, to, main], GermanWord(form, (modal_verb,)), end, None


_BE = {
    "present": ({"I": "am", "s": "is", "p": "are"}, german.SEIN),
    "past": ({"I": "was", "s": "was", "p": "were"}, german.WAR),
}


def copula(tense: str, person: str, adjective: Adjective, very: bool, negated: bool) -> Predicate:
    """is (not) (very) tired; the German adjective stands at the end: `..., weil er sehr müde ist`."""
    negator = EnglishWord("not") if negated else None
    adverb = [EnglishWord("very")] if very else []
    state = EnglishWord(adjective.en)
    end = [GermanWord("sehr", (word,)) for word in adverb] + [GermanWord(adjective.de, (state,))]
    if tense == "future":
        will, be = EnglishWord("will"), EnglishWord("be")
        finite = GermanWord(german.WERDEN[person], (will,))
        end.append(GermanWord("sein", (be,)))
        before = [will] + ([negator] if negator else []) + [be]
    else:
        en, de = _BE[tense]
        verb = EnglishWord(en[person])
        finite = GermanWord(de[person], (verb,))
        before = [verb] + ([negator] if negator else [])
    return Predicate(before, [*adverb, state], [], finite, None, end, negator)


class ClauseSpec(NamedTuple):
    """What a sentence requires of a clause; the numbers are probabilities."""

    tense: str  # present, past, future, can, must, spec
    detail: float = 0.3  # adjectives and adverbials
    relative: float = 0.0  # relative clauses
    negation: float = 0.0
    time: bool = True  # an adverbial of time or frequency may be added
    front: bool = False  # an adverbial may stand first
    kinds: str = "lasting point once state be thing"  # of verb; "be": is tired, "thing": the house is old


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


class Slots:
    """Collects the parts of a predicate: English in order, German by slot."""

    def __init__(self) -> None:
        self.front: Phrase | None = None
        self.objects: list[EnglishWord] = []
        self.tail: list[EnglishWord] = []
        self.frequency_en: list[EnglishWord] = []
        self.pronoun: list[GermanWord] = []
        self.time: list[GermanWord] = []
        self.dative: list[GermanWord] = []
        self.frequency: list[GermanWord] = []
        self.accusative: list[GermanWord] = []
        self.negation: list[GermanWord] = []
        self.manner: list[GermanWord] = []
        self.place: list[GermanWord] = []
        self.indefinite: list[GermanWord] = []
        self.complement: list[GermanWord] = []
        self.extraposed: list[GermanWord] = []  # where this is filled, English ends: it would take more into it
        self.has_indefinite = False
        self.has_pronoun = False

    def add_object(self, np: NounPhrase, case: str) -> None:
        """An object in its slot."""
        self.objects += np.phrase.en
        if np.pronoun:
            self.pronoun += np.phrase.de
            self.has_pronoun = True
        elif not np.definite:
            self.indefinite += np.phrase.de
            self.has_indefinite = True
        elif case == "dat":
            self.dative += np.phrase.de
        else:
            self.accusative += np.phrase.de

    def middle(self, negated: bool) -> list[GermanWord]:
        """The middle field in order."""
        early, late = ([], self.time) if negated else (self.time, [])
        objects = self.pronoun + early + self.dative + self.frequency + self.accusative + late
        return objects + self.negation + self.manner + self.place + self.indefinite + self.complement


_CASE_OF_COMPLEMENT = {"sit": "dat", "dir": "acc"}


def add_adverbials(
    rng: Random,
    spec: ClauseSpec,
    slots: Slots,
    verb: Verb,
    subject: NounPhrase,
    noun: Noun | None,
    negated: bool,
    gap: str,
) -> None:
    """Fills the adverbial slots; after a closing relative clause only what English puts before the verb."""
    if slots.extraposed:
        add_time(rng, spec, slots, subject, negated, verb.kind)
        return
    places = verb.open_places if noun and not noun.kinds.isdisjoint(("horse", "cow", "bird")) else verb.places
    places = tuple(place for place in places if place[2] not in subject.heads)
    free_place = verb.frame not in _CASE_OF_COMPLEMENT and not negated and gap != "place"
    if rng.random() < spec.detail * 0.4 and not slots.has_indefinite:
        _add_manner(rng, slots, verb)
    if verb.frame in _CASE_OF_COMPLEMENT and gap != "place":
        case = _CASE_OF_COMPLEMENT[verb.frame]
        place = place_phrase(rng, pick(rng, places), case, subject.owner, spec.detail * 0.6, negated)
        slots.tail += place.en
        slots.complement += place.de
    elif verb.base in EXTRAS and not negated and rng.random() < spec.detail * 0.8:
        _add_extra(rng, spec, slots, verb, subject, noun)
    if free_place and places and rng.random() < spec.detail and not slots.manner:
        place = place_phrase(rng, pick(rng, places), "dat", subject.owner, spec.detail * 0.6, False)
        if spec.front and not slots.front and rng.random() < 0.3:
            slots.front = place
        else:
            slots.tail += place.en
            slots.place += place.de
    add_time(rng, spec, slots, subject, negated, verb.kind)


def _add_manner(rng: Random, slots: Slots, verb: Verb) -> None:
    if verb.manner:
        adverb = english_words(pick(rng, verb.manner))
        if verb.frame == "prep":  # speaks quietly with the woman
            slots.objects = adverb + slots.objects
        else:
            slots.tail += adverb
        slots.manner.append(GermanWord(MANNER[adverb[0].text], (adverb[0],)))


def _add_extra(rng: Random, spec: ClauseSpec, slots: Slots, verb: Verb, subject: NounPhrase, noun: Noun | None) -> None:
    en, de, case, company = EXTRAS[verb.base]
    if noun and "animal" in noun.kinds and "child" not in company[0].kinds:
        return  # a bird sings, but not with the teacher
    other = pick(rng, company)
    if "person" in other.kinds and rng.random() < 0.2:
        inner = object_pronoun(rng, case, subject)
    elif other not in subject.heads:
        inner = noun_phrase(rng, other, NounPhraseSpec(case, subject.owner, spec.detail * 0.6, only="definite"))
    else:
        return
    phrase = prepositional(en, de, inner)
    slots.tail += phrase.en
    slots.complement += phrase.de


def add_time(rng: Random, spec: ClauseSpec, slots: Slots, subject: NounPhrase, negated: bool, kind: str) -> None:
    """When (yesterday, with the past only) or how often (with the present only)."""
    if not spec.time or rng.random() > 0.2 + 0.4 * spec.detail:
        return
    present = spec.tense == "present"
    if kind == "state" or (present and (negated or kind == "once")):
        return
    if present and rng.random() < 0.6:
        _add_frequency(rng, slots, subject)
        return
    en, de, under, with_not = pick(rng, TIMES[spec.tense if spec.tense in TIMES else "future"])
    if negated and not with_not:
        return
    english = english_words(en)
    german = [GermanWord(word, _below(english, under, j)) for j, word in enumerate(de.split())]
    if spec.front and not slots.front and rng.random() < 0.5:
        slots.front = Phrase(english, german)
    elif not slots.extraposed:
        slots.tail += english
        slots.time += german


def _below(english: list, under: tuple[int, ...], j: int) -> tuple:  # type: ignore[type-arg]
    return tuple(word for word, position in zip(english, under, strict=True) if position == j)


def _add_frequency(rng: Random, slots: Slots, subject: NounPhrase) -> None:
    adverb = pick(rng, tuple(FREQUENCY))
    never = adverb == "never"
    if subject.negated and adverb in ("never", "sometimes"):
        return
    some = any(word.text == "some" for word in slots.objects)
    if never and (slots.has_indefinite or subject.every or some):
        return
    word = english_words(adverb)
    slots.frequency_en += word
    (slots.negation if never else slots.frequency).append(GermanWord(FREQUENCY[adverb], (word[0],)))
