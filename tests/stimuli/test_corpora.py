"""RealtimeQA files: what is read, and how a broken line is named."""

from __future__ import annotations

import json

import pytest

from stimuli.corpora import load_corpus
from stimuli.corpora.realtimeqa import recovery_sentences
from stimuli.errors import UserError

RECORD = {
    "question_id": "20230317_0",
    "question_sentence": "Which <b>one</b>?",
    "choices": ["this", "that"],
    "answer": ["1"],
    "evidence": 'That <a href="x">one</a>&nbsp;&amp; no other',
}


def records_of(where):
    return load_corpus("realtimeqa", where).records


def week(folder, *records, name="20230317_qa.jsonl"):
    path = folder / name
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def test_a_folder_gives_its_files_by_date(tmp_path):
    week(tmp_path, RECORD | {"question_id": "b"}, name="20230324_qa.jsonl")
    week(tmp_path, RECORD | {"question_id": "a"}, name="20230317_qa.jsonl")
    assert [record.extra["question_id"] for record in records_of(tmp_path)] == ["a", "b"]


def test_recovery_sentences_are_distinct_sorted_and_end_in_a_full_stop(tmp_path):
    path = week(
        tmp_path,
        RECORD | {"question_id": "1", "evidence": "Zebras run"},
        RECORD | {"question_id": "2", "evidence": "<p>Apes climb.</p>"},
        RECORD | {"question_id": "3", "evidence": "Zebras run."},
        RECORD | {"question_id": "4", "evidence": ""},
    )
    texts = recovery_sentences(records_of(path))
    assert [(text.source_id, text.text) for text in texts] == [
        ("20230317_1", "Apes climb."),
        ("20230317_0", "Zebras run."),
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{bad", "line 2: not valid JSON"),
        ("[1]", "line 2: a line holds one JSON object, not list"),
        ('{"question_id": "x"}', "line 2: 'question_sentence' is missing"),
        (json.dumps(RECORD | {"choices": "this"}), "line 2: 'choices' is 'this', not a list"),
        (json.dumps(RECORD | {"answer": ["7"]}), "line 2: answer ['7'] does not name one of 2 choices"),
        (json.dumps(RECORD | {"answer": None}), "line 2: answer None"),
    ],
)
def test_a_broken_line_is_named_with_file_and_number(tmp_path, line, said):
    path = week(tmp_path, RECORD)
    with path.open("a", encoding="utf-8") as stream:
        stream.write(line + "\n")
    with pytest.raises(UserError) as raised:
        records_of(path)
    assert str(path) in str(raised.value) and said in str(raised.value)


def test_a_folder_without_files_and_a_missing_file_are_named(tmp_path):
    with pytest.raises(UserError, match="has no file of RealtimeQA"):
        records_of(tmp_path)
    with pytest.raises(UserError, match="does not exist"):
        records_of(tmp_path / "none.jsonl")
