"""Says what the operating system refused: which file, why, and what to do; a full disk is no fault of the program."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator

from stimuli.errors import UserError

MENDS: dict[int, str] = {
    errno.ENOSPC: "Free some space, then give the same command again.",
    errno.EDQUOT: "Free some space of your quota, then give the same command again.",
    errno.EACCES: "Choose a place that is yours to write to, or change its permissions.",
    errno.EPERM: "Choose a place that is yours to write to, or change its permissions.",
    errno.EROFS: "Choose a place that can be written to.",
    errno.ENOENT: "Check the path; the folder above it must exist and take new files.",
    errno.ENOTDIR: "Check the path; a part of it is a file where a folder is needed.",
    errno.EISDIR: "Check the path; it is a folder where a file is needed.",
    errno.ENAMETOOLONG: "Choose a shorter name.",
    errno.EMFILE: "Close other programs or raise the limit of open files (ulimit -n).",
    errno.EIO: "The disk may be failing or disconnected: check it, then give the same command again.",
}
_NUMBERED = re.compile(r"\[errno (\d+)\]", re.IGNORECASE)


def as_user_error(error: OSError) -> UserError:
    """Turn an error of the operating system into one that says file, reason and mend.

    ``error``: also ``shutil.Error``, which gathers several, and the errors of pyarrow, which hold the number in their text.
    """
    number, file, text = _first_cause(error)
    reason = os.strerror(number) if number else text
    place = f"{file}: " if file else ""
    mend = MENDS.get(number or 0, "Check the disk and the path, then give the same command again.")
    return UserError(f"{place}{reason[:1].lower()}{reason[1:]}", mend=mend, exit_code=1)


def _first_cause(error: OSError) -> tuple[int | None, str | None, str]:
    """Return number, file and words of an error, looking into what only its text says."""
    if error.errno is not None:
        files = [str(name) for name in (error.filename, error.filename2) if name is not None]
        return error.errno, " → ".join(files) or None, str(error)
    for file, words in _gathered(error):
        return _number_in(words), file, words
    words = str(error).strip() or type(error).__name__
    return _number_in(words), None, words.splitlines()[0]


def _gathered(error: OSError) -> Iterator[tuple[str, str]]:
    """Yield target and reason of each file that ``shutil`` could not copy."""
    if error.args and isinstance(error.args[0], list):
        for one in error.args[0]:
            if isinstance(one, tuple) and len(one) == 3:
                yield str(one[1]), str(one[2])


def _number_in(words: str) -> int | None:
    found = _NUMBERED.search(words)
    return int(found[1]) if found else None
