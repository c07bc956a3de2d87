"""MBPP: short programming tasks with assertions; the full file and the sanitized one."""

from __future__ import annotations

from collections.abc import Iterator

from stimuli.corpora.corpus import Corpus, CorpusSplit, Hub, RawRecord, Record, RecordLocation

# Last task of each split, by Austin et al. (2021), section 2.1.
_LAST_TASK = {"prompt": 10, "test": 510, "validation": 600, "train": 974}


def read(row: RawRecord, place: RecordLocation) -> Iterator[Record]:
    """Read a task of either file; the split follows from the task's number."""
    sanitized = "prompt" in row
    task = place.value(row, "task_id", int)
    split = next((name for name, last in _LAST_TASK.items() if 1 <= task <= last), None)
    if split is None:
        raise place.fault(f"task_id is {task}; tasks are numbered 1 to 974")
    setup = "\n".join(place.texts(row, "test_imports")) if sanitized else row.get("test_setup_code")
    challenge = [] if sanitized else place.texts(row, "challenge_test_list")
    tests = place.texts(row, "test_list")
    if not tests:
        raise place.fault("test_list is empty")
    yield place.record(
        f"{task}-sanitized" if sanitized else str(task),
        {"text": place.text(row, "prompt" if sanitized else "text")},
        answer=place.text(row, "code"),
        tests=tests,
        setup=setup or None,
        extra={"task": float(task), "challenge_tests": "\n".join(challenge) or None},
        split=split,
    )


CORPUS = Corpus(
    name="mbpp",
    title="MBPP",
    citation="Austin et al. (2021). Program synthesis with large language models. arXiv:2108.07732.",
    licence="CC BY 4.0",
    fields=("text",),
    reading_field="text",
    parts=(
        CorpusSplit(
            None,
            ("sanitized*.json", "mbpp_sanitized*.json*"),
            left_out="the sanitized file has 427 of the same tasks, some reworded; name the file itself to load it",
        ),
        CorpusSplit(None, ("mbpp*.jsonl",)),
    ),
    read=read,
    hub=Hub("google-research-datasets/mbpp", "full"),
    same=("task",),
)
