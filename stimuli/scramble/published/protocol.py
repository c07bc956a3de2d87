"""Which scrambling protocols were published with their code, under which names, and with which faults.

The names and faults are data (``protocols.json``); how a protocol changes a list of texts is one function a paper.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, cast

from stimuli.errors import UserError, unknown_name
from stimuli.scramble.registry import Operation, Options, checked_rate, parse_operation, scramble_type

Given = str | Mapping[str, object] | Operation
"""An operation as a study or a command line writes it."""

_RATE = re.compile(r"(?P<name>.+?)(?:@(?P<share>[^@]+)|-(?P<percent>\d{1,3}(?:\.\d+)?))")
_STEPS = 10


@dataclass(frozen=True)
class Fault:
    """Something that the released code does and a reader of the paper would not expect."""

    key: str  # short name, the same for every protocol that has the fault
    says: str  # what happens, in a sentence, with shares measured on the papers' data where there are any


@dataclass(frozen=True)
class Protocol:
    """A published protocol."""

    name: str  # the paper's name in upper case: KFL, REO-INT_2, WORD-REO-ADJ
    paper: str  # cao2023 or typobench2024
    title: str  # the paper
    code: str | None  # the released code's name for it, where that differs
    seed: int  # the seed of the published stream
    stream: str  # how the published code draws, in words
    in_tenths: bool  # whether it has a rate, in steps of 10 %
    kin: str  # a name of the same operation in the registry of scramble types, for describing what changed
    stand_in: bool  # whether draws that cannot be copied are replaced by others of the same making
    faults: tuple[Fault, ...]  # what a copy reproduces


@dataclass(frozen=True)
class PublishedOperation:
    """A published protocol at a rate; ``protocol`` is None for the intact condition."""

    protocol: Protocol | None
    rate: float = 1.0

    @property
    def label(self) -> str:
        """Name for provenance: ``published RS@0.5``; says so where some draws are stand-ins."""
        if self.protocol is None:
            return "none"
        rate = "" if self.rate == 1 else f"@{self.rate:g}"
        stand_in = ", stand-in for salted hash" if self.protocol.stand_in else ""
        return f"published {self.protocol.name}{rate}{stand_in}"

    @property
    def steps(self) -> int:
        """The rate in tenths."""
        return round(self.rate * _STEPS)

    @property
    def seed(self) -> int | None:
        """Seed of the published stream, None for the intact condition."""
        return None if self.protocol is None else self.protocol.seed


@functools.cache
def _data() -> Mapping[str, Any]:
    text = resources.files(__package__).joinpath("protocols.json").read_text(encoding="utf-8")
    return cast(Mapping[str, Any], json.loads(text))


@functools.cache
def protocols() -> Mapping[str, Protocol]:
    """Return every protocol with released code by the paper's name for it."""
    found: dict[str, Protocol] = {}
    for entry in _data()["protocols"]:
        paper = _data()["papers"][entry["paper"]]
        for k in entry.get("k", [None]):
            name = str(entry["name"]).format(k=k)
            found[name] = Protocol(
                name=name,
                paper=entry["paper"],
                title=paper["title"],
                code=str(entry["code"]).format(k=k) if "code" in entry else None,
                seed=paper["seed"],
                stream=paper["stream"],
                in_tenths=entry.get("rates") == "tenths",
                kin=entry.get("kin", name),
                stand_in=entry.get("stand_in", False),
                faults=tuple(
                    Fault(key, _data()["faults"][key]) for key in (*paper["faults"], *entry["faults"])
                ),
            )
    return found


@functools.cache
def _by_any_name() -> Mapping[str, Protocol]:
    names = dict(protocols())
    for protocol in protocols().values():
        if protocol.code:
            names[protocol.code.upper()] = protocol
    return names


@functools.cache
def _by_operation() -> Mapping[tuple[str, Options], Protocol]:
    """Return the protocols by type and options of the corrected operation that goes by the same name."""
    found: dict[tuple[str, Options], Protocol] = {}
    for protocol in protocols().values():
        if protocol.kin == protocol.name:
            operation = parse_operation(protocol.name)
            found.setdefault((operation.type.name, operation.options), protocol)
    return found


def published_operation(given: Given, *, rate: float | None = None) -> PublishedOperation:
    """Read a published operation."""
    named, inside = _named(given)
    name = named if isinstance(named, str) else named.name
    if rate is not None and inside is not None and checked_rate(rate) != inside:
        raise UserError(
            f"scramble {name!r} already says rate {inside:g}, but rate {rate:g} is given as well",
            mend="Say the rate once.",
        )
    said = rate if rate is not None else inside
    if name in _data()["intact"]:
        return PublishedOperation(None)
    protocol = named if isinstance(named, Protocol) else _by_any_name().get(_without_task(name))
    if protocol is None:
        raise _not_published(name)
    chosen = PublishedOperation(protocol, 1.0 if said is None else checked_rate(said))
    _check_rate(chosen)
    return chosen


def _named(given: Given) -> tuple[Protocol | str, float | None]:
    """Return the protocol that is meant, or a name that has none, and the rate inside ``given``."""
    if isinstance(given, str):
        name = _upper(given)
        if _is_known(name):
            return name, None
        match = _RATE.fullmatch(name)
        if match is not None and _is_known(match["name"]):
            share = match["share"]
            return match["name"], checked_rate(share) if share is not None else _percent(
                given, match["percent"]
            )
        base = re.split(r"[(@;]", _upper(given))[0].strip()
        if not _is_type(base) and not _is_type(re.sub(r"-[\d.]+$", "", base)):
            return name, None
    operation = parse_operation(given)
    rate = operation.rate if operation.rate != 1 else None
    said = _upper(operation.said or operation.type.name)
    if operation.changes_nothing:
        return _data()["intact"][0], rate
    if said in _data()["unreleased"]:
        return said, rate
    return _protocol_of(operation, said), rate


def _is_type(name: str) -> bool:
    try:
        scramble_type(name)
    except UserError:
        return False
    return True


def _protocol_of(operation: Operation, said: str) -> Protocol:
    """Return the protocol of an operation; refuse a share of the texts, and options that were not published."""
    kind = operation.type.name
    akin = [protocol for (name, _), protocol in _by_operation().items() if name == kind]
    protocol = _by_any_name().get(said) or _by_operation().get((kind, operation.options))
    if protocol is None and not akin:
        for name in _data()["unreleased"]:
            if parse_operation(name).type.name == kind:
                raise _not_published(name)
        raise UserError(
            f"published {operation.name}: no paper released code for it",
            mend=f"Published are: {_published_names()}. Anything else needs the corrected mode.",
        )
    protocol = protocol or akin[0]
    implied = parse_operation(protocol.kin).options
    extra = [one for one in operation.options if one not in implied]
    if extra:
        written = ", ".join(f"{name}: {str(value).lower()}" for name, value in extra)
        counted = any(name == "count" for name, _ in extra)
        others = [one.name for one in akin if counted and one is not protocol]
        raise UserError(
            f"published {protocol.name} was released without options; {written} has no say in a copy",
            mend=f"Leave {'it' if len(extra) == 1 else 'them'} out, or use the corrected mode."
            + (f" Published as well: {', '.join(others)}." if others else ""),
        )
    if operation.texts != 1:
        raise UserError(
            f"published {protocol.name} changes every text; share {operation.texts:g} of the texts was not published",
            mend="Leave the share out, or use the corrected mode.",
        )
    return protocol


def _published_names() -> str:
    readable = {
        protocol.name: parse_operation(protocol.name).name
        for protocol in protocols().values()
        if protocol.kin == protocol.name
    }
    return ", ".join(f"{name} ({readable[name]})" if name in readable else name for name in protocols())


def _percent(given: str, percent: str) -> float:
    if float(percent) > 100:
        raise UserError(f"scramble {given!r}: a rate lies between 0 and 100 %")
    return float(percent) / 100


def _upper(name: str) -> str:
    return re.sub(r"\s*:\s*", ":", name.strip()).upper()


def _is_known(name: str) -> bool:
    return _without_task(name) in _by_any_name() or name in _data()["unreleased"] or name in _data()["intact"]


def _without_task(name: str) -> str:
    for suffix in _data()["task_suffixes"]:
        name = name.removesuffix(suffix)
    return name


def _not_published(name: str) -> UserError:
    if name in _data()["unreleased"]:
        title = _data()["papers"][_data()["unreleased"][name]]["title"].partition(",")[0]
        return UserError(
            f"published {name} cannot be copied: {title} describe it, and its code was never released",
            mend="Use the corrected mode.",
        )
    error = unknown_name("published scramble", name.lower() if ":" in name else name, protocols())
    return UserError(error.message, mend=f"{error.mend} Anything else needs the corrected mode.")


def _check_rate(chosen: PublishedOperation) -> None:
    assert chosen.protocol is not None
    name, rate = chosen.protocol.name, chosen.rate
    if chosen.protocol.in_tenths:
        if abs(rate * _STEPS - chosen.steps) > 1e-9:
            raise UserError(
                f"published {name} has no rate {rate:g}; it goes in steps of 0.1",
                mend="Use a multiple of 0.1, or the corrected mode.",
            )
    elif rate != 1:
        raise UserError(
            f"published {name} changes every word that it can; rate {rate:g} was not published",
            mend="Leave the rate out, or use the corrected mode.",
        )


def faults(given: Given) -> tuple[Fault, ...]:
    """Return the faults that a published copy of an operation reproduces; none for the intact condition."""
    protocol = published_operation(given).protocol
    return () if protocol is None else protocol.faults


def describe(given: Given) -> str:
    """Say in a few sentences what a published copy is: paper, name of the released code, stream, stand-ins, faults."""
    chosen = published_operation(given)
    if chosen.protocol is None:
        return "The intact text."
    protocol = chosen.protocol
    code = f" (in its code {protocol.code})" if protocol.code else ""
    rate = f" at rate {chosen.rate:g}" if chosen.rate != 1 else ""
    told = [
        f"{protocol.name}{rate} as released by {protocol.title}{code}.",
        f"Draws: {protocol.stream}, seed {protocol.seed}.",
        *(fault.says for fault in protocol.faults),
    ]
    return " ".join(told)
