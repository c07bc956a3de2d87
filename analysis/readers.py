"""Readers: the order of reader groups, their names in a report, and which of them count as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from analysis import apa
from analysis.names import upper_first
from analysis.plan import readers_in_words

PARTICIPANT_KINDS = ("human", "simulated")
DATA_KINDS = ("human", "model")
MODELS_IN_GENERAL = "models in general"
"""The reader group of a comparison in which models are a sample of models, as participants are of people."""
MOST_MODELS_NAMED = 4
"""Models of a study that a sentence on all of them still names."""
_RANK = {"human": 0, "simulated": 1, "model": 2, "baseline": 3}


def group_order(trials: pd.DataFrame) -> list[str]:
    """Return the reader groups of a table: people, simulated readers, models by name, baselines by name."""
    kinds = kinds_of(trials)
    return sorted(kinds, key=lambda group: (_RANK[kinds[group]], group))


def in_order(table: pd.DataFrame, groups: Iterable[str], column: str, levels: Iterable[str]) -> pd.DataFrame:
    """Sort rows by reader group and by what a column holds, in these orders."""
    ranks = {
        "reader_group": {name: rank for rank, name in enumerate(groups)},
        column: {name: rank for rank, name in enumerate(levels)},
    }
    return table.sort_values(
        list(ranks), key=lambda values: values.astype(str).map(ranks[str(values.name)]), kind="stable"
    )


def kinds_of(trials: pd.DataFrame) -> dict[str, str]:
    """Return the reader kind of each reader group."""
    distinct = trials.drop_duplicates("reader_group")
    return {
        str(group): str(kind)
        for group, kind in zip(distinct["reader_group"], distinct["reader_kind"], strict=True)
    }


def is_several(group: str, kinds: Mapping[str, str]) -> bool:
    """Whether a reader group is several readers: participants, or models in general."""
    return group == MODELS_IN_GENERAL or kinds.get(group) in PARTICIPANT_KINDS


def spoken(group: str) -> str:
    """Name a reader group in a sentence."""
    return readers_in_words([group])


def headed(group: str) -> str:
    """Name a reader group at the head of a sentence or a table row; names of models stay as the study has them."""
    names = {"human": "People", "simulated": "Simulated readers", MODELS_IN_GENERAL: "Models in general"}
    return names.get(group, group)


def marked(group: str, kind: str) -> str:
    """Name a reader group with the mark that says when it is not data."""
    if kind == "simulated":
        return "Simulated readers (not data)"
    return f"{headed(group)} (baseline)" if kind == "baseline" else headed(group)


def named(group: str, kinds: dict[str, str]) -> str:
    """Name a reader group inside a sentence, a model or baseline as what it is: ``people``, ``model gpt``."""
    return spoken(group) if is_several(group, kinds) else f"{kinds.get(group, 'model')} {group}"


def headed_as(group: str, kinds: dict[str, str]) -> str:
    """Name a reader group at the head of a sentence."""
    return headed(group) if is_several(group, kinds) else upper_first(named(group, kinds))


def theirs(noun: str, groups: Sequence[str], kinds: dict[str, str]) -> str:
    """Name the owners of something: ``people's accuracy``, ``the accuracy of models a and b``."""
    bare_noun = noun.removeprefix("the ")
    if len(groups) == 1 and groups[0] != MODELS_IN_GENERAL and is_several(groups[0], kinds):
        owner = f"{spoken(groups[0])}'s".replace("s's", "s'")
        return f"{owner} {bare_noun}"
    return f"the {bare_noun} of {listed(groups, kinds)}"


def listed(groups: Sequence[str], kinds: dict[str, str]) -> str:
    """Name several reader groups in a sentence: ``people, models a and b, and baseline random``, ``all eight models``."""
    single = [group for group in groups if is_several(group, kinds)]
    parts = [named(group, kinds) for group in single]
    for kind in ("model", "baseline"):
        names = [group for group in groups if group not in single and kinds.get(group, "model") == kind]
        if len(names) > MOST_MODELS_NAMED and len(names) == list(kinds.values()).count(kind):
            parts.append(f"all {apa.worded(len(names), kind)}")
        elif names:
            parts.append(f"{kind}{'s' if len(names) > 1 else ''} {apa.listing(names)}")
    return apa.listing(parts)
