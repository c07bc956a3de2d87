"""The lists that the papers asked about, and the longer ones that their scrambling passes went over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from stimuli.corpora.dream import NOT_ASKED
from stimuli.corpora.loading import load_corpus
from stimuli.corpora.record import Record
from stimuli.errors import UserError, unknown_name
from stimuli.scramble.published.lists import DREAM_DROPPED

TYPOBENCH = frozenset({"gsm8k", "mbpp", "boolq", "squad", "csqa"})
"""Corpora of TypoBench: its script pools all splits and cannot load three of these; no sample was released, so one of the user's
own takes its place."""
_OF_TYPOBENCH = ("complete", "rectify", "summarise", "translate")


@dataclass(frozen=True)
class PublishedList:
    """Records in the published order."""

    records: tuple[Record, ...]  # what is asked
    # what the published pass goes over: these, or a longer list that holds them
    pass_over: tuple[Record, ...]


def published_list(
    corpus: str, where: Path | Iterable[Path], *, task: str, split: str | None = None
) -> PublishedList:
    """Load what a paper asked, for :func:`stimuli.recipes.tasks.task_items` with ``published=True``."""
    asked = {"realtimeqa": ("recover", "question"), "dream": ("question",), "aqua": ("problem",)}
    if corpus in TYPOBENCH:
        if task not in _OF_TYPOBENCH:
            raise UserError(
                f"task {task} was not published with {corpus}",
                mend=f"Use one of TypoBench's: {', '.join(_OF_TYPOBENCH)}; or leave items out of published.",
            )
        records = load_corpus(corpus, where, split=split).records
        return PublishedList(records, records)
    if corpus not in asked:
        raise unknown_name("published list of corpus", corpus, asked)
    if task not in asked[corpus]:
        raise UserError(
            f"task {task} was not published with {corpus}",
            mend=f"Use {' or '.join(asked[corpus])}, or the corrected mode.",
        )
    if corpus == "realtimeqa":
        whole = load_corpus(corpus, where, selection="recovery").records
        some = load_corpus(corpus, where, selection="answerable").records if task == "question" else whole
        return PublishedList(some, whole)
    if corpus == "aqua":
        problems = load_corpus(corpus, where, split="test").records
        return PublishedList(problems, problems)
    sources = where if isinstance(where, Path) else tuple(where)
    parts = [_dream(sources, one) for one in ((split,) if split else tuple(DREAM_DROPPED))]
    return PublishedList(
        tuple(record for part in parts for record in part.records),
        tuple(record for part in parts for record in part.pass_over),
    )


def _dream(where: Path | Iterable[Path], split: str) -> PublishedList:
    """Return the annotated questions of a split; the pass went over the question, too, that was dropped afterwards."""
    asked = load_corpus("dream", where, split=split, selection="annotated").records
    whole = list(asked)
    if DREAM_DROPPED.get(split):
        by_id = {record.record_id: record for record in load_corpus("dream", where, split=split).records}
        for place in DREAM_DROPPED[split]:
            whole.insert(place, by_id[NOT_ASKED])
    return PublishedList(asked, tuple(whole))
