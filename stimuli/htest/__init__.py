"""H-TEST (Lee & Lim, 2024): the released A/B tasks, and rules that make matched pairs of our own.

Exported here is what a package that adds rules needs.
"""

from stimuli.htest.rules import Pair, Rule

__all__ = ["Pair", "Rule"]
