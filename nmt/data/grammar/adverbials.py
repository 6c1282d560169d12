"""Where, when, how, how often and with whom: what may be added to a clause, in both languages at once."""

from random import Random

from nmt.data.grammar.clauses import Slots, Want
from nmt.data.grammar.nouns import Noun
from nmt.data.grammar.phrases import (
    NounPhrase,
    Wish,
    noun_phrase,
    object_pronoun,
    pick,
    place_phrase,
    prepositional,
)
from nmt.data.grammar.tokens import Out, Phrase, words
from nmt.data.grammar.verbs import EXTRAS, FREQUENCY, MANNER, TIMES, Verb

_CASE_OF_COMPLEMENT = {"sit": "dat", "dir": "acc"}


def add_adverbials(
    rng: Random, want: Want, slots: Slots, verb: Verb, subject: NounPhrase, noun: Noun | None, negated: bool, gap: str
) -> None:
    """Fills the adverbial slots; after a closing relative clause only what English puts before the verb."""
    if slots.extraposed:
        add_time(rng, want, slots, subject, negated, verb.kind)
        return
    places = verb.open_places if noun and not noun.kinds.isdisjoint(("horse", "cow", "bird")) else verb.places
    places = tuple(place for place in places if place[2] not in subject.heads)
    free_place = verb.frame not in _CASE_OF_COMPLEMENT and not negated and gap != "place"
    if rng.random() < want.detail * 0.4 and not slots.has_indefinite:
        _add_manner(rng, slots, verb)
    if verb.frame in _CASE_OF_COMPLEMENT and gap != "place":
        case = _CASE_OF_COMPLEMENT[verb.frame]
        place = place_phrase(rng, pick(rng, places), case, subject.owner, want.detail * 0.6, negated)
        slots.tail += place.en
        slots.complement += place.de
    elif verb.base in EXTRAS and not negated and rng.random() < want.detail * 0.8:
        _add_extra(rng, want, slots, verb, subject, noun)
    if free_place and places and rng.random() < want.detail and not slots.manner:
        place = place_phrase(rng, pick(rng, places), "dat", subject.owner, want.detail * 0.6, False)
        if want.front and not slots.front and rng.random() < 0.3:
            slots.front = place
        else:
            slots.tail += place.en
            slots.place += place.de
    add_time(rng, want, slots, subject, negated, verb.kind)


def _add_manner(rng: Random, slots: Slots, verb: Verb) -> None:
    if verb.manner:
        adverb = words(pick(rng, verb.manner))
        if verb.frame == "prep":  # speaks quietly with the woman
            slots.objects = adverb + slots.objects
        else:
            slots.tail += adverb
        slots.manner.append(Out(MANNER[adverb[0].text], (adverb[0],)))


def _add_extra(rng: Random, want: Want, slots: Slots, verb: Verb, subject: NounPhrase, noun: Noun | None) -> None:
    en, de, case, company = EXTRAS[verb.base]
    if noun and "animal" in noun.kinds and "child" not in company[0].kinds:
        return  # a bird sings, but not with the teacher
    other = pick(rng, company)
    if "person" in other.kinds and rng.random() < 0.2:
        inner = object_pronoun(rng, case, subject)
    elif other not in subject.heads:
        inner = noun_phrase(rng, other, Wish(case, subject.owner, want.detail * 0.6, only="definite"))
    else:
        return
    phrase = prepositional(en, de, inner)
    slots.tail += phrase.en
    slots.complement += phrase.de


def add_time(rng: Random, want: Want, slots: Slots, subject: NounPhrase, negated: bool, kind: str) -> None:
    """When (yesterday, with the past only) or how often (with the present only)."""
    if not want.time or rng.random() > 0.2 + 0.4 * want.detail:
        return
    present = want.tense == "present"
    if kind == "state" or (present and (negated or kind == "once")):
        return
    if present and rng.random() < 0.6:
        _add_frequency(rng, slots, subject)
        return
    en, de, under, with_not = pick(rng, TIMES[want.tense if want.tense in TIMES else "future"])
    if negated and not with_not:
        return
    english = words(en)
    german = [Out(word, _below(english, under, j)) for j, word in enumerate(de.split())]
    if want.front and not slots.front and rng.random() < 0.5:
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
    word = words(adverb)
    slots.frequency_en += word
    (slots.negation if never else slots.frequency).append(Out(FREQUENCY[adverb], (word[0],)))
