"""Commands of ``wrods`` run in the process of a test."""

from __future__ import annotations

from typing import Any

from click.testing import CliRunner, Result

from experiment.cli import main


def wrods(*words: object, given: str | bytes | None = None, **more: Any) -> Result:
    """Run ``wrods`` with arguments as a shell would; ``given`` is typed into it."""
    return CliRunner().invoke(main, [str(word) for word in words], input=given, prog_name="wrods", **more)
