"""Levels of factors that set steps of trials, such as the duration of a prime, within and between sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiment.building import build_study, make_items
from experiment.checking import load_study
from experiment.lists import list_ids
from experiment.procedure import plan_session, trials_of
from experiment.study import Study
from stimuli.audit.shortcut import SECTION
from stimuli.errors import UserError

RELATION = "relation: [related, unrelated]"
SOA = "soa: {short: {prime: {for: 50 ms}}, middle: none, long: {prime: {for: 600 ms}}}"
BOTH = f"factors: {{{RELATION}, {SOA}}}"
PRIME = '{show: prime, mask: "#", for: 150 ms}'
PLAN = "\nanalysis: {planned: {priming: {measure: rt, compare: [relation, soa], between: %s}}}\n"


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Study]:
    def study(design: str = BOTH, *, prime: str = PRIME, practice: str = "", more: str = "") -> Study:
        rows = [f"w{i},garden,flower{i},candle{i},word," for i in range(12)]
        rows += [f"n{i},gadren,flower{i},candle{i},nonword,filler" for i in range(12)]
        head = "item,sentence,prime:related,prime:unrelated,answer,role\n"
        (tmp_path / "targets.csv").write_text(head + "\n".join(rows) + "\n", "utf-8")
        (tmp_path / "practice.csv").write_text(practice, "utf-8")
        screen = "  - practice: {items: practice.csv}\n" if practice else ""
        (tmp_path / "study.yaml").write_text(
            "wrods: 1\nstudy: soa\ntitle: Soa\nseed: 8\n"
            "materials: {sentences: targets.csv, audit: {shortcut: false}}\n"
            f"design: {{{design}}}\nprocedure:\n{screen}"
            f"  - block:\n      trial:\n        - prime: {prime}\n"
            "        - choose: {show: sentence, keys: {word: j, nonword: f}, time_limit: 2 s}\n" + more,
            "utf-8",
        )
        return load_study(tmp_path)

    return study


def trials(study: Study, list_id: int = 1) -> list[dict[str, Any]]:
    return trials_of(plan_session(study, make_items(study).items, list_id=list_id))


def prime_ms(trial: dict[str, Any]) -> float:
    return float(trial["steps"][0]["prime_ms"])


def test_each_level_sets_the_step_of_its_trials(make):
    study = make()
    assert len(list_ids(study, make_items(study).items)) == 6
    for list_id in (1, 4):
        shown = trials(study, list_id)
        assert {(trial["condition"]["soa"], prime_ms(trial)) for trial in shown} == {
            ("short", 50),
            ("middle", 150),
            ("long", 600),
        }
        tested = [trial for trial in shown if not trial["is_filler"]]
        assert set(Counter(tuple(trial["condition"].values()) for trial in tested).values()) == {2}
        assert [next(iter(trial["condition"])) for trial in tested] == ["relation"] * 12


@pytest.mark.parametrize("soa", [SOA, "soa: {short: {prime: {for: 50 ms}}, long: {prime: {for: 600 ms}}}"])
def test_fillers_take_the_levels_evenly_in_each_version(make, soa):
    shown = trials(make(f"factors: {{{RELATION}, {soa}}}"))
    counts = Counter(
        (trial["shown"]["prime"].rstrip("0123456789"), trial["condition"]["soa"])
        for trial in shown
        if trial["is_filler"]
    )
    assert len(set(counts.values())) == 1
    assert len(counts) == (6 if "middle" in soa else 4)


def test_practice_names_a_level_or_takes_the_first(make):
    rows = "item,sentence,prime,answer,soa\np1,nose,face,word,long\np2,nsoe,face,nonword,\n"
    shown = [trial for trial in trials(make(practice=rows)) if trial["is_practice"]]
    assert [(trial["item_id"], prime_ms(trial)) for trial in shown] == [("p1", 600), ("p2", 50)]
    with pytest.raises(UserError, match=r"practice\.csv, line 2: .*'logn'"):
        trials(make(practice=rows.replace("long", "logn")))


def test_levels_between_sessions_set_steps_too(make):
    design = f"factors: {{{RELATION}}}, between: {{soa: {{short: {{prime: {{for: 50 ms}}}}, long: {{prime: {{for: 600 ms}}}}}}}}"
    study = make(design)
    by_list = [
        {(trial["condition"]["soa"], prime_ms(trial)) for trial in trials(study, number)}
        for number in list_ids(study, make_items(study).items)
    ]
    assert by_list == [{("short", 50)}, {("short", 50)}, {("long", 600)}, {("long", 600)}]


def test_a_level_can_show_another_field(make):
    study = make(
        "factors: {order: {forward: none, backward: {prime: {show: sentence}, choose: {show: prime}}}}",
        prime="{show: prime}",
    )
    (study.folder / "targets.csv").write_text(
        "item,sentence,prime,answer\n" + "".join(f"w{i},garden,flower,word\n" for i in range(4)), "utf-8"
    )
    shown = {
        trial["condition"]["order"]: [step["text"] for step in trial["steps"]] for trial in trials(study)
    }
    assert shown == {"forward": ["flower", "garden"], "backward": ["garden", "flower"]}


@pytest.mark.usefixtures("audits_with_figures")
def test_the_audit_sees_texts_once(make):
    built = build_study(make())
    assert "soa" not in built.audit_page.read_text("utf-8")
    assert not [finding for finding in built.audit.findings() if finding.section == SECTION]
    assert {tuple(item.condition) for item in built.items if item.role == "test"} == {("relation", "soa")}


@pytest.mark.parametrize(
    ("levels", "prime", "place"),
    [
        ("{a: {read: {minimum: 1 s}}, b: none}", PRIME, r"soa\.a\.read"),
        ("{a: {prime: {frames: 3}}, b: none}", PRIME, r"soa\.a\.prime\.frames"),
        ("{a: {choose: {minimum: 3 s}}, b: none}", PRIME, r"soa\.a\.choose\.minimum"),
        ("{a: {choose: {keys: {word: k, nonword: f}}}, b: none}", PRIME, r"soa\.a\.choose"),
        ("{a: {prime: {fro: 50 ms}}, b: none}", PRIME, r"soa\.a\.prime"),
        ("{a: {prime: {for: 50 ms}}, b: {transpose: internal}}", PRIME, r"design\.factors"),
    ],
)
def test_settings_that_cannot_be_are_refused(make, levels, prime, place):
    with pytest.raises(UserError, match=place):
        make(f"factors: {{soa: {levels}}}", prime=prime)


def test_two_factors_never_set_the_same(make):
    with pytest.raises(UserError, match=r"mask_and_time\.b\.prime\.for: soa"):
        make(f"factors: {{{SOA}, mask_and_time: {{a: none, b: {{prime: {{for: 50 ms, mask: X}}}}}}}}")


def test_models_cannot_be_planned_over_what_only_people_see(make):
    random = "models: {who: {random: {use: 'baseline:random'}}}\n"
    make(more=random + PLAN % "[human]")
    with pytest.raises(UserError, match=r"priming\.between\[2\].*random.*soa"):
        make(more=random + PLAN % "[human, random]")


def test_more_lists_repeat_the_square_in_other_orders(make):
    study = make(f"{BOTH}, lists: 12")
    items = make_items(study).items
    assert list_ids(study, items) == list(range(1, 13))
    first, again = (plan_session(study, items, list_id=number) for number in (2, 8))
    shown = [
        [(trial["item_id"], tuple(trial["condition"].values())) for trial in trials_of(plan)]
        for plan in (first, again)
    ]
    assert shown[0] != shown[1]
    assert sorted(shown[0]) == sorted(shown[1])
    with pytest.raises(UserError, match=r"design\.lists is 8.* 6"):
        make_items(make(f"{BOTH}, lists: 8"))


def test_levels_between_sessions_pick_rows(make):
    study = make(
        f"factors: {{{RELATION}}}, between: {{group: {{de: {{where: {{lang: de}}}}, en: {{where: {{lang: en}}}}}}}}"
    )
    rows = [
        f"{lang}{i},garden,flower,candle,word,{role},{lang}"
        for lang in ("de", "en")
        for role in ("", "filler")
        for i in (range(4) if role == "" else range(4, 6))
    ]
    rows += ["both,garden,flower,candle,word,filler,"]
    head = "item,sentence,prime:related,prime:unrelated,answer,role,lang\n"
    (study.folder / "targets.csv").write_text(head + "\n".join(rows) + "\n", "utf-8")
    numbers = list_ids(study, make_items(study).items)
    assert len(numbers) == 4
    for number, lang in zip(numbers, ("de", "de", "en", "en"), strict=True):
        shown = trials(study, number)
        assert {trial["condition"]["group"] for trial in shown} == {lang}
        assert {trial["item_id"] for trial in shown} == {*(f"{lang}{i}" for i in range(6)), "both"}
        tested = [trial for trial in shown if not trial["is_filler"]]
        assert Counter(trial["condition"]["relation"] for trial in tested) == {"related": 2, "unrelated": 2}
