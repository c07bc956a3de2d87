"""The preview: every screen as a participant meets it, beside the exact prompt that a model gets. Stores nothing."""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from flask import Flask, Response, abort, jsonify, render_template, request

from experiment.checking import load_study
from experiment.languages import Pack
from experiment.people.headers import add_headers
from experiment.people.pages import ASSETS, asset, bundle, bundle_version, digest, icon, script_json
from experiment.people.service import Plan
from experiment.study import Study
from stimuli.errors import UserError, unknown_name

Trial = Mapping[str, Any]
ADDRESSES = frozenset({"localhost", "127.0.0.1", "[::1]"})


@dataclass(frozen=True)
class PromptView:
    """What a model gets for a trial."""

    messages: Sequence[tuple[str, str]]
    labels: Sequence[str] | None = None
    model: str | None = None
    tokens: Sequence[str] | None = None


@dataclass(frozen=True)
class PreviewStudy:
    """A study as the preview needs it."""

    study: str
    title: str
    language: str
    pack: Pack
    list_ids: Sequence[int]
    variants: int
    plan: Callable[[int, int], Plan]
    participant_view: Callable[[Plan], Plan]


StudyLoader = Callable[[], PreviewStudy]
RenderPrompt = Callable[[Plan, Trial], PromptView]


@dataclass(frozen=True)
class _Loaded:
    stamp: str
    study: PreviewStudy | None
    problem: UserError | None


class _Source:
    """The study as it is on disk now; read again when one of its files changes."""

    def __init__(self, load: StudyLoader, folder: Path) -> None:
        self._load = load
        self._folder = folder
        self._lock = threading.Lock()
        self._known: _Loaded | None = None

    def stamp(self) -> str:
        """Return a text that changes when a file of the study is saved, added or removed."""
        parts = []
        for file in sorted(self._folder.rglob("*")):
            inner = file.relative_to(self._folder)
            # what is collected or computed from the study is no part of its design
            if inner.parts[0] in ("reports", "backups", "states", "handover") or file.name.startswith(
                "study.db"
            ):
                continue
            if not any(part.startswith(".") for part in inner.parts) and file.is_file():
                about = file.stat()
                parts.append(f"{inner}:{about.st_mtime_ns}:{about.st_size}")
        return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:16]

    def now(self) -> _Loaded:
        """Return the study, or what is wrong with it."""
        stamp = self.stamp()
        with self._lock:
            if self._known is None or self._known.stamp != stamp:
                try:
                    self._known = _Loaded(stamp, self._load(), None)
                except UserError as problem:
                    self._known = _Loaded(stamp, None, problem)
            return self._known


def create_preview_app(study_loader: StudyLoader, render_prompt: RenderPrompt, *, folder: Path) -> Flask:
    """Build the preview's web application."""
    app = Flask(__name__, static_folder=None)
    app.config["SECRET_KEY"] = secrets.token_bytes(32)
    app.jinja_env.globals["asset_version"] = lambda name: digest(ASSETS / name)
    source = _Source(study_loader, folder)

    def study_now() -> PreviewStudy:
        loaded = source.now()
        if loaded.study is None:
            abort(409)
        return loaded.study

    @app.before_request
    def only_from_here() -> None:
        # a page of another site must not reach the preview under a name of its own
        host = request.host.rsplit(":", 1)[0] if not request.host.endswith("]") else request.host
        if host not in ADDRESSES:
            abort(403)

    @app.get("/")
    def show() -> str:
        loaded = source.now()
        return render_template(
            "preview.html",
            study=loaded.study,
            problem=loaded.problem,
            config=script_json({"stamp": loaded.stamp, "choices": _choices(loaded.study)}),
        )

    @app.get("/stamp.json")
    def stamp() -> Response:
        return jsonify(stamp=source.stamp())

    @app.get("/screen")
    def screen() -> str:
        study = study_now()
        plan = _plan(study)
        view = study.participant_view(plan)
        shown = view | {"screens": _only(view["screens"])}
        config = {
            "api": "/nowhere",
            "study": study.study,
            "title": view["title"],
            "language": study.language,
            "direction": study.pack.direction,
            "messages": study.pack.texts,
            "mode": "preview",
            "participant": None,
            "platform": {},
            "ask_participant": False,
            "preview_plan": shown,
        }
        return render_template(
            "participant.html",
            title=view["title"],
            language=study.language,
            direction=study.pack.direction,
            words=study.pack.texts,
            config=script_json(config),
            version=bundle_version(),
        )

    @app.get("/prompt.json")
    def prompt() -> Response:
        plan = _plan(study_now())
        wanted = _number("trial", None)
        trial = next((t for t in _trials(plan) if t["trial_index"] == wanted), None)
        if trial is None:
            return jsonify(none=True)
        view = render_prompt(plan, trial)
        return jsonify(
            none=False,
            messages=[{"role": role, "content": content} for role, content in view.messages],
            labels=view.labels,
            model=view.model,
            tokens=view.tokens,
            answer=trial.get("answer"),
        )

    app.add_url_rule("/static/<path:name>", "pages.bundle", bundle)
    app.add_url_rule("/assets/<path:name>", "pages.asset", asset)
    app.add_url_rule("/favicon.ico", "pages.icon", icon)
    add_headers(app)
    return app


def _number(name: str, default: int | None) -> int | None:
    given = request.args.get(name, "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 8 else default


def _plan(study: PreviewStudy) -> Plan:
    list_id = _number("list", None) or study.list_ids[0]
    variant = _number("variant", 1) or 1
    if list_id not in study.list_ids or not 1 <= variant <= study.variants:
        abort(404)
    return study.plan(list_id, variant)


def _trials(plan: Mapping[str, Any]) -> list[Trial]:
    return [trial for screen in plan["screens"] for trial in screen.get("trials", ())]


def _only(screens: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Keep the screen that is asked for, or all where none is; of a block only the trial that is asked for."""
    place, wanted = _number("screen", None), _number("trial", None)
    if wanted is not None:
        return [
            {**screen, "trials": [trial for trial in screen["trials"] if trial["trial_index"] == wanted]}
            for screen in screens
            if any(trial["trial_index"] == wanted for trial in screen.get("trials", ()))
        ]
    if place is None:
        return list(screens)
    return list(screens[place : place + 1])


def _choices(study: PreviewStudy | None) -> dict[str, Any]:
    """Return what the choosers offer: by list, the screens and the trials with item and condition."""
    if study is None:
        return {"lists": [], "screens": {}}
    screens = {}
    for list_id in study.list_ids:
        rows: list[dict[str, Any]] = []
        for place, screen in enumerate(study.plan(list_id, 1)["screens"]):
            if "trials" not in screen:
                rows.append({"screen": place, "kind": screen["kind"], "trial": None})
            for trial in screen.get("trials", ()):
                condition = ", ".join(f"{name}: {level}" for name, level in trial["condition"].items())
                rows.append(
                    {
                        "screen": place,
                        "kind": screen["kind"],
                        "trial": trial["trial_index"],
                        "item": f"{trial['set']} {trial['item_id']}",
                        "condition": condition,
                    }
                )
        screens[str(list_id)] = rows
    return {"lists": list(study.list_ids), "variants": study.variants, "screens": screens}


def preview_study(path: Path) -> PreviewStudy:
    """Read a study and build its items in memory, so that the preview shows what ``study.yaml`` says now."""
    from experiment.building import build_items
    from experiment.lists import list_ids
    from experiment.procedure import participant_view, plan_session

    study = load_study(path)
    items = build_items(study)
    plans: dict[tuple[int, int], dict[str, Any]] = {}

    def plan(list_id: int, variant: int) -> dict[str, Any]:
        if (list_id, variant) not in plans:
            plans[list_id, variant] = plan_session(study, items, list_id=list_id, prompt_variant=variant)
        return plans[list_id, variant]

    return PreviewStudy(
        study=study.id,
        title=study.title,
        language=study.language,
        pack=study.pack,
        list_ids=tuple(list_ids(study, items)),
        variants=int(study.get("models", "prompt_variants", default=1)),
        plan=plan,
        participant_view=partial(participant_view, is_preview=True),
    )


def prompt_maker(study: Study, model: str | None) -> RenderPrompt:
    """Return the function that makes a trial's prompt, with tokens where a local model is named."""
    from experiment.models.planning import prompt_in_context
    from experiment.models.prompts import render
    from experiment.models.settings import ModelSettings

    cut = None if model is None else _cutter(study, model)
    named = model if model in study.models else next(iter(study.models), None)
    options = {} if named is None else study.models[named]
    settings = ModelSettings(str(options.get("use", "hf:")), options, study.folder)

    def make(plan: Mapping[str, Any], trial: Mapping[str, Any]) -> PromptView:
        shown = prompt_in_context(study, settings, plan, trial)
        rendered = render(plan, trial) if shown is None else shown.request
        return PromptView(
            messages=[(message.role, message.content) for message in rendered.messages],
            labels=rendered.labels,
            model=model,
            tokens=None if cut is None else cut(rendered.messages),
        )

    return make


def _cutter(study: Study, model: str) -> Callable[[Any], list[str]]:
    from experiment.models.local.checkpoints import find_source, load_tokenizer
    from experiment.models.local.tokens import Wording
    from experiment.models.settings import ModelSettings

    if model in study.models:
        settings = study.models[model]
    elif model.startswith("hf:"):
        settings = {"use": model}
    else:
        raise unknown_name("model", model, [*study.models, "hf:PATH"])
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
    """Cut a text where a tokenizer cuts it; tokens that share one character stay together."""
    if not getattr(tokenizer, "is_fast", False):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        return [str(piece) for piece in tokenizer.convert_ids_to_tokens(ids)]
    offsets = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    cuts = sorted({0, len(text), *(start for start, _ in offsets)})
    return [text[start:end] for start, end in pairwise(cuts)]
