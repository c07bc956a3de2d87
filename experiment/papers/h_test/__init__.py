"""H-TEST (Lee & Lim, 2024): rules about letters and sounds, and letter geometry."""

from stimuli.papers import Paper

PAPER = Paper("h-test", __name__)
