"""Pictures to servers: the two forms that take them, what the probe finds out, and a study of both arms from run to export."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from experiment.checking import load_study
from experiment.models import Message, Request
from experiment.models.api import batch
from experiment.models.api.prices import price_of
from experiment.models.api.retrying import RunStopped
from experiment.models.pictures import MARK, Picture
from stimuli.errors import UserError
from tests.experiment.commands import worked
from tests.experiment.models.api_requests import api_engine, api_settings, choice
from tests.experiment.models.running import edit, study_in, with_models
from tests.scripted_openai import ScriptedOpenAI


def looking(number: int = 0, text: str = "the Artist runs") -> Request:
    return choice(number, messages=(Message("user", f'Input: "{MARK}" Label: ', (Picture.of(text),)),))


def drawn(url: str) -> Image.Image:
    kind, _, data = url.partition(",")
    assert kind == "data:image/png;base64"
    return Image.open(io.BytesIO(base64.b64decode(data)))


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_a_picture_is_sent_in_its_place_in_both_forms(server, api):
    engine = api_engine(server, api=api, presentation="image", probe=False)
    (reply,) = engine.answer([looking()])
    assert reply.status == "answered"
    (body,) = server.requests
    parts = (body.get("messages") or body["input"])[0]["content"]
    kinds = {"chat": ["text", "image_url", "text"], "responses": ["input_text", "input_image", "input_text"]}[
        api
    ]
    assert [part["type"] for part in parts] == kinds
    assert (parts[0]["text"], parts[2]["text"]) == ('Input: "', '" Label: ')
    url = parts[1]["image_url"]["url"] if api == "chat" else parts[1]["image_url"]
    detail = parts[1]["image_url"]["detail"] if api == "chat" else parts[1]["detail"]
    picture = Picture.of("the Artist runs")
    assert drawn(url).size == (picture.width, picture.height) and detail == "high"


def test_a_server_that_takes_no_pictures_is_found_out_before_the_first_trial(server):
    server.refuses.add("pictures")
    with pytest.raises(RunStopped, match="no images") as stop:
        list(api_engine(server, presentation="image").answer([looking()]))
    assert server.requests == [] and "presentation: text" in str(stop.value.mend)


def test_the_probe_says_whether_a_word_is_read(server):
    found = api_engine(server, presentation="image").probe()
    assert found.pictures and found.gaps(["pictures"]) == []
    server.sees = False
    blind = api_engine(server, presentation="image").probe()
    assert blind.pictures is False and len(blind.remarks) > len(found.remarks) and blind.gaps(["pictures"])
    assert api_engine(server).probe().pictures is None


def test_tokens_of_pictures_are_counted_in_what_a_request_may_cost(server):
    price = price_of(api_settings(server, presentation="image", price={"input": 10.0, "output": 10.0}))
    text = price.most_tokens(choice(0, messages=(Message("user", 'Input: "x" Label: '),)))[0]
    picture = Picture.of("the Artist runs")
    assert price.most_tokens(looking())[0] == text + picture.tokens + 2  # the mark has three bytes, x one
    assert picture.tokens >= 85 + 170


def test_pictures_go_in_batches_and_each_answer_finds_its_own(server, tmp_path, monkeypatch):
    texts = ("the Artist runs", "a dog barks", "noon")
    server.answer = lambda body: "B" if Picture.of("a dog barks").data_url in json.dumps(body) else "A"
    server.logprobs = None
    settings = api_settings(server, folder=tmp_path, api="responses", presentation="image")
    requests = [looking(number, text) for number, text in enumerate(texts)]
    monkeypatch.setattr(batch, "MOST_BYTES", 2 * len(Picture.of(texts[0]).data_url) + 2000)
    api = batch.BatchApi(settings)
    api.submit(requests)
    assert [one.requests for one in api.ledger.batches] == [2, 1]
    server.batches.end()
    replies = {reply.work_key: reply.text for reply in api.collect(requests)}
    assert replies == {"k0": "A", "k1": "B", "k2": "A"}
    kept = b"".join(file.read_bytes() for file in (tmp_path / batch.FOLDER).iterdir())
    assert b"base64" not in kept and b"Artist" not in kept


@pytest.fixture
def arms(tmp_path: Path, server: ScriptedOpenAI) -> Path:
    """The letter-position study, asked of one server with texts and with pictures."""
    folder = study_in(tmp_path / "arms")
    used = f'use: "openai:scripted", base_url: "{server.url}", price: free, concurrency: 4, cache: false'
    with_models(folder, f"reads: {{{used}}}", f"looks: {{{used}, presentation: image}}")
    return folder


def test_both_arms_of_a_study_run_and_the_tables_tell_them_apart(arms, server, tmp_path):
    worked("run", arms)
    with_pictures = [body for body in server.requests if isinstance(body["messages"][-1]["content"], list)]
    assert len(with_pictures) == len(server.requests) / 2 > 0
    worked("export", arms, "--format", "csv", "--out", tmp_path / "out", "--prompts")
    trials = pd.read_csv(tmp_path / "out" / "trials.csv")
    told = trials.groupby("reader")["presentation"].unique().map(list).to_dict()
    assert told == {"reads": ["text"], "looks": ["image"]}
    calls = pd.read_csv(tmp_path / "out" / "calls.csv")
    requests = [json.loads(one.lstrip("'")) for one in calls.loc[calls["reader"] == "looks", "request"]]
    hashes = {one["sha256"] for request in requests for one in request["messages"][-1]["pictures"]}
    files = {path.stem for path in (tmp_path / "out" / "pictures").iterdir()}
    assert files == hashes and hashes
    # what was sent is what the export draws again
    part = next(one for one in with_pictures[0]["messages"][-1]["content"] if one["type"] == "image_url")
    sent = drawn(part["image_url"]["url"])
    assert sent.tobytes() in {
        Image.open(tmp_path / "out" / "pictures" / f"{one}.png").tobytes() for one in hashes
    }
    # the same command has nothing left to do
    count = len(server.requests)
    worked("run", arms)
    assert len(server.requests) == count


def test_a_dry_run_says_where_pictures_stand_and_writes_them(arms, server):
    shown = worked("run", arms, "--dry-run", "--model", "looks").output
    assert "image_url" in shown and "base64,…" in shown and "picture 1: " in shown
    files = list((arms / "pictures").glob("*.png"))
    assert files and all(str(file) in shown for file in files)
    assert server.requests == [] and server.probes == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("presentation: image", "presentation: image, strategy: unscramble_first", "unscramble_first"),
        ("presentation: image", "examples_presentation: image", "examples_presentation"),
        ("presentation: image", "presentation: image, api: completions", "api: completions"),
        ("presentation: image", "presentation: picture", "presentation"),
        (
            "    looks:",
            '    guess: {use: "baseline:random", presentation: image}\n    looks:',
            "baseline:random",
        ),
        ("context: independent", "context: session", r"models\.context"),
    ],
)
def test_settings_that_do_not_go_with_pictures_are_refused(arms, old, new, message):
    edit(arms, old, new)
    with pytest.raises(UserError, match=message):
        load_study(arms)
