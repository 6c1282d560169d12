"""The embedded corpus: a grammar in code that makes English-German sentence pairs with their word alignment.

One English sentence has one German translation. English is in lower case but for `I`, German keeps its noun capitals;
neither has a full stop, and commas are words of their own.

Alignment rules (0-based word positions, by construction): article to article, noun to noun, preposition to preposition
(`next to` both to `neben`; im to `in` and `the`); an English verb to every part of its German verb, as separable
prefix or Perfekt auxiliary; an auxiliary to the finite verb, the main verb then to infinitive or participle; `not` to
nicht or, with its article, to kein; commas to nothing. Details stand in `phrases`.

From the word up: `lexicon`, `german` (inflection), `phrases` (with tenses and the order of a clause), `clauses`
(objects, adverbials, relative clauses), `sentences` (coordination, subordination, length), `generator` (the splits).
"""

from nmt.data.grammar.generator import GrammarCorpus

__all__ = ["GrammarCorpus"]
