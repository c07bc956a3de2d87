"""Scrambled text: one registry of types, a corrected engine with a draw per word, and order-bound published copies.

Exported here is what a package that adds scramble types needs.
"""

from stimuli.scramble.orders import FromDraws
from stimuli.scramble.text import scramble_text
from stimuli.scramble.types import Preset, ScrambleType

__all__ = ["FromDraws", "Preset", "ScrambleType", "scramble_text"]
