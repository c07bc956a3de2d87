"""What a withdrawal erases of a study's models beside the store: answers in the cache, and those that came with batches."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from experiment.models.api.batch_ledger import FOLDER
from experiment.models.api.cache import forget_answers
from stimuli.errors import UserError
from stimuli.files import replace_file


def forget_replies(folder: Path, work_keys: Iterable[str]) -> tuple[int, list[str]]:
    """Erase the replies to pieces of work, and to the calls made before them, from a study's folder."""
    keys, left, count = set(work_keys), [], 0
    if not keys:
        return 0, []
    try:
        count += forget_answers(folder, keys)
    except UserError as fault:
        left.append(str(fault))
    for file in sorted((folder / FOLDER).glob("*.answers")):
        lines = file.read_text("utf-8").splitlines()
        kept = [line for line in lines if _work_of(line) not in keys]
        if len(kept) == len(lines):
            continue
        count += len(lines) - len(kept)
        # what was paid for and stays is on the disk before the old bytes go, which the open file still holds
        with file.open("r+b") as opened:
            size = file.stat().st_size
            if kept:
                replace_file(file, "\n".join(kept))
            else:
                file.unlink()
            opened.write(b"\0" * size)
            opened.flush()
            os.fsync(opened.fileno())
    return count, left


def _work_of(line: str) -> str:
    return str(json.loads(line).get("custom_id")).partition(":")[0]
