"""Clauses: a subject, what a verb says about it and to whom, adverbials, word order, and relative clauses.

The German middle field, between the finite verb (or the conjunction) and the end of the clause, is filled in this
order; what is empty is left out:

    pronoun objects, time, definite dative, frequency, definite accusative, nicht, manner, place,
    indefinite objects, prepositional object or direction

In a negative clause time stands after the objects (er hat das Buch gestern nicht gelesen); `nie` stands where
`nicht` would. English: subject, auxiliary, frequency, verb, objects, company, manner, place, time.
"""

from dataclasses import replace
from random import Random
from typing import NamedTuple

from nmt.data.grammar import german, lexicon
from nmt.data.grammar.lexicon import ANIMATE, PERSONS, STATES, Adjective, Noun, Verb
from nmt.data.grammar.phrases import (
    KOMMA,
    MODALS,
    Clause,
    EnglishWord,
    GermanWord,
    NounPhrase,
    NounPhraseSpec,
    Phrase,
    Predicate,
    copula,
    english_words,
    final_clause,
    final_verb,
    noun_phrase,
    object_pronoun,
    pick,
    place_phrase,
    predicate,
    prepositional,
    subject_pronoun,
)

_COLOURS = ("red", "white", "black", "new")  # never "very red"
_CASE_OF_COMPLEMENT = {"sit": "dat", "dir": "acc"}


class ClauseSpec(NamedTuple):
    """What a sentence requires of a clause; the numbers are probabilities."""

    tense: str  # present, past, future, can, must, want
    detail: float = 0.3  # adjectives and adverbials
    relative: float = 0.0  # relative clauses
    negation: float = 0.0
    time: bool = True  # an adverbial of time or frequency may be added
    front: bool = False  # an adverbial may stand first
    kinds: str = "lasting point once state be thing"  # of verb; "be": is tired, "thing": the house is old


def make_subject(rng: Random, spec: ClauseSpec, nouns: tuple[Noun, ...] = ANIMATE) -> tuple[NounPhrase, Noun | None]:
    """A subject and its noun; no noun for a pronoun or for two people."""
    r = rng.random()
    if r < 0.2:
        return subject_pronoun(rng), None
    # neither `while no dog plays` nor `before every dog plays`: such clauses are wanted without negation and time;
    # nor `no dog must sleep`: that is not `muss` but `darf`
    negative = spec.negation and spec.tense != "must"
    only = "any subject" if negative else "subject" if spec.time else ""
    np_spec = NounPhraseSpec("nom", adjective=spec.detail, only=only)
    if r < 0.2 + 0.12 * spec.detail:
        first, second = pick(rng, PERSONS), pick(rng, PERSONS)
        if first is not second:
            return _pair(rng, first, second, np_spec._replace(only="definite")), None
    noun = pick(rng, nouns)
    return noun_phrase(rng, noun, np_spec), noun


def _pair(rng: Random, first: Noun, second: Noun, spec: NounPhraseSpec) -> NounPhrase:
    """Two people are plural together."""
    a, b = noun_phrase(rng, first, spec).phrase, noun_phrase(rng, second, spec).phrase
    und = GermanWord("und", (EnglishWord("and"),))
    phrase = Phrase([*a.en, *und.translates, *b.en], [*a.de, und, *b.de])
    return NounPhrase(phrase, "p", "their", definite=True, heads=(first, second))


def fits(verb: Verb, spec: ClauseSpec, person: str, negated: bool) -> bool:
    """Whether the verb can be used so: of the wanted kind, its past not read as a present, no `must fall asleep`."""
    if verb.kind not in spec.kinds:
        return False
    if spec.tense in MODALS:
        unwilled = verb.particle == "asleep" or verb.kind == "state" or verb.base == "arrive"
        return not unwilled and (spec.tense == "can" or verb.base not in ("see", "find"))
    return not (verb.base == verb.past and person != "s" and not negated and spec.tense in ("present", "past"))


def make_clause(rng: Random, spec: ClauseSpec, other: Clause | None = None) -> Clause:
    """A clause about people or animals, now and then about a state (the house is old).

    It has neither subject nor verb in common with the other one it will be joined to.
    """
    while True:
        if "be" in spec.kinds and spec.tense not in MODALS and rng.random() < 0.14:
            clause = _copula_clause(rng, spec)
        else:
            clause = clause_about(rng, spec, *make_subject(rng, spec))
        if other is None or not _too_like(clause, other):
            return clause


def _too_like(clause: Clause, other: Clause) -> bool:
    """Same noun, same verb, or he/she beside Kind or Mädchen: er, sie or es?"""
    for first, second in ((clause, other), (other, clause)):
        neuter = second.noun is not None and second.noun.gender == "n"
        if neuter and first.subject.pronoun and first.subject.person == second.subject.person == "s":
            return True
    return any(a is not None and a is b for a, b in ((clause.noun, other.noun), (clause.verb, other.verb)))


def clause_about(rng: Random, spec: ClauseSpec, subject: NounPhrase, noun: Noun | None) -> Clause:
    """A clause with a given subject, which may be given a relative clause."""
    negated = subject.definite and spec.tense != "must" and rng.random() < spec.negation
    verbs = lexicon.VERBS_OF[noun] if noun else lexicon.PRONOUN_VERBS
    verb = pick(rng, verbs)
    while not fits(verb, spec, subject.person, negated):
        verb = pick(rng, verbs)
    return _with_relative(rng, spec, _ClauseBuilder(rng, spec, subject, noun, negated).with_verb(verb), noun)


def _copula_clause(rng: Random, spec: ClauseSpec) -> Clause:
    """Somebody is tired, or the house is old."""
    thing = "thing" in spec.kinds and spec.tense != "future" and rng.random() < 0.4
    if thing:
        noun: Noun | None = (house := pick(rng, lexicon.THINGS))
        subject = noun_phrase(rng, house, NounPhraseSpec("nom", adjective=0.0, only="definite"))
        choices: tuple[Adjective, ...] = house.adjectives
    else:
        subject, noun = make_subject(rng, spec._replace(detail=0.0))
        choices = lexicon.ANIMAL_STATES if noun and "animal" in noun.kinds else STATES
        if spec.tense == "future":
            choices = choices[:-1]  # nobody plans to be sick
    negated = subject.definite and rng.random() < spec.negation
    state = pick(rng, choices)
    # the noun of a thing is neither named again nor called he or she in a clause joined to it
    clause = _ClauseBuilder(rng, spec, subject, None if thing else noun, negated).with_state(state, lasting=thing)
    return _with_relative(rng, spec, clause, noun)


def _with_relative(rng: Random, spec: ClauseSpec, clause: Clause, noun: Noun | None) -> Clause:
    """The clause whose subject may have a relative clause that directly follows it."""
    subject = clause.subject
    if not (noun and subject.relative and rng.random() < spec.relative):
        return clause
    if relative := _relative_clause(rng, subject, noun, None, spec.tense):
        phrase = Phrase(subject.phrase.en + relative.en, [*subject.phrase.de, KOMMA, *relative.de, KOMMA])
        return replace(clause, subject=subject._replace(phrase=phrase))
    return clause


class _ClauseBuilder:
    """Collects what follows the subject: English in order, German by its slot in the middle field."""

    def __init__(
        self, rng: Random, spec: ClauseSpec, subject: NounPhrase, noun: Noun | None, negated: bool, gap: str = ""
    ) -> None:
        """`gap` is what a relative pronoun has taken out of the clause: "object", "place" or nothing."""
        self.rng, self.spec, self.subject, self.noun, self.negated, self.gap = rng, spec, subject, noun, negated, gap
        self.front: Phrase | None = None
        self.frequency: list[EnglishWord] = []
        self.objects: list[EnglishWord] = []
        self.tail: list[EnglishWord] = []
        order = "pronoun time dative frequency accusative time-late negation manner place indefinite complement"
        self.middle: dict[str, list[GermanWord]] = {slot: [] for slot in order.split()}
        self.extraposed: list[GermanWord] = []  # where this is filled, English ends: it would take more into it
        self.ends_in_pronoun = False

    def with_verb(self, verb: Verb) -> Clause:
        p = predicate(verb, self.spec.tense, self.subject.person, self.negated)
        took_negation = self.gap != "object" and self._add_objects(verb, p.negator)
        if p.negator and not took_negation:
            self.middle["negation"].append(GermanWord("nicht", (p.negator,)))
        if not self.extraposed:
            self._add_adverbials(verb)
        self._add_time(verb.kind)
        after = self.objects + p.en_after if self.ends_in_pronoun else p.en_after + self.objects
        clause = self._clause(p, p.en_before + self.frequency + p.en_main + after + self.tail)
        return replace(clause, verb=verb, aux=verb.aux if self.spec.tense == "past" else "")

    def with_state(self, state: Adjective, lasting: bool) -> Clause:
        very = state.en not in _COLOURS and self.rng.random() < self.spec.detail * 0.5
        p = copula(self.spec.tense, self.subject.person, state, very, self.negated)
        if not lasting and self.spec.tense != "present":
            self._add_time("be")
        if p.negator:
            self.middle["negation"].append(GermanWord("nicht", (p.negator,)))
        return self._clause(p, p.en_before + p.en_main + self.tail)

    def _clause(self, p: Predicate, en: list[EnglishWord]) -> Clause:
        middle = [word for words in self.middle.values() for word in words]
        return Clause(self.subject, p, self.noun, None, "", en, middle, self.front, self.extraposed)

    def _add_objects(self, verb: Verb, negator: EnglishWord | None) -> bool:
        """Adds what the verb governs; True if the negation went into it (kein)."""
        if not verb.objects:
            return False
        thing = self._other_than_subject(verb.objects)
        spec = NounPhraseSpec("acc", self.subject.owner, self.spec.detail, "", negator, not self.subject.negated)
        definite = spec._replace(only="definite", negator=None)
        if verb.frame == "prep":
            en, de, case = verb.preposition
            np = self._object(thing, (definite if negator else spec)._replace(case=case))
            phrase = prepositional(en, de, np)
            self.objects += phrase.en
            self.middle["complement"] += phrase.de
            self._add_relative(np, thing, verb)
            return False
        if verb.frame == "both":
            receiver = self._object(self._other_than_subject(PERSONS), definite._replace(case="dat"))
            self._add_object(receiver, "dat")
            if receiver.pronoun:  # not "gives her books"
                spec = spec._replace(only="definite")
            np = noun_phrase(self.rng, thing, spec)
            self._add_object(np, "acc")
            return np.negated
        case = "dat" if verb.frame == "dat" else "acc"
        if verb.kind == "state":  # love
            spec = spec._replace(only="definite")
        np = self._object(thing, spec._replace(case=case))
        self._add_object(np, case)
        self._add_relative(np, thing, verb)
        return np.negated

    def _other_than_subject(self, nouns: tuple[Noun, ...]) -> Noun:
        noun = pick(self.rng, nouns)
        while noun in self.subject.heads:
            noun = pick(self.rng, nouns)
        return noun

    def _object(self, noun: Noun, spec: NounPhraseSpec) -> NounPhrase:
        # An indefinite subject would rather follow a pronoun (gestern hat uns ein Mann geholfen): not made at all.
        if "person" in noun.kinds and self.subject.definite and self.rng.random() < 0.25:
            return object_pronoun(self.rng, spec.case, self.subject)
        return noun_phrase(self.rng, noun, spec)

    def _add_object(self, np: NounPhrase, case: str) -> None:
        self.objects += np.phrase.en
        full = "dative" if case == "dat" else "accusative"
        self.middle["pronoun" if np.pronoun else full if np.definite else "indefinite"] += np.phrase.de
        self.ends_in_pronoun = np.pronoun

    def _add_relative(self, np: NounPhrase, noun: Noun, verb: Verb) -> None:
        """Perhaps a relative clause of the object, in German behind the last verb (er will das Buch lesen, das ...)."""
        if not np.relative or np.negated or self.rng.random() >= self.spec.relative:
            return
        if relative := _relative_clause(self.rng, np, noun, verb, self.spec.tense):
            self.objects += relative.en
            self.extraposed += [KOMMA, *relative.de, KOMMA]

    def _add_adverbials(self, verb: Verb) -> None:
        rng, spec, subject, noun = self.rng, self.spec, self.subject, self.noun
        places = verb.open_places if noun and not noun.kinds.isdisjoint(("horse", "cow", "bird")) else verb.places
        places = tuple(place for place in places if place[2] not in subject.heads)
        case = _CASE_OF_COMPLEMENT.get(verb.frame)
        if rng.random() < spec.detail * 0.4 and not self.middle["indefinite"]:
            self._add_manner(verb)
        if case and self.gap != "place":
            place = place_phrase(rng, pick(rng, places), case, subject.owner, spec.detail * 0.6, self.negated)
            self.tail += place.en
            self.middle["complement"] += place.de
        elif verb.base in lexicon.EXTRAS and not self.negated and rng.random() < spec.detail * 0.8:
            self._add_extra(verb)
        may_have_place = not (case or self.negated or self.gap == "place") and places
        if may_have_place and rng.random() < spec.detail and not self.middle["manner"]:
            place = place_phrase(rng, pick(rng, places), "dat", subject.owner, spec.detail * 0.6, False)
            if spec.front and not self.front and rng.random() < 0.3:
                self.front = place
            else:
                self.tail += place.en
                self.middle["place"] += place.de

    def _add_manner(self, verb: Verb) -> None:
        if verb.manner:
            adverb = english_words(pick(self.rng, verb.manner))
            if verb.frame == "prep":  # speaks quietly with the woman
                self.objects = adverb + self.objects
            else:
                self.tail += adverb
            self.middle["manner"].append(GermanWord(lexicon.MANNER[adverb[0].text], (adverb[0],)))

    def _add_extra(self, verb: Verb) -> None:
        """Company or a beneficiary: with the dog, for the child."""
        en, de, case, company = lexicon.EXTRAS[verb.base]
        if self.noun and "animal" in self.noun.kinds and "child" not in company[0].kinds:
            return  # a bird sings, but not with the teacher
        other = pick(self.rng, company)
        if "person" in other.kinds and self.rng.random() < 0.2:
            inner = object_pronoun(self.rng, case, self.subject)
        elif other not in self.subject.heads:
            spec = NounPhraseSpec(case, self.subject.owner, self.spec.detail * 0.6, only="definite")
            inner = noun_phrase(self.rng, other, spec)
        else:
            return
        phrase = prepositional(en, de, inner)
        self.tail += phrase.en
        self.middle["complement"] += phrase.de

    def _add_time(self, kind: str) -> None:
        """When (yesterday, with the past only) or how often (with the present only)."""
        rng, spec, negated = self.rng, self.spec, self.negated
        if not spec.time or rng.random() > 0.2 + 0.4 * spec.detail:
            return
        present = spec.tense == "present"
        if kind == "state" or (present and (negated or kind == "once")):
            return
        if present and rng.random() < 0.6:
            self._add_frequency()
            return
        en, de, under, with_not = pick(rng, lexicon.TIMES[spec.tense if spec.tense in lexicon.TIMES else "future"])
        if negated and not with_not:
            return
        english = english_words(en)
        translates = [tuple(w for w, at in zip(english, under, strict=True) if at == j) for j in range(len(de.split()))]
        german_words = list(map(GermanWord, de.split(), translates))
        if spec.front and not self.front and rng.random() < 0.5:
            self.front = Phrase(english, german_words)
        elif not self.extraposed:
            self.tail += english
            self.middle["time-late" if negated else "time"] += german_words

    def _add_frequency(self) -> None:
        adverb = pick(self.rng, tuple(lexicon.FREQUENCY))
        if self.subject.negated and adverb in ("never", "sometimes"):
            return
        some = self.middle["indefinite"] or any(word.text == "some" for word in self.objects)
        if adverb == "never" and (some or self.subject.every):
            return
        word = EnglishWord(adverb)
        self.frequency.append(word)
        self.middle["negation" if adverb == "never" else "frequency"].append(
            GermanWord(lexicon.FREQUENCY[adverb], (word,))
        )


def _relative_clause(rng: Random, np: NounPhrase, noun: Noun, outer: Verb | None, tense: str) -> Phrase | None:
    """A relative clause: gender and number from the noun, case from the clause; not with the verb of the outer one.

    None if the lexicon has nothing to say about the noun.
    """
    if tense not in ("present", "past"):
        tense = "present" if rng.random() < 0.5 else "past"
    spec = ClauseSpec(tense, detail=0.2, negation=0.08)
    about = tuple(v for v in lexicon.VERBS_ABOUT[noun] if v is not outer)
    gender = "p" if np.person == "p" else noun.gender
    roles = ["subject"] * ("person" in noun.kinds or "animal" in noun.kinds)
    roles += ["object"] * bool(about) + ["place"] * bool(lexicon.VERBS_AT[noun])
    if not roles:
        return None
    if (role := pick(rng, roles)) == "subject":
        return _subject_gap(rng, spec, np, noun, gender)
    verbs = about if role == "object" else lexicon.VERBS_AT[noun]
    return _object_or_place_gap(rng, spec, role, noun, gender, pick(rng, verbs))


def _subject_gap(rng: Random, spec: ClauseSpec, np: NounPhrase, noun: Noun, gender: str) -> Phrase:
    """the man who sleeps: der Mann, der schläft"""
    word = EnglishWord("who" if "person" in noun.kinds else "that")
    pronoun = Phrase([word], [GermanWord(german.RELATIVE["nom"][gender], (word,))])
    subject = NounPhrase(pronoun, np.person, np.owner, definite=True, pronoun=True, heads=np.heads)
    if rng.random() < 0.15:
        state = pick(rng, STATES if "person" in noun.kinds else lexicon.ANIMAL_STATES)
        clause = _ClauseBuilder(rng, spec, subject, None, False).with_state(state, lasting=False)
    else:
        clause = clause_about(rng, spec, subject, noun)
    return Phrase(pronoun.en + clause.en, pronoun.de + final_verb(clause))


def _object_or_place_gap(rng: Random, spec: ClauseSpec, gap: str, noun: Noun, gender: str, verb: Verb) -> Phrase:
    """What somebody else does to the noun, or does there.

    the man whom the dog follows: der Mann, dem der Hund folgt; the man for whom ...: der Mann, auf den ...;
    the house in which the cat sleeps: das Haus, in dem die Katze schläft
    """
    person = "person" in noun.kinds
    en, de, case = verb.preposition if verb.frame == "prep" else ("", "", "dat" if verb.frame == "dat" else "acc")
    if gap == "place":
        en, de, _ = pick(rng, [place for place in verb.places if place[2] is noun])
        case, person = "dat", False
    if rng.random() < 0.3 and all(adult in verb.subjects for adult in lexicon.ADULTS):
        subject, other = subject_pronoun(rng), None
    else:
        other = pick(rng, verb.subjects)
        while other is noun:
            other = pick(rng, verb.subjects)
        subject = noun_phrase(rng, other, NounPhraseSpec("nom", adjective=0.15, only="definite"))
    if not fits(verb, spec, subject.person, False):
        spec = spec._replace(tense="future")
    clause = _ClauseBuilder(rng, spec, subject, other, False, gap).with_verb(verb)
    preposition = english_words(en)
    word = EnglishWord("whom" if person else "which" if preposition else "that")
    pronoun = [GermanWord(de, tuple(preposition))] if preposition else []
    pronoun.append(GermanWord(german.RELATIVE[case][gender], (word,)))
    inner = final_clause(clause)
    return Phrase([*preposition, word, *inner.en], [*pronoun, *inner.de])
