"""The preview: every screen as a participant sees it, next to the exact prompt for a model. Stores nothing."""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from flask import Flask, Response, abort, jsonify, render_template, request

from experiment.checking import load_study
from experiment.media import served_files
from experiment.people.headers import add_headers
from experiment.people.pages import (
    ASSETS,
    asset,
    bundle,
    bundle_version,
    digest,
    icon,
    script,
    script_json,
    send_media,
)
from experiment.procedure.plan_builder import STEP_NAME
from experiment.procedure.questions import answer_names
from experiment.study import Study
from experiment.trials import UNANSWERED
from experiment.trials.own import plugins_of
from experiment.trust import require_trust
from stimuli.errors import UserError, unknown_name

Plan = Mapping[str, Any]
Trial = Mapping[str, Any]
ADDRESSES = frozenset({"localhost", "127.0.0.1", "[::1]"})
NOT_DESIGN = ("reports", "backups", "states", "handover")
"""Folders of data collected in or computed from a study."""


class PreviewStudy:
    """A study with its items built in memory, so that the preview shows the current ``study.yaml``."""

    def __init__(self, path: Path) -> None:
        from experiment.building import make_items
        from experiment.lists import list_ids

        self.study = load_study(path)
        require_trust(self.study)
        self.items = make_items(self.study).items
        self.list_ids = list(list_ids(self.study, self.items))
        self.variants = int(self.study.get("models", "prompt_variants", default=1))
        self._plans: dict[tuple[int, int], dict[str, Any]] = {}

    def plan(self, list_id: int, variant: int) -> dict[str, Any]:
        """Return the whole plan of a list, with one prompt variant."""
        from experiment.procedure import plan_session

        if (list_id, variant) not in self._plans:
            plan = plan_session(self.study, self.items, list_id=list_id)
            self._plans[list_id, variant] = {**plan, "prompt_variant": variant}
        return self._plans[list_id, variant]

    def choices(self) -> dict[str, Any]:
        """Return the options of the selectors: by list, the screens and the trials with item and condition."""
        screens: dict[str, list[dict[str, Any]]] = {}
        for list_id in self.list_ids:
            rows = screens.setdefault(str(list_id), [])
            number = 0
            for place, screen in enumerate(self.plan(list_id, 1)["screens"]):
                at = {"screen": place, "kind": screen["kind"]}
                rows += [{**at, "trial": None}] if "trials" not in screen else []
                for trial in screen.get("trials", ()):
                    number += STEP_NAME not in trial
                    rows.append({
                        **at,
                        "trial": trial["trial_index"],
                        "number": number,  # further answers belong to the trial that asks for them
                        "step": trial.get(STEP_NAME),
                        "item": f"{trial['set']} {trial['item_id']}",
                        "condition": ", ".join(f"{name}: {of}" for name, of in trial["condition"].items()),
                    })  # fmt: skip
        return {"lists": self.list_ids, "variants": self.variants, "screens": screens}


class _Source:
    """The study as it is on disk, reloaded when one of its files changes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._known: tuple[str, PreviewStudy | None, UserError | None] = ("", None, None)

    def stamp(self) -> str:
        """Return a text that changes when a file of the study is saved, added or removed."""
        parts = []
        for file in sorted(self._folder.rglob("*")):
            inner = file.relative_to(self._folder)
            is_hidden = any(part.startswith(".") for part in inner.parts)
            if inner.parts[0] in NOT_DESIGN or file.name.startswith("study.db") or is_hidden:
                continue
            if file.is_file():
                about = file.stat()
                parts.append(f"{inner}:{about.st_mtime_ns}:{about.st_size}")
        return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:16]

    def now(self) -> tuple[str, PreviewStudy | None, UserError | None]:
        """Return the stamp, and the study or its error."""
        stamp = self.stamp()
        with self._lock:
            if self._known[0] != stamp:
                try:
                    self._known = (stamp, PreviewStudy(self._folder), None)
                except UserError as problem:
                    self._known = (stamp, None, problem)
            return self._known


def create_preview_app(study: Study, model: str | None = None) -> Flask:
    """Return the preview's web application; prompts show tokens if a local model is named."""
    app = Flask(__name__, static_folder=None)
    app.config["SECRET_KEY"] = secrets.token_bytes(32)
    app.jinja_env.globals["asset_version"] = lambda name: digest(ASSETS / name)
    source = _Source(study.folder)
    make_prompt = prompt_maker(study, model)

    def present() -> tuple[PreviewStudy, dict[str, Any]]:
        """Return the current study, and the plan of the requested list and variant."""
        _, now, _ = source.now()
        if now is None:
            abort(409)
        list_id, variant = _number("list") or now.list_ids[0], _number("variant") or 1
        if list_id not in now.list_ids or not 1 <= variant <= now.variants:
            abort(404)
        return now, now.plan(list_id, variant)

    @app.before_request
    def only_from_here() -> None:
        # a page of another site must not reach the preview under its own name
        host = request.host.rsplit(":", 1)[0] if not request.host.endswith("]") else request.host
        if host not in ADDRESSES:
            abort(403)

    @app.get("/")
    def show() -> str:
        stamp, now, problem = source.now()
        choices = {"lists": [], "screens": {}} if now is None else now.choices()
        config = script_json({"stamp": stamp, "choices": choices})
        return render_template(
            "preview.html", study=None if now is None else now.study, problem=problem, config=config
        )

    @app.get("/stamp.json")
    def stamp() -> Response:
        return jsonify(stamp=source.stamp())

    @app.get("/screen")
    def screen() -> str:
        from experiment.procedure import participant_view

        now, plan = present()
        view, pack = participant_view(plan, is_preview=True), now.study.pack
        about = {"title": view["title"], "language": now.study.language, "direction": pack.direction}
        nobody: dict[str, Any] = {"participant": None, "platform": {}, "ask_participant": False}
        places = {"api": "/nowhere", "media": "/media/", "plugins": "/own/"}
        shown = {"study": now.study.id, "messages": pack.texts, "mode": "preview"}
        config = nobody | places | shown | {"preview_plan": view | {"screens": _only(view["screens"])}}
        return render_template(
            "participant.html",
            words=pack.texts,
            config=script_json(about | config),
            version=bundle_version(),
            **about,
        )

    @app.get("/media/<name>", endpoint="pages.media")
    def media(name: str) -> Response:
        _, now, _ = source.now()
        files = {} if now is None else served_files(now.study.folder, now.items) | now.study.pictures_of_texts
        return send_media(files, name)

    @app.get("/own/<digest>.js", endpoint="pages.plugin")
    def plugin(digest: str) -> Response:
        _, now, _ = source.now()
        plugins = {} if now is None else plugins_of(now.study)
        return script(plugins[digest]) if digest in plugins else abort(404)

    @app.get("/prompt.json")
    def prompt() -> Response:
        _, plan = present()
        wanted = _number("trial")
        trials = (trial for screen in plan["screens"] for trial in screen.get("trials", ()))
        trial = next((trial for trial in trials if trial["trial_index"] == wanted), None)
        if trial is None or not all(step.get("for_models", True) for step in trial["steps"]):
            return jsonify(none=True)
        return jsonify(none=False, answer=trial.get("answer"), **make_prompt(plan, trial))

    app.add_url_rule("/static/<path:name>", "pages.bundle", bundle)
    app.add_url_rule("/assets/<path:name>", "pages.asset", asset)
    app.add_url_rule("/favicon.ico", "pages.icon", icon)
    add_headers(app)
    return app


def _number(name: str) -> int | None:
    given = request.args.get(name, "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 8 else None


def _only(screens: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the requested screen, or all; of a block only the requested trial."""
    place, wanted = _number("screen"), _number("trial")
    if wanted is None:
        return list(screens) if place is None else [_alone(screen) for screen in screens[place : place + 1]]
    screens_shown = [
        {**screen, "trials": [trial for trial in screen.get("trials", ()) if trial["trial_index"] == wanted]}
        for screen in screens
    ]
    return [screen for screen in screens_shown if screen["trials"]]


def _alone(screen: dict[str, Any]) -> dict[str, Any]:
    """Return a screen whose questions do not wait for answers to other screens, which are not shown."""
    if "questions" not in screen:
        return screen
    names = {name for question in screen["questions"] for name in answer_names(question)}
    questions = []
    for question in screen["questions"]:
        here = {name: condition for name, condition in question.get("only", {}).items() if name in names}
        questions.append({**question, "only": here})
    return {**screen, "questions": questions}


def prompt_maker(study: Study, model: str | None) -> Callable[[Plan, Trial], dict[str, Any]]:
    """Return the function that makes a trial's prompt, with tokens if a local model is named."""
    from experiment.models.engine import ModelSettings
    from experiment.models.planning.prompt_preview import prompt_in_context
    from experiment.models.prompts.prompter import render

    cut = None if model is None else _cutter(study, model)
    named = model if model in study.models else next(iter(study.models), None)
    options = {} if named is None else study.models[named]
    settings = ModelSettings(str(options.get("use", "hf:")), options, study.folder)

    def make(plan: Plan, trial: Trial) -> dict[str, Any]:
        shown = prompt_in_context(study, settings, plan, trial)
        rendered = render(plan, trial) if shown is None else shown.request
        return {
            "messages": [{"role": message.role, "content": message.content} for message in rendered.messages],
            "labels": rendered.labels,
            "is_read": trial["trial_type"] in UNANSWERED,
            "model": model,
            "tokens": None if cut is None else cut(rendered.messages),
        }

    return make


def _cutter(study: Study, model: str) -> Callable[[Any], list[str]]:
    from experiment.models.engine import ModelSettings
    from experiment.models.local.checkpoints import find_source, load_tokenizer
    from experiment.models.local.tokens import Wording

    if model not in study.models and not model.startswith("hf:"):
        raise unknown_name("model", model, [*study.models, "hf:PATH"])
    settings = study.models.get(model, {"use": model})
    use = str(settings["use"])
    if not use.startswith("hf:"):
        raise UserError(
            f"{model} is {use}; only local models (hf:…) tell their tokens",
            mend="Leave --model out, or name a local model.",
        )
    _, tokenizer = load_tokenizer(find_source(ModelSettings(use, settings, study.folder)))
    wording = Wording(
        tokenizer,
        template=settings.get("template"),
        leading_space=settings.get("leading_space"),
        thinking=bool(settings.get("thinking", False)),
    )
    return lambda messages: token_pieces(tokenizer, wording.text(messages))


def token_pieces(tokenizer: Any, text: str) -> list[str]:
    """Return a text split at a tokenizer's token boundaries; tokens that share a character stay together."""
    if not getattr(tokenizer, "is_fast", False):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        return [str(piece) for piece in tokenizer.convert_ids_to_tokens(ids)]
    offsets = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    cuts = sorted({0, len(text), *(start for start, _ in offsets)})
    return [text[start:end] for start, end in pairwise(cuts)]
