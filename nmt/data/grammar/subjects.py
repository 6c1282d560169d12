"""Who a clause is about: a pronoun, two people, or a person or animal."""

from random import Random

from nmt.data.grammar.clauses import Want
from nmt.data.grammar.nouns import Noun, nouns_of
from nmt.data.grammar.phrases import NounPhrase, Wish, noun_phrase, pick, subject_pronoun
from nmt.data.grammar.tokens import Out, Phrase, Word

PERSONS = nouns_of("person")
ANIMATE = nouns_of("person animal")


def make_subject(rng: Random, want: Want, nouns: tuple[Noun, ...] = ANIMATE) -> tuple[NounPhrase, Noun | None]:
    """A subject and its noun; no noun for a pronoun or for two people."""
    r = rng.random()
    if r < 0.2:
        return subject_pronoun(rng), None
    # neither `while no dog plays` nor `before every dog plays`: such clauses are wanted without negation and time;
    # nor `no dog must sleep`: that is not `muss` but `darf`
    negative = want.negation and want.tense != "must"
    only = "any subject" if negative else "subject" if want.time else ""
    wish = Wish("nom", adjective=want.detail, only=only)
    if r < 0.2 + 0.12 * want.detail:
        first, second = pick(rng, PERSONS), pick(rng, PERSONS)
        if first is not second:
            return _pair(rng, first, second, wish), None
    noun = pick(rng, nouns)
    return noun_phrase(rng, noun, wish), noun


def _pair(rng: Random, first: Noun, second: Noun, wish: Wish) -> NounPhrase:
    """Two people are plural together."""
    wish = wish._replace(only="definite")
    a, b = noun_phrase(rng, first, wish), noun_phrase(rng, second, wish)
    conjunction = Word("and")
    en = [*a.phrase.en, conjunction, *b.phrase.en]
    de = [*a.phrase.de, Out("und", (conjunction,)), *b.phrase.de]
    return NounPhrase(Phrase(en, de), "p", "their", definite=True, heads=(first, second))
