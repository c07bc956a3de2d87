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
    """One response, as a table or a released file gives it.

    Attributes
    ----------
    where : str
        File and line.
    item : Item
    rt : float or None
        Milliseconds.
    more : mapping
        Further columns of the trials table.
    prediction : str or None
        What somebody read from it before.
    """

    where: str
    item: Item
    response: str | None
    rt: float | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    prompt: str | None = None
    prediction: str | None = None


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
    """What an import came to.

    Attributes
    ----------
    sessions, trials : int
        Stored now.
    same : int
        Trials that were here already.
    statuses : dict
        Trials of the source by response status.
    unread : dict
        People's answers that are none of the study's labels, by what was answered.
    repeated : int
        Trials that show a reader an item again in the same condition of the same session.
    first_repeated : str or None
        Where the first of them stands.
    predictions, agreeing : int
        Stored predictions, and how many of them wrods reads from the same response.
    differing : list of str
        The first that differ.
    remarks : list of str
        What looks as if it was not meant.
    """

    source: str
    sha256: str
    sessions: int = 0
    trials: int = 0
    same: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    unread: dict[str, Unread] = field(default_factory=dict)
    repeated: int = 0
    first_repeated: str | None = None
    predictions: int = 0
    agreeing: int = 0
    differing: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
