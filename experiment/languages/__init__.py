"""wrods' texts in each language: packs for participants, prompts for models, and a lab's own texts.

A pack includes every text of the platform: those of the page, the server, recruitment, and the built-in texts of a session
(questions, checks, feedback). English is the source.
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
