"""One run of a model at a time, in either kind of store; a lease ends with its process, however that ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiment.models.leases import leased
from stimuli.errors import UserError

ROOT = Path(__file__).resolve().parents[3]
HOLD = """
import sys, time
from experiment.models.leases import leased

with leased(sys.argv[1], "positions", "hf:./a model"):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path) if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


def test_a_model_is_leased_once_and_others_of_the_study_or_of_another_are_free(target):
    with leased(target, "positions", "gpt"):
        with (
            pytest.raises(UserError, match="another run of gpt is under way") as refused,
            leased(target, "positions", "gpt"),
        ):
            pass
        assert refused.value.exit_code == 1
        with leased(target, "positions", "GPT"), leased(target, "other", "gpt"):
            pass
    with leased(target, "positions", "gpt"):
        pass


def test_a_killed_process_frees_its_lease(target):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, target], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    with pytest.raises(UserError, match="under way"), leased(target, "positions", "hf:./a model"):
        pass
    holder.send_signal(signal.SIGKILL)
    holder.communicate(timeout=30)
    deadline = time.monotonic() + 60
    while True:
        try:
            with leased(target, "positions", "hf:./a model"):
                return
        except UserError:
            assert time.monotonic() < deadline, "the lease outlived its process"
            time.sleep(0.05)
