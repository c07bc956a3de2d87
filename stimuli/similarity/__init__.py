"""How much a changed word looks like the intact one: orthographic match scores and edit distances.

Words go in as written; letters are compared as grapheme clusters, without regard to case and never more or fewer
for it. The first word is the
template (target) that the second (shown form, prime) is matched with: most schemes are not symmetric. Absolute slots,
spatial coding, open bigrams and SERIOL print what Davis's Match Calculator prints.
"""

from stimuli.similarity.bigrams import open_bigram, overlap_open_bigram, seriol
from stimuli.similarity.letters import letters_of, without_case
from stimuli.similarity.positions import (
    OverlapParameters,
    overlap_model,
    slot,
    spatial_coding,
    spatial_coding_by_length,
)
from stimuli.similarity.scores import SCORES, edit_similarity, levenshtein, match_scores, osa

__all__ = [
    "SCORES",
    "OverlapParameters",
    "edit_similarity",
    "letters_of",
    "levenshtein",
    "match_scores",
    "open_bigram",
    "osa",
    "overlap_model",
    "overlap_open_bigram",
    "seriol",
    "slot",
    "spatial_coding",
    "spatial_coding_by_length",
    "without_case",
]
