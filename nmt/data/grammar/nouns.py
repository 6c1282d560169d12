"""The nouns and adjectives of the default lexicon.

A noun names the adjectives that may stand before it, and its kinds say which verbs may take it: that is what keeps
the sentences sensible. A verb may also ask for one noun by its own English name.
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
    wanted = frozenset(kinds.split())
    return tuple(noun for noun in NOUNS if not noun.kinds.isdisjoint(wanted))


# States that a person or an animal may be in ("is tired"); things are described by their own adjectives.
STATES = tuple(ADJECTIVES[a] for a in ("tired", "hungry", "happy", "sad", "sick"))
ANIMAL_STATES = tuple(ADJECTIVES[a] for a in ("tired", "hungry", "sick"))
