"""A study for the rest of wrods: settings that passed the schema, with the file's lines for error messages."""

from __future__ import annotations

import hashlib
import itertools
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from experiment.languages import OWN_FILE, Own, Pack, read_own
from experiment.languages.packs import no_pack
from experiment.study.factors import DesignCells, cross
from experiment.study.texts import StudyText, read_text, version_of
from experiment.study.trained import as_trained
from experiment.study.yaml_source import KeyPath, YamlSource
from stimuli.errors import UserError
from stimuli.item import Item, read_items
from stimuli.papers import OwnFactor, Paper, own_factors

FILE = "study.yaml"
ITEMS = "items.jsonl"


@dataclass(frozen=True)
class Study:
    """A study folder whose ``study.yaml`` is valid; built items are read on demand."""

    folder: Path
    source: YamlSource

    @property
    def settings(self) -> dict[str, Any]:
        """The settings as plain data."""
        return dict(self.source.data)

    def get(self, *path: str | int, default: Any = None) -> Any:
        """Return a setting by its path, or the default if it is missing."""
        value: Any = self.source.data
        for part in path:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return default
        return value

    def place(self, *path: str | int) -> str:
        """Return ``study.yaml, line N: path`` for an error about a setting."""
        return self.source.place(tuple(path))

    @property
    def id(self) -> str:
        """The study's id, which is in every row."""
        return str(self.source.data["study"])

    @property
    def title(self) -> str:
        """The study's title."""
        return str(self.source.data["title"])

    @property
    def shown_title(self) -> str:
        """The title for participants: a separate one if the study sets it, because a title may reveal the question."""
        return str(self.get("participants", "title", default=self.title))

    @property
    def language(self) -> str:
        """The language code, English by default."""
        return str(self.get("language", default="en"))

    @property
    def items_language(self) -> str:
        """The language of the items: that of the material if it has one, as H-TEST has, else the study's."""
        if self.own is None or not self.own[1].language:
            return self.language
        paper, own = self.own
        return str(paper.part(own.language)(self))

    @cached_property
    def own_texts(self) -> Own:
        """The texts of wrods and of the study's ``texts.json`` in its language."""
        return read_own(self.language, self.folder)

    @property
    def pack(self) -> Pack:
        """The participants' texts in the study's language."""
        if self.own_texts.pack is None:
            raise no_pack(self.language, self.place("language"))
        return self.own_texts.pack

    @property
    def seed(self) -> int:
        """The study seed."""
        return int(self.source.data["seed"])

    @property
    def published(self) -> frozenset[str]:
        """The parts copied from a paper bug for bug: any of items, prompts, scoring."""
        return frozenset(self.get("published", default=[]))

    @property
    def models(self) -> dict[str, dict[str, Any]]:
        """The models' settings by their name in the study; trained ones as they will run."""
        given = self.get("models", "who", default={})
        return {
            str(name): as_trained(self, settings, self.place("models", "who", name, "use"))
            for name, settings in given.items()
        }

    @cached_property
    def factors(self) -> dict[str, dict[str, Any]]:
        """Factor → level → operation, the reference level first; those between sessions come last.

        The items of some materials have a factor by themselves, such as H-TEST's task.
        """
        return {**self.factors_of_items, **self.between}

    @cached_property
    def between(self) -> dict[str, dict[str, Any]]:
        """The factors whose levels apply to a whole session."""
        given = self.get("design", "between", default={})
        return {str(factor): dict(levels) for factor, levels in given.items()}

    @cached_property
    def between_cells(self) -> list[dict[str, Any]]:
        """Every combination of levels between sessions: its ``condition`` and settings; one without factors."""
        names = list(self.between)
        cells = []
        for chosen in itertools.product(*self.between.values()):
            condition = dict(zip(names, chosen, strict=True))
            settings = [self.between[name][level] for name, level in condition.items()]
            texts = {old: new for setting in settings for old, new in setting.get("texts", {}).items()}
            sets = {name: value for setting in settings for name, value in setting.items()}
            cells.append({"condition": condition, **sets, "texts": texts})
        return cells

    @cached_property
    def factors_of_items(self) -> dict[str, dict[str, Any]]:
        """The factors whose levels vary between items."""
        given = self.get("design", "factors", default=None) or {}
        return {**self.own_factor, **{str(f): dict(levels) for f, levels in given.items()}}

    @cached_property
    def crossing(self) -> DesignCells:
        """The cells of the design's factors (see :mod:`experiment.study.factors`)."""
        return cross({} if self.own_factor else self.factors_of_items)

    @cached_property
    def controls(self) -> tuple[str, dict[str, str]] | None:
        """The factor added to items with their own factor, and its levels' operations; None without one."""
        given = self.get("design", "factors", default=None)
        if not given or not self.own_factor:
            return None
        ((factor, levels),) = given.items()
        return str(factor), {str(level): str(does) for level, does in levels.items()}

    @cached_property
    def own(self) -> tuple[Paper, OwnFactor] | None:
        """The declaration of the factor that the material's items have by themselves, with its paper; None without one."""
        materials = self.get("materials", default=None) or {}
        return next((own for keyword, own in own_factors().items() if keyword in materials), None)

    @cached_property
    def own_factor(self) -> dict[str, dict[str, Any]]:
        """The factor that the material's items have by themselves, with its levels; empty without one."""
        if self.own is None:
            return {}
        paper, own = self.own
        return {own.name: dict.fromkeys(paper.part(own.levels)(self))}

    @cached_property
    def texts(self) -> dict[str, StudyText]:
        """The study's Markdown texts by file name, each read once, so that the hashed text is the one shown."""
        return {name: read_text(self.folder, name, self.place(*path)) for name, path in self.text_files()}

    def text(self, name: str) -> StudyText:
        """Return one of the study's Markdown texts."""
        return self.texts[name]

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """The built items."""
        file = self.folder / ITEMS
        if not file.exists():
            raise UserError(
                f"{self.folder} has no built items", mend=f"Run `wrods build {self.folder}` first."
            )
        return tuple(read_items(file))

    @cached_property
    def design(self) -> dict[str, Any]:
        """The parts covered by the design hash: settings that affect sessions, and hashes of texts and items."""
        names = (
            "wrods",
            "study",
            "language",
            "seed",
            "published",
            "materials",
            "design",
            "display",
            "procedure",
        )
        texts = {name: text.version for name, text in self.texts.items()}
        if (texts_file := self.folder / OWN_FILE).is_file():
            texts[OWN_FILE] = version_of(texts_file.read_bytes())
        file = self.folder / ITEMS
        items = hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else None
        return {
            **{k: self.source.data[k] for k in names if k in self.source.data},
            "texts": texts,
            "items": items,
        }

    @property
    def design_hash(self) -> str:
        """The SHA-256 of the design as canonical JSON, first 32 hex digits."""
        text = json.dumps(self.design, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("utf-8")).hexdigest()[:32]

    def text_files(self) -> list[tuple[str, KeyPath]]:
        """Return each text file named in the procedure or in a level between sessions, with the path of the setting."""
        named: list[tuple[str, KeyPath]] = []
        for i, screen in enumerate(self.source.data["procedure"]):
            for kind in ("consent", "instructions", "break", "debrief"):
                value = screen.get(kind)
                path: KeyPath = ("procedure", i, kind)
                if isinstance(value, dict):
                    inside = "pages" if kind == "instructions" else "text"
                    value, path = value.get(inside), (*path, inside)
                if isinstance(value, str):
                    named.append((value, path))
                elif isinstance(value, list):
                    named += [(name, (*path, j)) for j, name in enumerate(value)]
        for factor, levels in self.between.items():
            for level, given in levels.items():
                for old, new in given.get("texts", {}).items():
                    named.append((new, ("design", "between", factor, level, "texts", old)))
        return named

    def practice_files(self) -> list[tuple[str, KeyPath]]:
        """Return each practice item file named in the procedure, with the path of the setting."""
        return [
            (str(screen["practice"]["items"]), ("procedure", i, "practice", "items"))
            for i, screen in enumerate(self.source.data["procedure"])
            if "items" in screen.get("practice", {})
        ]
