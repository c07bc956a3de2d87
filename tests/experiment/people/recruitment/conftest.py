"""A small study with a recruitment platform, on a real server."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from experiment.people.recruitment.codes import recruitment_for
from experiment.study import Study

PROLIFIC = {
    "PROLIFIC_PID": "5e9088a8a4b6ed018b45ba7b",
    "STUDY_ID": "671b8ae84509b9a624b95e13",
    "SESSION_ID": "671b8e95b17f88050648883e",
}
CODES = {"complete": "C1DONE", "no_consent": "C2NOCON", "screened_out": "C3OUT", "failed_checks": "C4CHECK"}


def prolific_id(name: str) -> str:
    """Return an id of the form that Prolific's have."""
    return hashlib.sha256(name.encode()).hexdigest()[:24]


@pytest.fixture
def prolific() -> dict[str, str]:
    return dict(PROLIFIC)


@pytest.fixture
def recruiting(make_study: Callable[..., Study], serve_study: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that serves the small study for a platform, with settings of participants and codes."""

    def run(recruit: str, codes: Mapping[str, object] | None = None, **participants: object) -> Any:
        settings = {"recruit": recruit} | participants
        written = "participants:\n" + "".join(f"  {name}: {value}\n" for name, value in settings.items())
        study = make_study(("seed: 7\n", f"seed: 7\n{written}"))
        config = {"recruitment": {study.id: dict(CODES if codes is None else codes)}}
        return serve_study(study, recruitment=recruitment_for(study, config))

    return run
