"""Clauses: a subject, what a verb says about it and to whom, and the relative clauses inside."""

from dataclasses import replace
from random import Random

from nmt.data.grammar import german
from nmt.data.grammar.clause_parts import (
    MODALS,
    Clause,
    ClauseSpec,
    Slots,
    add_adverbials,
    add_time,
    copula,
    final_verb,
    predicate,
)
from nmt.data.grammar.lexicon import ANIMAL_STATES, NOUNS, PLAIN_VERBS, STATES, Adjective, Noun, Verb, nouns_of
from nmt.data.grammar.phrases import (
    KOMMA,
    EnglishWord,
    GermanWord,
    NounPhrase,
    NounPhraseSpec,
    Phrase,
    english_words,
    noun_phrase,
    object_pronoun,
    pick,
    prepositional,
    subject_pronoun,
)

PERSONS = nouns_of("person")
ANIMATE = nouns_of("person animal")


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
            return _pair(rng, first, second, np_spec), None
    noun = pick(rng, nouns)
    return noun_phrase(rng, noun, np_spec), noun


def _pair(rng: Random, first: Noun, second: Noun, spec: NounPhraseSpec) -> NounPhrase:
    """Two people are plural together."""
    spec = spec._replace(only="definite")
    a, b = noun_phrase(rng, first, spec), noun_phrase(rng, second, spec)
    conjunction = EnglishWord("and")
    en = [*a.phrase.en, conjunction, *b.phrase.en]
    de = [*a.phrase.de, GermanWord("und", (conjunction,)), *b.phrase.de]
    return NounPhrase(Phrase(en, de), "p", "their", definite=True, heads=(first, second))


THINGS = tuple(n for n in NOUNS if n.adjectives and n.kinds.isdisjoint(("person", "animal")))
_VERBS_OF = {n: tuple(v for v in PLAIN_VERBS if n in v.subjects) for n in ANIMATE}
_PRONOUN_VERBS = tuple(v for v in PLAIN_VERBS if all(n in v.subjects for n in nouns_of("adult")))
_VERBS_ABOUT = {n: tuple(v for v in PLAIN_VERBS if n in v.objects and v.frame in ("acc", "dat", "prep")) for n in NOUNS}
_VERBS_AT = {
    n: tuple(v for v in PLAIN_VERBS if v.frame != "dir" and any(place[2] is n for place in v.places)) for n in NOUNS
}
_COLOURS = ("red", "white", "black", "new")  # never "very red"


def fits(verb: Verb, spec: ClauseSpec, person: str, negated: bool) -> bool:
    """Whether the verb can be used so: of the wanted kind, its past not read as a present, no `must fall asleep`."""
    if verb.kind not in spec.kinds:
        return False
    if spec.tense in MODALS:
        unwilled = verb.particle == "asleep" or verb.kind == "state" or verb.base == "arrive"
        return not unwilled and (spec.tense == "can" or verb.base not in ("see", "find"))
    return not (verb.base == verb.past and person != "s" and not negated and spec.tense in ("present", "past"))


def make_clause(rng: Random, spec: ClauseSpec, other: Clause | None = None) -> Clause:
    """A clause as specified that has neither subject nor verb in common with the other one it will be joined to."""
    while True:
        clause = _any_clause(rng, spec)
        if other is None or not _too_like(clause, other):
            return clause


def _too_like(clause: Clause, other: Clause) -> bool:
    """Same noun, same verb, or he/she beside Kind or Mädchen: er, sie or es?"""
    for first, second in ((clause, other), (other, clause)):
        neuter = second.noun is not None and second.noun.gender == "n" and second.subject.person == "s"
        if neuter and first.subject.pronoun and first.subject.person == "s":
            return True
    same_noun = clause.noun is not None and clause.noun is other.noun
    return same_noun or (clause.verb is not None and clause.verb is other.verb)


def _any_clause(rng: Random, spec: ClauseSpec) -> Clause:
    """A clause about people or animals, now and then about a state (the house is old)."""
    if "be" in spec.kinds and spec.tense not in MODALS and rng.random() < 0.14:
        return _copula_clause(rng, spec)
    subject, noun = make_subject(rng, spec)
    return clause_about(rng, spec, subject, noun)


def clause_about(rng: Random, spec: ClauseSpec, subject: NounPhrase, noun: Noun | None) -> Clause:
    """A clause with a given subject, which may be given a relative clause."""
    negated = subject.definite and spec.tense != "must" and rng.random() < spec.negation
    verbs = _VERBS_OF[noun] if noun else _PRONOUN_VERBS
    verb = pick(rng, verbs)
    while not fits(verb, spec, subject.person, negated):
        verb = pick(rng, verbs)
    clause = verb_clause(rng, spec, subject, noun, verb, negated)
    if noun and subject.relative and rng.random() < spec.relative:
        return replace(clause, subject=add_relative(rng, subject, noun, spec.tense))
    return clause


def verb_clause(
    rng: Random, spec: ClauseSpec, subject: NounPhrase, noun: Noun | None, verb: Verb, negated: bool, gap: str = ""
) -> Clause:
    """The clause of one verb; `gap` is what a relative pronoun has taken out of it: "object", "place" or nothing."""
    p = predicate(verb, spec.tense, subject.person, negated)
    slots = Slots()
    took_negation = gap != "object" and _add_objects(rng, spec, slots, verb, subject, p.negator)
    if p.negator and not took_negation:
        slots.negation.append(GermanWord("nicht", (p.negator,)))
    add_adverbials(rng, spec, slots, verb, subject, noun, negated, gap)
    after = slots.objects + p.en_after if slots.has_pronoun else p.en_after + slots.objects
    return Clause(
        subject=subject,
        predicate=p,
        noun=noun,
        verb=verb,
        aux=verb.aux if spec.tense == "past" else "",
        en=p.en_before + slots.frequency_en + p.en_main + after + slots.tail,
        middle=slots.middle(negated),
        front=slots.front,
        extraposed=slots.extraposed,
    )


def _add_objects(
    rng: Random, spec: ClauseSpec, slots: Slots, verb: Verb, subject: NounPhrase, negator: EnglishWord | None
) -> bool:
    """Adds what the verb governs; True if the negation went into it (kein)."""
    if not verb.objects:
        return False
    thing = pick(rng, verb.objects)
    while thing in subject.heads:
        thing = pick(rng, verb.objects)
    np_spec = NounPhraseSpec("acc", subject.owner, spec.detail, negator=negator, some=not subject.negated)
    if verb.frame == "prep":
        en, de, case = verb.preposition
        np = _object(rng, thing, np_spec._replace(case=case, only="definite" if negator else "", negator=None), subject)
        phrase = prepositional(en, de, np)
        slots.objects += phrase.en
        slots.complement += phrase.de
        _maybe_relative(rng, spec, slots, np, thing, verb)
        return False
    if verb.frame == "both":
        someone = pick(rng, PERSONS)
        while someone in subject.heads:
            someone = pick(rng, PERSONS)
        receiver = _object(rng, someone, np_spec._replace(case="dat", only="definite", negator=None), subject)
        slots.add_object(receiver, "dat")
        if receiver.pronoun:  # not "gives her books"
            np_spec = np_spec._replace(only="definite")
        np = noun_phrase(rng, thing, np_spec)
        slots.add_object(np, "acc")
        slots.has_pronoun = False  # it is not the last object
        return np.negated
    case = "dat" if verb.frame == "dat" else "acc"
    if verb.kind == "state":  # love
        np_spec = np_spec._replace(only="definite")
    np = _object(rng, thing, np_spec._replace(case=case), subject)
    slots.add_object(np, case)
    _maybe_relative(rng, spec, slots, np, thing, verb)
    return np.negated


def _object(rng: Random, noun: Noun, spec: NounPhraseSpec, subject: NounPhrase) -> NounPhrase:
    # An indefinite subject would rather follow a pronoun (gestern hat uns ein Mann geholfen): not made at all.
    if "person" in noun.kinds and subject.definite and rng.random() < 0.25:
        return object_pronoun(rng, spec.case, subject)
    return noun_phrase(rng, noun, spec)


def _maybe_relative(rng: Random, spec: ClauseSpec, slots: Slots, np: NounPhrase, noun: Noun, verb: Verb) -> None:
    """Gives the object a relative clause, in German behind the last verb (er will das Buch lesen, das ...)."""
    if not np.relative or np.negated or rng.random() >= spec.relative:
        return
    relative = make_relative(rng, np, noun, verb, spec.tense)
    if relative:
        slots.objects += relative.en
        slots.extraposed += [KOMMA, *relative.de, KOMMA]


def _copula_clause(rng: Random, spec: ClauseSpec) -> Clause:
    slots = Slots()
    thing = "thing" in spec.kinds and spec.tense != "future" and rng.random() < 0.4
    if thing:
        noun: Noun | None = pick(rng, THINGS)
        assert noun is not None
        subject = noun_phrase(rng, noun, NounPhraseSpec("nom", adjective=0.0, only="definite"))
        choices: tuple[Adjective, ...] = noun.adjectives
    else:
        subject, noun = make_subject(rng, spec._replace(detail=0.0))
        choices = ANIMAL_STATES if noun and "animal" in noun.kinds else STATES
        if spec.tense == "future":
            choices = choices[:-1]  # nobody plans to be sick
    negated = subject.definite and rng.random() < spec.negation
    clause = _copula(rng, spec, slots, subject, pick(rng, choices), negated, lasting=thing)
    clause.noun = None if thing else noun  # neither said again nor called he or she in a clause joined to it
    if noun and subject.relative and rng.random() < spec.relative:
        return replace(clause, subject=add_relative(rng, subject, noun, spec.tense))
    return clause


def _copula(
    rng: Random, spec: ClauseSpec, slots: Slots, subject: NounPhrase, state: Adjective, negated: bool, lasting: bool
) -> Clause:
    very = state.en not in _COLOURS and rng.random() < spec.detail * 0.5
    p = copula(spec.tense, subject.person, state, very, negated)
    if p.negator:
        slots.negation.append(GermanWord("nicht", (p.negator,)))
    if not lasting and spec.tense != "present":
        add_time(rng, spec, slots, subject, negated, "be")
    return Clause(
        subject=subject,
        predicate=p,
        en=p.en_before + p.en_main + slots.tail,
        middle=slots.middle(negated=False),
        front=slots.front,
    )


def add_relative(rng: Random, np: NounPhrase, noun: Noun, tense: str) -> NounPhrase:
    """The noun phrase with a relative clause that directly follows it."""
    relative = make_relative(rng, np, noun, None, tense)
    if relative is None:
        return np
    de = [*np.phrase.de, KOMMA, *relative.de, KOMMA]
    return np._replace(phrase=Phrase(np.phrase.en + relative.en, de))


def make_relative(rng: Random, np: NounPhrase, noun: Noun, outer: Verb | None, tense: str) -> Phrase | None:
    """A relative clause: gender and number from the noun, case from the clause; not with the verb of the outer one.

    None if the lexicon has nothing to say about the noun.
    """
    if tense not in ("present", "past"):
        tense = "present" if rng.random() < 0.5 else "past"
    spec = ClauseSpec(tense, detail=0.2, negation=0.08)
    about = tuple(v for v in _VERBS_ABOUT[noun] if v is not outer)
    gender = "p" if np.person == "p" else noun.gender
    roles = ["subject"] * ("person" in noun.kinds or "animal" in noun.kinds)
    roles += ["object"] * bool(about) + ["place"] * bool(_VERBS_AT[noun])
    if not roles:
        return None
    role = pick(rng, roles)
    if role == "subject":
        return subject_gap(rng, spec, np, noun, gender)
    if role == "object":
        return object_gap(rng, spec, noun, gender, pick(rng, about))
    return place_gap(rng, spec, noun, gender)


def subject_gap(rng: Random, spec: ClauseSpec, np: NounPhrase, noun: Noun, gender: str) -> Phrase:
    """the man who sleeps: der Mann, der schläft"""
    word = EnglishWord("who" if "person" in noun.kinds else "that")
    pronoun = Phrase([word], [GermanWord(german.RELATIVE["nom"][gender], (word,))])
    subject = NounPhrase(pronoun, np.person, np.owner, definite=True, pronoun=True, heads=np.heads)
    if rng.random() < 0.15:
        states = STATES if "person" in noun.kinds else ANIMAL_STATES
        clause = _copula(rng, spec, Slots(), subject, pick(rng, states), False, lasting=False)
    else:
        clause = clause_about(rng, spec, subject, noun)
    return Phrase(pronoun.en + clause.en, pronoun.de + final_verb(clause))


def _other_subject(rng: Random, verb: Verb, noun: Noun) -> tuple[NounPhrase, Noun | None]:
    if rng.random() < 0.3 and all(person in verb.subjects for person in nouns_of("adult")):
        return subject_pronoun(rng), None
    other = pick(rng, verb.subjects)
    while other is noun:
        other = pick(rng, verb.subjects)
    return noun_phrase(rng, other, NounPhraseSpec("nom", adjective=0.15, only="definite")), other


def object_gap(rng: Random, spec: ClauseSpec, noun: Noun, gender: str, verb: Verb) -> Phrase:
    """the man whom the dog follows: der Mann, dem der Hund folgt; the man for whom ...: der Mann, auf den ..."""
    subject, other = _other_subject(rng, verb, noun)
    if not fits(verb, spec, subject.person, False):
        spec = spec._replace(tense="future")
    clause = verb_clause(rng, spec, subject, other, verb, False, gap="object")
    person = "person" in noun.kinds
    if verb.frame == "prep":
        en, de, case = verb.preposition
        preposition, word = EnglishWord(en), EnglishWord("whom" if person else "which")
        pronoun = [GermanWord(de, (preposition,)), GermanWord(german.RELATIVE[case][gender], (word,))]
        english = [preposition, word]
    else:
        word = EnglishWord("whom" if person else "that")
        case = "dat" if verb.frame == "dat" else "acc"
        pronoun, english = [GermanWord(german.RELATIVE[case][gender], (word,))], [word]
    subject_phrase = clause.subject.phrase
    return Phrase(english + subject_phrase.en + clause.en, pronoun + subject_phrase.de + final_verb(clause))


def place_gap(rng: Random, spec: ClauseSpec, noun: Noun, gender: str) -> Phrase:
    """the house in which the cat sleeps: das Haus, in dem die Katze schläft"""
    verb = pick(rng, _VERBS_AT[noun])
    en, de, _ = pick(rng, [place for place in verb.places if place[2] is noun])
    subject, other = _other_subject(rng, verb, noun)
    if not fits(verb, spec, subject.person, False):
        spec = spec._replace(tense="future")
    clause = verb_clause(rng, spec, subject, other, verb, False, gap="place")
    preposition, word = english_words(en), EnglishWord("which")
    pronoun = [GermanWord(de, tuple(preposition)), GermanWord(german.RELATIVE["dat"][gender], (word,))]
    subject_phrase = clause.subject.phrase
    return Phrase(
        [*preposition, word, *subject_phrase.en, *clause.en], pronoun + subject_phrase.de + final_verb(clause)
    )
