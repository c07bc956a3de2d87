"""Items of sentences from named settings: those of the design and those of the columns, as tests write them."""

from __future__ import annotations

from dataclasses import fields

from stimuli.corpora.corpus import Record
from stimuli.recipes.conditions import ItemDesign
from stimuli.recipes.sentences import SentenceColumns, sentence_items


def sentences(rows, **settings):
    """Make items of rows; a setting that names a field of the columns is one of them, all others are the design's."""
    of_columns = {field.name for field in fields(SentenceColumns)}
    columns = {name: value for name, value in settings.items() if name in of_columns}
    design = {name: value for name, value in settings.items() if name not in of_columns}
    return sentence_items(rows, ItemDesign(**design), SentenceColumns(**columns))


def word_records(words, *, source, fillers=()):
    """Make records of a list of base words and fillers, for lexical decisions."""
    return [
        Record(word, source, None, None, {"word": word}, None, None, extra=extra)
        for group, extra in ((words, {}), (fillers, {"role": "filler"}))
        for word in group
    ]
