"""The Method section tells who took part, which models were asked and how answers were analysed, or that it is not known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis import load
from analysis.report.inline import plain_text
from analysis.report.method import _models, _settings, method_parts, models_table
from analysis.report.references import known
from tests.analysis.letter_study import study_rows, write_handover

READERS: dict[str, dict[str, Any]] = {
    "human": {"kind": "human", "sessions": 14, "finished": 12, "pilot_sessions": 1},
    "restorer": {
        "kind": "model", "sessions": 1, "use": "openai:restorer", "resolved": "restorer-2026-01-31", "calls": 48,
        "first_call": "2026-03-01T10:00:00Z", "last_call": "2026-03-04T09:00:00Z", "prompt_tokens": 12345, "completion_tokens": 48,
        "cost_usd": 0.126, "dtype": [], "settings": {"use": "openai:restorer", "temperature": 0},
    },
    "random": {"kind": "baseline", "sessions": 1},
}  # fmt: skip
PEOPLE = {
    "recruit": "prolific",
    "eligible": {"age": [18, 65], "first_language": "de"},
    "first_session": "2026-03-01T10:00:00Z",
    "last_session": "2026-03-05T10:00:00Z",
    "people": 12,
    "answers": [
        {
            "name": "age",
            "ask": "?",
            "type": "number",
            "n": 12,
            "mean": 31.25,
            "sd": 6.5,
            "low": 19,
            "high": 50,
        },
        {"name": "first_language", "ask": "?", "type": "choice", "n": 12, "counts": {"de": 12}},
        {"name": "gender", "ask": "?", "type": "choice", "n": 12, "counts": {"woman": 7, "man": 5}},
        {
            **{"name": "habit work", "ask": "?", "type": "score", "score": "mean", "rows": 4, "n": 11},
            **{"mean": 2.75, "sd": 0.5, "low": 1, "high": 4, "alpha": 0.8},
        },
    ],
}


PROCEDURE = {
    "materials": "8 items.",
    "factors": "position",
    "lists": "2 lists; a session showed each condition once.",
    "screens": ["consent", "block"],
    "trials": "A session had 8 trials",
    "length": "roughly 1.5 minutes",
    "limits": "",
    "told": "Block one told nothing.",
}


def told(folder: Path, models: tuple[str, ...] = ("restorer",), **dictionary: Any) -> dict[str, str]:
    rows = study_rows(human=12, models=models, baselines=("random",), items=8)
    rows.loc[(rows["reader"] == "P003"), "excluded_reason"] = "attention checks failed"
    tables = load(write_handover(folder, rows, **dictionary))
    parts = method_parts(tables, (), 1 if models_table(tables) else None)
    return {one.heading: " ".join(plain_text(text) for text in one.paragraphs) for one in parts}


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return told(tmp_path_factory.mktemp("full"), readers=READERS, participants=PEOPLE, procedure=PROCEDURE)


def test_numbers_and_names_of_participants_and_models_are_told(full: dict[str, str], tmp_path: Path) -> None:
    """Who began and is left, what they said of themselves; snapshot, dates, settings, tokens and cost of a model."""
    for part, expected in (
        ("Participants", "12 people|13 sessions|11 people|88 trials|Prolific|18 to 65|31.25|6.50|7 woman|5 man"),
        ("Participants", "first language: 12 German;|(n = 11)"),
        ("Participants", "habit work (mean of 4 items)|2.75|α = .80, 95% CI [.50, .94]|Feldt"),
        ("Participants", "12 trials (attention checks failed)"),
        ("Language models", "openai:restorer|restorer-2026-01-31|March 1, 2026|March 4, 2026|48 calls|temperature 0|random"),
    ):  # fmt: skip
        for words in expected.split("|"):
            assert words in full[part], words
    assert "(n = 12)" not in full["Participants"], "all answered"
    rows = study_rows(human=2, models=("restorer",), items=4)
    table = models_table(load(write_handover(tmp_path, rows, readers=READERS)))
    assert table is not None and len(table.columns) == 7
    accessed = "March 1, 2026, to March 4, 2026"
    assert table.rows[0][1:] == ("restorer-2026-01-31", accessed, "48", "12,345", "48", "0.13")


def test_every_known_reference_is_cited_apart() -> None:
    cited = [entry.cited() for entry in known().values()]
    assert len(set(cited)) == len(cited)
    assert "Bates, Mächler, et al., 2015" in cited and "Hothorn et al., 2008" in cited


def test_each_of_several_temperatures_is_told_with_the_trials_that_had_it() -> None:
    rows = pd.DataFrame({"trial_type": ["choose", "type", "type"], "temperature": [0.7, 0.0, 0.0]})
    rows = rows.assign(item_id="one", is_filler=False, is_practice=False, excluded_reason=None)
    (setting,) = _settings({}, rows)
    low, high = setting.split(" and ")
    assert low.startswith("temperature 0 (") and high.startswith("0.7 (") and low[14:] != high[4:]


def test_replies_in_which_a_papers_rules_find_no_text_are_counted_where_its_scoring_is_told(
    tmp_path: Path,
) -> None:
    tables = load(write_handover(tmp_path, study_rows(models=("restorer",)), readers=READERS))
    of_model = tables.trials["reader_group"] == "restorer"
    assert _models(tables, None)["published"] is None
    tables.trials["scorer"] = (
        tables.trials["scorer"].astype(object).mask(of_model, "published_scrambled_bench-1")
    )
    tables.trials["response"] = tables.trials["response"].astype(object).mask(of_model, "a text")
    assert _models(tables, None)["published"] == 0
    first = tables.trials.index[of_model][:3]
    tables.trials.loc[first, "response"] = ["", None, ""]
    assert _models(tables, None)["published"] == 3
