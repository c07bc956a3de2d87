"""The file of a fine-tuning job: prompts with replies as chats, held against the rules of the format before anything is sent.

Rules as the API's reference has them: a JSON object a line with ``messages``, each with a role and a text, the last one the
assistant's; ten examples or more; a bound on an example's tokens and on a file's bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiment.tuning.records import Record, Records, messages_of
from experiment.tuning.rows import parted
from experiment.tuning.settings import Training
from stimuli.errors import UserError
from stimuli.files import file_sha256, replace_file

TRAINING_FILE, VALIDATION_FILE, JOB_FILE = "api-training.jsonl", "api-validation.jsonl", "api-job.json"
FEWEST_EXAMPLES = 10
MOST_TOKENS = 65_536
"""Of one example: what the models that can be trained read at most in training."""
MOST_BYTES = 512 * 10**6
ROLES = ("system", "user", "assistant")
MESSAGE_TOKENS = 16
"""Most tokens that a chat's form puts around a message."""
MOST_SUFFIX = 64


@dataclass(frozen=True)
class JobFiles:
    """The files of a job.

    Attributes
    ----------
    training, validation : Path or None
    examples, held_out : int
    most_tokens : int
        The most tokens that an epoch can have: a tokenizer makes at most one of a byte.
    sha256 : str
        Of the training file.
    """

    training: Path
    validation: Path | None
    examples: int
    held_out: int
    most_tokens: int
    sha256: str


def write_job_files(training: Training, records: Records) -> JobFiles:
    """Write the files that a provider trains on; what is there already is written again the same.

    Raises
    ------
    UserError
        Records are running text, or break a rule of the format; says which and where.
    """
    if not records.replies:
        raise UserError(
            f"{training.place}: {training.on} is running text, and {training.model.use} is trained on prompts with replies",
            mend="Give prompts with replies, or name a local model (hf:…) for running text.",
        )
    trained, apart = parted(records.number, training.validation, training.seed)
    held_out = set(apart.tolist()) if min(len(trained), len(apart)) >= FEWEST_EXAMPLES else set()
    parts: dict[bool, list[Record]] = {False: [], True: []}
    for place, record in enumerate(records):
        parts[place in held_out].append(chat_of(record))
    paths = {False: training.folder / TRAINING_FILE, True: training.folder / VALIDATION_FILE}
    for is_held_out, chats in parts.items():
        if chats:
            lines = [json.dumps(chat, ensure_ascii=False, separators=(",", ":")) for chat in chats]
            check_chats(lines, paths[is_held_out])
            replace_file(paths[is_held_out], "\n".join(lines) + "\n")
    return JobFiles(
        paths[False],
        paths[True] if parts[True] else None,
        len(parts[False]),
        len(parts[True]),
        sum(most_tokens(chat) for chat in parts[False]),
        file_sha256(paths[False]),
    )


def job_of(training: Training, files: JobFiles) -> dict[str, Any]:
    """Return what a job is made with, but for the names that uploaded files get."""
    method = {
        "type": "supervised",
        "supervised": {"hyperparameters": {"n_epochs": training.epochs_of(replies=True)}},
    }
    return {
        "model": training.model.name,
        "training_file": files.training.name,
        **({"validation_file": files.validation.name} if files.validation else {}),
        "seed": training.seed % 2**31,
        "suffix": training.name[:MOST_SUFFIX],
        "method": method,
    }


def chat_of(record: Record) -> dict[str, Any]:
    """Return a prompt with its reply as a chat."""
    messages = [{"role": turn.role, "content": turn.content} for turn in messages_of(record)]
    return {"messages": [*messages, {"role": "assistant", "content": record["reply"]}]}


def most_tokens(chat: Mapping[str, Any]) -> int:
    """Return the most tokens that a chat can have."""
    return sum(len(one["content"].encode("utf-8")) + MESSAGE_TOKENS for one in chat["messages"])


def check_chats(lines: Iterable[str], file: Path) -> None:
    """Hold a file of chats against the rules of the format.

    Raises
    ------
    UserError
        Names file, line, rule and mend.
    """
    number = size = 0
    for number, line in enumerate(lines, 1):
        size += len(line.encode("utf-8")) + 1
        fault = _fault(line)
        if fault is not None:
            raise UserError(
                f"{file.name}, line {number}: {fault}",
                mend='A line is {"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}]}.',
            )
    if number < FEWEST_EXAMPLES:
        raise UserError(
            f"{file.name} has {number} examples, and a provider trains on {FEWEST_EXAMPLES} or more",
            mend="Give more prompts with replies.",
        )
    if size > MOST_BYTES:
        raise UserError(
            f"{file.name} has {size / 1e6:,.0f} MB, and a file of a job holds {MOST_BYTES / 1e6:,.0f} MB at most",
            mend="Train on fewer records (texts: N).",
        )


def _fault(line: str) -> str | None:
    """Say which rule a line breaks; None where it keeps all."""
    try:
        chat = json.loads(line)
    except ValueError as fault:
        return f"no JSON ({fault})"
    messages = chat.get("messages") if isinstance(chat, dict) else None
    if not isinstance(messages, list) or not messages:
        return "it has no messages"
    for one in messages:
        if not isinstance(one, dict) or one.get("role") not in ROLES:
            role = one.get("role") if isinstance(one, dict) else one
            return f"the role {role!r} is none of {', '.join(ROLES)}"
        if not isinstance(one.get("content"), str) or not one["content"]:
            return f"a message of the {one['role']} is empty"
    if messages[-1]["role"] != "assistant":
        return (
            f"its last message is the {messages[-1]['role']}'s, and what is learnt is the assistant's reply"
        )
    if all(one["role"] != "user" for one in messages):
        return "nothing is asked: it has no message of the user"
    tokens = most_tokens(chat)
    if tokens > MOST_TOKENS * 4:
        return f"it has about {tokens // 4:,} tokens, and an example may have {MOST_TOKENS:,}"
    return None
