"""German inflection: articles, adjectives, nouns, pronouns and verbs.

Genders are "m", "f", "n" and, for every plural, "p"; cases "nom", "acc", "dat" (no construction here needs a genitive).
A finite verb agrees with a *person*: "I" (ich), "s" (third person singular) or "p" (wir and every plural).
"""

_ORDER = "mfnp"


def _table(nom: str, acc: str, dat: str) -> dict[str, dict[str, str]]:
    """case -> gender -> form, from one line a case in the order m f n p; `-` is the empty ending."""
    rows = {"nom": nom, "acc": acc, "dat": dat}
    return {
        case: {g: form.replace("-", "") for g, form in zip(_ORDER, row.split(), strict=True)}
        for case, row in rows.items()
    }


DEFINITE = _table("der die das die", "den die das die", "dem der dem den")
RELATIVE = _table("der die das die", "den die das die", "dem der dem denen")
DER_ENDING = _table("er e es e", "en e es e", "em er em en")  # dieser, jeder; viele, einige
EIN_ENDING = _table("- e - e", "en e - e", "em er em en")  # ein, kein, mein, unser

# What an adjective must still show depends on what the word before it has shown.
WEAK = _table("e e e en", "en e e en", "en en en en")  # after der, dieser, jeder
MIXED = _table("er e es en", "en e es en", "en en en en")  # after ein, kein, mein
STRONG = _table("er e es e", "en e es e", "em er em en")  # after nothing, zwei, viele

CONTRACTED = {
    ("in", "dem"): "im",
    ("an", "dem"): "am",
    ("in", "das"): "ins",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
}  # obligatory in place and direction phrases

PRONOUNS = {
    "I": {"nom": "ich", "acc": "mich", "dat": "mir"},
    "he": {"nom": "er", "acc": "ihn", "dat": "ihm"},
    "she": {"nom": "sie", "acc": "sie", "dat": "ihr"},
    "we": {"nom": "wir", "acc": "uns", "dat": "uns"},
    "they": {"nom": "sie", "acc": "sie", "dat": "ihnen"},
}

POSSESSIVES = {"my": "mein", "his": "sein", "her": "ihr", "our": "unser", "their": "ihr"}

# person -> form
HABEN = {"I": "habe", "s": "hat", "p": "haben"}
SEIN = {"I": "bin", "s": "ist", "p": "sind"}
WAR = {"I": "war", "s": "war", "p": "waren"}
WERDEN = {"I": "werde", "s": "wird", "p": "werden"}
MODALS = {
    "can": {"I": "kann", "s": "kann", "p": "können"},
    "must": {"I": "muss", "s": "muss", "p": "müssen"},
    "want": {"I": "will", "s": "will", "p": "wollen"},
}


def noun_form(singular: str, plural: str, oblique: str, gender: str, case: str) -> str:
    """The noun in a case: n-declension (den Jungen) by its oblique form, and -n in the dative plural."""
    if gender != "p":
        return singular if case == "nom" else oblique
    if case == "dat" and not plural.endswith(("n", "s")):
        return plural + "n"
    return plural


def present(infinitive: str, third: str, person: str) -> str:
    """The finite verb of the present: ich lese, er liest, wir lesen."""
    if person == "I":
        return "weiß" if infinitive == "wissen" else infinitive[:-2] + "e"
    return third if person == "s" else infinitive
