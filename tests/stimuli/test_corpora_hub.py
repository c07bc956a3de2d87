"""Corpora by hub name: rows of ``datasets`` become the same records as the files do."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest

from stimuli.corpora import load_corpus
from stimuli.errors import UserError

GSM = [{"question": f"How many {n}?", "answer": f"So.\n#### {n}"} for n in range(3)]


def hub_of(monkeypatch, splits):
    """Stand in for the package: its two loading functions, over rows at hand."""
    asked = []

    def load_dataset(name, configuration=None, *, revision=None):
        asked.append((name, configuration, revision))
        return splits

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    return asked


def test_a_corpus_comes_from_the_hub_with_the_ids_of_its_file(monkeypatch, tmp_path):
    asked = hub_of(monkeypatch, {"train": GSM[:1], "test": GSM})
    loaded = load_corpus("gsm8k", hub="openai/gsm8k", split="test")
    assert asked == [("openai/gsm8k", "main", None)]
    path = tmp_path / "test.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in GSM), encoding="utf-8")
    from_file = load_corpus("gsm8k", path)
    assert [(r.record_id, r.texts, r.answer, r.split, r.line) for r in loaded.records] == [
        (r.record_id, r.texts, r.answer, r.split, r.line) for r in from_file.records
    ]


def test_questions_of_a_dialogue_on_the_hub_are_counted(monkeypatch):
    row = {"dialogue": ["M: Hi.", "F: Oh."], "choice": ["a", "b", "c"], "answer": "b"}
    rows = [
        {"id": n, "dialogue_id": name, "question": f"Q{n}?", **row}
        for n, name in enumerate(["5-1", "5-1", "5-2"])
    ]
    hub_of(monkeypatch, {"test": rows})
    records = load_corpus("dream", hub="dataset-org/dream", split="test").records
    assert [record.record_id for record in records] == ["5-1-1", "5-1-2", "5-2-1"]
    assert records[0].texts == {"dialogue": "M: Hi.\nF: Oh.", "question": "Q0?"}


HUB_ROWS = json.loads("""
{"aqua": {"question": "Q", "options": ["A)1", "B)2"], "rationale": "So.", "correct": "B"},
 "csqa": {"id": "x", "question": "Q", "question_concept": "c", "choices": {"label": ["A", "B"], "text": ["1", "2"]}, "answerKey": "B"},
 "squad": {"id": "x", "title": "T", "context": "1 or 2", "question": "Q", "answers": {"text": ["2"], "answer_start": [5]}},
 "mbpp": {"task_id": 11, "text": "T", "code": "2", "test_list": ["assert 2"], "test_setup_code": "", "challenge_test_list": []}}
""")


@pytest.mark.parametrize("name", HUB_ROWS)
def test_columns_of_the_hub_become_records(monkeypatch, name):
    hub_of(monkeypatch, {"test": [HUB_ROWS[name]]})
    (record,) = load_corpus(name, hub="owner/any").records
    assert (record.answer, record.split) == ("2", "test")


def test_a_local_data_set_folder_is_read_by_the_real_package(tmp_path):
    datasets = pytest.importorskip("datasets", reason="the Python package datasets is not installed")
    rows = datasets.Dataset.from_list(GSM)
    datasets.DatasetDict({"test": rows}).save_to_disk(str(tmp_path / "saved"))
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in GSM), encoding="utf-8")
    for folder in (tmp_path / "saved", plain):
        loaded = load_corpus("gsm8k", hub=str(folder), split="test")
        assert [record.answer for record in loaded.records] == ["0", "1", "2"]


def test_a_missing_package_is_named_with_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UserError, match=r'pip install "wrods\[hub\]"'):
        load_corpus("gsm8k", hub="openai/gsm8k")


def test_what_the_hub_does_not_have_is_said_in_words(monkeypatch):
    hub_of(monkeypatch, {"train": GSM, "test": GSM})
    with pytest.raises(UserError, match="'train'"):
        load_corpus("gsm8k", hub="openai/gsm8k", split="trains")
    with pytest.raises(UserError, match="RealtimeQA"):
        load_corpus("realtimeqa", hub="any/name")
    with pytest.raises(UserError, match="a/b/c"):
        load_corpus("gsm8k", hub="a/b/c")

    def offline(*_, **__):
        raise ConnectionError("no network\nsecond line")

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=offline))
    with pytest.raises(UserError, match=r"openai/gsm8k:main .*no network\n"):
        load_corpus("gsm8k", hub="openai/gsm8k")
