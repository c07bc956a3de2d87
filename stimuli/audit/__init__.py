"""The item audit: what a reviewer would ask of a study's items, answered before the first participant comes."""

from stimuli.audit.audit import Audit, audit_items
from stimuli.audit.findings import Finding
from stimuli.audit.page import audit_schema, write_audit
from stimuli.audit.shortcut import Shortcut, ShortcutTest, shortcut_test
from stimuli.features import FEATURES, about_names, text_features

__all__ = [
    "FEATURES",
    "Audit",
    "Finding",
    "Shortcut",
    "ShortcutTest",
    "about_names",
    "audit_items",
    "audit_schema",
    "shortcut_test",
    "text_features",
    "write_audit",
]
