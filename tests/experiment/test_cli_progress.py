"""Progress of long work: a bar where someone looks, a line now and then elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from analysis.inside.hidden_states import LayersDone
from experiment.cli import progress as module
from experiment.cli.progress import WorkProgress
from experiment.cli.report import tell_step

WHAT = "probing net (the right answer)"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    yield now


def test_elsewhere_a_line_comes_every_ten_seconds_and_says_how_long_the_rest_takes(clock, capsys):
    with WorkProgress("layers") as progress:
        tell_step(progress, "figures")
        for number in range(4):
            clock[0] = 6.0 * number
            tell_step(progress, LayersDone(WHAT, number, 29))
    assert capsys.readouterr().err.splitlines() == [
        "  figures",
        f"  {WHAT}: 2 of 29 layers, about 3 min left",
    ]


def test_work_that_was_done_before_says_nothing_of_the_speed(clock, capsys):
    with WorkProgress("steps") as progress:
        progress.draw("ft-rs", 900, 1000)
        clock[0] = 20.0
        progress.draw("ft-rs", 910, 1000, "loss 1.250")
    assert capsys.readouterr().err == "ft-rs: 910 of 1,000 steps, loss 1.250, about 3 min left\n"


def test_on_a_terminal_each_name_has_a_bar_that_ends_full(monkeypatch, capsys):
    monkeypatch.setattr(module.sys.stderr, "isatty", lambda: True, raising=False)
    with WorkProgress("layers") as progress:
        for what in (WHAT, "representations of net"):
            for number in range(4):
                tell_step(progress, LayersDone(what, number, 4))
        tell_step(progress, "files")
    told = capsys.readouterr().err
    assert told.count("4/4") == 2 and WHAT in told and "representations of net" in told
    assert told.rstrip().endswith("files")
