"""Loaders of materials: one module a corpus, and one for the user's own tables. Data stay where the user keeps them."""

from stimuli.corpora.corpus import BadRecord, Corpus, Hub, Loaded, Part, Place, Record
from stimuli.corpora.loading import corpora, load_corpus, subset, texts_of
from stimuli.corpora.rows import SourceText

__all__ = [
    "BadRecord",
    "Corpus",
    "Hub",
    "Loaded",
    "Part",
    "Place",
    "Record",
    "SourceText",
    "corpora",
    "load_corpus",
    "subset",
    "texts_of",
]
