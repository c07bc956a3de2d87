"""What a build does with the user's tables: levels that pick rows, matched sets, balanced lists."""

from __future__ import annotations

import csv
import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiment.building import build_study, make_items
from experiment.checking import load_study
from experiment.integrity.build_provenance import BUILT_FROM, changed_since_build
from experiment.models.runs.orchestrator import CommandRun, RunOptions, version_of
from experiment.store import open_store
from experiment.study import Study
from stimuli.errors import UserError
from stimuli.item import Item, meta_path
from stimuli.matching import balance
from tests.experiment.commands import change

NOUNS = (
    "garden market window bottle winter summer doctor pencil cradle forest button cotton dinner engine finger"
)
OTHERS = (
    "hammer island jacket kitten ladder magnet needle orange parrot rabbit saddle tunnel violin walnut yellow"
)
WORDS = f"{NOUNS} {OTHERS}".split()


def test_a_level_that_picks_no_row_is_told_with_the_values_that_there_are(word_study):
    study = word_study({"high": {"where": {"band": "high"}}, "mid": {"where": {"band": "medium"}}})
    with pytest.raises(UserError, match="'medium'") as error:
        make_items(study)
    assert error.value.mend is not None and "'high', 'low'" in error.value.mend


@pytest.mark.parametrize("is_relative", [False, True])
def test_a_row_with_too_few_cells_is_told_with_the_file_as_the_study_names_it(
    word_study, tmp_path, monkeypatch, is_relative
):
    study = word_study({"high": {"where": {"band": "high"}}, "low": {"where": {"band": "low"}}})
    if is_relative:
        monkeypatch.chdir(tmp_path.parent)
        study = replace(study, folder=Path(tmp_path.name))
    with (tmp_path / "words.csv").open("a", encoding="utf-8") as stream:
        stream.write("lonely,cell\n")
    with pytest.raises(UserError, match=r"^words\.csv, line 32: .*\b2\b.*\b4\b"):
        make_items(study)


@pytest.fixture
def word_study(tmp_path: Path) -> Callable[..., Study]:
    def make(levels: dict[str, Any], match: dict[str, Any] | None = None, rows: int = 30) -> Study:
        draw = random.Random(3)
        with (tmp_path / "words.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(["word", "foil", "band", "aoa"])
            for place, word in enumerate(WORDS[:rows]):
                low = place % 2
                writer.writerow(
                    [word, word[::-1], "low" if low else "high", round(4 + draw.random() * 3 + low, 2)]
                )
        lines = ["wrods: 1", "study: words", "title: Words", "seed: 5", "materials:", "  words: words.csv"]
        if match:
            lines.append(f"  match: {flow(match)}")
        lines += [
            "design:",
            "  factors:",
            f"    band: {flow(levels)}",
            "procedure:",
            "  - block:",
            "      trial:",
        ]
        lines += ["        - choose: {show: word, keys: [f, j], answer_by: text}"]
        (tmp_path / "study.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return load_study(tmp_path)

    return make


def flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(inner)}" for key, inner in value.items()) + "}"
    return str(value)


ROWS = {"high": {"where": {"band": "high"}}, "low": {"where": {"band": "low"}}}


def test_levels_that_pick_rows_show_each_item_in_its_own_level_only(word_study):
    items = make_items(word_study(ROWS)).items
    assert [item.condition["band"] for item in items] == ["high"] * 15 + ["low"] * 15
    assert len({item.item_id for item in items}) == 30
    assert all(item.shown["word"] == item.answer for item in items)


def test_matched_sets_agree_on_the_users_own_norms(word_study):
    before = make_items(word_study(ROWS)).items
    made = make_items(word_study(ROWS, {"on": {"aoa": 0.8}}))
    with (Path(made.sources[0])).open(encoding="utf-8") as stream:
        aoa = {row["word"]: float(row["aoa"]) for row in csv.DictReader(stream)}
    sets = {
        level: [aoa[item.item_id] for item in made.items if item.condition["band"] == level] for level in ROWS
    }
    smd = balance({"aoa": sets}).contrasts[0].smd
    assert len(sets["high"]) == len(sets["low"]) < len(before) / 2
    assert smd is not None and abs(smd) <= 0.10
    assert any(remark.startswith("matched sets (high: ") for remark in made.remarks)


def test_a_match_that_cannot_be_made_is_named_with_its_line(word_study):
    with pytest.raises(UserError, match=r"study.yaml, line \d+: materials.match: .*\b15\b") as error:
        make_items(word_study(ROWS, {"on": {"aoa": 9}, "each": 500}))
    assert "(candidates)" not in str(error.value)


def test_items_shown_together_in_one_condition_are_balanced_over_lists(word_study):
    levels = {"intact": "none", "internal": {"transpose": "internal"}, "final": {"transpose": "final"}}
    made = make_items(word_study(levels, {"on": {"aoa": {"smd": 0.1}}}))
    order = list(dict.fromkeys(item.item_id for item in made.items))
    with (Path(made.sources[0])).open(encoding="utf-8") as stream:
        aoa = {row["word"]: float(row["aoa"]) for row in csv.DictReader(stream)}
    thirds = [[aoa[word] for word in order[place::3]] for place in range(3)]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        smd = balance({"aoa": {"one": thirds[one], "other": thirds[other]}}).contrasts[0].smd
        assert smd is not None and abs(smd) <= 0.10


def test_a_factor_either_picks_rows_or_scrambles(word_study):
    with pytest.raises(UserError, match="'band'"):
        word_study({"high": {"where": {"band": "high"}}, "low": "none"})


def test_a_word_that_cannot_change_is_named_and_left_out_where_the_study_allows(word_study, tmp_path):
    levels = {"intact": "none", "final": {"transpose": "final"}}
    study = word_study(levels)
    words = (tmp_path / "words.csv").read_text("utf-8").replace("garden,nedrag", "angle,nedrag")
    (tmp_path / "words.csv").write_text(words, "utf-8")
    with pytest.raises(UserError, match=r"item 'angle': condition 'final'"):
        make_items(study)
    file = tmp_path / "study.yaml"
    change(file, ("  words:", "  on_bad: skip\n  words:"))
    made = make_items(load_study(tmp_path))
    assert len({item.item_id for item in made.items}) == 29
    assert len(made.skipped) == 1 and "words.csv, angle: item 'angle'" in made.skipped[0]


DECISION = """\
wrods: 1
study: decision
title: Decision
seed: 3
materials: {{lexical_decision: {{words: words.csv{more}}}}}
design:
  factors: {{form: {{word: none, tl: {{transpose: internal}}}}}}
procedure:
  - block:
      trial:
        - choose: {{show: word, keys: {keys}}}
"""


def decision(folder: Path, keys: str, more: str = "") -> Study:
    rows = "word,role\ngarden,\nbasket,\nplanet,\nmarble,\ntravel,filler\nsilver,filler\n"
    (folder / "words.csv").write_text(rows, "utf-8")
    (folder / "study.yaml").write_text(DECISION.format(keys=keys, more=more), "utf-8")
    return load_study(folder)


def test_the_labels_of_a_lexical_decision_are_those_of_the_keys(tmp_path):
    keys = "{palabra: j, otra: f}"
    with pytest.raises(UserError, match=r"word .*nonword.* palabra .*otra"):
        make_items(decision(tmp_path, keys))
    items = make_items(decision(tmp_path, keys, ", labels: {word: palabra, nonword: otra}")).items
    assert {item.answer for item in items} == {"palabra", "otra"}
    assert all(item.choices is None or item.answer in item.choices for item in items)


def test_a_word_that_makes_no_nonword_is_named_with_its_line(tmp_path):
    study = decision(tmp_path, "{word: j, nonword: f}")
    (tmp_path / "words.csv").write_text(
        "word,role\n# names stay out,\ngarden,\nsee,\ntravel,filler\n", "utf-8"
    )
    with pytest.raises(UserError, match=r"'see' .*words\.csv, line 4: "):
        make_items(study)
    file = tmp_path / "study.yaml"
    change(file, ("design:", "  on_bad: skip\ndesign:"))
    file.write_text(
        file.read_text("utf-8").replace(
            "materials: {lexical_decision: {words: words.csv}}",
            "materials:\n  lexical_decision: {words: words.csv}",
        ),
        "utf-8",
    )
    made = make_items(load_study(tmp_path))
    assert any(line.startswith("record 'see' of words.csv, line 4: ") for line in made.skipped)
    assert {item.item_id for item in made.items if item.role == "test"} == {"garden"}


SENTENCES = """\
wrods: 1
study: fillers
title: Fillers
seed: 3
materials: {{sentences: sentences.csv, scramble: {{words: starred}}}}
design:
  factors: {{position: {{intact: none, initial: {{transpose: initial}}}}}}
procedure:
  - block:
      trial:
        - read: {{show: sentence}}
        - choose: {{show: question, keys: {keys}}}
"""


def sentences(folder: Path, role: str = "filler", keys: str = "{'yes': j, 'no': f}") -> Study:
    rows = ["The *gardener* left.,yes,", "A *customer* came.,no,", f"Some *children* sang.,yes,{role}"]
    text = "item,sentence,question,answer,role\n"
    text += "".join(f"s{n},{row.replace(',', ',Is it so?,', 1)}\n" for n, row in enumerate(rows))
    (folder / "sentences.csv").write_text(text, "utf-8")
    (folder / "study.yaml").write_text(SENTENCES.format(keys=keys), "utf-8")
    return load_study(folder)


@pytest.mark.parametrize(
    ("changed", "says"),
    [({"role": "fillr"}, "role is 'fillr'"), ({"keys": "{'Yes': j, 'No': f}"}, "answer 'yes'")],
)
def test_a_role_or_answer_that_nobody_could_mean_is_named(tmp_path, changed, says):
    with pytest.raises(UserError, match=says):
        make_items(sentences(tmp_path, **changed))


STUDY = """\
wrods: 1
study: practice
title: Practice
seed: 3
materials: {sentences: s.csv, scramble: {words: starred, min_letters: 4}}
design: {factors: {spelling: {intact: none, swapped: {transpose: internal}}}}
procedure:
  - practice: {items: p.csv}
  - block: {trial: [{read: {show: sentence}}, {choose: {show: question, keys: {"Yes": j, "No": f}}}]}
"""
TESTED = "a,The *garden* is green.,Green?,Yes,\nb,The *river* runs along.,Still?,No,\n"


def items(folder: Path, practice: str, text: str = STUDY) -> list[Item]:
    (folder / "study.yaml").write_text(text, "utf-8")
    (folder / "s.csv").write_text(f"item,sentence,question,answer,role\n{TESTED}", "utf-8")
    (folder / "p.csv").write_text(practice, "utf-8")
    return [item for item in make_items(load_study(folder)).items if item.role != "test"]


def test_practice_rows_say_at_which_level_they_are_shown(tmp_path):
    rows = "sentence,question,answer,spelling\nThe dog barks.,Barks?,Yes,intact\nThe *kitten* sleeps.,Barks?,No,swapped\n"
    plain, changed = items(tmp_path, rows)
    assert (plain.shown["sentence"], plain.changes) == ("The dog barks.", ())
    assert [change["intact"] for change in changed.changes] == ["kitten"]


def test_a_sentence_without_stars_at_a_level_that_changes_words_names_level_and_mend(tmp_path):
    with pytest.raises(UserError) as fault:
        items(tmp_path, "sentence,question,answer,spelling\nThe dog barks.,Barks?,Yes,swapped\n")
    assert "p.csv, line 2" in str(fault.value) and "'swapped'" in str(fault.value)
    assert "'intact'" in str(fault.value.mend)


def test_a_study_without_an_intact_level_practises_on_starred_words(tmp_path):
    text = STUDY.replace("intact: none, swapped", "ends: {transpose: final}, swapped")
    with pytest.raises(UserError, match="'ends'"):
        items(tmp_path, "sentence,question,answer\nThe dog barks.,Barks?,Yes\n", text=text)


CORPUS = """\
wrods: 1
study: outside
title: Words from elsewhere
seed: 3
materials: {words: ../norms/words.txt, audit: {shortcut: false}}
design:
  factors:
    position: {intact: none, initial: {transpose: initial}}
procedure:
  - block:
      trial:
        - choose: {show: word, ask: Which word is it?, keys: [f, j]}
models:
  who:
    r: {use: "baseline:random"}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with words and a study of them, built."""
    place = tmp_path_factory.mktemp("built") / "place"
    (place / "norms").mkdir(parents=True)
    (place / "norms" / "words.txt").write_text("garden\nbasket\nplanet\nmarble\n", "utf-8")
    folder = place / "outside"
    folder.mkdir()
    (folder / "study.yaml").write_text(CORPUS, "utf-8")
    build_study(load_study(folder))
    return place


@pytest.fixture
def outside(built: Path, tmp_path: Path) -> Path:
    """A study whose words lie outside its folder, built."""
    return shutil.copytree(built, tmp_path, dirs_exist_ok=True) / "outside"


def changed(folder: Path, old: str, new: str) -> list[str]:
    file = folder / "study.yaml"
    change(file, (old, new))
    return changed_since_build(load_study(folder))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("seed: 3", "seed: 4", "seed: 3 → 4"),
        ("{transpose: initial}", "{transpose: final}", 'position.initial.transpose: "initial" → "final"'),
        ("{words: ../norms/words.txt", "{words: ../norms/words.txt, items: 2", "materials.items: 2 is new"),
        ("title: Words", "language: de\ntitle: Words", 'language: "en" → "de"'),
        ("keys: [f, j]", "keys: {garden: f, basket: j}", "procedure.block-1.trial[0].choose.labels"),
    ],
)
def test_what_shapes_items_makes_another_design(outside, old, new, said):
    lines = changed(outside, old, new)
    assert any(said in line for line in lines), lines


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ask: Which word is it?", "ask: Which word was it?"),
        ("keys: [f, j]", "keys: [d, k], time_limit: 3 s"),
        ("title: Words", "title: Some words"),
        ("shortcut: false", "shortcut: true"),
        ("baseline:random", "baseline:oracle"),
    ],
)
def test_what_items_do_not_hold_asks_for_no_other_build(outside, old, new):
    assert changed(outside, old, new) == []


def test_a_file_outside_is_compared_where_it_is_and_missing_elsewhere(outside):
    words = outside.parent / "norms" / "words.txt"
    words.write_text("garden\nbasket\nplanet\ncastle\n", "utf-8")
    assert changed_since_build(load_study(outside)) == ["../norms/words.txt was edited"]
    words.unlink()
    assert changed_since_build(load_study(outside)) == []


def without_origin(folder: Path) -> Study:
    """Take what the items were built from out of their sidecar, as an earlier wrods wrote none."""
    sidecar = meta_path(folder / "items.jsonl")
    told = json.loads(sidecar.read_text("utf-8"))
    del told[BUILT_FROM]
    sidecar.write_text(json.dumps(told), "utf-8")
    return load_study(folder)


def test_items_of_an_earlier_wrods_are_built_again_unless_sessions_were_held_with_them(outside):
    study = load_study(outside)
    with open_store(outside) as store:
        version = version_of(study, store)
        with pytest.raises(UserError, match=r"items\.jsonl(.|\n)*wrods build"):
            version_of(without_origin(outside), store)
        CommandRun(study, store, RunOptions(version=version)).run(study.models)
        assert version_of(load_study(outside), store) == 1


def test_items_without_an_origin_are_refused_in_a_served_study_too(make_study):
    from experiment.people.service import service_for

    study = without_origin(make_study().folder)
    with open_store(study.folder) as store, pytest.raises(UserError, match="wrods build"):
        service_for(study, store)
