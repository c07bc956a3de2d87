"""The template letter-position: where letters change, how far apart, transposed or substituted; in sentences and in words."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from analysis import load
from analysis.report.document import SIMULATED
from experiment.building import build_study, make_items
from experiment.checking import load_study
from experiment.cli.new import copy_template
from experiment.exporting.export import hand_over
from experiment.lists import items_of_list, list_ids
from experiment.store import open_store
from experiment.study import Study
from experiment.summaries import plain_english
from experiment.summaries.plain_english import tell
from stimuli.item import Item
from tests.experiment.commands import change, let_take_part, worked
from tests.experiment.models.running import invoke
from tests.experiment.models.tiny_models import CHAT_TEMPLATE, tiny_llama

# read as in moving-window, whose items it has too
WHOLE = pytest.param("whole-sentence", marks=pytest.mark.full)
PARTS = ("moving-window", WHOLE, "words")
PLACES = [f"{place}{far}" for place in ("initial", "internal", "final") for far in (1, 2)]


def level(kind: str, place: str) -> str:
    """Name the level of a kind of change at a place such as ``initial2`` or ``external``."""
    return f"{kind}-external" if place == "external" else f"{kind}{place[-1]}-{place[:-1]}"


def small(folder: Path, part: str, *, items: int = 15) -> Study:
    """Make a part with few items, which are too few to be matched."""
    copy_template("letter-position", folder, part=part)
    file = folder / "study.yaml"
    text = re.sub(r"(?m)^  match:.*\n.*\n", "", file.read_text("utf-8"))
    text = re.sub(r"(?m)^  audit:.*\n", "", text)
    number = f"  items: {items}\n  audit: {{shortcut: false}}\n"
    if part == "words":
        text = text.replace("materials:\n", f"materials:\n{number}").replace(
            "words: words.csv}", f"words: words.csv, fillers: {items * 13 // 15}}}"
        )
    else:
        text = re.sub(r"(?m)^  items: \d+ .*\n", number, text)
    assert "match:" not in text and number in text
    file.write_text(text, "utf-8")
    return load_study(folder)


@pytest.mark.parametrize(("part", "shown_in_each"), [("moving-window", 6), ("words", 8)])
def test_each_part_says_its_size_beforehand(tmp_path, part, shown_in_each):
    copy_template("letter-position", tmp_path / "study", part=part)
    told = json.loads(invoke("check", tmp_path / "study", "--json").stdout)
    assert told["lists"] == 15 and set(told["trials_per_cell"].values()) == {shown_in_each}


@pytest.fixture(scope="module", params=["moving-window", "words"])
def made(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Study, list[Item]]:
    study = small(tmp_path_factory.mktemp("made") / "study", request.param)
    return study, list(make_items(study).items)


def test_a_control_replaces_the_letters_that_its_transposition_exchanges(made):
    by_item: dict[str, dict[str, list[tuple[int, list[int], int]]]] = defaultdict(dict)
    for item in made[1]:
        if item.role == "test":
            orders = [(one["word"], list(one["permutation"])) for one in item.changes]
            by_item[item.item_id][item.condition["change"]] = [
                (word, [n for n, o in enumerate(order) if o != n], len(order)) for word, order in orders
            ]
    assert len(by_item) == 15
    for changes in by_item.values():
        assert len(changes) == 15 and changes["intact"] == []
        words = [word for word, _, _ in changes["TL-external"]]
        assert len(words) == (1 if made[0].factors and "lexical_decision" in made[0].get("materials") else 2)
        for place in (*PLACES, "external"):
            transposed = changes[level("TL", place)]
            assert [word for word, _, _ in transposed] == words  # the same words in every condition
            assert changes[level("SL", place)] == transposed
            for _, (first, last), length in transposed:
                assert last - first == (length - 1 if place == "external" else int(place[-1]))
                ends = (first == 0, last == length - 1)
                wanted = {"initial": (True, False), "internal": (False, False), "final": (False, True)}
                assert ends == wanted.get(place[:-1], (True, True))


def test_every_list_shows_every_condition_equally_often(made):
    study, items = made
    lists = list_ids(study, items)
    assert len(lists) == 15
    for list_id in lists:
        shown = items_of_list(study, items, list_id)
        tested = [item for item in shown if item.role == "test"]
        assert set(Counter(item.condition["change"] for item in tested).values()) == {1}
        if "lexical_decision" in study.get("materials"):
            assert len(set(Counter(item.answer for item in shown if item.role != "practice").values())) == 1


@pytest.mark.parametrize("part", PARTS)
def test_planned_analyses_name_what_a_session_leaves_in_the_trials_table(tmp_path, part):
    folder = tmp_path / "study"
    small(folder, part)
    build_study(load_study(folder))
    study = load_study(folder)
    with open_store(folder) as store:
        let_take_part(study, store, readers=1)
        tables = load(hand_over(study, store, tmp_path / "tables"))
    tested = tables.trials[~(tables.trials["is_practice"] | tables.trials["is_filler"]).astype(bool)]
    tested = tested[~tested["is_attention_check"].astype(bool)]
    planned = tables.dictionary["planned"]
    assert {"places", "controls", "distances"} < set(planned)
    for name, one in planned.items():
        met = tested.loc[tested[one["measure"]["human"]].notna(), one["compare"]]
        assert set(one["levels"]) <= set(met), name
        for contrast in one["contrasts"]:
            assert set(contrast.split(" - ")) <= set(one["levels"]), contrast
        assert set(one["between"]) <= {"human", *study.get("models")["who"]}, name
    means = YAML().load(folder / "effects.yaml")["means"]
    assert any(
        set(means) == set(one["between"]) and all(set(of) == set(one["levels"]) for of in means.values())
        for one in planned.values()
    )


@pytest.mark.full
@pytest.mark.parametrize("part", ["moving-window", "words"])
def test_each_part_runs_with_simulated_people_and_a_tiny_model_and_is_reported(tmp_path, part):
    model = tiny_llama(tmp_path / "model", template=CHAT_TEMPLATE)
    folder = tmp_path / "study"
    small(folder, part)
    file = folder / "study.yaml"
    who = f'guesser: {{use: "baseline:random"}}\n    tiny: {{use: "hf:{model}", device: cpu, dtype: float32}}'
    change(
        file,
        ('guesser: {use: "baseline:random"}', who),
        ("prompt_variants: 5", "prompt_variants: 1"),
        count=1,
    )
    said = worked("check", folder, "--explain").output
    assert "SL-external - TL-external" in " ".join(said.split())
    for words in (
        ("build", folder),
        ("run", folder, "--not-registered"),
        ("simulate", folder, "--readers", "6"),
        ("report", folder),
    ):
        worked(*words)
    page = next(folder.glob("reports/*/report.html")).read_text("utf-8")
    assert "Letter position" in page and SIMULATED[0] in page.casefold()
    shown = any(next(folder.glob("reports/*")).rglob("*letter_costs_beside*"))
    assert shown == (part != "words")


def test_the_method_describes_each_change_of_letters_and_the_time_limit(made):
    study, items = made
    session = tell(study, items).session
    assert all(session.levels[name][level] for name, levels in study.factors.items() for level in levels)
    limits = re.findall(r"time_limit: (\d+) (ms|s)\b", (study.folder / "study.yaml").read_text("utf-8"))
    assert limits
    for number, unit in limits:
        assert f"{int(number) / (1000 if unit == 'ms' else 1):g} s" in session.told


@pytest.mark.parametrize(
    ("given", "rate", "is_of_examples"),
    [
        ("RS@0.5", "50%", False),
        ({"demonstrations": "RS@0.2"}, "20%", True),
        ({"demonstrations": "none"}, "", True),
    ],
)
def test_levels_say_what_a_papers_scramble_does_without_its_code(
    given: Any, rate: str, is_of_examples: bool
) -> None:
    words = plain_english._in_words(plain_english._as_published(given), given)
    assert rate in words and words.startswith("examples ") is is_of_examples
    assert not any(part in words for part in ("published", "@", ":"))
