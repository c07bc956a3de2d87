"""Scrambled Bench (Cao et al., 2023): recovery of scrambled sentences, and questions about scrambled texts."""

from stimuli.papers import Paper

PAPER = Paper("scrambled-bench", __name__)
