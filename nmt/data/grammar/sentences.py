"""Sentences: clauses joined and nested until they reach the requested length.

Coordination: and, but -> und, aber; for -> denn; or (between two predicates of one subject) -> oder. Between main
clauses English sets a comma before each, German only before aber and denn; none stands after one.
Subordination: because, although, while, when, if, before, that. German sets a comma before and after each clause,
English only after one that stands first, and before `although`. `when` is wenn, but als with the past.
"""

from collections.abc import Mapping
from random import Random
from typing import NamedTuple

from nmt.data.grammar.clauses import ClauseSpec, clause_about, make_clause, make_subject
from nmt.data.grammar.lexicon import PERSONS, THAT_VERBS
from nmt.data.grammar.phrases import (
    KOMMA,
    Clause,
    EnglishWord,
    GermanWord,
    Phrase,
    comma,
    final_clause,
    main_clause,
    pick,
    predicate,
)

_ANY = "lasting point once state be"  # things are not: the bread is fresh because he sees a child
_EVENT = "lasting point once"


class Subordinator(NamedTuple):
    """A conjunction: its German, the tense of its clause for each tense of the main one, and what it may contain."""

    en: str
    de: Mapping[str, str]  # tense of its own clause -> German
    tenses: Mapping[str, tuple[str, ...]]  # tense of the main clause -> tenses of its own
    kinds: str = _EVENT  # of verb in its own clause
    main_kinds: str = _EVENT
    time: bool = False  # an adverbial of time may stand in its clause


_REASON = {"present": ("present", "present", "past"), "past": ("past",), "future": ("present",)}
_SAME: dict[str, tuple[str, ...]] = {"present": ("present",), "past": ("past",)}
_NEXT: dict[str, tuple[str, ...]] = {"present": ("present",), "future": ("present",)}
SUBORDINATORS = (
    Subordinator("because", {"present": "weil", "past": "weil"}, _REASON, _ANY, _ANY, True),
    Subordinator("although", {"present": "obwohl", "past": "obwohl"}, _REASON, _ANY, _ANY, True),
    Subordinator("while", {"present": "während", "past": "während"}, _SAME, "lasting"),
    Subordinator("when", {"present": "wenn", "past": "als"}, _SAME | _NEXT),
    Subordinator("if", {"present": "wenn"}, _NEXT, _ANY),
    Subordinator("before", {"present": "bevor", "past": "bevor"}, _SAME | _NEXT),
)
_SUBORDINATING = frozenset(conjunction.en for conjunction in SUBORDINATORS)
_COORDINATORS = {"and": "und", "but": "aber", "for": "denn", "or": "oder"}
_TENSES = ("present", "present", "present", "past", "past", "past", "future", "future", "can", "must", "want")


def _plain(rng: Random, size: int) -> Phrase:
    """One main clause; the larger the size, the more is put into it."""
    tense = pick(rng, _TENSES)
    detail = min(0.9, max(0.0, (size - 3) / 7))
    spec = ClauseSpec(tense, detail, max(0.0, (size - 6) / 10), 0.12, front=True)
    return main_clause(make_clause(rng, spec))


def _subordinated(rng: Random, size: int) -> Phrase:
    """A main clause with one subordinate clause after or before it."""
    tense = pick(rng, ("present", "past", "past", "future"))
    conjunction = pick(rng, SUBORDINATORS)
    while tense not in conjunction.tenses:
        conjunction = pick(rng, SUBORDINATORS)
    detail = min(0.8, max(0.0, (size - 8) / 8))
    relative = max(0.0, (size - 11) / 12)
    negation = 0.12 if conjunction.main_kinds == _ANY else 0.0
    spec = ClauseSpec(tense, detail, relative, negation, conjunction.time, kinds=conjunction.main_kinds)
    main = make_clause(rng, spec)
    inner_tense = pick(rng, conjunction.tenses[tense])
    negation = 0.12 if conjunction.kinds == _ANY else 0.0
    spec = spec._replace(tense=inner_tense, negation=negation, kinds=conjunction.kinds)
    subordinate = make_clause(rng, spec, main)
    word = EnglishWord(conjunction.en)
    inner = final_clause(subordinate)
    en = [word, *inner.en]
    de = [GermanWord(conjunction.de[inner_tense], (word,)), *inner.de, KOMMA]
    if rng.random() < 0.4:
        main.front = Phrase([*en, comma()], de)
        return main_clause(main)
    first = main_clause(main)
    return Phrase(first.en + ([comma()] if conjunction.en == "although" else []) + en, [*first.de, KOMMA, *de])


def _reported(rng: Random, size: int) -> Phrase:
    """the man says that ...; in a longer one, and that ..."""
    spec = ClauseSpec("present", 0.1, negation=0.15, time=False)
    subject, noun = make_subject(rng, spec, PERSONS)
    verb = pick(rng, THAT_VERBS)
    negated = subject.definite and verb.base != "hope" and rng.random() < spec.negation
    p = predicate(verb, "present", subject.person, negated)
    nicht = [GermanWord("nicht", (p.negator,))] if p.negator else []
    outer = Clause(subject, p, noun, verb, en=p.en_before + p.en_main, middle=nicht)
    start = main_clause(outer)
    phrase = _that_clause(rng, size - len(start.en), outer)
    de = [*start.de, KOMMA, *phrase.de]
    en = start.en + phrase.en
    if len(en) + 6 <= size:
        second = _that_clause(rng, size - len(en) - 1, outer)
        word = EnglishWord("and")
        en += [word, *second.en]
        de += [GermanWord("und", (word,)), *second.de]
    return Phrase(en, [*de, KOMMA])


def _that_clause(rng: Random, size: int, outer: Clause) -> Phrase:
    """What is said; what is hoped is an event that has not happened."""
    hoped = outer.verb is not None and outer.verb.base == "hope"
    tense = pick(rng, ("present", "future") if hoped else ("present", "present", "past", "past", "future"))
    kinds = _EVENT if hoped else _ANY + " thing"
    detail = min(0.7, max(0.0, (size - 5) / 8))
    inner = final_clause(make_clause(rng, ClauseSpec(tense, detail, (size - 8) / 12, 0.1, kinds=kinds), outer))
    that = EnglishWord("that")
    return Phrase([that, *inner.en], [GermanWord("dass", (that,)), *inner.de])


def _shared_subject(rng: Random, size: int) -> Phrase:
    """One subject, two predicates: der Mann hat das Buch gelesen und den Tee getrunken."""
    tense = pick(rng, ("present", "past", "past", "future"))
    spec = ClauseSpec(tense, min(0.6, max(0.0, (size - 7) / 10)), time=False, kinds=_EVENT)
    subject, noun = make_subject(rng, spec)
    first = clause_about(rng, spec, subject, noun)
    second = clause_about(rng, spec, subject, noun)
    while second.verb is first.verb:
        second = clause_about(rng, spec, subject, noun)
    p = second.predicate
    conjunction = EnglishWord("or" if tense != "past" and rng.random() < 0.25 else "and")
    more = second.en
    rest = [*second.middle, *([p.prefix] if p.prefix else []), *p.end]
    if tense == "future":
        more = more[1:]  # one "will", one "wird" for both
    elif not (tense == "past" and first.aux == second.aux):
        rest = [p.finite, *rest]
    whole = main_clause(first)
    translation = GermanWord(_COORDINATORS[conjunction.text], (conjunction,))
    return Phrase([*subject.phrase.en, *first.en, conjunction, *more], [*whole.de, translation, *rest])


def _unit(rng: Random, size: int) -> Phrase:
    """One main clause with what hangs on it, of roughly `size` English words."""
    r = rng.random()
    if size < 8 or r < 0.3:
        return _plain(rng, size)
    if r < 0.65:
        return _subordinated(rng, size)
    if r < 0.85:
        return _reported(rng, size)
    return _shared_subject(rng, size)


def _sized(rng: Random, size: int, most: int, slack: int = 5) -> Phrase | None:
    """The best of some units: `size` words or up to size // slack less if one is, never over `most`.

    None if all are too long.
    """
    best: Phrase | None = None
    for _ in range(10):
        phrase = _unit(rng, size)
        length = len(phrase.en)
        if 3 <= length <= most and size - size // slack - (3 < size < slack) <= length <= size:
            return phrase
        if 3 <= length <= most and (best is None or abs(length - size) < abs(len(best.en) - size)):
            best = phrase
    return best


def sentence(rng: Random, length: int) -> Phrase:
    """A sentence of `length` English words (3 or more, commas included) or up to a quarter fewer."""
    phrase: Phrase | None = None
    previous = ""
    while phrase is None:
        size = length if length < 14 else 5 + int(rng.random() * 11)
        phrase = _sized(rng, size, length, slack=5 if size == length else 1)
    while len(phrase.en) + 5 <= length:
        room = length - len(phrase.en) - 2
        size = room if room < 14 else 5 + int(rng.random() * min(11, room - 8))
        more = _sized(rng, size, room, slack=5 if size == room else 1)
        if more is None:
            continue
        r = rng.random()
        previous = "and" if r < 0.6 or previous not in ("", "and") else "but" if r < 0.8 else "for"
        if previous == "for" and more.en[0].text in _SUBORDINATING:  # not: denn weil
            previous = "and"
        word = EnglishWord(previous)
        german_comma = [KOMMA] if previous in ("but", "for") else []
        translation = GermanWord(_COORDINATORS[previous], (word,))
        phrase = Phrase([*phrase.en, comma(), word, *more.en], [*phrase.de, *german_comma, translation, *more.de])
    return phrase
