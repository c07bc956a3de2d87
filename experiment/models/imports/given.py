"""What an import takes and what it came to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stimuli.item import Item

SHOWN = 20
"""How many different values or predictions are told one by one."""


@dataclass(frozen=True)
class Given:
    """One response, as a table or a released file gives it."""

    where: str  # file and line
    item: Item
    response: str | None
    rt: float | None = None  # milliseconds
    more: Mapping[str, Any] = field(default_factory=dict)  # further columns of the trials table
    prompt: str | None = None
    prediction: str | None = None  # what somebody read from it before


@dataclass(frozen=True)
class GivenSession:
    """One reader's responses in the order of the source."""

    reader: str
    key: str
    list_id: int
    responses: Sequence[Given]
    condition: Mapping[str, str] = field(default_factory=dict)
    prompt_variant: int = 1


@dataclass(frozen=True)
class GivenSource:
    """A file's sessions, what each of them keeps of where it is from, and what is to be told of the file."""

    name: str
    sha256: str
    sessions: Sequence[GivenSession]
    about: Mapping[str, Any]
    remarks: Sequence[str] = ()

    def responses(self) -> Iterator[Given]:
        """Iterate over the responses of all sessions."""
        for session in self.sessions:
            yield from session.responses


@dataclass
class Unread:
    """A person's answer that means nothing in the study: how often, where first, and what could have been meant."""

    count: int
    where: str
    labels: tuple[str, ...]


@dataclass
class Imported:
    """What an import came to."""

    source: str
    sha256: str
    # sessions, trials: stored now
    sessions: int = 0
    trials: int = 0
    same: int = 0  # trials that were here already
    statuses: dict[str, int] = field(default_factory=dict)  # trials of the source by response status
    # People's answers that are none of the study's labels, by what was answered
    unread: dict[str, Unread] = field(default_factory=dict)
    repeated: int = 0  # trials that show a reader an item again in the same condition of the same session
    first_repeated: str | None = None  # where the first of them stands
    # predictions, agreeing: stored predictions, and how many of them wrods reads from the same response
    predictions: int = 0
    agreeing: int = 0
    differing: list[str] = field(default_factory=list)  # the first that differ
    remarks: list[str] = field(default_factory=list)  # what looks as if it was not meant
