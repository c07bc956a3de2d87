"""The Method section tells who took part, which models were asked and how answers were analysed, or that it is not known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analysis import load
from analysis.report.answer import answer
from analysis.report.content import gather
from analysis.report.inline import plain_text
from analysis.report.method import METHOD_KEYS, method_parts, models_table
from analysis.report.nodes import PlannedFinding
from analysis.report.references import reference
from tests.analysis.letter_study import PLANNED, study_rows, write_handover

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
            "ask": "Age?",
            "type": "number",
            "n": 12,
            "mean": 31.25,
            "sd": 6.5,
            "low": 19,
            "high": 50,
        },
        {"name": "gender", "ask": "?", "type": "choice", "n": 12, "counts": {"woman": 7, "man": 5}},
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


def test_participants_are_counted_and_left_out_with_reasons(full: dict[str, str]) -> None:
    said = full["Participants"]
    assert (
        "The sample consisted of 12 people, who began 13 sessions between March 1, 2026, and March 5, 2026."
        in said
    )
    assert "This left 11 people and 88 trials for analysis." in said
    assert "attention checks failed (12 trials, 1 reader in total)" in said


def test_what_participants_said_of_themselves_is_summed(full: dict[str, str]) -> None:
    said = full["Participants"]
    assert "recruited through Prolific" in said and "age: 18 to 65; first_language: de" in said
    assert "Participants reported age: M = 31.25, SD = 6.50, range 19 to 50 (n = 12);" in said
    assert "gender: 7 woman, 5 man (n = 12)." in said


def test_models_have_snapshot_dates_settings_tokens_and_cost(full: dict[str, str], tmp_path: Path) -> None:
    said = full["Language models"]
    for words in (
        "One language model read the same items as text under the same instructions (Table 1)",
        "requested as openai:restorer",
        "identified itself as restorer-2026-01-31",
        "was accessed between March 1, 2026, and March 4, 2026 (48 calls)",
        "temperature 0",
        "One rule (random) served as a reference baseline; its answers are not data",
    ):
        assert words in said, words
    rows = study_rows(human=2, models=("restorer",), items=4)
    table = models_table(load(write_handover(tmp_path, rows, readers=READERS)))
    assert table is not None
    head = ("Model", "Snapshot", "Accessed", "Calls", "Prompt tokens", "Completion tokens", "Cost (US$)")
    assert table.columns == head
    assert table.rows[0][1:] == (
        "restorer-2026-01-31",
        "2026-03-01 to 2026-03-04",
        "48",
        "12,345",
        "48",
        "0.13",
    )


def test_every_reference_that_the_method_may_cite_is_known_and_cited_apart() -> None:
    cited = [reference(key).cited() for key in METHOD_KEYS]
    assert len(set(cited)) == len(cited)
    assert "Bates, Mächler, et al., 2015" in cited and "Hothorn et al., 2008" in cited


@pytest.mark.full
def test_tests_that_two_plans_share_are_reported_once(tmp_path: Path) -> None:
    plan = PLANNED["comprehension"] | {"between": ["human"]}
    first = plan | {"contrasts": ["initial - internal"]}
    rows = study_rows(human=12, items=12)
    content = gather(load(write_handover(tmp_path, rows, planned={"one": first, "two": plan})))
    asked = [one.question for one in answer(content, "") if isinstance(one, PlannedFinding)]
    assert len(asked) == len(set(asked)) == 2
    later = plain_text(" ".join(content.planned[1].paragraphs))
    assert "one reports the same tests of initial − internal." in later and "(Table F" not in later
