"""What a model's restored text is, about which it is then asked."""

from __future__ import annotations

from experiment.parsing.replies import parse_recovered, without_thought

UNSCRAMBLE = "unscramble"
"""Purpose of the call that asks for the restored text."""


def given_back(reply: str | None, status: str) -> str:
    """Return what a finished call brought to go on from; nothing where it was cut short, declined or empty.

    A text that was cut short is no restored text, and a call that was answered so is not made again.
    """
    return reply or "" if status == "answered" else ""


def restored_text(shown: str, reply: str) -> str | None:
    """Return a shown text as a reply restored it; None where it gives none, and the question is asked about the text as shown.

    A text of one line is restored by one line: what stands below it is the model's remark. A reply which says that nothing
    is to be changed leaves the text as it is.
    """
    said = without_thought(reply)
    return parse_recovered(said, multiline="\n" in shown.strip(), shown=shown).value


def is_restored(reply: str | None, status: str) -> bool:
    """Say whether a reply gives a whole text back, or says that it was whole."""
    said = without_thought(given_back(reply, status))
    return parse_recovered(said, multiline=True, shown="").status == "valid"
