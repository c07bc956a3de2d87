"""Writes docs/scrambles.md from the registry of scramble types: ``python -m tests.write_scramble_page``."""

from __future__ import annotations

from pathlib import Path

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

Generated from the registry of types by `python -m tests.write_scramble_page`; do not edit by hand.

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

## Rules for every type

- **Words.** A word is a run of letters, joined across apostrophes; letters are grapheme clusters, so NFC and NFD input give the
  same result. Only letters of its longest part between apostrophes change (`don` in `don't`). Digits never change, nor do web
  and mail addresses and file names (`bbc.co.uk`, `foo.io/x`, `user@host.de`, `report.pdf`), recognized by a list of top-level
  domains and file endings. `end.Next` is two words. Endings that are also words (`in`, `it`, `news`) only make an address
  together with a path, a further part, a digit or a hyphen (`amazon.it/x`, but not `amazon.it`). Paths (`C:\\data\\file.txt`,
  `/usr/bin/x`, `../x`), digital object identifiers (`10.1000/xyz123`), handles and hashtags (`@name`, `#tag`) stay too;
  `and/or`, `C#` and `tod@s` are words.
- **Scripts without spaces** (Chinese, Japanese, Thai, Lao, Khmer, Burmese): a run of letters may be several words, which wrods
  cannot separate. It stays intact, with the reason `script written without spaces`, unless `unspaced: change` treats it as one
  word. To change the words separately, put spaces between them.
- **Random numbers.** Each word has its own, which depend on the seed, the item (or the text and its number of earlier
  occurrences) and the word's position. A result does not depend on other texts, their order or the process.
- **rate** is the proportion of eligible words that change (of sentences, if words move), to the nearest whole word. The words
  changed at a lower rate also change at a higher one, to the same forms.
- **texts** is the proportion of texts that change at all. Each text is drawn independently, so the texts of a lower proportion
  are among those of a higher one, and a list reaches the proportion only on average (`wrods scramble --summary` reports the
  actual one).
- **dose: equal** (default) changes the same words in every condition: those that every condition can change. With
  `as_published`, every condition changes the words that its own rule allows, as in the papers, so conditions differ in the
  number of words. The same applies to sentences in conditions that move words. (Earlier versions wrote `eligibility: common`
  and `own`, which are still read.)
- **Never the original**, if another form exists. In languages with a word list, a change also never produces a real word,
  judged by `avoid_real_words`: `frequent`, `words` (default), `strict` (also rare words, names and abbreviations) or `off`.
  English words come from SCOWL, of sizes up to 35, 60 and 70. Other languages have wordfreq's list from Zipf 3, 2 and 1, in
  which frequent misspellings count as words; `wordfreq:2` takes that list in every language, as wrods did before. If no form
  remains, the word stays intact and `left_intact` gives the reason.
- **Capitals** stay at their position in the word (default) or `move` with their letter. If the length of the word changes,
  positions count from the beginning; in words written in capitals, new letters are capitals.
- **Substitutions are controls for transpositions**: with the same position, distance and letter class, they replace exactly the
  pair that the transposition exchanges, by two different letters that are not among the two; vowels by vowels and consonants by
  consonants unless `cv: any`. `shape: keep` uses letters with the same outline (ascender, descender, neither), `shape: change`
  letters with another outline. If a study has both types, they use the first drawn pair that suits both. With
  `dose: as_published`, they share a pair if any pair suits both; otherwise each uses its own (see the permutations), and types
  drawn in different runs may differ too. Options that leave no word to change are refused.
- **Insertions and deletions** change the length of a word, by at most half of its letters. New letters come from the language's
  alphabet.
- **New letters** are in the word's own script: a word in another script than the language's (`Привет` in an English text)
  stays, with the reason `another script than the language's`.
- **count** (exchanges, insertions, deletions) is applied in full, or the word stays, with a reason such as
  `takes fewer than 4 exchanges`: a word of four letters has two inner ones and allows one exchange. Levels of a count therefore
  change the same words. `fewer: make` applies as many as a word allows; with `dose: as_published` that is the default
  (`fewer: auto`), as in the papers. `wrods build` then shows how many words had fewer, `wrods scramble` reports it on standard
  error, and `--changes` gives `made` and `asked` for every word.
- **spaced: true** shows a changed word with a gap between every two characters, so that tokenizers see letters; the control
  `space: letters` does the same to intact words. Spaces between words stay, and the **gap** differs from them, which keeps word
  boundaries: `dot` (middle dot, default), `narrow` (narrow no-break space), `no_break`, or `space`, which loses the boundaries.
  The effect on tokenizers and pages is described below.
- **Words that move** only take positions of words: punctuation, spaces and the capital at the beginning of a sentence stay. The
  former first word keeps its capital if it has further capitals, has one inside another sentence of the text, is a name on
  wrods' list, an address, a noun in a language with capitalized nouns (German: all words except those on a list), rare (Zipf
  frequency under {FREQUENT:g}), or is followed by another capital. Words on a list of lower-case words, words in lower case
  elsewhere in the text, and frequent words lose it. In a language with neither list, it stays. A rare common word can therefore
  keep a capital, and an unlisted frequent name can lose it; `capitals: move` leaves all words as written. The new first word
  gets the capital, except for addresses, abbreviations with full stops, and words such as iPhone. Abbreviations and ordinal
  numbers keep their full stop, which is never doubled. Abbreviations with several parts (`z. B.`, `av. J.-C.`, `EE. UU.`,
  `т. е.`) are one word, including their spaces (ordinary, no-break or thin). An apostrophe moves with its word if it belongs to
  it (`nations'`, `'fore`, `’90s`, `rock 'n' roll`, `po’`): after s, x or z and in listed words, unless it closes a single
  quotation mark opened in the sentence.
- **Sentences that move** keep their end marks; the separators between sentences stay in place. A sentence ends at a mark before
  a space, and at the end of a line; not inside numbers (`3.5`, `1,250`), after abbreviations or initials, or before a
  lower-case letter. `p.m.`, `U.S.`, `n. Chr.` and a capital after a lower-case word (`plan B.`) end it before a word that is
  lower case inside sentences (`p.m. She`, but not `U.S. Army` and, because it is ambiguous, not `p.m. I`); `etc.`, `usw.` and
  similar ones before any capital. Closing quotes and brackets after the mark belong to the sentence (`„Komm her.“`, `»…«`,
  `« Viens ici. »`, `「…」`). Speech continues before a lower-case letter, or a dash with one (`«Иди!» — сказал он`). `。！？` and
  `।` need no space, `؟ ۔ ॥ ։ ።` do; `;` is a question mark in Greek only, `¿` and `¡` open a sentence and stay at its
  beginning.
- **Ordinal numbers** (`Der 2. Weltkrieg`). After a number of one to three digits and a full stop, only the meaning separates an
  ordinal from the end of a sentence. In {_with_ordinals("capital")} (where the next word may be capitalized; Roman numbers
  likewise), the sentence continues unless the next word is lower case inside sentences: `Er wurde 2. Danach ging er.` is split,
  `Er wurde 2. Peter ging.` is not, because joining two sentences does less harm than splitting one. In
  {_with_ordinals("small")}, a capital after the number begins a sentence, a lower-case letter or a number does not. In any
  language, a number at the beginning of a line, and the next higher one (`1. Dogs bark. 2. Cats sleep.`), belong to the
  following sentence.
- **min_letters**, **spaced**, **gap** and **unspaced** are options of every letter type.
"""

GAPS_TOLD = """## Gaps between letters

Results for small tokenizers of five kinds, trained on this documentation (`tests/stimuli/test_scramble_gaps.py`). *Yes* means that
word boundaries change the tokens. With every gap, a spaced scramble and its control differ by at most a tenth of their tokens.

| gap | byte-level BPE (as GPT) | sentence pieces (as Gemma) | folded to NFKC (as T5) | WordPiece (as BERT) | on a page |
| --- | --- | --- | --- | --- | --- |
| `dot` | yes; one token per dot | yes | yes | yes | dots; words are never broken |
| `narrow` | yes; two tokens per gap | yes | no | no | narrower than a space, but not in monospaced fonts |
| `no_break` | yes; one token per gap | yes | no | no | as wide as a space; words are never broken |
| `space` | no; the gap joins its letter | no | no | no | like a space; lines break inside words |
"""


def scramble_page() -> str:
    alphabets = ", ".join(sorted(scramble_data("letters")["languages"]))
    abbreviations = ", ".join(sorted(scramble_data("abbreviations")["languages"]))
    return "\n".join(
        [
            INTRODUCTION,
            f"Alphabets, vowels and consonants are available for {alphabets}; types and options that need them refuse other",
            f"languages. Abbreviations are available for {abbreviations}.",
            "",
            *_section("Reordered letters", "letter", ("none", "reorder")),
            *_section("Replaced, inserted and deleted letters", "letter", ("substitute", "insert", "delete")),
            GAPS_TOLD,
            *_section("Reordered words", "word", ("reorder",)),
            *_section("Reordered sentences", "sentence", ("reorder",)),
            "## Names of the papers\n",
            "| name | meaning | source |",
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
    """Return the section on copies of released code and the errors that each reproduces."""
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
        "`--mode published`, or `published: [items]` in a study, scrambles exactly as the released code did, including its errors, in "
        "one pass over",
        "the whole list in order. Readable names of the same types then also mean these copies (`words:reverse`, "
        "`exchange:internal(count=2)`);",
        f"options and rates that were not published are refused. Names: {named}.",
        "",
        "| error | in |",
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
