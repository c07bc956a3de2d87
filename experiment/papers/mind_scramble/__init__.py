"""Mind Scramble (TypoBench, 2024): tasks on texts with changed letters, words and sentences."""

from stimuli.papers import Paper

PAPER = Paper("mind-scramble", __name__)
