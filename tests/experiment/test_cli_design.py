from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from experiment.checking import load_study
from experiment.cli import SECTIONS
from experiment.cli.new import templates
from experiment.integrity.build_provenance import BUILT_FROM, changed_since_build, require_current_items
from experiment.templates import parts_of
from stimuli.item import read_meta
from tests.experiment.commands import change, worked, wrods


def folder_state(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


def test_help_groups_the_commands_by_what_a_user_is_doing():
    told = wrods("--help").output
    places = [told.index(section) for section in SECTIONS]
    assert places == sorted(places)
    assert "..." not in told.replace("[ARGS]...", ""), "sentences about commands are whole"


@pytest.mark.parametrize("name", [name for names in SECTIONS.values() for name in names])
def test_every_command_explains_itself_with_an_example(name):
    told = worked(name, "--help")
    assert f"wrods {name}" in told.output
    assert "Example" in told.output
    assert "\\b" not in told.output, "a mark for the layout of the help is not shown"


def test_a_misspelt_command_names_the_nearest():
    told = wrods("chekc", "x")
    assert told.exit_code == 2
    assert "`wrods check`" in told.output


@pytest.mark.usefixtures("audits_with_figures")
@pytest.mark.parametrize(
    "template",
    [name for name in sorted(templates()) if not any(part.data for part in parts_of(name).values())],
)
def test_each_template_checks_and_builds_as_it_comes(template, tmp_path):
    folder = tmp_path / "My Study"
    worked("new", folder, "--from", template)
    checked = worked("check", folder)
    assert "wrods build" in checked.output
    assert re.search(r"Materials: .*\b1 (items|fillers|exemplars)\b", checked.output) is None
    assert "Left intact" not in checked.output, "every starred word of a template can change"
    assert not (folder / "items.jsonl").exists(), "check builds nothing"
    worked("build", folder)
    assert "study: my-study" in (folder / "study.yaml").read_text("utf-8")
    study = load_study(folder)
    assert changed_since_build(study) == []
    require_current_items(study)
    noted = read_meta(folder / "items.jsonl")[BUILT_FROM]
    assert len(noted["sha256"]) == 64 and noted["settings"]["seed"] == study.seed


def test_two_builds_give_the_same_bytes(tmp_path):
    folders = [tmp_path / name / "same" for name in ("one", "two")]
    for folder in folders:
        worked("new", folder)
        worked("build", folder)
    one, two = ((folder / "items.jsonl").read_bytes() for folder in folders)
    assert one == two


def test_check_writes_nothing(tmp_path):
    wrods("new", tmp_path / "s")
    before = folder_state(tmp_path)
    worked("check", tmp_path / "s", "--explain")
    assert folder_state(tmp_path) == before


def test_check_says_of_fewer_items_than_conditions_that_a_session_lacks_some(tmp_path):
    wrods("new", tmp_path / "s", "--from", "letter-position")
    sentences = tmp_path / "s" / "sentences.csv"
    kept = sentences.read_text("utf-8").splitlines(keepends=True)[:4]
    sentences.write_text("".join(kept), "utf-8")
    numbers = json.loads(wrods("check", tmp_path / "s", "--json").output)
    assert sorted(numbers["trials_per_cell"].values()) == [0, 1, 1, 1]


def test_new_overwrites_nothing(tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "mine.txt").write_text("keep", "utf-8")
    told = wrods("new", tmp_path / "s")
    assert told.exit_code == 2
    assert str(tmp_path / "s") in told.output
    assert folder_state(tmp_path / "s") == {"mine.txt": b"keep"}


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        (
            "study.yaml",
            "sentences: sentences.csv",
            "sentences: sentence.csv",
            "'sentence.csv', which does not exist",
        ),
        ("study.yaml", "transpose: internal", "transpose: middle", "Did you mean 'transpose:final'?"),
        ("sentences.csv", "item,sentence,", "item,sentense,", "Did you mean 'sentense'?"),
        ("sentences.csv", ",Yes\ns02", ",Maybe\ns02", "Maybe"),
        ("sentences.csv", "*gardener* watered the *tomatoes*", "gardener watered the tomatoes", "s01"),
    ],
)
def test_wrong_materials_are_named_without_a_traceback(file, old, new, said, tmp_path):
    wrods("new", tmp_path / "s")
    changed = tmp_path / "s" / file
    change(changed, (old, new))
    told = wrods("build", tmp_path / "s")
    assert told.exit_code == 2
    assert said in told.output
    assert "Traceback" not in told.output
    assert not (tmp_path / "s" / "items.jsonl").exists()


def test_items_changed_by_hand_are_not_used(tmp_path):
    from experiment.checking import load_study
    from stimuli.errors import UserError

    wrods("new", tmp_path / "s")
    wrods("build", tmp_path / "s")
    items = tmp_path / "s" / "items.jsonl"
    change(items, ("watered", "drowned"))
    with pytest.raises(UserError, match="wrods build"):
        _ = load_study(tmp_path / "s").items


def test_without_a_build_other_commands_say_so(tmp_path):
    from experiment.checking import load_study
    from stimuli.errors import UserError

    wrods("new", tmp_path / "s")
    with pytest.raises(UserError, match="`wrods build"):
        _ = load_study(tmp_path / "s").items


@pytest.mark.parametrize(
    ("use", "said", "code"),
    [
        ("baseline:rnd", "Did you mean", 2),
        ("huggingface:x", "huggingface", 2),
        ("hf:./not-there", "Not yet: ", 0),
    ],
)
def test_check_says_which_models_cannot_run(use, said, code, tmp_path):
    wrods("new", tmp_path / "s")
    file = tmp_path / "s" / "study.yaml"
    change(file, ("baseline:random", use))
    told = wrods("check", tmp_path / "s")
    assert told.exit_code == code, told.output
    assert said in " ".join(told.output.split())


@pytest.mark.parametrize("name", ["item", "shown", "reader_group"])
def test_check_refuses_a_factor_named_like_a_column_that_every_study_has(name: str, tmp_path: Path) -> None:
    """A report refused such a study, or its formulas had two meanings, when the answers were in."""
    wrods("new", tmp_path / "s")
    file = tmp_path / "s" / "study.yaml"
    change(file, ("spelling", name))
    told = wrods("check", tmp_path / "s")
    assert told.exit_code == 2 and f"design.factors.{name}: {name!r}" in " ".join(told.output.split())


PLANNED = "comprehension: {measure: correct, compare: spelling, between: [human]}"


def checked(folder: Path, planned: str, *options: str) -> str:
    """Return what check says of a study with this planned analysis of people, or of people and a baseline."""
    if not folder.exists():
        worked("new", folder, "--from", "your-own")
        change((folder / "study.yaml"), (PLANNED, planned))
    done = worked("check", folder, *options)
    return " ".join(done.output.split()) if not options else done.output


def numbers(folder: Path, planned: str) -> dict[str, Any]:
    (found,) = [
        one
        for one in json.loads(checked(folder, planned, "--json"))["sensitivity"]
        if one["measure"] == "correct"
    ]
    return dict(found)


@pytest.fixture(scope="module")
def unbounded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sensitivity") / "unbounded"


BETWEEN = PLANNED.replace("[human]", "[human, guesser]")


def test_a_sample_that_finds_no_possible_difference_is_said_to_find_none(tmp_path):
    folder = tmp_path / "small"
    checked(folder, BETWEEN)
    text = (folder / "study.yaml").read_text("utf-8")
    (folder / "study.yaml").write_text(re.sub(r"wanted: \d+", "wanted: 2", text), "utf-8")
    found = numbers(folder, BETWEEN)
    assert found["participants"] == 2
    for mean in found["assumed"]:
        assert mean["detectable"]["human"] is None
        assert mean["detectable"]["guesser"] < 100
    assert "none" in checked(folder, BETWEEN)


def test_without_a_bound_check_asks_for_one_and_gives_its_reason(unbounded):
    assert "`equivalence: 10 points`" in checked(unbounded, BETWEEN)
    found = numbers(unbounded, BETWEEN)
    assert (found["equivalence_bound"], found["suggested_bound"], found["tests"]) == (None, "10 points", 3)
    middle, near_ceiling = found["assumed"]
    assert middle["detectable"].keys() == {"human", "guesser", "human − guesser"}
    for readers, value in middle["detectable"].items():
        assert value > middle["half_width"][readers] > 0
        assert near_ceiling["detectable"][readers] < value
    assert middle["equivalence"]["probability"] <= near_ceiling["equivalence"]["probability"]


def test_a_planned_bound_is_judged_and_none_is_suggested(tmp_path):
    folder = tmp_path / "study"
    planned = BETWEEN.replace("]}", "], equivalence: 45 points}")
    assert "45 points" in checked(folder, planned)
    found = numbers(folder, planned)
    assert (found["equivalence_bound"], found["suggested_bound"]) == ("45 points", None)
