"""Loaders of materials: one module a corpus, and one for the user's own tables. Data stay where the user keeps them."""

from stimuli.corpora.corpus import (
    BadRecord,
    Corpus,
    CorpusSplit,
    Hub,
    Loaded,
    Record,
    RecordLocation,
    SourceText,
)
from stimuli.corpora.loading import corpora, load_corpus, subset, texts_of

__all__ = [
    "BadRecord",
    "Corpus",
    "CorpusSplit",
    "Hub",
    "Loaded",
    "Record",
    "RecordLocation",
    "SourceText",
    "corpora",
    "load_corpus",
    "subset",
    "texts_of",
]
