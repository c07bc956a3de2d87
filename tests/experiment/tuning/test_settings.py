"""What a study may say of trainings, and how each fault is told."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiment.checking import load_study
from experiment.models.engine import Message, ModelSettings, Request
from experiment.models.local.tokens import Wording
from experiment.models.planning.plans import plan_sessions
from experiment.papers.inside.tuning import trainings
from experiment.papers.inside.tuning.batches import (
    IGNORED,
    Order,
    TokenRows,
    encoded,
    held_out_pieces,
    parts_of,
)
from experiment.papers.inside.tuning.records import Records, as_asked, make_records, records_of
from experiment.study import Study
from stimuli.errors import UserError
from tests.experiment.models.tiny_models import CHAT_TEMPLATE, byte_pair_tokenizer
from tests.experiment.tuning.conftest import wrods

HEAD = """\
wrods: 1
study: tunes
title: Which group?
seed: 7
models:
  label_maps: balanced
  prompt_variants: 2
  who:
    base: {use: "hf:tiny"}
    small: {use: "hf:tiny", quantisation: 8bit}
    gpt: {use: "openai:gpt-x"}
    guess: {use: "baseline:random"}
materials: {htest: {rules: [uppercase, end_ly], exemplars: 2, items: 4}}
procedure:
  - instructions: read.md
  - block:
      trial:
        - choose: {show: text, ask: "Which group?", keys: {A: f, B: j}, labels: balanced}
tuning:
"""


def write(folder: Path, tuning: str, *, builds: bool = False) -> Study:
    (folder / "study.yaml").write_text(HEAD + tuning + "\n", "utf-8")
    (folder / "read.md").write_text("Sort the lines.\n", "utf-8")
    if builds:
        assert wrods("build", folder).exit_code == 0
    return load_study(folder)


def test_defaults_are_those_that_the_page_states(tmp_path):
    one = trainings(write(tmp_path, "  up: {model: base, on: htest, task: uppercase}"))["up"]
    assert (one.method, one.learning_rate, one.asked, one.seed) == ("lora", 2e-4, "study", 7)
    assert one.lora is not None and (one.lora.rank, one.lora.alpha, one.lora.dropout) == (16, 32.0, 0.05)
    assert (one.warmup, one.decay, one.weight_decay) == (0.03, "cosine", 0.0)
    assert (one.clip, one.validation) == (1.0, 0.05)
    assert [one.epochs_of(replies=replies) for replies in (True, False)] == [3, 1]
    assert [one.batch_of(replies=replies, mean_length=20.0) for replies in (True, False)] == [320, 8192]
    assert (one.sequence_length, one.checkpoint_minutes) == (1024, 10.0)


@pytest.mark.parametrize(
    ("tuning", "said"),
    [
        ("  a: {model: bse, on: t.txt}", r"line \d+: tuning.a.model is 'bse'.*\n.*Did you mean 'base'"),
        ("  a: {model: guess, on: t.txt}", "baseline:random"),
        ("  a: {model: small, on: t.txt}", "quantisation: 8bit"),
        ("  a: {model: gpt, on: htest, task: uppercase, method: full}", r"a\.method"),
        ("  a: {model: gpt, on: htest, task: end_ly, clip: 0.1}", r"clip(.|\n)*openai:gpt-x"),
        ("  a: {model: base, on: t.txt, price: 3}", r"a\.price"),
        ("  a: {model: base, on: t.txt, method: full, lora: {rank: 4}}", r"a\.lora"),
        ("  a: {model: base, on: t.txt, task: uppercase}", r"a\.task"),
        ("  a: {model: base, on: htest}", r"task: "),
        ("  a: {model: base, on: htest, task: upercase}", "'uppercase'"),
        ("  a: {model: base, on: released, task: uppercase}", r"materials"),
        ("  a: {model: base, on: htest, task: uppercase, rule: FT-RS}", r"a\.rule"),
        ("  a: {model: base, on: t.txt, rule: FT-XX}", "FT-RS, FT-KF&Adj, FT-Ori"),
        ("  a: {model: base, on: t.txt, learning_rates: 1}", "'learning_rate'"),
        ('  a: {model: "hf:x/y", on: t.txt}', r'base: \{use: "hf:x/y"\}'),
        ("  A b: {model: base, on: t.txt}", "A b"),
    ],
)
def test_each_fault_names_value_rule_and_mend(tmp_path, tuning, said):
    with pytest.raises(UserError, match=said):
        write(tmp_path, tuning)


def test_lines_of_h_test_are_worded_as_the_study_asks_with_labels_as_its_lists_show_them(tmp_path):
    both = "  up: {model: base, on: htest, task: uppercase}\n  bare: {model: base, on: htest, task: uppercase, asked: bare}"
    study = write(tmp_path, both, builds=True)
    found = {name: list(records_of(study, one)[0]) for name, one in trainings(study).items()}
    assert len(found["up"]) == len(found["bare"]) == 1000
    swapped = 0
    for asked, bare in zip(found["up"], found["bare"], strict=True):
        text, label = bare["prompt"], bare["reply"]
        assert asked["provenance"]["text"] == text and text in asked["prompt"]
        assert asked["prompt"].startswith("Sort the lines.") and "Which group?" in asked["prompt"]
        swapped += asked["reply"] != label
    assert swapped == 500
    shown = {item.shown["text"] for item in study.items}
    assert not shown & {one["prompt"] for one in found["bare"]}
    by_list = {(one["provenance"]["list"], one["provenance"]["prompt_variant"]) for one in found["up"]}
    assert len(by_list) == 4
    assert found["up"] == list(records_of(study, trainings(study)["up"])[0])
    assert {one["reply"] for one in found["up"]} == {"A", "B"}


def test_what_a_training_learns_is_what_the_study_sends(tmp_path):
    """The same item, worded for training and planned for a run, is the same prompt."""
    study = write(tmp_path, "  up: {model: base, on: htest, task: uppercase}", builds=True)
    items = [item for item in study.items if item.role == "test" and item.condition["task"] == "uppercase"]
    lines = [{"provenance": {"text": item.shown["text"], "label": item.answer}} for item in items] * 8
    learnt = {(one["prompt"], one["reply"]) for one in as_asked(study, trainings(study)["up"], lines)}
    sent = set()
    for session in plan_sessions(study, "base", ModelSettings("hf:tiny", {}, tmp_path), {}):
        right = session.right_answers()
        sent |= {(one.messages[0].content, right[one.work_key]) for one in session.begin({})}
    assert learnt <= sent and len(learnt) > len(items)


def test_texts_of_the_study_are_never_trained_on(tmp_path):
    study = write(tmp_path, "  a: {model: base, on: t.txt, texts: 30}", builds=True)
    tested = [item.shown["text"] for item in study.items if item.role == "test"]
    secret = next(text for text in tested if len(text.split()) >= 5)
    texts = [f"Text number {n} tells of something else." for n in range(40)]
    (tmp_path / "t.txt").write_text("\n\n".join([secret, *texts]), "utf-8")
    records = make_records(study, trainings(study)["a"])
    kept = [one["text"] for one in records]
    assert secret not in kept and 29 <= len(kept) <= 30
    assert kept == [text for text in texts if text in kept]
    about = json.loads(records.file.with_name("training.meta.json").read_text("utf-8"))
    assert about["sha256"] == records.sha256


def test_prompts_that_hold_what_the_study_asks_about_are_left_out_and_counted(tmp_path):
    study = write(tmp_path, "  a: {model: base, on: t.jsonl}", builds=True)
    tested = [item.shown["text"] for item in study.items if item.role == "test"]
    examples = [item.shown["text"] for item in study.items if item.role == "exemplar"]
    head = "\n".join(["Which group?", *examples])
    own = [{"prompt": f"{head}\nThey wait for number {n}.", "reply": "A"} for n in range(20)]
    leaks = [
        {"prompt": f"{head}\n{tested[0]}", "reply": "A"},
        {"prompt": f"Which group?\nText: {tested[1].upper()}", "reply": "B"},
        {"messages": [{"role": "user", "content": "Say a line."}], "reply": tested[2]},
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, own[:5] + leaks + own[5:])) + "\n", "utf-8")
    said: list[str] = []
    assert [*make_records(study, trainings(study)["a"], say=said.append)] == own
    about = json.loads((tmp_path / "tuning" / "a" / "training.meta.json").read_text("utf-8"))["about"]
    assert about == {"samples_left_out": 3}
    assert [line.partition(" records")[0] for line in said] == ["a: 3 of 23"]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, own[:5] + leaks * 4)) + "\n", "utf-8")
    (tmp_path / "tuning" / "a" / "training.meta.json").unlink()
    with pytest.raises(UserError, match=r"\b5 records.* 12 "):
        make_records(study, trainings(study)["a"])


def test_files_that_cannot_be_trained_on_are_told(tmp_path):
    study = write(tmp_path, "  a: {model: base, on: t.jsonl}", builds=True)
    for lines, said in (
        (['{"prompt": "a"}'] * 12, r"record 1\b"),
        (['{"prompt": "a", "reply": "b"}'] * 11 + ['{"text": "a b"}'], " 12 "),
        (['{"text": "a b"}'] * 11 + ['{"prompt": "a", "reply": "b"}'], "'text'"),
        (['{"text": "a b"}'] * 3, " 3 records"),
        (['{"text": "  "}'] * 12, " 0 records"),
        (["{"] * 12, "line 1"),
    ):
        (tmp_path / "t.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
        with pytest.raises(UserError, match=said):
            make_records(study, trainings(study)["a"])
        assert not (tmp_path / "tuning" / "a" / "training.jsonl").exists()


def test_check_tells_trainings_and_models_that_are_alike_together(tmp_path):
    tasks = ("uppercase", "end_ly", "rhyme")
    write(tmp_path, "  each: {model: base, on: htest, task: uppercase}")
    models = "".join(f'    on-{task}: {{use: "tuned:each-{task}"}}\n' for task in tasks)
    text = HEAD.replace("[uppercase, end_ly]", f"[{', '.join(tasks)}]").replace(
        "    guess:", f"{models}    guess:"
    )
    text += "  each: {model: base, on: htest, task: each}\n  whole: {model: base, on: htest, task: rhyme, method: full}\n"
    (tmp_path / "study.yaml").write_text(text, "utf-8")
    told = wrods("check", tmp_path)
    assert told.exit_code == 0, told.output
    said = " ".join(told.output.split())
    for once in (
        "3 training runs of base (hf:tiny)",
        "(lora)",
        "whole: base (hf:tiny)",
        "`wrods tune STUDY`",
    ):
        assert said.count(once) == 1, once
    (models,) = (one for one in told.output.split("\n\n") if one.startswith("3 models, on-"))
    for task in tasks:
        assert told.output.count(f"\n  each-{task}: {task};") == 1
        assert f"on-{task} (hf:tuning/each-{task}/model)" in " ".join(models.split())


lengths = st.lists(st.integers(2, 40), min_size=2, max_size=30)


def rows(of: list[int], *, replies: bool) -> TokenRows:
    ids = np.arange(sum(of), dtype=np.int32)
    starts = np.concatenate([[0], np.cumsum(of)]).astype(np.int64)
    return TokenRows(
        ids, starts, np.asarray([1 if not replies else n - 1 for n in of], dtype=np.int32), replies, 0, "k"
    )


def order(of: list[int], *, replies: bool, seed: int = 1) -> Order:
    return Order(
        rows(of, replies=replies), np.arange(len(of)), seed=seed, batch_tokens=50, sequence_length=16
    )


@given(lengths)
def test_running_text_is_predicted_once_an_epoch_but_for_the_very_first_token(of):
    steps = order(of, replies=False)
    for epoch in (0, 1):
        predicted: Counter[int] = Counter()
        for step in range(steps.steps_in(epoch)):
            for piece in steps.pieces(epoch, step):
                assert 2 <= len(piece.ids) <= 17 and piece.scored == 1
                predicted.update(piece.ids[1:].tolist())
        assert set(predicted.values()) == {1} and len(predicted) == sum(of) - 1


@given(lengths)
def test_prompts_are_taken_whole_once_an_epoch_within_the_budget(of):
    steps = order(of, replies=True)
    seen: list[int] = []
    for step in range(steps.steps_in(0)):
        pieces = steps.pieces(0, step)
        assert len(pieces) == 1 or sum(len(piece.ids) for piece in pieces) <= 50
        seen += [int(piece.ids[0]) for piece in pieces]
    assert sorted(seen) == [0, *np.cumsum(of)[:-1].tolist()]


@given(lengths, st.integers(1, 200))
def test_parts_hold_every_piece_and_score_the_reply_alone(of, most):
    pieces = held_out_pieces(rows(of, replies=True), np.arange(len(of)), 16)
    scored: list[int] = []
    for part in parts_of(pieces, most, padding=0):
        assert part.ids.size <= most or len(part.ids) == 1
        scored += part.wanted[part.wanted != IGNORED].tolist()
    assert sorted(scored) == sorted(int(piece.ids[-1]) for piece in pieces)


@pytest.mark.parametrize("template", [None, CHAT_TEMPLATE], ids=["plain", "chat"])
def test_a_reply_is_learnt_where_its_label_is_scored(tmp_path, template):
    from transformers import AutoTokenizer

    byte_pair_tokenizer(tmp_path / "t", template=template, adds_bos=template is None)
    wording = Wording(AutoTokenizer.from_pretrained(str(tmp_path / "t")))
    file = tmp_path / "training.jsonl"
    file.write_text('{"prompt": "Teh dgo barks. A or B?", "reply": "A"}\n' * 12, "utf-8")
    found = encoded(tmp_path, Records(file, 12, True, "x", {}), wording, most=None)
    request = Request("k", (Message("user", "Teh dgo barks. A or B?"),), ("A",), 1, 0.0, 0)
    label = wording.tokens(request).labels[0]
    assert found.row(3).tolist() == [*label.ids, wording.tokenizer.eos_token_id]
    assert found.scored[3] == label.start
    again = encoded(tmp_path, Records(file, 12, True, "x", {}), wording, most=None)
    assert again.key == found.key
    with pytest.raises(Exception, match=r"\b12\b"):
        encoded(tmp_path, Records(file, 12, True, "x", {}), wording, most=3)
