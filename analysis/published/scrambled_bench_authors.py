"""The authors' own repository of Scrambled Bench: a file of JSON lines for each data set, method, condition and model.

Under ``output/`` stand ``scrambled_qa/scrambled_{AQuA,DREAM_test,DREAM_dev,realtimeQA}/METHOD/COND/MODEL`` (for word problems with the
scramble of the examples, ``demo_random_50%``, before the condition) and ``scrambled_rec/scrambled_realtimeQA/METHOD/COND/MODEL``.
A line has ``input, output, pred, GT``; of word problems ``pred_strict, pred_loose`` for ``pred``; of recovery ``output, scrambled,
original, recovered``. Lines have no number: the i-th belongs to the i-th question.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.published.scrambled_bench import Reply
from stimuli.corpora import load_corpus
from stimuli.corpora.record import Record
from stimuli.errors import UserError

OUTPUT = "output"
_TASKS = {"scrambled_qa": "qa", "scrambled_rec": "rec"}
_DATA = {
    "scrambled_realtimeqa": ("realtimeqa", ""),
    "scrambled_dream_test": ("dream", "test"),
    "scrambled_dream_dev": ("dream", "dev"),
    "scrambled_aqua": ("aqua", ""),
}
_CONDITIONS = {
    "original": "original",
    "random_20%": "rs20",
    "random_50%": "rs50",
    "random_100%": "rs100",
    "keepfirst": "kf",
    "keepfirstlast": "kfl",
    "substituted": "sub",
}
_EXAMPLES = {
    f"demo_random_{rate}%": column
    for rate, column in (("0", "Ori"), ("20", "20%"), ("50", "50%"), ("100", "100%"))
}
_LAYOUT = (
    "Files stand as output/scrambled_qa/scrambled_DREAM_test/zero-shot/original/MODEL, those of word problems as "
    "output/scrambled_qa/scrambled_AQuA/few-shot-cot/demo_random_50%/original/MODEL."
)
SPLITS = ("test", "dev")


@dataclass(frozen=True)
class AuthorsFile:
    """One file of responses and what its path says."""

    path: Path
    task: str  # as `analysis.published.scrambled_bench.Reply`
    data: str
    split: str  # ``test`` or ``dev`` of DREAM, empty for the others
    method: str
    examples: str
    condition: str
    model: str


def authors_files(folder: Path) -> list[AuthorsFile]:
    """Return the files of ``output/``, in the order of their paths; none where there is no such folder."""
    found = []
    for name, task in _TASKS.items():
        base = folder / OUTPUT / name
        for path in sorted(base.rglob("*")):
            if path.is_file() and not any(part.startswith(".") for part in path.relative_to(base).parts):
                found.append(_placed(path, path.relative_to(base).parts, task))
    return found


def authors_replies(files: Sequence[AuthorsFile]) -> Iterator[Reply]:
    """Read every response of these files."""
    for file in files:
        for number, row in enumerate(_lines(file.path), 1):
            try:
                yield _reply(file, number, row)
            except KeyError as error:
                raise UserError(
                    f"{file.path}, line {number} has no {error.args[0]!r}",
                    mend="Give the authors' files as they are.",
                ) from error


def check_dream(files: Sequence[AuthorsFile], dream: Path) -> dict[str, tuple[str, ...]]:
    """Return the categories of every question of DREAM, by the item's name."""
    asked: dict[str, list[Record]] = {
        split: list(load_corpus("dream", dream, split=split, selection="annotated").records)
        for split in SPLITS
    }
    for file in files:
        if file.data != "dream":
            continue
        records = asked[file.split]
        number = 0
        for number, row in enumerate(_lines(file.path), 1):
            if number <= len(records) and not _asks(str(row.get("input", "")), records[number - 1]):
                raise UserError(
                    f"{file.path}, line {number} does not ask {records[number - 1].texts['question']!r}, the question of this "
                    f"place in DREAM's {file.split}",
                    mend="Give the authors' files as they are, and DREAM with its annotator1_test.txt, annotator2_test.txt and "
                    "annotator2_dev.txt.",
                )
        if number != len(records):
            raise UserError(
                f"{file.path} has {number:,} lines; {len(records):,} questions of DREAM's {file.split} were asked",
                mend="Give the authors' files as they are.",
            )
    return {
        f"{split} {place}": tuple(str(one.extra.get("categories") or "").split(", "))
        for split, records in asked.items()
        for place, one in enumerate(records)
    }


def options_of(prompt: str) -> tuple[str, ...]:
    """Return the options of the last ``Choices:`` line of a prompt, without their letters; none where there is no such line."""
    line = prompt.rpartition("\nChoices: ")[2].partition("\nAnswer:")[0] if "\nChoices: " in prompt else ""
    found: list[str] = []
    rest = line
    for letter in "ABCDE":
        before, mark, behind = rest.partition(f"({letter})")
        if not mark:
            break
        if found:
            found[-1] = before.rstrip()
        found.append(behind)
        rest = behind
    return tuple(one.strip() for one in found)


def _placed(path: Path, parts: tuple[str, ...], task: str) -> AuthorsFile:
    middle = parts[2:-2]
    data, split = _DATA.get(parts[0].casefold(), ("", ""))
    is_problem = data == "aqua"
    if (
        not data
        or len(parts) != 4 + is_problem
        or parts[-2] not in _CONDITIONS
        or (is_problem and middle[0] not in _EXAMPLES)
        or (task == "rec" and data != "realtimeqa")
    ):
        raise UserError(f"{path} is not where the authors put their files", mend=_LAYOUT)
    examples = _EXAMPLES[middle[0]] if is_problem else "Ori"
    model = re.sub(r"\.jsonl?$", "", parts[-1])
    return AuthorsFile(path, task, data, split, parts[1], examples, _CONDITIONS[parts[-2]], model)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
            except ValueError as error:
                raise UserError(
                    f"{path}, line {number} is not JSON: {error}", mend="Give the authors' files as they are."
                ) from error
            if not isinstance(row, dict):
                raise UserError(
                    f"{path}, line {number} is {line.strip()[:40]!r}; a line is a response with its fields",
                    mend="Give the authors' files as they are.",
                )
            yield row


def _reply(file: AuthorsFile, number: int, row: dict[str, Any]) -> Reply:
    item = f"{file.split} {number - 1}" if file.split else number - 1
    base = (file.model, file.task, file.data, file.method, file.condition, item)
    if file.task == "rec":
        read, intact, shown = (str(row[name]) for name in ("recovered", "original", "scrambled"))
        return Reply(*base, str(row.get("output", "")), read.strip(), intact, (shown,))
    options = options_of(str(row["input"]))
    key, output = str(row["GT"]), str(row.get("output", ""))
    if file.data == "aqua":
        loose = str(row["pred_loose"])
        return Reply(*base, output, str(row["pred_strict"]), key, options, loose, file.examples)
    return Reply(*base, output, str(row["pred"]), key, options)


def _asks(prompt: str, record: Record) -> bool:
    question = prompt.rpartition("\nQuestion: ")[2].partition("\nChoices: ")[0]
    return _plain(question) == _plain(record.texts["question"]) and [
        _plain(one) for one in options_of(prompt)
    ] == [_plain(one) for one in record.choices or ()]


def _plain(text: str) -> str:
    return " ".join(text.split())
