"""What wrods itself says in each language: to participants in packs, to models in wordings, and a lab's own of both.

A pack holds every text of the platform: the page's, the server's, those of recruitment, and the built-in texts of a
session (questions, checks, feedback). English is the source.
"""

from experiment.languages.own import OWN_FILE, Own, read_own
from experiment.languages.packs import Pack, find_pack, pack_for, wording, wording_language

__all__ = [
    "OWN_FILE",
    "Own",
    "Pack",
    "find_pack",
    "pack_for",
    "read_own",
    "wording",
    "wording_language",
]
