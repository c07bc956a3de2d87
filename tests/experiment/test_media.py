"""Pictures, sounds and films of items: checked at the build, shown on pages, given to models or described to them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiment.building import build_study, make_items
from experiment.checking import load_study
from experiment.exporting.export import write_pictures
from experiment.media import remember_files, served_name
from experiment.models.api.responses import without_bytes
from experiment.models.engine import ModelSettings
from experiment.models.pictures import MARK
from experiment.models.planning.prompting_settings import SessionTemplate, read_prompting_settings
from experiment.people.app import create_app
from experiment.people.service import PeopleSettings, service_for
from experiment.procedure import participant_view, plan_session, trials_of
from experiment.store import open_store
from experiment.study import Study
from stimuli.errors import UserError
from tests.conftest import picture, sound

HEAD = (
    "item,sentence,picture:fit,picture:misfit,picture_text:fit,picture_text:misfit,answer:fit,answer:misfit"
)
NAMES = ("cat", "dog", "car", "cup")
ROWS = [
    f"p{i},The {name} is here,{name}.png,{NAMES[i - 1]}.png,a {name},a {NAMES[i - 1]},Yes,No"
    for i, name in enumerate(NAMES)
]


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Study]:
    def study(
        rows: list[str] = ROWS,
        head: str = HEAD,
        media: str = "{picture: image}",
        design: str = "{factors: {agreement: [fit, misfit]}}",
        show: str = "[sentence, picture]",
    ) -> Study:
        for shade, name in enumerate(NAMES):
            (tmp_path / f"{name}.png").write_bytes(picture(50 * shade))
        (tmp_path / "yes.wav").write_bytes(sound())
        (tmp_path / "sentences.csv").write_text("\n".join([head, *rows]) + "\n", "utf-8")
        (tmp_path / "study.yaml").write_text(
            "wrods: 1\nstudy: pictures\ntitle: Pictures\nseed: 4\n"
            f"materials: {{sentences: sentences.csv, media: {media}, audit: {{shortcut: false}}}}\n"
            f"design: {design}\nprocedure:\n  - block:\n      trial:\n"
            f'        - choose: {{show: {show}, ask: "Fits?", keys: {{"Yes": j, "No": f}}}}\n',
            "utf-8",
        )
        return load_study(tmp_path)

    return study


def plan_of(study: Study) -> dict[str, Any]:
    return dict(plan_session(study, make_items(study).items, list_id=1))


def test_each_version_shows_its_picture_with_its_description(make):
    plan = plan_of(make())
    for trial in trials_of(plan):
        (step,) = trial["steps"]
        (file,) = step["media"]
        assert file["kind"] == "image"
        assert step["text"] == trial["shown"]["sentence"]
        assert file["text"] == trial["shown"]["picture_text"]
    names = {(trial["shown"]["picture"], trial["steps"][0]["media"][0]["name"]) for trial in trials_of(plan)}
    assert len({served for _, served in names}) == len(names)


def test_pages_learn_no_name_of_a_file(make):
    seen = participant_view(plan_of(make()))
    told = json.dumps(seen)
    assert '"media"' in told
    assert not any(f"{name}.png" in told for name in NAMES)


def test_the_server_sends_the_files_of_a_study_and_no_others(make, tmp_path):
    study = make()
    build_study(study)
    store = open_store(tmp_path / "study.db")
    with store:
        service = service_for(load_study(tmp_path), store)
        client = create_app(
            {service.study: service}, config=PeopleSettings(secret=b"s", password_hash="")
        ).test_client()
        (name, path), *_ = service.media.items()
        answer = client.get(f"/pictures/media/{name}")
        assert answer.data == path.read_bytes()
        assert answer.mimetype == "image/png"
        assert "immutable" in answer.headers["Cache-Control"]
        for other in ("study.yaml", "cat.png", "..%2Fstudy.yaml"):
            assert client.get(f"/pictures/media/{other}").status_code == 404
        assert client.get(f"/others/media/{name}").status_code == 404


def test_a_file_that_changed_after_the_build_stops_the_study(make, tmp_path):
    build_study(make())
    (tmp_path / "dog.png").write_bytes(picture(255))
    with open_store(tmp_path / "study.db") as store, pytest.raises(UserError, match=r"dog\.png.* was edited"):
        service_for(load_study(tmp_path), store)
    (tmp_path / "dog.png").unlink()
    with open_store(tmp_path / "study.db") as store, pytest.raises(UserError, match=r"dog\.png"):
        service_for(load_study(tmp_path), store)


def test_every_unusable_file_is_named(make, tmp_path):
    (tmp_path / "fake.png").write_text("no picture", "utf-8")
    (tmp_path / "cat.bmp").write_bytes(b"BM")
    bad = ("none.png", "fake.png", "cat.bmp", "../outside.png")
    rows = [f"p{i},The cat is here,{name},Yes" for i, name in enumerate(bad)]
    with pytest.raises(UserError) as told:
        make_items(make(rows, "item,sentence,picture,answer", design="{}"))
    for i, name in enumerate(bad):
        assert f"item 'p{i}'" in str(told.value)
        assert Path(name).name in str(told.value)


def turns(study: Study, **options: Any) -> tuple[list[Any], dict[str, Any]]:
    plan = plan_of(study)
    settings = ModelSettings("openai:gpt-4o", options, study.folder)
    template = SessionTemplate(plan, read_prompting_settings(study, settings))
    return [template.turn(number) for number in range(len(template.places))], plan


def test_a_model_of_text_reads_the_description_and_one_with_vision_sees_the_file(make, tmp_path):
    study = make()
    described, plan = turns(study)
    for turn, trial in zip(described, trials_of(plan), strict=True):
        assert turn.pictures == ()
        assert turn.text.startswith(f"[{trial['shown']['picture_text']}]\n\n{trial['shown']['sentence']}")
    seen, _ = turns(study, presentation="image")
    for turn, trial in zip(seen, trials_of(plan), strict=True):
        file, text = turn.pictures
        assert turn.text.count(MARK) == 2
        assert file.png == (tmp_path / trial["shown"]["picture"]).read_bytes()
        assert (file.width, file.height) == (40, 30)
        assert file.data_url.startswith("data:image/png;base64,")
        assert text.text == trial["shown"]["sentence"]


def test_what_nothing_describes_is_refused_for_models_that_cannot_see_or_hear_it(make):
    undescribed = [",".join(row.split(",")[:4] + row.split(",")[6:]) for row in ROWS]
    head = "item,sentence,picture:fit,picture:misfit,answer:fit,answer:misfit"
    study = make(undescribed, head)
    with pytest.raises(UserError, match="picture_text"):
        turns(study)
    assert turns(study, presentation="image")[0]
    rows = [f"p{i},The cat is here,yes.wav,Yes" for i in range(4)]
    heard = make(rows, "item,sentence,voice,answer", "{voice: audio}", "{}", "voice")
    (step,) = trials_of(plan_of(heard))[0]["steps"]
    assert (step["text"], step["lines"]) == (None, None)
    for options in ({}, {"presentation": "image"}):
        with pytest.raises(UserError, match="audio"):
            turns(heard, **options)


@pytest.mark.parametrize(
    "step", ["prime: {show: picture}", "recover: {show: picture}", "read: {show: picture, as: moving_window}"]
)
def test_steps_that_show_texts_show_no_files(make, tmp_path, step):
    make()
    text = (tmp_path / "study.yaml").read_text("utf-8")
    first = f"        - {step}\n" if "recover" not in step else ""
    start, choose = text.split("        - choose")
    (tmp_path / "study.yaml").write_text(
        start + (first + "        - choose" + choose if first else f"        - {step}\n"), "utf-8"
    )
    with pytest.raises(UserError, match=r"line \d+: .*show names picture"):
        load_study(tmp_path)


def test_texts_hold_pictures_that_models_read_as_words(make, tmp_path):
    make()
    (tmp_path / "keys.md").write_text(
        "Press a key.\n\n![Two keys](cat.png)\n\n![x](https://example.org/a.png)", "utf-8"
    )
    text = (tmp_path / "study.yaml").read_text("utf-8")
    with_text = text.replace("procedure:\n", "procedure:\n  - instructions: keys.md\n")
    (tmp_path / "study.yaml").write_text(with_text, "utf-8")
    assert load_study(tmp_path).text("keys.md").pictures == {}
    (tmp_path / "keys.md").write_text("Press a key.\n\n![Two keys](cat.png)", "utf-8")
    study = load_study(tmp_path)
    shown = study.text("keys.md")
    ((name, path),) = shown.pictures.items()
    assert path == tmp_path / "cat.png"
    assert f'src="media/{name}"' in shown.html and 'alt="Two keys"' in shown.html
    assert shown.text.endswith("[Two keys]")
    (tmp_path / "cat.png").write_bytes(picture(7))
    assert load_study(tmp_path).text("keys.md").version != shown.version
    (tmp_path / "keys.md").write_text("![Two keys](none.png)", "utf-8")
    with pytest.raises(UserError, match=r"study\.yaml, line \d+: .*keys\.md.*none\.png"):
        load_study(tmp_path)


def test_choices_can_be_pictures(make, tmp_path):
    rows = [
        f"p{i},The {name} is here,{NAMES[i]}.png|{NAMES[i - 1]}.png,a {NAMES[i]}|a {NAMES[i - 1]},{name}.png"
        for i, name in enumerate(NAMES)
    ]
    make(rows, "item,sentence,choices,choices_text,answer", "{choices: image}", "{}", "sentence")
    text = (
        (tmp_path / "study.yaml")
        .read_text("utf-8")
        .replace('{"Yes": j, "No": f}', "[f, j], choice_order: random")
    )
    (tmp_path / "study.yaml").write_text(text, "utf-8")
    study = load_study(tmp_path)
    plan = plan_of(study)
    for trial in trials_of(plan):
        (step,) = trial["steps"]
        assert step["labels"] == ["A", "B"]
        assert trial["answer"] in step["responses"]
        assert [f"a {name.removesuffix('.png')}" for name in step["responses"]] == step["options"]
        assert [file["text"] for file in step["pictures"]] == step["options"]
    assert not any(f"{name}.png" in json.dumps(participant_view(plan)) for name in NAMES)
    described, _ = turns(study)
    seen, _ = turns(study, presentation="image")
    for told, shown, trial in zip(described, seen, trials_of(plan), strict=True):
        (step,) = trial["steps"]
        assert all(
            f"({label}) {words}" in told.text for label, words in zip("AB", step["options"], strict=True)
        )
        assert [picture.text for picture in shown.pictures][-2:] == step["options"]
    (tmp_path / "study.yaml").write_text(
        text.replace("choice_order", "answer_by: text, choice_order"), "utf-8"
    )
    with pytest.raises(UserError, match=r"study\.yaml, line \d+: .*answer_by"):
        load_study(tmp_path)
    bad = [row.replace("|a ", " or a ") for row in rows]
    with pytest.raises(UserError, match="choices_text"):
        make_items(make_with(study, bad, text))


def make_with(study: Study, rows: list[str], text: str) -> Study:
    (study.folder / "study.yaml").write_text(text, "utf-8")
    head = "item,sentence,choices,choices_text,answer"
    (study.folder / "sentences.csv").write_text("\n".join([head, *rows]) + "\n", "utf-8")
    return load_study(study.folder)


def test_pictures_that_models_were_given_are_exported_as_the_files_that_they_are(make, tmp_path):
    study = make()
    (tmp_path / "dog.jpg").write_bytes(b"\xff\xd8\xff" + b"photograph")
    rows = [row.replace("dog.png", "dog.jpg") for row in ROWS]
    study = make(rows)
    items = make_items(study).items
    names = {file["file"]: served_name(file) for item in items for file in item.key["media"].values()}
    sent = {
        "request": json.dumps(
            {
                "messages": [
                    {
                        "pictures": [
                            {"text": "a dog", "file": names["dog.jpg"], "sha256": "d"},
                            {"text": "gone", "file": "0" * 32 + ".png", "sha256": "e"},
                        ]
                    }
                ]
            }
        )
    }
    remember_files(study.folder, items)
    assert write_pictures(tmp_path / "pictures", [sent]) == (1, 1)
    assert (tmp_path / "pictures" / "d.jpg").read_bytes() == (tmp_path / "dog.jpg").read_bytes()
    url = "data:image/jpeg;base64," + "A" * 900
    assert without_bytes({"parts": [url]})["parts"][0] == f"data:image/jpeg;base64,… ({len(url)} characters)"
