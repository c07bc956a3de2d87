"""Writes docs/scrambles.md from the registry of scramble types: ``python -m tests.write_scramble_page``."""

from __future__ import annotations

from pathlib import Path

from stimuli.lexicon import REAL_WORD_ZIPF
from stimuli.scramble.published import protocols
from stimuli.scramble.sentences import FREQUENT
from stimuli.scramble.text import scramble_conditions
from stimuli.scramble.types import BUILT_IN, REFERENCES, Option, ScrambleType, parse_operation
from stimuli.words import scramble_data

PAGE = Path(__file__).resolve().parent.parent / "docs" / "scrambles.md"
EXAMPLE = "The company asks parents to check 3.5 kg of toys. Some were sold at home."
SEED = 7


def _with_ordinals(how: str) -> str:
    languages = scramble_data("abbreviations")["languages"]
    return ", ".join(sorted(one for one, known in languages.items() if known.get("ordinals") == how))


INTRODUCTION = f"""# Scrambles

Made from the registry of types by `python -m tests.write_scramble_page`; do not edit by hand.

A type is written `family: position` in a study and `family:position` on the command line; options follow:

```yaml
initial:  {{transpose: initial}}
far:      {{transpose: internal, distance: 2, letters: consonants, rate: 0.5}}
control:  {{substitute: internal, distance: 2, letters: consonants, rate: 0.5}}
third:    {{transpose: 3}}                      # letters 3 and 4
typos:    {{type: KF&Adj, texts: 0.6, rate: 0.3}}   # papers' names
```

```text
transpose:internal(distance=2,letters=consonants)@0.5      RS-50      REO-INT_2      KF&Adj@0.3;texts=0.6
```

## What holds for every type

- **Words.** A word is a run of letters, joined across apostrophes; letters are grapheme clusters, so NFC and NFD input
  give the same result. Only letters of its longest part between apostrophes change (`don` of `don't`); digits stay, and so do
  web and mail addresses and names of files (`bbc.co.uk`, `foo.io/x`, `user@host.de`, `report.pdf`), told by a list of
  top-level domains and file endings. `end.Next` stays two words; ends that are words as well (`in`, `it`, `news`) make an
  address only with another sign of one: a path, a further part, a digit or a hyphen (`amazon.it/x`, but not `amazon.it`).
  Paths (`C:\\data\\file.txt`, `/usr/bin/x`, `../x`), digital object identifiers (`10.1000/xyz123`), handles and hashtags
  (`@name`, `#tag`) stay too; `and/or`, `C#` and `tod@s` are words.
- **Scripts without spaces** (Chinese, Japanese, Thai, Lao, Khmer, Burmese): a run of letters may be several words, and we
  cannot cut it. It stays, with the reason `script written without spaces`, unless `unspaced: change` takes it as one word;
  put spaces between the words to have them changed one by one.
- **Draws.** Each word has draws of its own that hang on the seed, the item (or the text and how often it came before) and the
  word's place. A result does not depend on what else is scrambled, in which order or process.
- **rate** is the share of the eligible words that change (of the sentences, where words move), to the nearest whole word. The words
  of a lower rate are among those of a higher one, with the same forms.
- **texts** is the share of texts that change at all. Each text has its own draw, so the texts of a lower share are among those of
  a higher one; a list meets the share on average only, since a text's draw must not hang on the others
  (`wrods scramble --summary` tells the share met).
- **eligibility: common** (default) changes the same words in every condition, those that each condition can change; `own` lets
  every condition follow its own rule, as the papers do. Conditions that move words share sentences likewise.
- **Never the original** where another form exists, and, where the language has a word list, never a real word unless
  `avoid_real_words: false`: one whose Zipf frequency in wordfreq's list is {REAL_WORD_ZIPF:g} or more (frequent misspellings
  such as `teh` among them). Where nothing else is left the word stays and `left_intact` gives the reason.
- **Capitals** stay at their place in the word (default) or `move` with their letter. In a word of another length a place
  counts from the beginning; in words of capitals new letters are capitals.
- **Substitutions control for transpositions**: of the same position, distance and letter class they replace exactly the pair that
  the transposition exchanges, by letters that are neither of the two and not alike; vowels by vowels and consonants by
  consonants unless `cv: any`. `shape: keep` takes letters of the same outline (ascender, descender, neither), `shape: change`
  letters of another. Where a study has both types, the first drawn pair that suits both is taken.
  Under `own` they share a pair wherever some pair suits both; where none does each takes its own (the permutations tell), and
  types drawn in different runs may differ likewise. Options under which no word could change are refused.
- **Insertions and deletions** are true ones, of at most half of a word's letters. New letters come from the language's alphabet.
- **New letters** are of the word's own script: a word of another than the language's alphabet (`Привет` in an English text) stays,
  with the reason `another script than the language's`.
- **count** (exchanges, insertions, deletions) is made in full or the word stays, with a reason such as
  `takes fewer than 4 exchanges`: a word of four letters has two inner ones and takes one exchange. So levels of a count
  change the same words, each by its own number. `fewer: make` makes as many as a word can take; under `eligibility: own` that
  is the default (`fewer: auto`), as in the papers. Then `wrods build` shows how many words took fewer, `wrods scramble`
  tells it on standard error, and `--changes` gives `made` and `asked` for every word.
- **spaced: true** shows a changed word with a gap between every two characters, so that tokenizers see letters; the
  control `space: letters` does it to intact words. Spaces between words stay, and the **gap** differs from them, so that word
  boundaries are kept: `dot` (middle dot, default), `narrow` (narrow no-break space), `no_break`, or `space`, which loses
  the boundaries. See below for what tokenizers and pages make of them.
- **Words that move** take the places of words: marks, spaces and a capital at the sentence's beginning stay. The word that
  leaves the front keeps its capital if it has further ones, stands with one inside a sentence of the same text, or is a name
  of our list, an address, a noun of a language that writes nouns so (German: all but words of a list), rare (Zipf frequency
  under {FREQUENT:g}) or followed by another capital; words of a list of small ones, words seen small in the text, and
  frequent words lose it. In a language with neither list it stays. So a rare common word can keep a capital, and an unlisted
  frequent name can lose it; `capitals: move` leaves all as written. The word that comes gets the capital, but for
  addresses, abbreviations with full stops, and words such as iPhone. Abbreviations and ordinal numbers take their full stop along;
  it is never doubled. Abbreviations of several parts (`z. B.`, `av. J.-C.`, `EE. UU.`, `т. е.`) are one word with the
  spaces in them, ordinary, no-break or thin. An apostrophe goes with its word where it is part of it (`nations'`, `'fore`,
  `’90s`, `rock 'n' roll`, `po’`): after s, x or z and in listed words, unless it closes a single quotation mark that has
  opened in the sentence.
- **Sentences that move** keep their marks and are joined by the separators that stood between them. A sentence ends with its
  mark before a space and with its line; not inside numbers (`3.5`, `1,250`), after abbreviations, initials or before a small
  letter. `p.m.`, `U.S.`, `n. Chr.` and a capital after a small word (`plan B.`) end it before a word that is written small
  inside sentences (`p.m. She`, but not `U.S. Army` and, since nothing tells, not `p.m. I`); `etc.`, `usw.` and the like
  before any capital. Quotes and brackets that close after the mark belong to the sentence (`„Komm her.“`, `»…«`,
  `« Viens ici. »`, `「…」`). Speech goes on before a small letter and before a dash with one (`«Иди!» — сказал он`). `。！？` and
  `।` need no space, `؟ ۔ ॥ ։ ።` do; `;` is a question mark in Greek only, `¿` and `¡` open a sentence and stay at its front.
- **Ordinal numbers** (`Der 2. Weltkrieg`). After a number of one to three digits and a full stop nothing but sense tells an
  ordinal from an end. In {_with_ordinals("capital")} (where the next word may have a capital of its own; Roman numbers likewise) the
  sentence goes on unless the next word is one that is written small inside sentences: `Er wurde 2. Danach ging er.` is
  cut, `Er wurde 2. Peter ging.` is not, for two sentences that stay together do less harm than one that is torn. In
  {_with_ordinals("small")} a capital after the number begins a sentence, a small letter or a number does not. In any language
  a number that opens a line, and the next one up (`1. Dogs bark. 2. Cats sleep.`), belongs to the sentence after it.
- **min_letters**, **spaced**, **gap** and **unspaced** are options of every letter type.
"""

GAPS_TOLD = """## Gaps between letters

Measured with small tokenizers of five kinds, trained on these pages (`tests/stimuli/test_scramble_gaps.py`); *sees* means that a
word's end changes the tokens. With every gap a spaced scramble and its control differ by at most a tenth of their tokens.

| gap | byte-level BPE (as GPT) | sentence pieces (as Gemma) | folded to NFKC (as T5) | WordPiece (as BERT) | on a page |
| --- | --- | --- | --- | --- | --- |
| `dot` | sees; a token a dot | sees | sees | sees | dots; a word is never broken |
| `narrow` | sees; two tokens a gap | sees | does not | does not | narrower than a space, but not in fonts of one width |
| `no_break` | sees; a token a gap | sees | does not | does not | as wide as a space; a word is never broken |
| `space` | does not; the gap joins its letter | does not | does not | does not | as a space; lines break inside words |
"""


def scramble_page() -> str:
    alphabets = ", ".join(sorted(scramble_data("letters")["languages"]))
    abbreviations = ", ".join(sorted(scramble_data("abbreviations")["languages"]))
    return "\n".join(
        [
            INTRODUCTION,
            f"Alphabets, vowels and consonants are known for {alphabets}; a type or option that needs them refuses other",
            f"languages. Abbreviations are known for {abbreviations}.",
            "",
            *_section("Letters change their order", "letter", ("none", "reorder")),
            *_section(
                "Letters are replaced, put in or taken out", "letter", ("substitute", "insert", "delete")
            ),
            GAPS_TOLD,
            *_section("Words change their order", "word", ("reorder",)),
            *_section("Sentences change their order", "sentence", ("reorder",)),
            "## Names of the papers\n",
            "| name | is | source |",
            "| --- | --- | --- |",
            *[
                f"| {name} | `{parse_operation(name).label}` | {kind.source} |"
                for kind in BUILT_IN
                for name in kind.names[1:]
            ],
            "",
            *_published(),
            "## Sources\n",
            *[f"- {short}: {work}." for short, work in sorted(REFERENCES.items())],
            "",
        ]
    )


def _section(title: str, unit: str, operations: tuple[str, ...]) -> list[str]:
    kinds = [kind for kind in BUILT_IN if kind.unit == unit and kind.operation in operations]
    return [
        f"## {title}\n",
        *([f"> {EXAMPLE}\n"] if "none" in operations else []),
        "| type | changes | options | example | source |",
        "| --- | --- | --- | --- | --- |",
        *[_row(kind) for kind in kinds],
        "",
    ]


def _published() -> list[str]:
    """Return the section on copies of released code: what each reproduces, fault for fault."""
    faults: dict[str, tuple[str, list[str]]] = {}
    for protocol in protocols().values():
        for fault in protocol.faults:
            faults.setdefault(fault.key, (fault.says, []))[1].append(protocol.name)
    named = ", ".join(
        f"{protocol.name} (`{protocol.code}`)" if protocol.code else protocol.name
        for protocol in protocols().values()
    )
    return [
        "## As published\n",
        "`--mode published`, or `published: [items]` in a study, scrambles as the released code did, fault for fault: "
        "one pass over",
        "the whole list in its order. Readable names of the same types mean their copies (`words:reverse`, "
        "`exchange:internal(count=2)`);",
        f"options and rates that were not published are refused. Names: {named}.",
        "",
        "| fault | in |",
        "| --- | --- |",
        *[f"| {says} | {', '.join(names)} |" for says, names in faults.values()],
        "",
    ]


def _row(kind: ScrambleType) -> str:
    name = kind.name.replace(":N", ":3")
    shown = scramble_conditions(EXAMPLE, {"": name}, seed=SEED, item_id="example")[""].text
    own = "; ".join(_option(option) for option in kind.own_options if option.name != "letter")
    return f"| `{kind.name}` | {kind.eligibility} | {own} | {shown} | {kind.source} |"


def _option(option: Option) -> str:
    return f"`{option.name}` {option.values} ({str(option.default).lower()})"


if __name__ == "__main__":
    PAGE.write_text(scramble_page(), "utf-8")
