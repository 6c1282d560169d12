"""The lexicon: nouns, adjectives, verbs with what they govern, adverbs and adverbials of time.

A noun names the adjectives that may stand before it, and its kinds say which verbs may take it: that keeps the
sentences sensible. A verb may also ask for one noun by its English name. A verb's *frame* says what it takes: nothing,
an accusative or dative object, both, a prepositional object with its case, a place (sit), a direction (go into), or a
that-clause.
"""

from dataclasses import dataclass


@dataclass(frozen=True, eq=False)  # compared by identity: hashing must cost nothing
class Adjective:
    """English form, German predicate form (teuer) and the stem that takes endings (teur-)."""

    en: str
    de: str
    stem: str


@dataclass(frozen=True, eq=False)
class Noun:
    """A noun of both languages; `en_plural` is empty where only the singular is used; `mass` nouns take no `a`."""

    en: str
    en_plural: str
    de: str
    de_plural: str
    oblique: str  # singular accusative and dative: differs from `de` in the n-declension only
    gender: str
    kinds: frozenset[str]
    adjectives: tuple[Adjective, ...]
    mass: bool
    kin: bool  # always somebody's: my brother, never the brother


_ADJECTIVES = """
old alt; young jung; big groß; small klein; new neu; beautiful schön; good gut; friendly freundlich; clever klug;
tired müde müd; hungry hungrig; happy glücklich; sad traurig; sick krank; red rot; white weiß; black schwarz;
fresh frisch; warm warm; cold kalt; expensive teuer teur; heavy schwer; long lang; dark dunkel dunkl; quiet ruhig;
interesting interessant
"""

_ADULT = "old young friendly tired hungry happy sad sick"
_CHILD = "small clever friendly tired hungry happy sad sick"
_ANIMAL = "old young big small black white tired hungry sick"

# English singular, plural | German singular, plural[, oblique] | gender | kinds | adjectives
_NOUNS = f"""
man men | Mann Männer | m | person adult | {_ADULT}
woman women | Frau Frauen | f | person adult | {_ADULT} clever
child children | Kind Kinder | n | person child | {_CHILD}
boy boys | Junge Jungen Jungen | m | person child | {_CHILD}
girl girls | Mädchen Mädchen | n | person child | {_CHILD}
teacher teachers | Lehrer Lehrer | m | person adult | {_ADULT} good clever
doctor doctors | Arzt Ärzte | m | person adult | {_ADULT} good clever
farmer farmers | Bauer Bauern Bauern | m | person adult | {_ADULT}
friend friends | Freund Freunde | m | person adult | old good tired happy sad sick
brother brothers | Bruder Brüder | m | person adult kin | big small clever tired hungry sick
sister sisters | Schwester Schwestern | f | person adult kin | big small clever tired hungry sick
mother - | Mutter - | f | person adult kin | old tired sick
father - | Vater - | m | person adult kin | old tired sick
dog dogs | Hund Hunde | m | animal pet runner | {_ANIMAL}
cat cats | Katze Katzen | f | animal pet runner | {_ANIMAL}
horse horses | Pferd Pferde | n | animal runner | {_ANIMAL} beautiful
bird birds | Vogel Vögel | m | animal | small big beautiful black white young
book books | Buch Bücher | n | readable portable goods gift | old new good interesting expensive long heavy
letter letters | Brief Briefe | m | readable portable | old long interesting
newspaper newspapers | Zeitung Zeitungen | f | readable portable | old new interesting
picture pictures | Bild Bilder | n | goods gift showable | old new beautiful small big expensive
apple apples | Apfel Äpfel | m | food goods gift | red small big fresh
bread - | Brot - | n | food goods mass | fresh old warm good
soup - | Suppe - | f | food mass | warm cold good
water - | Wasser - | n | drink mass | fresh warm cold
milk - | Milch - | f | drink goods mass | fresh warm cold
tea - | Tee - | m | drink goods mass | warm cold good
car cars | Auto Autos | n | machine goods | old new red black white big small expensive
key keys | Schlüssel Schlüssel | m | portable | small old new big
bag bags | Tasche Taschen | f | portable goods gift | heavy old new red black big small expensive
door doors | Tür Türen | f | openable | old new white heavy
window windows | Fenster Fenster | n | openable | old new big small
table - | Tisch - | m | furniture | old new big small
bench - | Bank - | f | furniture | old new small long
tree - | Baum - | m | outdoors | old big small beautiful
house houses | Haus Häuser | n | place building showable | old new big small beautiful white expensive
garden - | Garten - | m | place building showable | old big small beautiful quiet
kitchen - | Küche - | f | place building | old new big small warm
room - | Zimmer - | n | place building | big small warm cold dark quiet
school - | Schule - | f | place | old new big small
church - | Kirche - | f | place | old big small beautiful
park - | Park - | m | place | old big small beautiful quiet
forest - | Wald - | m | place | old big dark beautiful quiet
village - | Dorf - | n | place | old small beautiful quiet
city - | Stadt - | f | place | old big beautiful
station - | Bahnhof - | m | place | old new big small
"""


def _adjectives() -> dict[str, Adjective]:
    rows = [row.split() for row in _ADJECTIVES.split(";")]
    return {row[0]: Adjective(row[0], row[1], row[-1]) for row in rows}


ADJECTIVES = _adjectives()


def _noun(line: str) -> Noun:
    english, german, gender, kinds, adjectives = (part.split() for part in line.split("|"))
    singular, plural = (form.replace("-", "") for form in english)
    return Noun(
        en=singular,
        en_plural=plural,
        de=german[0],
        de_plural=german[1],
        oblique=german[2] if len(german) == 3 else german[0],
        gender=gender[0],
        kinds=frozenset([*kinds, singular]),
        adjectives=tuple(ADJECTIVES[a] for a in adjectives),
        mass="mass" in kinds,
        kin="kin" in kinds,
    )


NOUNS = tuple(_noun(line) for line in _NOUNS.strip().split("\n"))
NOUN = {noun.en: noun for noun in NOUNS}


def nouns_of(kinds: str) -> tuple[Noun, ...]:
    """The nouns, in lexicon order, that are of at least one of the kinds (or bear one of the names)."""
    names = frozenset(kinds.split())
    return tuple(noun for noun in NOUNS if not noun.kinds.isdisjoint(names))


# States that a person or an animal may be in ("is tired"); things are described by their own adjectives.
STATES = tuple(ADJECTIVES[a] for a in ("tired", "hungry", "happy", "sad", "sick"))
ANIMAL_STATES = tuple(ADJECTIVES[a] for a in ("tired", "hungry", "sick"))


Place = tuple[str, str, Noun]  # English preposition, German preposition, noun


@dataclass(frozen=True, eq=False)
class Verb:
    """A verb of both languages; `infinitive`, `third` and `participle` are German, `prefix` is separable."""

    base: str
    third_en: str
    past: str
    particle: str  # up, asleep, for
    shifts: bool  # "picks him up", but "looks for him"
    infinitive: str  # without the prefix
    third: str
    participle: str  # with the prefix
    aux: str  # haben or sein
    prefix: str
    subjects: tuple[Noun, ...]
    frame: str  # none acc dat both prep sit dir that
    objects: tuple[Noun, ...]
    preposition: tuple[str, str, str]  # English, German, German case; for frame "prep"
    places: tuple[Place, ...]
    open_places: tuple[Place, ...]  # where a horse, a cow or a bird may be
    manner: tuple[str, ...]
    kind: str  # lasting (while), point (a moment), once (never daily), state (not timed)


_PREPOSITIONS = dict(
    row.split()
    for row in "in in; on auf; at an; under unter; behind hinter; next-to neben; in-front-of vor; into in; to zu".split(
        ";"
    )
)
_OPEN = ("garden", "park", "forest", "village", "tree")
_PLACE_SETS = {
    "-": "",
    "rest": "in:garden in:house in:room under:tree on:bench behind:house",
    "home": "in:garden in:kitchen in:house in:park in:room",
    "read": "in:garden in:kitchen in:park in:room on:bench under:tree at:window in:school",
    "meal": "in:garden in:kitchen in:park on:bench at:table under:tree",
    "out": "in:garden in:park in:forest in:village in:city behind:house in-front-of:school at:station",
    "job": "in:garden in:kitchen in:school in:city in:village in:forest at:station",
    "play": "in:garden in:park in:forest behind:house under:tree in-front-of:house",
    "sing": "in:garden in:kitchen in:church in:park under:tree in:school",
    "town": "in:city in:village",
    "station": "at:station in:village in:city",
    "sit": "on:bench at:table under:tree at:window next-to:window in-front-of:house behind:house",
    "live": "in:city in:village in:house next-to:school next-to:church next-to:station",
    "into": "into:house into:garden into:kitchen into:room into:forest into:church",
    "to": "to:station to:doctor to:church to:school",
    "wait": "at:station in:park in-front-of:school in-front-of:church behind:house under:tree",
}

# English base third past[ particle] | German infinitive third participle aux[ prefix] | subjects | frame | objects
# | places | manner | kind.  A preposition in the frame is English:German:case; `+` after a particle: it shifts.
_VERBS = """
sleep sleeps slept | schlafen schläft geschlafen haben | person animal | none | - | rest | well | lasting
sing sings sang | singen singt gesungen haben | person bird | none | - | sing | loudly quietly well | lasting
work works worked | arbeiten arbeitet gearbeitet haben | adult | none | - | job | slowly | lasting
play plays played | spielen spielt gespielt haben | child pet | none | - | play | - | lasting
arrive arrives arrived | kommen kommt angekommen sein an | person | none | - | station | - | point
get gets got up | stehen steht aufgestanden sein auf | person | none | - | - | slowly | point
fall falls fell asleep | schlafen schläft eingeschlafen sein ein | person pet | none | - | rest | - | point
go goes went | gehen geht gegangen sein | person | dir | - | to | slowly | point
run runs ran | laufen läuft gelaufen sein | person runner | dir | - | into | quickly | point
sit sits sat | sitzen sitzt gesessen haben | person | sit | - | sit | - | lasting
live lives lived | wohnen wohnt gewohnt haben | person | sit | - | live | - | state
see sees saw | sehen sieht gesehen haben | person animal | acc | person animal | out | - | point
read reads read | lesen liest gelesen haben | person | acc | readable | read | slowly | lasting
eat eats ate | essen isst gegessen haben | person | acc | food | meal | slowly | lasting
drink drinks drank | trinken trinkt getrunken haben | person | acc | drink | meal | slowly | lasting
buy buys bought | kaufen kauft gekauft haben | adult | acc | goods horse | town | - | once
look looks looked for | suchen sucht gesucht haben | person | acc | person animal portable | out | - | lasting
open opens opened | öffnen öffnet geöffnet haben | person | acc | openable letter bag | - | slowly | point
love loves loved | lieben liebt geliebt haben | person | acc | person pet | - | - | state
invite invites invited | laden lädt eingeladen haben ein | adult | acc | person | - | - | point
phone phones phoned | rufen ruft angerufen haben an | person | acc | adult | - | - | point
pick picks picked up+ | holen holt abgeholt haben ab | adult | acc | person | station | - | point
repair repairs repaired | reparieren repariert repariert haben | adult | acc | machine | town | slowly | lasting
help helps helped | helfen hilft geholfen haben | person | dat | person | home | - | lasting
follow follows followed | folgen folgt gefolgt sein | person runner | dat | person runner | - | slowly | once
listen listens listened to | hören hört zugehört haben zu | person | dat | person | - | - | lasting
give gives gave | geben gibt gegeben haben | person | both | gift key letter | - | - | point
show shows showed | zeigen zeigt gezeigt haben | person | both | showable readable pet | - | - | point
wait waits waited | warten wartet gewartet haben | person pet | prep for:auf:acc | person | wait | - | lasting
speak speaks spoke | sprechen spricht gesprochen haben | person | prep with:mit:dat | person | home | quietly | lasting
think thinks thought | denken denkt gedacht haben | person | prep of:an:acc | person | - | - | lasting
say says said | sagen sagt gesagt haben | person | that | - | - | - | point
know knows knew | wissen weiß gewusst haben | person | that | - | - | - | state
hope hopes hoped | hoffen hofft gehofft haben | person | that | - | - | - | state
"""


def _place(spec: str) -> Place:
    preposition, noun = spec.split(":")
    return preposition.replace("-", " "), _PREPOSITIONS[preposition], NOUN[noun]


def _verb(line: str) -> Verb:
    english, german, subjects, frame, objects, places, manner, kind = (part.strip() for part in line.split("|"))
    base, third_en, past, *particle = english.split()
    infinitive, third, participle, aux, *prefix = german.split()
    name, *preposition = frame.split()
    en_preposition, de_preposition, case = preposition[0].split(":") if preposition else ("", "", "")
    spots = tuple(_place(spec) for spec in _PLACE_SETS[places].split())
    return Verb(
        base=base,
        third_en=third_en,
        past=past,
        particle="".join(particle).rstrip("+"),
        shifts="".join(particle).endswith("+"),
        infinitive=infinitive,
        third=third,
        participle=participle,
        aux=aux,
        prefix="".join(prefix),
        subjects=nouns_of(subjects),
        frame=name,
        objects=nouns_of(objects),
        preposition=(en_preposition, de_preposition, case),
        places=spots,
        open_places=tuple(spot for spot in spots if spot[2].en in _OPEN or spot[0] == "behind"),
        manner=tuple(manner.replace("-", "").split()),
        kind=kind,
    )


VERBS = tuple(_verb(line) for line in _VERBS.strip().split("\n"))
THAT_VERBS = tuple(verb for verb in VERBS if verb.frame == "that")
PLAIN_VERBS = tuple(verb for verb in VERBS if verb.frame != "that")

PERSONS, ADULTS, ANIMATE = nouns_of("person"), nouns_of("adult"), nouns_of("person animal")
THINGS = tuple(n for n in NOUNS if n.adjectives and n.kinds.isdisjoint(("person", "animal")))
VERBS_OF = {n: tuple(v for v in PLAIN_VERBS if n in v.subjects) for n in ANIMATE}
PRONOUN_VERBS = tuple(v for v in PLAIN_VERBS if all(n in v.subjects for n in ADULTS))
VERBS_ABOUT = {n: tuple(v for v in PLAIN_VERBS if n in v.objects and v.frame in ("acc", "dat", "prep")) for n in NOUNS}
VERBS_AT = {n: tuple(v for v in PLAIN_VERBS if v.frame != "dir" and n in (at[2] for at in v.places)) for n in NOUNS}

MANNER = {"well": "gut", "loudly": "laut", "quietly": "leise", "slowly": "langsam", "quickly": "schnell"}

# tense -> (English, German, the German word under each English word, may stand with "not")
TIMES = {
    "present": (
        ("every day", "jeden Tag", (0, 1), False),
        ("every evening", "jeden Abend", (0, 1), False),
        ("in the evening", "am Abend", (0, 0, 1), False),
    ),
    "past": (
        ("yesterday", "gestern", (0,), True),
        ("last week", "letzte Woche", (0, 1), True),
    ),
    "future": (
        ("tomorrow", "morgen", (0,), True),
        ("next week", "nächste Woche", (0, 1), True),
        ("soon", "bald", (0,), False),
    ),
}
# English adverb (before the verb) -> German; "never" negates, so it stands where "nicht" would
FREQUENCY = {"often": "oft", "always": "immer", "sometimes": "manchmal", "never": "nie"}

# verb -> preposition and company or beneficiary that may be added: plays with the dog, buys a book for the child
EXTRAS = {
    "play": ("with", "mit", "dat", nouns_of("child pet")),
    "sing": ("with", "mit", "dat", nouns_of("person")),
    "work": ("with", "mit", "dat", nouns_of("adult")),
    "buy": ("for", "für", "acc", nouns_of("person")),
}
