"""Rows of a corpus by its name on the Hugging Face hub, through the ``datasets`` package where it is installed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from stimuli.corpora.rows import RawRecord
from stimuli.errors import UserError, unknown_name

_NAME = re.compile(r"(?P<repository>[^:@]+)(?::(?P<configuration>[^:@]+))?(?:@(?P<revision>[^:@]+))?")


@dataclass(frozen=True)
class HubName:
    """A data set of the hub: ``owner/name``, with ``:configuration`` and ``@revision`` where wanted."""

    repository: str  # owner and name, or a local folder
    configuration: str | None = None  # as the hub calls them
    revision: str | None = None

    @classmethod
    def parse(cls, given: str) -> HubName:
        """Read a name as a study gives it; an existing folder is taken as it is."""
        if Path(given).is_dir():
            return cls(given)
        found = _NAME.fullmatch(given.strip())
        if not found or found["repository"].count("/") > 1:
            raise UserError(
                f"hub name {given!r} is not owner/name, owner/name:configuration or owner/name@revision",
                mend="Copy it from the data set's page, as in openai/gsm8k:main.",
            )
        return cls(found["repository"], found["configuration"], found["revision"])

    def __str__(self) -> str:
        """Write the name as :meth:`parse` reads it."""
        configuration = f":{self.configuration}" if self.configuration else ""
        return f"{self.repository}{configuration}" + (f"@{self.revision}" if self.revision else "")


def hub_splits(name: HubName, split: str | None) -> Iterator[tuple[str, Iterator[RawRecord]]]:
    """Yield the splits of a data set, each with its rows."""
    datasets = _package()
    folder = Path(name.repository)
    saved = folder.is_dir() and any((folder / mark).is_file() for mark in ("dataset_dict.json", "state.json"))
    try:
        if saved:
            found = datasets.load_from_disk(name.repository)
        else:
            found = datasets.load_dataset(name.repository, name.configuration, revision=name.revision)
    except Exception as error:  # the package raises a dozen kinds, from network errors to its own
        said = str(error).strip().splitlines()
        raise UserError(
            f"{name} could not be loaded from the hub: {said[0] if said else type(error).__name__}",
            mend="Check the name and the network, or download the corpus and give its path.",
            exit_code=1,
        ) from None
    splits: Mapping[str, Any] = found if isinstance(found, Mapping) else {split or "all": found}
    if split is not None and split not in splits:
        raise unknown_name(f"split of {name}", split, splits)
    for split_name in [split] if split is not None else list(splits):
        yield split_name, iter(splits[split_name])


def _package() -> Any:
    try:
        return import_module("datasets")
    except ImportError:
        raise UserError(
            "loading by hub name needs the package datasets, which is not installed",
            mend='Install it: pip install "wrods[hub]". Or download the corpus and give its path.',
        ) from None
