"""Commands of ``wrods`` run in the process of a test, and changes of the files that they read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from experiment.cli import main
from experiment.demo.tour import LocalServer, fill
from experiment.store import Store
from experiment.study import Study


def wrods(*words: object, given: str | bytes | None = None, **more: Any) -> Result:
    """Run ``wrods`` with arguments as a shell would; ``given`` is typed into it."""
    return CliRunner().invoke(main, [str(word) for word in words], input=given, prog_name="wrods", **more)


def worked(*words: object, **more: Any) -> Result:
    """Run a command that must succeed."""
    done = wrods(*words, **more)
    assert done.exit_code == 0, done.exception or done.output
    return done


def let_take_part(study: Study, store: Store, *, readers: int) -> int:
    """Let simulated readers take part through a server; return the number of their trials."""
    with LocalServer(study, store) as server:
        return fill(study, server.links, readers=readers, pause=0, told=lambda _: None)


def change(file: Path, *changes: tuple[str, str], count: int = -1) -> str:
    """Replace texts that a file must contain; return its new text."""
    text = file.read_text("utf-8")
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, count)
    file.write_text(text, "utf-8")
    return text
