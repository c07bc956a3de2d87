"""Chapters on trained models and on hidden states; each is imported where a study has what it is about."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from analysis.report.blocks import Chapter, Material
from analysis.tables import Tables, found_above


def _is_any_trained(tables: Tables) -> bool:
    readers = tables.dictionary["readers"].values()
    settings = [reader.get("settings") or {} for reader in readers if isinstance(reader, Mapping)]
    return any(model_settings.get("trained") for model_settings in settings)


def answers_of_trained(tables: Tables) -> list[tuple[Markup, Markup]]:
    """Return what training changed as questions with answers, where a model of the study was trained."""
    if not _is_any_trained(tables):
        return []
    from experiment.papers.inside.chapters.trained import answers

    return answers(tables)


def write_trained(material: Material) -> Chapter | None:
    """Write what training changed, where a model of the study was trained."""
    if not _is_any_trained(material.tables):
        return None
    from experiment.papers.inside.chapters.trained import write

    return write(material)


def write_representations(material: Material) -> Chapter | None:
    """Return the chapter on the similarity of hidden states to those of the intact text; None if no run stored any."""
    if found_above(material.tables.folder, "states") is None:
        return None
    from experiment.papers.inside.chapters.representations import write

    return write(material)


def write_probing(material: Material) -> Chapter | None:
    """Write what can be read from hidden states, where a run kept any."""
    if found_above(material.tables.folder, "states") is None:
        return None
    from experiment.papers.inside.chapters.probing import write

    return write(material)
