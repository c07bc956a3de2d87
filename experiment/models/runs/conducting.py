"""Conduct one run: probe servers, open models that fit into memory, compare plan and store, estimate the price, run side by side."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiment.models.api import Capabilities
from experiment.models.api.retrying import RunStopped
from experiment.models.engine import Engine
from experiment.models.engines import open_engine
from experiment.models.leases import leased
from experiment.models.money import Allowance, Purse, price_of
from experiment.models.money.purse import close_abandoned
from experiment.models.planning import ModelSession
from experiment.models.runs import changes, facts
from experiment.models.runs.affording import shortfall
from experiment.models.runs.asked import (
    budget_of,
    has_probe,
    identity_of,
    sessions_of,
    settings_of,
    state_writer,
)
from experiment.models.runs.asking import Asking
from experiment.models.runs.batching import Batches
from experiment.models.runs.estimating import Prices
from experiment.models.runs.gate import Gate
from experiment.models.runs.limits import Clock, Limits, Stop
from experiment.models.runs.live import Board, Figures
from experiment.models.runs.outcome import Outcome
from experiment.models.runs.parts import Part, count_questions, ended_of, figures_of
from experiment.models.runs.planned import survey
from experiment.models.runs.recording import Recording
from experiment.models.runs.served import Served, names_stored
from experiment.models.runs.signals import interruptible
from experiment.models.runs.telling import blocks_of, new_run_id, told_endpoint, told_parity
from experiment.models.runs.too_long import ask_again, reasons_of
from experiment.models.settings import ModelSettings
from experiment.store import Store, records
from experiment.study import Study
from stimuli.errors import UserError

if TYPE_CHECKING:
    from experiment.models.local.checkpoints import Source


LOOK_S = 0.5
"""How often limits are looked at and figures are drawn."""

Opener = Callable[[ModelSettings], Engine]
Draw = Callable[[Sequence[Figures]], None]
Say = Callable[[str], None]


class Run:
    """One command's run of some models of a study."""

    def __init__(
        self,
        study: Study,
        store: Store,
        *,
        version: int,
        limits: Limits | None = None,
        lease_at: Path | str | None = None,
        if_changed: str = "stop",
        yes: bool = False,
        keep_going: bool = False,
        is_batch: bool = False,
        cancels: bool = False,
        asks_again: bool = False,
        opener: Opener = open_engine,
        draw: Draw | None = None,
        say: Say | None = None,
    ) -> None:
        self.study, self.store, self.version = study, store, version
        self.limits = limits or Limits()
        self.budget = budget_of(study)
        self.stop = Stop()
        self.faults: dict[str, UserError] = {}
        self._lease_at = lease_at
        self._if_changed = if_changed
        self._yes, self._keep_going = yes, keep_going
        self._is_batch, self._cancels, self._asks_again = is_batch, cancels, asks_again
        self._opener = opener
        self._draw, self._say = draw or (lambda figures: None), say or (lambda line: None)
        self._cost = None if self.limits.cost is None else Allowance(self.limits.cost)
        self._tokens = None if self.limits.tokens is None else Allowance(self.limits.tokens)
        self._board = Board(store, study.id, version)
        self._gate = Gate(())
        self._prices = Prices(
            store, study.id, budget=self.budget, cost=self._cost, trials=self.limits.trials, stop=self.stop,
            yes=yes, say=self._say,
        )  # fmt: skip
        self._parts: list[Part] = []

    def run(self, models: Mapping[str, Mapping[str, Any]]) -> list[Outcome]:
        """Run models (name → settings with ``use``) and return what each came to; ``faults`` holds those that could not begin."""
        clock = Clock(self.limits.minutes)
        with ExitStack() as stack:
            for name, given in models.items():
                options = {key: value for key, value in given.items() if key != "use"}
                try:
                    self._parts.append(self._prepare(stack, name, str(given["use"]), options))
                except UserError as fault:
                    self.faults[name] = fault
            with interruptible(self.stop):
                some = [part for part in self._parts if part.asking.found.left or part.outcome.answered]
                if not self._is_batch and not self._cancels:
                    self._prices.foresee([part for part in some if part.asking.found.to_ask], clock)
                asked = [part for part in self._known(some, clock) if part.asking.found.to_ask]
                if self._cancels:
                    asked = []
                if self._is_batch:
                    self._batches(asked)
                    asked = []
                paid = [part for part in asked if not part.asking.price.is_free]
                self._prices.probe(paid, lambda some, work: self._in_threads(some, clock, work))
                asked = [part for part in asked if part.asking.found.to_ask and part.fault is None]
                if asked and not self.stop.is_asked:
                    self._work(asked, clock)
            for part in self._parts:
                self._end(part)
        return [part.outcome for part in self._parts]

    # before

    def _prepare(self, stack: ExitStack, reader: str, use: str, options: Mapping[str, object]) -> Part:
        if self._lease_at is not None:
            stack.enter_context(leased(self._lease_at, self.study.id, reader, lost=self.stop.ask))
        settings = settings_of(self.study, use, options)
        price = price_of(settings)
        engine = self._opener(settings)
        stack.callback(engine.close)
        if (remembered := getattr(engine, "remembered", None)) is not None:
            remembered.say = lambda line: self._say(f"{reader}: {line}")
        plan = sessions_of(self.study, reader, settings, engine, self.store, self.version)
        batches = Batches(settings, self.store, price, study=self.study.id, reader=reader, say=self._say)
        batches.look(cancels=self._cancels)
        if self._asks_again:
            self.store.write(lambda connection: ask_again(connection, self.study.id, reader)).result()
        found = survey(plan(), self.store)
        if not found.planned:
            raise UserError(
                "no trial of this study asks for an answer",
                mend="Give the block a choose, recover or answer step.",
            )
        outcome = Outcome(reader, use, new_run_id(), found.sessions, found.planned, found.stored)
        outcome.given_up = found.given_up
        outcome.too_long = [fault for some in found.never.values() for fault in some.values()]
        if found.ended:
            with self.store.read() as connection:
                outcome.ended = reasons_of(connection, found.ended)
        identity = identity_of(engine, settings)
        first = list(islice(plan(), 64))
        about = {"model": identity, "settings": first[0].manner.to_json()}
        more = {"timed": True} if settings.options.get("timing") else {}
        outcome.other_sessions = self._settle_changes(reader, found, about | more, first)
        outcome.lost_usd = (
            close_abandoned(self.store, self.study.id, reader) if self._lease_at is not None else 0.0
        )
        purse = Purse(self.store, self.study.id, outcome.run_id, reader, budget=self.budget, limit=self._cost)
        recording = Recording(
            self.store, outcome, kind="baseline" if settings.kind == "baseline" else "model", identity=identity,
            about=more, purse=purse, stop=self.stop,
            states=state_writer(self.study, outcome.run_id, first[0], found.left),
        )  # fmt: skip
        recording.served = self._served(reader, engine, recording)
        stack.callback(recording.close)
        stack.callback(purse.close)
        # timed sessions stand beside those that batches are for
        is_timed = bool(settings.options.get("timing"))
        refuses = self._if_changed == "stop" and not self._cancels
        if not is_timed and batches.take(plan, recording, refuses=refuses):
            found = survey(plan(), self.store)
        figures = Figures(reader)
        asking = Asking(
            reader, settings, engine, plan, found, self.store, recording, price=price, purse=purse,
            tokens=self._tokens, stop=self.stop, most_trials=self.limits.trials,
            seed=self.study.seed,
        )  # fmt: skip
        asking.out = set() if is_timed else batches.leave_out(plan, found, recording)
        part = Part(
            asking, outcome, figures, purse, recording, batches=batches, is_local=settings.kind == "hf"
        )
        asking.computed = lambda: self._computed(part)
        recording.finish(found.unfinished)
        return part

    def _served(self, reader: str, engine: Any, recording: Recording) -> Served | None:
        """Return who watches which model answers: a server of one's own may serve any under one name."""
        server = getattr(engine, "server", None)
        if server is None or not server.is_own or self._if_changed == "keep_both":
            return None
        stored = partial(names_stored, study=self.study.id, reader=reader)
        return Served(reader, server.base_url, lambda: recording.read(stored))

    def _settle_changes(
        self, reader: str, found: Any, about: Mapping[str, Any], first: Sequence[ModelSession]
    ) -> int:
        """Stop, set aside or keep both where stored sessions were made otherwise; return how many others there are."""
        changed = changes.changed_sessions(
            self.store, self.study.id, self.version, reader, found, about, first
        )
        settled = changes.settle(
            self.store, self.study.id, reader, changed, found.places, if_changed=self._if_changed
        )
        if line := settled.told(reader):
            self._say(line)
        return changed.others + len(changed.session_ids) - len(settled.set_aside)

    def _facts(self, part: Part) -> dict[str, Any]:
        settings = part.asking.settings
        return {
            "wrods": facts.versions()["wrods"],
            "version": self.version,
            "design_hash": self.study.design_hash,
            "options": {name: value for name, value in settings.options.items() if name != "key_env"},
            "settings": next(iter(part.asking.plan())).manner.to_json(),
            "engine": part.asking.engine.describe(),
            "git": facts.git_state(self.study.folder),
            "versions": facts.versions(),
            "hardware": dict(facts.hardware()),
            "price": part.asking.price.describe(),
            "budget_usd": self.budget,
            "limits": vars(self.limits),
        }

    # what endpoints can give, before anything is asked

    def _known(self, parts: Sequence[Part], clock: Clock) -> list[Part]:
        """Find out what the models' servers can give, say and record it; return the models that can begin."""
        probing = [
            part
            for part in parts
            if has_probe(part.asking.engine, part.asking.settings)
            and part.asking.found.to_ask
            and not self._cancels
        ]
        for part in probing:
            part.figures.state = "probe"
        # probes cost money too: a run that is killed in its probe has to be known
        for part in parts:
            self._board.begin(part.outcome.run_id, figures_of(part))
        if probing and not self.stop.is_asked:
            self._in_threads(probing, clock, self._find_out, leaves=True)
        for part in probing:
            part.figures.state = "waits"
            if isinstance(part.fault, UserError):
                self.faults[part.outcome.reader] = part.fault
                self._parts.remove(part)
                part.outcome.stopped, part.figures.state = str(part.fault), "failed"
                self._board.tell(part.outcome.run_id, figures_of(part), is_last=True)
            elif part.fault is not None:
                raise part.fault
        able = [part for part in parts if part in self._parts]
        for part in able:
            engine = part.asking.engine.describe()
            for line in told_endpoint(part.outcome.reader, engine.get("probe")):
                self._say(line)
            found = part.asking.found
            self._note(
                part, "run", {"planned": found.planned, "stored_before": found.stored, **self._facts(part)}
            )
        return able

    def _find_out(self, part: Part) -> None:
        find_out(part, self.study)

    def _computed(self, part: Part) -> None:
        """Say and record by which way a model on this machine computes, once that was checked against plain passes."""
        parity = part.asking.engine.describe().get("parity")
        if not part.is_checked and isinstance(parity, Mapping) and parity.get("path"):
            part.is_checked = True
            told = {"parity": dict(parity)}
            part.recording.patiently(lambda: self._note(part, "run_checked", told))
            for line in told_parity(part.outcome.reader, parity):
                self._say(line)

    # batches

    def _batches(self, parts: Sequence[Part]) -> None:
        """Hand over the batches of each model, one after the other."""
        for part in parts:
            asking, outcome = part.asking, part.outcome
            order = {one: place for place, one in enumerate(sorted(asking.found.missing))}
            try:
                outcome.handed_over, outcome.batches = part.batches.hand_over(
                    asking.ready(order), dialect=getattr(asking.engine, "dialect", None), run_id=outcome.run_id,
                    budget=self.budget, limit=self.limits.cost, most_trials=self.limits.trials,
                )  # fmt: skip
            except UserError as fault:
                part.fault = fault
            part.recording.unanswered.handed_over(part.batches.out())

    # the work

    def _work(self, parts: Sequence[Part], clock: Clock) -> None:
        order = {
            one: place
            for place, one in enumerate(
                sorted({r for p in parts for r, n in p.asking.found.missing.items() if n})
            )
        }
        rounds = sorted(order)

        def affords(number: int) -> str | None:
            # of the round before some trials may still be under way
            some = rounds[max(0, number - 1) : number + 1]
            missing = [sum(part.asking.found.missing.get(one, 0) for one in some) for part in parts]
            return shortfall(parts, missing, clock, self._cost, self._tokens, self.budget, yes=self._yes)

        self._gate = Gate((part.outcome.reader for part in parts), affords)
        local = [part for part in parts if part.is_local]
        turns = threading.Lock()
        stay = len(local) < 2 or (
            not any(hasattr(part.asking.engine, "rest") for part in local)
            and fit_together([part.asking.settings for part in local])
        )

        def work(part: Part) -> None:
            part.figures.state = "runs"
            part.asking.work(
                self._gate,
                order,
                turns if part.is_local or part.asking.settings.options.get("timing") else None,
                (lambda: None) if stay or not part.is_local else lambda: self._make_room(part),
                keeps_going=self._keep_going,
            )

        self._in_threads(parts, clock, work)

    def _make_room(self, part: Part) -> None:
        """Let go of a model's weights, so that the next one has room."""
        import gc

        rest = getattr(part.asking.engine, "rest", None)
        if callable(rest):
            rest()
            return
        engine = self._opener(part.asking.settings)
        part.asking.engine.close()
        part.asking.replace_engine(engine)
        gc.collect()

    def _in_threads(
        self, parts: Sequence[Part], clock: Clock, work: Callable[[Part], None], *, leaves: bool = False
    ) -> None:
        """Have each model work in a thread of its own, and look after limits meanwhile.

        Where the run is to end and a thread ``leaves`` nothing undone, it is not waited for.
        """

        def guarded(part: Part) -> None:
            try:
                work(part)
            except BaseException as fault:
                part.fault = fault
            finally:
                self._gate.leave(part.outcome.reader)

        threads = [
            threading.Thread(target=guarded, args=(part,), name=f"wrods-{part.outcome.reader}", daemon=True)
            for part in parts
        ]
        for thread in threads:
            thread.start()
        has_ended = False
        while any(thread.is_alive() for thread in threads):
            for thread in threads:
                thread.join(LOOK_S / len(threads))
            if clock.is_over:
                self.stop.ask("the time of this command (--max-minutes) is over")
            if self.stop.is_asked and not has_ended:
                has_ended = True
                for part in parts:
                    part.asking.engine.close()
                if leaves:
                    return
            figures = [figures_of(part) for part in self._parts]
            for part, one in zip(self._parts, figures, strict=True):
                if part in parts:
                    self._board.tell(part.outcome.run_id, one)
            self._draw(figures)

    # after

    def _end(self, part: Part) -> None:
        outcome, asking = part.outcome, part.asking
        count_questions(part)
        try:
            part.recording.settle(0)
        except UserError as fault:
            part.fault = part.fault or fault
        if isinstance(part.fault, Exception):
            outcome.stopped = str(part.fault)
        elif part.fault is not None:
            raise part.fault
        left = outcome.left - outcome.failed > 0 and outcome.left > 0
        if outcome.stopped is None and left:
            outcome.interrupted = self.stop.interrupted
            why = self.stop.reason or asking.full or self._gate.why or ""
            # an end that was asked for is no fault
            if not outcome.interrupted and not why.endswith("(--max-trials)"):
                outcome.stopped = why or None
        outcome.blocks = blocks_of(asking, outcome.left + outcome.given_up)
        outcome.unanswered_usd, outcome.dearest = part.purse.lost, asking.paying.dearest
        outcome.engine = asking.describe()
        part.figures.state = (
            "failed" if part.fault is not None else "interrupted" if outcome.interrupted
            else "finished" if outcome.left <= 0 else "stopped"
        )  # fmt: skip
        if (
            not outcome.planned - outcome.stored_before - outcome.answered
            and not outcome.answered
            and not outcome.failed
        ):
            return
        part.recording.close()
        self._board.tell(outcome.run_id, figures_of(part), is_last=True)
        try:
            self._note(part, "run_ended", ended_of(part))
        except UserError as fault:
            outcome.stopped = outcome.stopped or str(fault)

    def _note(self, part: Part, action: str, detail: Mapping[str, Any]) -> None:
        outcome = part.outcome
        named = {"run_id": outcome.run_id, "reader": outcome.reader, "use": outcome.use, **detail}
        self.store.write(
            lambda connection: records.add_audit(
                connection, "wrods run", action, study=self.study.id, detail=named
            )
        ).result()


def find_out(part: Part, study: Study) -> None:
    """Have a model's server asked what it can give."""
    engine: Any = part.asking.engine
    try:
        found = engine.probe()
    finally:
        count_questions(part)
        part.recording.patiently(part.purse.rest)
    if isinstance(found, Capabilities) and part.recording.served is not None:
        part.recording.served.require(found.resolved_model)
    is_forced = study.get("models", "context") == "teacher_forced" and isinstance(found, Capabilities)
    if is_forced and (gaps := found.gaps(["likelihoods"])):
        raise RunStopped(
            gaps[0].removesuffix("."),
            mend="Name a model whose server tells them (vLLM with label_scoring: whole), or hf: on this machine.",
        )


SHARE = 0.6
"""Of the free memory, how much weights may take; the rest is for what is computed."""

_GROUP = Path("/sys/fs/cgroup")


def fit_together(models: Sequence[ModelSettings]) -> bool:
    """Say whether the weights of models fit together, by the size of their files; False where that is not known."""
    from stimuli.errors import UserError

    try:
        sizes = [size_of(settings) for settings in models]
    except (UserError, OSError, ValueError):
        return False
    known = [size for size in sizes if size is not None]
    return len(known) == len(sizes) and sum(known) < SHARE * free_memory()


def size_of(settings: ModelSettings) -> float | None:
    """Return the bytes that a model's weights take once they are loaded; None where they are not on this machine yet.

    Files in 16 bits that are computed in 32 take twice their size; what quantisation saves is left out.
    """
    from experiment.models.local.checkpoints import find_source
    from experiment.models.local.hardware import choose_device, choose_dtype

    folder = _folder_of(find_source(settings))
    if folder is None:
        return None
    for suffix in (".safetensors", ".bin"):
        stored = sum(file.stat().st_size for file in folder.iterdir() if file.suffix == suffix)
        if stored:
            break
    else:
        return None
    config = json.loads((folder / "config.json").read_text("utf-8"))
    is_half = str(config.get("dtype") or config.get("torch_dtype") or "").endswith("float16")
    dtype = choose_dtype(settings.options.get("dtype"), choose_device(settings.options.get("device")))
    return stored * (2.0 if is_half and dtype == "float32" else 1.0)


def _folder_of(source: Source) -> Path | None:
    """Return where the files of a checkpoint lie; None where they have to be fetched first."""
    if source.is_folder:
        return Path(source.place)
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(source.place, revision=source.revision, local_files_only=True))
    except (OSError, ValueError):
        return None


def free_memory() -> float:
    """Return the bytes that are free for weights: of the GPU, or of the machine, its file cache counted as free."""
    import torch

    if torch.cuda.is_available():
        return float(torch.cuda.mem_get_info()[0])
    available = _of_machine()
    try:
        most = (_GROUP / "memory.max").read_text("ascii").strip()
        if most != "max":
            held = dict(line.split() for line in (_GROUP / "memory.stat").read_text("ascii").splitlines())
            used = int((_GROUP / "memory.current").read_text("ascii")) - int(held.get("file", 0))
            available = min(available, float(int(most) - used))
    except (OSError, ValueError):
        pass
    return available


def _of_machine() -> float:
    try:
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    except (OSError, ValueError):
        pass
    try:
        # systems that do not say what is free: half of what there is
        return 0.5 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0.0
