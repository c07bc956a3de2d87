"""Incomplete texts: a study with placeholders is served to pilots only, and cannot be frozen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from experiment.languages.own import OWN_FILE
from experiment.study import Study
from experiment.study.texts import Placeholder, placeholders_in
from experiment.study.yaml_source import KeyPath, read_yaml
from stimuli.errors import UserError


def placeholders(study: Study) -> list[str]:
    """Return each placeholder in the texts that participants read, such as ``texts/consent.md, line 9: [FILL IN: date]``."""
    placeholders_of = {name: text.placeholders for name, text in study.texts.items()}
    texts_file = study.folder / OWN_FILE
    if texts_file.is_file():
        placeholders_of[OWN_FILE] = tuple(placeholders_in(texts_file.read_text("utf-8-sig")))
    source = read_yaml(study.folder / "study.yaml")
    placeholders_of["study.yaml"] = tuple(
        Placeholder(source.line(path), placeholder.words)
        for path, words in _texts(source.data)
        for placeholder in placeholders_in(words)
    )
    return [
        f"{name}, line {placeholder.line}: {placeholder.words}"
        for name, every in placeholders_of.items()
        for placeholder in every
    ]


def _texts(data: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Yield the keys and texts of a YAML file, without comments."""
    if isinstance(data, str):
        yield path, data
    elif isinstance(data, dict):
        for key, value in data.items():
            yield from _texts(str(key), (*path, key))
            yield from _texts(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _texts(value, (*path, index))


def refuse_placeholders(study: Study, mend: str) -> None:
    """Raise an error if a study's texts are incomplete."""
    missing = placeholders(study)
    if missing:
        listed = "\n  ".join(missing)
        number = "1 placeholder" if len(missing) == 1 else f"{len(missing)} placeholders"
        raise UserError(
            f"the texts of {study.id} have {number}; participants must get complete texts:\n  {listed}",
            mend=mend,
        )
