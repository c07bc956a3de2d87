"""Puts a server where stations find it, and says what an experimenter does next."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from flask import Flask

from experiment.people.lab.authority import ServerCertificate, own_names, server_certificate, tls_of
from experiment.people.lab.kiosk import SYSTEMS, command
from experiment.people.lab.reach import firewall_hint, try_addresses, try_plain
from experiment.people.lab.settings import Lab, set_lab
from experiment.people.listening import lan_addresses
from experiment.people.server import Server

EVERYWHERE = "0.0.0.0"
LOOPBACK = "127.0.0.1"
INDENT = "  "
WIDTH = 16
MOST_STATIONS = 10_000


@dataclass(frozen=True)
class LabServer:
    """A server for stations, bound but not yet running."""

    server: Server
    lab: Lab
    addresses: tuple[str, ...]
    certificate: ServerCertificate | None

    def tell(self, studies: list[str]) -> Iterator[str]:
        """Yield the lines that an experimenter reads first: addresses, what to fetch there, what seems wrong."""
        port = self.server.port
        scheme = "http" if self.certificate is None else "https"
        for address in self.addresses:
            yield _line("stations", f"{scheme}://{_host(address)}:{port}/")
        if not self.addresses:
            yield _line(
                "stations", "no network address was found; check that this computer is connected to a network"
            )
            return
        origin = self.lab.origins[0]
        if self.certificate is not None:
            yield _line("first", f"open {origin}/certificate once on each station and trust this computer")
            yield _line("", f"fingerprint {self.certificate.fingerprint}")
            yield _line("or", f"open {origin}/kiosk for a shortcut that needs no certificate")
            yield _line(
                "", f"{origin}/ works without either, but with a less precise clock and no lasting storage;"
            )
            yield _line("", "the start screen reports this, and no answer is lost.")
        else:
            yield _line(
                "first", f"download the shortcut for each station's system from {origin}/kiosk, or type:"
            )
            for system in SYSTEMS:
                yield _line(f"  {system.name}", command(system, f"{origin}/{studies[0]}/"))
            yield _line(
                "", "Without the shortcut's switch, pages have a less precise clock and no lasting storage;"
            )
            yield _line("", "the start screen reports this, and no answer is lost.")

    def tell_reach(self) -> Iterator[str]:
        """Yield how this computer's own addresses answer; call it while the server runs."""
        port = self.server.port
        authority = None if self.certificate is None else self.certificate.authority
        tried = (
            try_plain(self.addresses, port)
            if authority is None
            else try_addresses(self.addresses, port, authority)
        )
        for one in tried:
            yield _line("reached" if one.trouble is None else "NOT reached", f"{one.address}:{port}"
                        + ("" if one.trouble is None else f" ({one.trouble})"))  # fmt: skip
        hint = firewall_hint(port)
        if hint is not None:
            yield _line("firewall", hint)
        yield _line(
            "",
            "Each station is listed here when it first connects. A station that is not listed is blocked by a firewall",
        )
        yield _line(
            "", "or by a network that isolates its computers (guest and campus wireless networks often do)."
        )


class Meeting:
    """Tells of each other computer once, when it first connects."""

    def __init__(self, own: Iterable[str], tell: Callable[[str], None]) -> None:
        self._known = set(own)
        self._tell = tell

    def meet(self, address: str) -> None:
        """Note a connection from an address."""
        if address in self._known or len(self._known) > MOST_STATIONS:
            return
        self._known.add(address)
        if not ipaddress.ip_address(address.partition("%")[0]).is_loopback:
            self._tell(_line("station", f"{address} has connected"))


def open_lab(
    app: Flask,
    *,
    host: str | None,
    port: int,
    kiosk: bool,
    pin: str | None,
    folder: Path,
    tell: Callable[[str], None],
) -> LabServer:
    """Bind a server for stations.

    Parameters
    ----------
    app : Flask
        The application.
    host : str or None
        Address to listen at; None for every one of this computer.
    port : int
        Port, 0 for any free one.
    kiosk : bool
        Serve plain http for kiosk shortcuts, and make no certificate.
    pin : str or None
        The experimenter's PIN.
    folder : Path
        Where certificate and keys lie.
    tell : callable
        Told a line for each station that connects for the first time.

    Raises
    ------
    UserError
        The port is taken, or the certificate cannot be kept.
    """
    given = host or EVERYWHERE
    addresses = tuple(lan_addresses()) if given == EVERYWHERE else (given,)
    own = [str(ipaddress.ip_address(one)) for one in addresses if _is_address(one)]
    certificate = None
    if not kiosk:
        names = own_names() + [one for one in addresses if not _is_address(one)]
        certificate = server_certificate(folder, list(dict.fromkeys(names)), [*own, LOOPBACK])

    tls = None if certificate is None else tls_of(certificate)
    server = Server(app, given, port, tls=tls, on_visitor=Meeting(own, tell).meet)
    hosts = (*addresses, *own_names())
    lab = Lab(
        has_stations=True,
        origins=tuple(f"http://{_host(one)}:{server.port}" for one in hosts),
        authority=None if certificate is None else certificate.authority,
        fingerprint=None if certificate is None else certificate.fingerprint,
        pin=pin,
    )
    set_lab(app, lab)
    return LabServer(server, lab, addresses, certificate)


def _line(name: str, words: str) -> str:
    return f"{INDENT}{name:<{WIDTH}}{words}"


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address
