"""Clauses: a subject, a predicate and what it governs, in English order and as German slots.

The German middle field, between the finite verb (or the conjunction) and the end of the clause, is filled in this
order; what is empty is left out:

    pronoun objects, time, definite dative, frequency, definite accusative, nicht, manner, place,
    indefinite objects, prepositional object or direction

In a negative clause time stands after the objects (er hat das Buch gestern nicht gelesen); `nie` stands where
`nicht` would. English: subject, auxiliary, frequency, verb, objects, company, manner, place, time.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from nmt.data.grammar.nouns import Noun
from nmt.data.grammar.phrases import NounPhrase
from nmt.data.grammar.predicates import Predicate
from nmt.data.grammar.tokens import Out, Phrase, Word
from nmt.data.grammar.verbs import Verb


class Want(NamedTuple):
    """What the sentence asks of a clause; the numbers are likelihoods."""

    tense: str  # present, past, future, can, must, want
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
    en: list[Word] = field(default_factory=list)  # after the subject
    middle: list[Out] = field(default_factory=list)
    front: Phrase | None = None
    extraposed: list[Out] = field(default_factory=list)  # the relative clause of the object: after the last verb


def main_clause(clause: Clause) -> Phrase:
    """Verb second: after the fronted adverbial if there is one, then the subject follows."""
    subject, p = clause.subject.phrase, clause.predicate
    rest = [*clause.middle, *([p.prefix] if p.prefix else []), *p.end, *clause.extraposed]
    if clause.front:
        front = clause.front
        return Phrase(front.en + subject.en + clause.en, [*front.de, p.finite, *subject.de, *rest])
    return Phrase(subject.en + clause.en, [*subject.de, p.finite, *rest])


def final_verb(clause: Clause) -> list[Out]:
    """The German clause after its subject, verb last: a prefix joins the finite verb (ankommt)."""
    p = clause.predicate
    finite = Out(p.prefix.text + p.finite.text, p.finite.of) if p.prefix else p.finite
    return [*clause.middle, *p.end, finite, *clause.extraposed]


def final_clause(clause: Clause) -> Phrase:
    """Verb last, as after weil and dass; the conjunction is not in it."""
    subject = clause.subject.phrase
    return Phrase(subject.en + clause.en, subject.de + final_verb(clause))


class Slots:
    """Collects the parts of a predicate: English in order, German by slot."""

    def __init__(self) -> None:
        self.front: Phrase | None = None
        self.objects: list[Word] = []
        self.tail: list[Word] = []
        self.frequency_en: list[Word] = []
        self.pronoun: list[Out] = []
        self.time: list[Out] = []
        self.dative: list[Out] = []
        self.frequency: list[Out] = []
        self.accusative: list[Out] = []
        self.negation: list[Out] = []
        self.manner: list[Out] = []
        self.place: list[Out] = []
        self.indefinite: list[Out] = []
        self.complement: list[Out] = []
        self.extraposed: list[Out] = []  # where this is filled, English ends: it would take more into it
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

    def middle(self, negated: bool) -> list[Out]:
        """The middle field in order."""
        early, late = ([], self.time) if negated else (self.time, [])
        objects = self.pronoun + early + self.dative + self.frequency + self.accusative + late
        return objects + self.negation + self.manner + self.place + self.indefinite + self.complement
