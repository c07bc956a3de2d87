"""A small study folder with built items, made by the test itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from sqlalchemy import Connection

from experiment.checking import load_study
from experiment.integrity.build_provenance import BUILT_FROM, origin_of
from experiment.store import store as database_file
from experiment.store.database import is_sqlite
from experiment.store.tables import LATEST_REVISION
from experiment.study import Study
from stimuli.audit import page as audit_page
from stimuli.item import Item, build_meta, write_items

YAML = """\
wrods: 1
study: small
title: A small study
seed: 7
materials: {words: words.txt}
design:
  factors:
    position: {intact: none, initial: {transpose: initial}}
procedure:
  - consent: consent.md
  - instructions: instructions.md
  - practice: {items: practice.csv, feedback: true, pass: 50%}
  - block:
      trial:
        - choose: {show: word, caption: Scrambled word, ask: Which word is it?, keys: [f, j], answer_by: text}
      break_every: 2
  - debrief: debrief.md
"""


def make_item(item_id: str, level: str, shown: str, answer: str, foil: str, *, role: str = "test") -> Item:
    return Item(
        item_id=item_id,
        set_name="words" if role == "test" else "practice-1",
        role=role,  # type: ignore[arg-type]
        condition={"position": level},
        shown={"word": shown},
        intact={"word": answer},
        choices=(answer, foil),
        answer=answer,
        provenance={
            "source": "words.txt",
            "source_id": item_id,
            "split": None,
            "licence": None,
            "operation": level,
            "seed": 7,
        },
        covariates={"letters": len(answer)},
    )


def small_items() -> list[Item]:
    words = [("garden", "warden"), ("basket", "casket"), ("planet", "plants"), ("marble", "market")]
    items = [
        make_item(f"w{i}", level, word if level == "intact" else word[1] + word[0] + word[2:], word, foil)
        for i, (word, foil) in enumerate(words)
        for level in ("intact", "initial")
    ]
    return [*items, make_item("p0", "initial", "etacher", "teacher", "reached", role="practice")]


def write_built(study: Study, items: Sequence[Item]) -> None:
    """Write items as a build of this study writes them."""
    origin = origin_of(study, [study.folder / name for name in ("words.txt", "practice.csv")])
    write_items(study.folder / "items.jsonl", items, {**build_meta(study.seed), BUILT_FROM: origin})


_BUILT: dict[str, dict[str, bytes]] = {}
"""By the text of a study, the files of its build: they do not depend on its folder."""


@pytest.fixture
def make_study(tmp_path: Path) -> Callable[..., Study]:
    """Return a function that writes a study folder (text changed by replacements) with built items and loads it."""

    def make(*changes: tuple[str, str], items: list[Item] | None = None, name: str = "small") -> Study:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        text = YAML
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        (folder / "study.yaml").write_text(text, "utf-8")
        for name_of_text in ("consent", "instructions", "debrief"):
            (folder / f"{name_of_text}.md").write_text(f"# The {name_of_text}\n\nSome *text*.", "utf-8")
        (folder / "practice.csv").write_text("item,word,foil,position\np0,teacher,reached,initial\n", "utf-8")
        (folder / "words.txt").write_text("garden\nbasket\nplanet\nmarble\n", "utf-8")
        if items is not None:
            write_built(load_study(folder), items)
        elif text in _BUILT:
            for file, content in _BUILT[text].items():
                (folder / file).write_bytes(content)
        else:
            write_built(load_study(folder), small_items())
            _BUILT[text] = {file.name: file.read_bytes() for file in folder.glob("items.*")}
        return load_study(folder)

    return make


@pytest.fixture(scope="session", autouse=True)
def _commit_at_once() -> Iterator[None]:
    """Do not let each write of a run wait a quarter of a second for others to be stored with it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(database_file, "RUN_GROUP_MS", 5.0)
        yield


@pytest.fixture(scope="session", autouse=True)
def _migrate_once() -> Iterator[None]:
    """Run the migrations once in a process; every other empty SQLite database gets the statements that they made."""
    migrations, made = database_file._run_migrations, list[str]()

    def run(connection: Connection, scripts: Path, latest: str) -> None:
        tables = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
        is_plain = (scripts, latest) == (database_file.MIGRATIONS, LATEST_REVISION)
        if not (is_plain and is_sqlite(connection)) or list(connection.exec_driver_sql(tables)):
            migrations(connection, scripts, latest)
            return
        if not made:
            migrations(connection, scripts, latest)
            made.extend(connection.exec_driver_sql(tables).scalars())
            made.append(f"INSERT INTO alembic_version VALUES ('{latest}')")
            return
        for statement in made:
            connection.exec_driver_sql(statement)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(database_file, "_run_migrations", run)
        yield


_DRAWINGS = audit_page.drawings


@pytest.fixture(scope="module", autouse=True)
def _draw_no_figures_of_audits() -> Iterator[None]:
    """Leave out the figures of an audit's page, which take nine tenths of the time of a small build.

    Not for the whole session: tests of other folders run in the same process.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(audit_page, "drawings", lambda audit: ())
        yield


@pytest.fixture
def audits_with_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build as users do, with the figures of the audit."""
    monkeypatch.setattr(audit_page, "drawings", _DRAWINGS)
