"""H-TEST (Lee & Lim, 2024): the released A/B tasks, and rules that generate matched pairs.

This module exports what a package that adds rules needs.
"""

from stimuli.htest.rules import Pair, Rule

__all__ = ["Pair", "Rule"]
