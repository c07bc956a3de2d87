"""What a model's restored text is, about which it is then asked."""

from __future__ import annotations

from experiment.parsing.replies import parse_recovered
from experiment.parsing.restored import UNCHANGED

UNSCRAMBLE = "unscramble"
"""Purpose of the call that asks for the restored text."""


def restored_text(shown: str, reply: str) -> str | None:
    """Return a shown text as a reply restored it; None where it gives none, and the text stays as it was shown.

    A text of one line is restored by one line: what stands below it is the model's remark. A reply which says that nothing
    is to be changed leaves the text as it is.
    """
    text = parse_recovered(reply, multiline="\n" in shown.strip()).value
    return None if text is None or UNCHANGED.fullmatch(text) else text


def is_restored(reply: str | None, status: str) -> bool:
    """Say whether a reply gives a whole text back, or says that it was whole."""
    if status != "answered" or reply is None:
        return False
    return parse_recovered(reply, multiline=True).status == "valid"
