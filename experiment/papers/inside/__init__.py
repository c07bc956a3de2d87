"""Inside models: how training on scrambled text or H-TEST changes them."""

from stimuli.papers import Paper

PAPER = Paper("inside", __name__, chapters={"trained": "trained:write"})
