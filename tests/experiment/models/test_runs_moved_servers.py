"""A server of one's own may listen elsewhere in the morning: what names its model is what it reports."""

from __future__ import annotations

import pytest

from experiment.models import ModelSettings
from experiment.models.api import ApiEngine
from tests.experiment.models.running import TRIALS, edit, invoke, remote, server, stored, study, with_models
from tests.scripted_openai import ScriptedOpenAI

__all__ = ["server", "study"]


@pytest.fixture
def begun(study, server):
    """A study of which some is answered, by a model that is probed."""
    with_models(study, remote("m", server, "price: free").replace("probe: false, ", ""))
    assert invoke("run", study, "--max-trials", "10").exit_code == 0
    return study


def test_another_port_and_host_name_go_on_in_the_same_sessions(begun, server):
    with ScriptedOpenAI(answer=lambda body: "Yes") as other:
        edit(begun, server.url, other.url.replace("127.0.0.1", "localhost"))
        done = invoke("run", begun)
        assert done.exit_code == 0, done.output
        assert "has changed" not in done.output and "earlier sessions" not in done.output
        assert len(other.requests) == TRIALS - 10
    assert len(stored(begun)) == TRIALS
    assert len({one["session_id"] for one in stored(begun)}) == 4


def test_another_model_behind_an_address_of_ones_own_stops_the_run_with_both_names(begun, server):
    server.model = "other-model"
    server.requests.clear()
    done = invoke("run", begun)
    told = " ".join(done.output.split())
    assert done.exit_code == 1 and not server.requests
    assert "reports other-model, and the stored answers are of scripted-2026-01-01" in told
    assert invoke("run", begun, "--if-changed", "keep_both").exit_code == 0
    assert len(stored(begun)) == TRIALS


@pytest.mark.full
def test_without_a_probe_the_first_answer_of_another_model_stops_the_run_before_it_is_stored(study, server):
    with_models(study, remote("m", server, "price: free"))
    assert invoke("run", study, "--max-trials", "10").exit_code == 0
    server.model = "other-model"
    done = invoke("run", study)
    told = " ".join(done.output.split())
    assert done.exit_code == 1
    assert "reports other-model, and the stored answers are of scripted-2026-01-01" in told
    assert len(stored(study)) == 10
    assert invoke("run", study, "--if-changed", "keep_both").exit_code == 0
    assert len(stored(study)) == TRIALS


def test_a_model_swapped_while_a_run_goes_on_stops_it(study, server):
    def answer(body):
        if len(server.requests) > 12:
            server.model = "other-model"
        return "Yes"

    server.answer = answer
    with_models(study, remote("m", server, "price: free"))
    done = invoke("run", study)
    assert done.exit_code == 1 and "reports other-model" in " ".join(done.output.split())
    kept = len(stored(study))
    assert 0 < kept < TRIALS
    server.model, server.answer = "scripted-2026-01-01", lambda body: "Yes"
    assert invoke("run", study).exit_code == 0
    assert len(stored(study)) == TRIALS


@pytest.mark.parametrize(
    ("first", "second", "are_one"),
    [
        ("http://localhost:8000/v1", "http://127.0.0.1:8001/v1", True),
        ("http://gpu3:8000/v1", "http://192.168.1.7:8000/v1/", True),
        ("https://a.example.org/v1", "https://b.example.org/v1", False),
        ("https://a.example.org/v1", "http://localhost:8000/v1", False),
    ],
)
def test_addresses_name_models_of_public_hosts_alone(first, second, are_one):
    named = [
        ApiEngine(ModelSettings("openai:m", {"base_url": url})).describe()["identity"]
        for url in (first, second)
    ]
    assert (named[0] == named[1]) is are_one
