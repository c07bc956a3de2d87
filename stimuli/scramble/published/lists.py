"""The lists of texts that the published passes of Cao et al. (2023) went over, and which of them were asked about.

A pass over the texts that were asked about alone gives other strings: RealtimeQA's questions take their evidence from
the pass over all 408 sentences, and one annotated question of DREAM's dev part was dropped after the pass.
RealtimeQA's own list comes from :func:`stimuli.corpora.realtimeqa.published_list`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stimuli.errors import UserError, unknown_name
from stimuli.scramble.published import Given, PublishedOperation, published_pass

DREAM_ANNOTATOR: Mapping[str, int] = {"test": 1, "dev": 2}
"""Which annotator's file orders the questions of a part."""

DREAM_DROPPED: Mapping[str, tuple[int, ...]] = {"test": (), "dev": (371,)}
"""Places of the annotated questions that went through the pass and were left out afterwards."""

_LETTERED = re.compile(r"\s*[A-E]\)\s*")


@dataclass(frozen=True)
class PublishedList:
    """The texts of one pass in their order."""

    texts: tuple[str, ...]  # what the pass goes over
    # places of the texts that questions were asked about, in the order of the questions
    asked: tuple[int, ...]

    def shown(
        self, operation: Given | PublishedOperation, *, rate: float | None = None, seed: int | None = None
    ) -> list[str]:
        """Scramble the whole list and return the texts that were asked about."""
        done = published_pass(self.texts, operation, rate=rate, seed=seed)
        return [done[place] for place in self.asked]


def dream_list(
    dialogues: Mapping[str, Sequence[str]], annotated: Sequence[str], *, split: str
) -> PublishedList:
    """Return the dialogues of a part of DREAM as the published pass took them: one per annotated question."""
    if split not in DREAM_DROPPED:
        raise unknown_name("annotated part of DREAM", split, DREAM_DROPPED)
    for dialogue in annotated:
        if dialogue not in dialogues:
            raise UserError(
                f"annotated dialogue {dialogue!r} is not among the dialogues of {split}",
                mend="Give the dialogues of the same part as the annotator's file.",
            )
    texts = tuple("\n".join(dialogues[dialogue]) for dialogue in annotated)
    return PublishedList(
        texts, tuple(place for place in range(len(texts)) if place not in DREAM_DROPPED[split])
    )


def aqua_list(questions: Sequence[str]) -> PublishedList:
    """Return AQuA-RAT's test questions as the published pass took them: as they stand in the file, all asked."""
    return PublishedList(tuple(questions), tuple(range(len(questions))))


def aqua_choices(options: Sequence[str]) -> list[str]:
    """Take the letters off AQuA-RAT's options; off twice where every option has its letter twice (``A)A)59``)."""
    texts = [_LETTERED.sub("", option, count=1).strip() for option in options]
    if all(_LETTERED.match(text) for text in texts):
        texts = [_LETTERED.sub("", text, count=1).strip() for text in texts]
    return texts
