"""Texts are read word by word, by chunk or by sentence: the same parts for people and models, in lines that are fixed before."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import pytest

from experiment.building import build_study, make_items
from experiment.checking import load_study
from experiment.models.engine import RegionScore
from experiment.models.planning.session import region_rows
from experiment.models.prompts.prompter import render
from experiment.people.response_intake import _regions
from experiment.procedure import plan_session, trials_of
from experiment.simulated.reader import SimulatedReader
from experiment.simulated.truth import GroundTruth, TrueEffects
from experiment.study import Study
from experiment.summaries.plain_english import tell
from experiment.trials import presented_ms
from stimuli.errors import UserError
from tests.experiment.commands import change

CHOOSE = (
    "        - choose: {show: word, caption: Scrambled word, ask: Which word is it?, keys: [f, j], answer_by: text}\n"
    "      break_every: 2\n"
)
READ = "        - read: {show: sentence, as: moving_window}\n        - recover: {show: sentence, ask: Type it.}\n"
LONG = "The *gardener* gave the very old roses plenty of fresh cold water before the sun went down again."


def reading(make_study: Callable[..., Study], *changes: tuple[str, str], block: str = "") -> Study:
    """Return a study whose sentences are read word by word."""
    small = make_study()
    (small.folder / "sentences.csv").write_text(
        f"item,sentence\nlong,{LONG}\nshort,The *dog* barks.\n", "utf-8"
    )
    return make_study(
        (
            "materials: {words: words.txt}",
            "materials: {sentences: sentences.csv, scramble: {words: starred}}",
        ),
        ("  - practice: {items: practice.csv, feedback: true, pass: 50%}\n", ""),
        (CHOOSE, f"{READ}{block}"),
        *changes,
    )


def test_check_says_how_many_texts_break_and_after_which_word(make_study):
    remarks = make_items(reading(make_study)).remarks
    (said,) = [line for line in remarks if "moving window" in line]
    assert re.search(r"line 12: procedure\[3\]\.block: 2 of 4 .* 2 .*long intact.*'water'", said)
    assert f"line_length: {len(LONG) - 2} " in said


def test_a_line_wider_than_the_smallest_window_is_refused_with_the_length_that_fits(make_study):
    small = ("seed: 7\n", "seed: 7\nparticipants: {eligible: {screen: 1024x640}}\n")
    with pytest.raises(UserError, match=r"long intact .*\b6\d\b.*\b56\b") as told:
        make_items(reading(make_study, small))
    assert "line_length: 56" in str(told.value)
    shorter = reading(make_study, small, block="      line_length: 56\n")
    assert make_items(shorter).items


def test_everyone_gets_the_same_breaks_in_the_plan(make_study):
    study = reading(make_study)
    items = make_items(study).items
    breaks = set()
    for key in ("one", "two", "three"):
        plan = plan_session(study, items, list_id=1, session_key=key)
        (lines,) = [
            tuple(map(len, step["lines"]))
            for trial in trials_of(plan)
            for step in trial["steps"]
            if step["step"] == "read" and trial["item_id"] == "long"
        ]
        breaks.add(lines)
    assert len(breaks) == 1


CHUNKED = "The old *teacher* / gave // lent / the roses."
TRUTH = GroundTruth(TrueEffects(50.0, {}, 0, 0), TrueEffects(6.0, {}, 0, 0))
CHINESE = "他/喜欢/看书。"
STUDY = """
wrods: 1
study: parts
title: Parts
language: {language}
seed: 5
materials: {{sentences: sentences.csv{scramble}}}
design: {{factors: {{spelling: {levels}}}, lists: one}}
procedure:
  - consent: text.md
  - block:
      line_length: 24
      trial:
        - read: {{show: sentence, as: {mode}, by: {unit}}}
        - choose: {{show: question, keys: {{'yes': j, 'no': f}}}}
  - debrief: text.md
"""


@pytest.fixture
def parted(tmp_path):
    """Return a function that writes a study of sentences that are read part by part."""

    def make(
        sentence=CHUNKED,
        *,
        mode="moving_window",
        unit="chunk",
        language="en",
        stars=True,
        load=True,
        levels="{intact: none, transposed: {transpose: internal}}",
    ):
        (tmp_path / "sentences.csv").write_text(
            f'item,sentence,question,answer\none,"{sentence}",A teacher / or not?,yes\n', "utf-8"
        )
        (tmp_path / "text.md").write_text("# Text\n\nSome text.", "utf-8")
        scramble = ", scramble: {words: starred}" if stars else ""
        text = STUDY.format(language=language, mode=mode, unit=unit, scramble=scramble, levels=levels)
        (tmp_path / "study.yaml").write_text(text, "utf-8")
        return load_study(tmp_path) if load else tmp_path

    return make


def first_trial(study, level="transposed"):
    build_study(study)
    study = load_study(study.folder)
    trials = trials_of(plan_session(study, study.items, list_id=1, session_key="s"))
    return study, next(trial for trial in trials if trial["condition"]["spelling"] == level)


def test_chunks_are_read_one_after_another_and_their_marks_are_nowhere(parted):
    study, trial = first_trial(parted())
    read, choose = trial["steps"]
    teacher = next(word for word in read["text"].split() if word.startswith("t") and word != "the")
    assert teacher != "teacher"
    assert read["parts"] == [f"The old {teacher}", "gave / lent", "the roses."]
    assert read["text"] == " ".join(read["parts"])
    assert read["lines"] == [f"The old {teacher} gave /", "lent the roses."]
    assert choose["text"] == "A teacher / or not?", "what is not read by chunk keeps its slashes"
    plan = plan_session(study, study.items, list_id=1)
    request = render(plan, trial)
    content = request.messages[0].content
    assert [content[span.start : span.end] for span in request.regions] == read["parts"]
    scores = [RegionScore(float(number), 1) for number in (1, 2, 3)]
    rows = region_rows(trial, scores)
    assert [(row["shown"], row["intact"], row["is_changed"], row["line"]) for row in rows] == [
        (f"The old {teacher}", "The old teacher", True, 0),
        ("gave / lent", "gave / lent", False, 0),
        ("the roses.", "the roses.", False, 1),
    ]
    given = [{"region": place, "line": 0, "onset_ts": 1.0, "rt": 9.0} for place in range(3)]
    assert [row["intact"] for row in _regions(trial, given)] == [row["intact"] for row in rows]


@pytest.mark.parametrize("unit", ["word", "sentence"])
def test_a_slash_is_a_slash_unless_chunks_are_asked_for(parted, unit):
    _, trial = first_trial(parted(CHUNKED, unit=unit), "intact")
    read = trial["steps"][0]
    assert read["text"] == CHUNKED.replace("*", "")
    assert read["parts"] == (read["text"].split() if unit == "word" else [read["text"]])


def test_sentences_are_those_of_the_intact_text(parted):
    _, trial = first_trial(parted("Dr. *Miller* left. He *slept* well.", unit="sentence"))
    parts = trial["steps"][0]["parts"]
    assert [len(part.split()) for part in parts] == [3, 3]
    assert " ".join(parts) == trial["steps"][0]["text"]


def test_chunks_of_a_script_without_blanks_join_without_any(parted):
    _, trial = first_trial(
        parted(CHINESE, language="zh", stars=False, levels="{intact: none, gone: withhold}"), "intact"
    )
    read = trial["steps"][0]
    assert (read["text"], read["parts"]) == ("他喜欢看书。", ["他", "喜欢", "看书。"])
    rows = region_rows(trial, [RegionScore(1.0, 1)] * 3)
    assert [row["intact"] for row in rows] == read["parts"]


def test_long_texts_of_a_script_without_blanks_break_between_chunks(parted):
    sentence = "/".join(["我们喜欢"] * 5)
    _, trial = first_trial(
        parted(sentence, language="zh", stars=False, levels="{intact: none, gone: withhold}"), "intact"
    )
    assert trial["steps"][0]["lines"] == ["我们喜欢" * 3, "我们喜欢" * 2]


def test_a_change_that_crosses_a_border_is_refused_with_its_item(parted):
    study = parted(
        "The old man / gave the roses.", stars=False, levels="{intact: none, moved: {words: shuffle}}"
    )
    with pytest.raises(UserError, match=r"'one'.*'moved'.*chunk"):
        make_items(study)


@pytest.mark.parametrize("sentence", ["The old / / man", "/ The man left."])
def test_an_empty_chunk_is_refused_with_its_line(parted, sentence):
    with pytest.raises(UserError, match=r"sentences\.csv, line 2.*empty chunk"):
        make_items(parted(sentence, stars=False))


def test_texts_without_chunks_are_refused_if_all_are(parted):
    with pytest.raises(UserError, match=r"procedure\[2\].*chunk"):
        make_items(parted("The *teacher* left."))


def test_each_part_that_is_alone_has_its_own_lines(parted):
    _, trial = first_trial(parted(mode="centred"), "intact")
    assert trial["steps"][0]["lines"] == trial["steps"][0]["parts"]
    rows = region_rows(trial, [RegionScore(1.0, 1)] * 3)
    assert [row["line"] for row in rows] == [None] * 3
    long = parted("A *teacher* who was very tired lent it. He left.", mode="centred", unit="sentence")
    _, trial = first_trial(long, "intact")
    assert trial["steps"][0]["lines"] == ["A teacher who was very", "tired lent it.", "He left."]
    (said,) = [line for line in make_items(long).remarks if "2 lines" in line]
    assert "'very'" in said


@pytest.mark.parametrize("mode", ["cumulative", "centred"])
def test_simulated_readers_read_part_by_part(parted, mode):
    study, trial = first_trial(parted(mode=mode))
    answer = SimulatedReader("S001", study, TRUTH).answer(trial)
    assert [region["region"] for region in answer["regions"]] == [0, 1, 2]
    assert answer["reading_time"] == pytest.approx(sum(region["rt"] for region in answer["regions"]))


def test_parts_of_a_whole_text_are_refused(parted):
    with pytest.raises(UserError, match=r"by is 'chunk'"):
        parted(mode="whole")


def timed(parted, settings, **given):
    """Return a study whose texts end by themselves."""
    study = parted(mode="whole", unit="word", load=False, **given)
    file = study / "study.yaml"
    change(file, ("as: whole, by: word", settings))
    return load_study(study)


def test_parts_of_an_rsvp_have_their_own_times_and_models_read_the_same_text(parted):
    study, trial = first_trial(
        timed(parted, "as: rsvp, by: chunk, for: 100 ms, per_letter: 10 ms, blank: 50 ms"), "intact"
    )
    read = trial["steps"][0]
    assert read["part_ms"] == [100 + 10 * letters for letters in (13, 8, 8)]
    assert read["blank_ms"] == 50
    assert read["lines"] == read["parts"]
    frames = [round(ms * 60 / 1000) for ms in read["part_ms"]]
    assert presented_ms(read) == pytest.approx((sum(frames) + 2 * 3) * 1000 / 60)
    answer = SimulatedReader("S001", study, TRUTH).answer(trial)
    assert [region["frames"] for region in answer["regions"]] == frames
    assert not any("rt" in region for region in answer["regions"])
    assert answer["reading_time"] is None
    assert answer["shown_ms"] == pytest.approx(presented_ms(read))
    whole = {**trial, "steps": [{**read, "as": "centred"}, *trial["steps"][1:]]}
    plan = plan_session(study, study.items, list_id=1)
    assert render(plan, trial) == render(plan, whole)


def test_a_whole_text_may_end_by_itself(parted):
    study, trial = first_trial(timed(parted, "as: whole, for: 300 ms"), "intact")
    read = trial["steps"][0]
    assert (read["parts"], read["part_ms"]) == (None, [300])
    answer = SimulatedReader("S001", study, TRUTH).answer(trial)
    assert (answer["regions"], answer["shown_frames"], answer["reading_time"]) == ([], 18, None)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ("as: rsvp", "rsvp"),
        ("as: rsvp, for: 10 ms", "10 ms"),
        ("as: rsvp, for: 200 ms, blank: 10 ms", "blank"),
        ("as: centred, for: 200 ms", "for"),
        ("as: whole, for: 200 ms, blank: 50 ms", "blank"),
        ("as: whole, per_letter: 20 ms", "per_letter"),
        ("as: whole, for: 200 ms, minimum: 50 ms", "minimum"),
    ],
)
def test_times_that_a_mode_cannot_keep_are_refused(parted, settings, named):
    with pytest.raises(UserError, match=named):
        timed(parted, settings)


def test_a_reading_time_is_not_planned_where_every_text_ends_by_itself(parted):
    folder = parted(mode="moving_window", unit="word", load=False)
    file = folder / "study.yaml"
    text = file.read_text("utf-8") + (
        "analysis: {planned: {reading: {measure: reading_time, compare: spelling, between: [human]}}}\n"
    )
    file.write_text(text, "utf-8")
    assert load_study(folder)
    file.write_text(text.replace("as: moving_window, by: word", "as: rsvp, for: 200 ms"), "utf-8")
    with pytest.raises(UserError, match=r"reading_time.*for"):
        load_study(folder)


def test_check_says_for_how_many_frames_a_part_stands(parted):
    study = timed(parted, "as: rsvp, by: chunk, for: 100 ms, per_letter: 10 ms, blank: 50 ms")
    (said,) = [line for line in make_items(study).remarks if "60 Hz" in line]
    assert "11 to 14" in said


def test_levels_of_a_factor_may_set_the_way_to_read(parted):
    levels = "{serial: {read: {as: rsvp, for: 200 ms}}, paced: {read: {as: centred}}}"
    study = parted(stars=False, load=False, unit="chunk", levels=levels)
    file = study / "study.yaml"
    file.write_text(
        file.read_text("utf-8").replace("as: moving_window, by: chunk", "as: centred, by: chunk"), "utf-8"
    )
    study, trial = first_trial(load_study(study), "serial")
    assert trial["steps"][0]["part_ms"] == [200] * 3
    trials = trials_of(plan_session(study, study.items, list_id=1, session_key="s"))
    assert {trial["steps"][0]["as"]: trial["steps"][0]["part_ms"] for trial in trials}["centred"] is None


MAZE = "as: maze, keys: [f, j]"
FOILS = "- runs blue - of"


@pytest.fixture
def maze(parted):
    """Return a function that writes a study of a maze, with a column of foils."""

    def make(settings=MAZE, foils=FOILS, sentence="The old *teacher* gave the roses.", column="foils"):
        folder = parted(mode="whole", unit="word", load=False)
        (folder / "sentences.csv").write_text(
            f'item,sentence,question,answer,foils\none,"{sentence}",Was it old?,yes,{foils}\n', "utf-8"
        )
        file = folder / "study.yaml"
        text = file.read_text("utf-8").replace("as: whole, by: word", settings)
        if column:
            text = text.replace(
                "{sentences: sentences.csv", f"{{sentences: sentences.csv, distractors: {column}"
            )
        file.write_text(text, "utf-8")
        return load_study(folder)

    return make


def test_a_maze_sets_a_foil_beside_each_word_on_sides_in_balance(maze):
    study, trial = first_trial(maze(), "intact")
    read = trial["steps"][0]
    assert read["parts"] == ["The", "old", "teacher", "gave", "the", "roses."]
    assert read["foils"] == ["x-x-x", "x-x-x", "runs", "blue", "x-x-x", "of"]
    assert sorted(read["sides"]) == ["left"] * 3 + ["right"] * 3
    assert (read["keys"], read["wrong"]) == (["f", "j"], "end")
    orders = {
        tuple(step["sides"])
        for key in "abcdefgh"
        for other in trials_of(plan_session(study, study.items, list_id=1, session_key=key))
        for step in other["steps"][:1]
    }
    assert len(orders) > 4
    given = [{"region": 2, "onset_ts": 1.0, "rt": 300.0, "is_correct": False, "right_rt": 700.0}]
    (row,) = _regions(trial, given)
    assert (row["foil"], row["side"]) == ("runs", read["sides"][2])
    content = render(plan_session(study, study.items, list_id=1), trial).messages[0].content
    assert "runs" not in content, "models read the sentence"


def test_models_give_the_margin_of_each_word_over_its_foil(maze):
    _, trial = first_trial(maze(), "intact")
    scores = [RegionScore(2.0, 1, foil=foil) for foil in (None, None, 5.0, 1.0, None, None)]
    rows = region_rows(trial, scores)
    assert [row["foil"] for row in rows] == [None, None, "runs", "blue", None, "of"]
    nats = [None if row["margin"] is None else row["margin"] * math.log(2) for row in rows]
    assert nats == pytest.approx([None, None, 3.0, -1.0, None, None])


@pytest.mark.parametrize(("wrong", "right_after"), [("end", 0), ("retry", 1)])
def test_simulated_readers_choose_in_a_maze(maze, wrong, right_after):
    study, trial = first_trial(maze(f"{MAZE}, wrong: {wrong}"), "intact")
    clumsy = GroundTruth(TrueEffects(-50.0, {}, 0, 0), TrueEffects(6.0, {}, 0, 0))
    sure, wrongly = (SimulatedReader("S001", study, truth).answer(trial) for truth in (TRUTH, clumsy))
    assert [region["is_correct"] for region in sure["regions"]] == [True] * 6
    assert sure["reading_time"] == pytest.approx(sum(region["right_rt"] for region in sure["regions"]))
    assert not any(region["is_correct"] for region in wrongly["regions"])
    assert len(wrongly["regions"]) == (6 if right_after else 1)
    assert (wrongly["reading_time"] is None) == (wrong == "end")


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"settings": "as: maze"}, "two keys"),
        ({"settings": "as: maze, keys: [f, F]"}, "two keys"),
        ({"settings": f"{MAZE}, by: sentence"}, "by"),
        ({"settings": f"{MAZE}, for: 300 ms"}, "for"),
        ({"settings": "as: centred, wrong: retry"}, "wrong"),
        ({"settings": "as: centred"}, "distractors"),
        ({"column": ""}, "distractors"),
        ({"foils": "runs blue"}, r"line 2.*2 foils.*5 words"),
        ({"foils": "old runs blue - of"}, r"line 2.*'old'"),
        ({"column": "others"}, "others"),
    ],
)
def test_mazes_without_what_they_need_are_refused(maze, given, named):
    with pytest.raises(UserError, match=named):
        make_items(maze(**given))


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ("as: moving_window, by: sentence", ["sentence by sentence"]),
        ("as: rsvp, by: chunk, for: 100 ms, per_letter: 10 ms", ["chunk by chunk", "180 to 230 ms"]),
        ("as: whole, for: 300 ms", ["300 ms"]),
    ],
)
def test_a_summary_says_how_texts_are_read(parted, settings, parts):
    study, _ = first_trial(timed(parted, settings), "intact")
    told = str(tell(study, study.items).session)
    assert all(part in told for part in parts)


@pytest.mark.parametrize(
    "mode", ["whole", "moving_window", "cumulative", "centred, by: sentence", "whole, for: 9 s"]
)
def test_a_text_that_overflows_the_smallest_window_is_refused_in_every_mode(make_study, mode):
    def study(screen, length=40):
        small = ("seed: 7\n", f"seed: 7\nparticipants: {{eligible: {{screen: {screen}}}}}\n")
        modes = ("as: moving_window", f"as: {mode}")
        return reading(make_study, small, modes, block=f"      line_length: {length}\n")

    assert make_items(study("1024x640")).items
    with pytest.raises(UserError, match=r"\b6\d\b.*holds 56 characters"):
        make_items(study("1024x640", length=64))
    flat = study("1024x360")
    if mode == "whole":
        assert any("scroll" in line for line in make_items(flat).remarks)
    else:
        with pytest.raises(UserError, match=r"3 lines.*383 pixels.*2 lines"):
            make_items(flat)


def test_a_summary_leaves_the_way_to_read_to_the_levels_that_set_it(parted):
    folder = parted(mode="moving_window", unit="word", load=False)
    file = folder / "study.yaml"
    between = (
        "between: {display: {window: {read: {as: moving_window}}, alone: {read: {as: centred}}}}, lists: one"
    )
    change(file, ("lists: one", between))
    study = load_study(folder)
    told = str(tell(study, make_items(study).items).session)
    assert "word by word" not in told


@pytest.mark.parametrize("made", ["The old taecher / gave the roses.", "The old taecher gave the roses."])
def test_a_sentence_made_by_hand_has_the_chunks_of_the_intact_one(parted, made):
    levels = "{intact: none, mine: hand-made}"
    folder = parted("The old *teacher* / gave the roses.", load=False, levels=levels)
    table = (folder / "sentences.csv").read_text("utf-8").splitlines()
    rows = [f"{table[0]},spelling:mine", f'{table[1]},"{made}"']
    (folder / "sentences.csv").write_text("\n".join(rows), "utf-8")
    _, trial = first_trial(load_study(folder), "mine")
    assert trial["steps"][0]["parts"] == ["The old taecher", "gave the roses."]


def test_each_of_several_fields_has_its_own_chunks(parted):
    folder = parted("The *teacher* / left.", load=False)
    file = folder / "study.yaml"
    change(file, ("show: sentence", "show: [question, sentence]"))
    _, trial = first_trial(load_study(folder), "intact")
    read, choose = trial["steps"]
    assert read["parts"] == ["A teacher", "or not?", "The teacher", "left."]
    assert choose["text"] == "A teacher or not?"
    assert read["lines"] == ["A teacher or not?", "", "The teacher left."]
