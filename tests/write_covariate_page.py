"""Writes docs/covariates.md from the table of covariates: ``python -m tests.write_covariate_page``."""

from __future__ import annotations

from pathlib import Path

from stimuli.covariates import covariate_table
from stimuli.lexicon.neighbourhoods import LEAST_LETTERS, LEAST_ZIPF, VOCABULARY_SIZE

PAGE = Path(__file__).resolve().parent.parent / "docs" / "covariates.md"

GROUPS = {
    "word": (
        "Words",
        "Means over an item's target words: the words that its conditions change, or all words where there are none. A"
        " word that a resource does not know is left out of the mean. For nonwords, neighbours and bigrams say how close"
        " the string comes to the words of the language, and Zipf frequency is 0.",
    ),
    "change": ("How much was changed", "Counted in the text as one condition shows it."),
    "form": (
        "Changed forms",
        "Means over the words whose letters changed in this condition. Where none did (the intact condition, words or"
        " sentences that moved whole) they are those of the target words as they stand: matches are 1, distances 0,"
        " bigrams the words' own, so that all conditions can be regressed on them. Letters are compared without regard to"
        " case, spaces set between letters are not counted, and the intact word is the template.",
    ),
    "token": (
        "Tokens",
        "Of the whole text, where a tokenizer is given; marks set around every text are left out.",
    ),
}


def covariate_page() -> str:
    parts = [
        "# Covariates\n\nMade from `stimuli/covariates.json` by `python -m tests.write_covariate_page`; do not edit by"
        " hand.\n\nEvery built item carries these numbers, means rounded to three decimals. What a language has no"
        " resource for is null, and `stimuli.covariates.unavailable(language)` says why; nothing is computed with another"
        f" language's words.\n\n**Vocabulary.** Neighbours and bigrams are counted in the {VOCABULARY_SIZE:,} most frequent"
        f" strings of wordfreq's largest list of the language that are letters only, {LEAST_LETTERS} at least, with a Zipf"
        f" frequency of {LEAST_ZIPF} or more. Small lists end at Zipf 3 and may have fewer.\n"
    ]
    for group, (title, said) in GROUPS.items():
        parts.append(f"## {title}\n\n{said}\n")
        rows = ["| name | definition | unit | source | languages |", "| --- | --- | --- | --- | --- |"]
        rows += [
            f"| `{one.name}` | {one.definition} | {one.unit} | {one.source or '–'} | {one.languages} |"
            for one in covariate_table()
            if one.group == group
        ]
        parts.append("\n".join(rows) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(covariate_page(), "utf-8")
