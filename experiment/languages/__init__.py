"""What wrods itself tells participants, one pack per language.

A pack holds every text of the platform: the page's, the server's, those of recruitment, and the built-in texts of a
session (questions, checks, feedback). English is the source.
"""

from experiment.languages.packs import Pack, pack_for

__all__ = ["Pack", "pack_for"]
