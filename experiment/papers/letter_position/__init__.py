"""Letter position: transposed and substituted letters by place and distance, as reading research studies them."""

from stimuli.papers import Paper

PAPER = Paper("letter-position", __name__)
