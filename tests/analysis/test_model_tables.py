"""Names of fixed effects in words."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
import pytest

from analysis.report.terms import term_in_words

ANALYSIS = SimpleNamespace(
    plan=SimpleNamespace(factor="position", formula=None, crossing=None),
    levels=("intact", "initial", "pair: first"),
    groups=("human", "hf:models/tiny", "hf:models/tiny:v2"),
    model=None,
    rows=pd.DataFrame(),
)


@pytest.mark.parametrize(
    ("term", "words"),
    [
        ("reader_grouphf:models/tiny", "hf:models/tiny vs. people"),
        ("reader_grouphf:models/tiny:v2", "hf:models/tiny:v2 vs. people"),
        ("reader_grouphf:models/tiny:positioninitial", "initial × hf:models/tiny"),
        ("reader_grouphf:models/tiny:v2:positionpair: first", "pair: first × hf:models/tiny:v2"),
        ("positionpair: first", "pair: first vs. intact"),
    ],
)
def test_colons_in_names_of_readers_and_levels_make_no_interaction(term: str, words: str) -> None:
    assert term_in_words(term, ANALYSIS) == words  # type: ignore[arg-type]
