"""The verb of a clause in both languages: tense, auxiliaries, negation, and where the German parts will stand.

One tense of English is one tense of German: present -> Präsens (reads, liest), past -> Perfekt (read, hat gelesen;
but was -> war), will -> Futur with werden, can / must / want to -> können / müssen / wollen with the infinitive.

Alignment: an English auxiliary (will, did, can) is aligned to the German finite verb and the main verb to the
infinitive or participle; where only one language has an auxiliary, its verb is aligned to every part: bought -> hat,
gekauft; does buy -> kauft; gets up -> steht, auf. `to` of an infinitive goes with the infinitive.
"""

from typing import NamedTuple

from nmt.data.grammar import german
from nmt.data.grammar.nouns import Adjective
from nmt.data.grammar.tokens import Out, Word
from nmt.data.grammar.verbs import Verb

MODALS = ("can", "must", "want")


class Predicate(NamedTuple):
    """English before and at the main verb; German finite verb and what stands at the end of the clause."""

    en_before: list[Word]  # auxiliary and "not"; a frequency adverb follows
    en_main: list[Word]  # main verb, with "to" and with a particle that stays by it
    en_after: list[Word]  # a particle that follows a pronoun: picks him up
    finite: Out
    prefix: Out | None  # separated in a main clause, joined to the finite verb in a verb-final one
    end: list[Out]  # participle, infinitive
    negator: Word | None  # the English "not", still to be given a German word


def predicate(verb: Verb, tense: str, person: str, negated: bool) -> Predicate:
    """The verb in a tense, agreeing with a subject of this person; must is never negated (it is not müssen + nicht)."""
    particle = [Word(verb.particle)] if verb.particle else []
    if tense == "present":
        before, main, finite, end, negator = _present(verb, person, negated, particle)
    elif tense == "past":
        before, main, finite, end, negator = _past(verb, person, negated, particle)
    elif tense == "future":
        before, main, finite, end, negator = _future(verb, person, negated, particle)
    else:
        before, main, finite, end, negator = _modal(verb, tense, person, negated, particle)
    prefix = Out(verb.prefix, (main[-1], *particle)) if verb.prefix and tense == "present" else None
    if verb.shifts:
        return Predicate(before, main, particle, finite, prefix, end, negator)
    return Predicate(before, main + particle, [], finite, prefix, end, negator)


_Parts = tuple[list[Word], list[Word], Out, list[Out], Word | None]


def _negation(auxiliary: str, negated: bool) -> tuple[list[Word], Word | None]:
    """An auxiliary and, if wanted, `not`."""
    negator = Word("not") if negated else None
    return [Word(auxiliary)] + ([negator] if negator else []), negator


def _present(verb: Verb, person: str, negated: bool, particle: list[Word]) -> _Parts:
    form = german.present(verb.infinitive, verb.third, person)
    if negated:
        before, negator = _negation("does" if person == "s" else "do", True)
        main = Word(verb.base)
        return before, [main], Out(form, (before[0], main, *particle)), [], negator
    main = Word(verb.third_en if person == "s" else verb.base)
    return [], [main], Out(form, (main, *particle)), [], None


def _past(verb: Verb, person: str, negated: bool, particle: list[Word]) -> _Parts:
    form = (german.SEIN if verb.aux == "sein" else german.HABEN)[person]
    if negated:
        before, negator = _negation("did", True)
        main = Word(verb.base)
        return before, [main], Out(form, (before[0],)), [Out(verb.participle, (main, *particle))], negator
    main = Word(verb.past)
    of = (main, *particle)
    return [], [main], Out(form, of), [Out(verb.participle, of)], None


def _future(verb: Verb, person: str, negated: bool, particle: list[Word]) -> _Parts:
    before, negator = _negation("will", negated)
    main = Word(verb.base)
    end = [Out(verb.prefix + verb.infinitive, (main, *particle))]
    return before, [main], Out(german.WERDEN[person], (before[0],)), end, negator


def _modal(verb: Verb, modal: str, person: str, negated: bool, particle: list[Word]) -> _Parts:
    form = german.MODALS[modal][person]
    main = Word(verb.base)
    infinitive = verb.prefix + verb.infinitive
    if modal != "want":
        finite = Word("cannot" if negated else modal)
        end = [Out(infinitive, (main, *particle))]
        return [finite], [main], Out(form, (finite,)), end, finite if negated else None
    to = Word("to")
    end = [Out(infinitive, (to, main, *particle))]
    if negated:
        before, negator = _negation("does" if person == "s" else "do", True)
        want = Word("want")
        return before, [want, to, main], Out(form, (before[0], want)), end, negator
    want = Word("wants" if person == "s" else "want")
    return [], [want, to, main], Out(form, (want,)), end, None


_BE = {
    "present": ({"I": "am", "s": "is", "p": "are"}, german.SEIN),
    "past": ({"I": "was", "s": "was", "p": "were"}, german.WAR),
}


def copula(tense: str, person: str, adjective: Adjective, very: bool, negated: bool) -> Predicate:
    """is (not) (very) tired; the German adjective stands at the end: `..., weil er sehr müde ist`."""
    negator = Word("not") if negated else None
    adverb = [Word("very")] if very else []
    state = Word(adjective.en)
    end = [Out("sehr", (word,)) for word in adverb] + [Out(adjective.de, (state,))]
    if tense == "future":
        will, be = Word("will"), Word("be")
        finite = Out(german.WERDEN[person], (will,))
        end.append(Out("sein", (be,)))
        before = [will] + ([negator] if negator else []) + [be]
    else:
        en, de = _BE[tense]
        verb = Word(en[person])
        finite = Out(de[person], (verb,))
        before = [verb] + ([negator] if negator else [])
    return Predicate(before, [*adverb, state], [], finite, None, end, negator)
