"""Writes docs/covariates.md from the table of covariates: ``python -m tests.write_covariate_page``."""

from __future__ import annotations

from pathlib import Path

from stimuli.covariates import covariate_table
from stimuli.lexicon.neighbourhoods import LEAST_LETTERS, LEAST_ZIPF, VOCABULARY_SIZE

PAGE = Path(__file__).resolve().parent.parent / "docs" / "covariates.md"

GROUPS = {
    "word": (
        "Words",
        "Means over an item's target words: the words that its conditions change, or all words if none change. Words that"
        " a resource lacks are left out of the mean. For nonwords, neighbours and bigrams measure the similarity to the"
        " words of the language, and Zipf frequency is 0.",
    ),
    "change": ("How much was changed", "Counted in the text as shown in one condition."),
    "form": (
        "Changed forms",
        "Means over the words whose letters changed in this condition. If none did (the intact condition, or words and"
        " sentences that moved), they are those of the unchanged target words: matches are 1, distances 0, and bigrams"
        " the words' own, so that all conditions can be included in a regression. Letters are compared ignoring case and"
        " spaces between letters, with the intact word as the template.",
    ),
    "token": (
        "Tokens",
        "Counts for the whole text, if a tokenizer is given, without special tokens around every text.",
    ),
}


def covariate_page() -> str:
    parts = [
        "# Covariates\n\nGenerated from `stimuli/covariates.json` by `python -m tests.write_covariate_page`; do not edit by"
        " hand.\n\nEvery built item has these values; means are rounded to three decimals. If a language lacks a resource,"
        " the value is null, and `stimuli.covariates.unavailable(language)` gives the reason; words of another language"
        f" are never used.\n\n**Vocabulary.** Neighbours and bigrams are counted in the {VOCABULARY_SIZE:,} most frequent"
        f" strings of wordfreq's largest list for the language that have at least {LEAST_LETTERS} letters, no other"
        f" characters, and a Zipf frequency of {LEAST_ZIPF} or more. In English only words of SCOWL up to size 60 count."
        " Small lists end at Zipf 3 and may have fewer.\n"
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
