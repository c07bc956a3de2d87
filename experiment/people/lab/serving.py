"""Serves stations in a lab: addresses, TLS certificate, and instructions for the experimenter.

Browsers offer their precise clock and persistent storage only to pages from a trusted server, so this computer has its own
certificate authority, and a certificate for stations. The authority is created once, stays in the user's configuration folder,
and is limited to this computer's names and to addresses: a station that trusts it is not at risk from other sites.
"""

from __future__ import annotations

import http.client
import ipaddress
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from flask import Flask

from experiment.people.connections import lan_addresses, listen
from experiment.people.lab.settings import Lab, set_lab
from experiment.people.lab.stations import SYSTEMS, command
from experiment.people.server import StudyServer
from stimuli.errors import UserError
from stimuli.files import replace_file

AUTHORITY_LASTS = timedelta(days=3650)
# Apple's systems reject server certificates of more than 825 days
SERVER_LASTS = timedelta(days=397)
RENEWED_BEFORE = timedelta(days=30)
# for stations whose clocks are slow
BACKDATED = timedelta(days=2)
OWN_NAMES = ("localhost", "local")
LONGEST_NAME = 64


@dataclass(frozen=True)
class ServerCertificate:
    """The certificate with which the server answers stations over TLS."""

    authority: Path
    chain: Path
    key: Path
    fingerprint: str
    is_renewed: bool


def tls_of(certificate: ServerCertificate) -> ssl.SSLContext:
    """Return the TLS context of a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate.chain, certificate.key)
    context.set_alpn_protocols(["http/1.1"])
    return context


def own_names() -> list[str]:
    """Return the names by which this computer may be known in its network, likeliest first."""
    name = socket.gethostname().lower()
    names = dict.fromkeys([name, f"{name.split('.')[0]}.local", "localhost"])
    return [name for name in names if name and len(name) <= LONGEST_NAME]


def server_certificate(
    folder: Path, names: Sequence[str], addresses: Sequence[str], *, moment: datetime | None = None
) -> ServerCertificate:
    """Return a certificate for some names and addresses, created if missing, too old or for other ones."""
    now = moment or datetime.now(UTC)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        certificate, key = _authority(folder, names, now)
        is_renewed = not _serves(folder, certificate, names, addresses, now)
        if is_renewed:
            alternatives: list[x509.GeneralName] = [x509.DNSName(name) for name in names]
            alternatives += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
            _issue(
                folder / "server",
                (names or addresses)[0],
                (certificate, key),
                now,
                SERVER_LASTS,
                (x509.BasicConstraints(ca=False, path_length=None), True),
                (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
                (x509.SubjectAlternativeName(alternatives), False),
            )
    except OSError as error:
        raise UserError(
            f"the certificate for stations cannot be kept in {folder}: {error.strerror}",
            mend="Make the folder writable for you, or serve with --kiosk.",
        ) from error
    except ValueError as error:
        raise UserError(
            f"a certificate or key in {folder} is damaged: {error}",
            mend="Remove the folder; stations then trust the new authority once more.",
        ) from error
    digest = certificate.fingerprint(hashes.SHA256()).hex().upper()
    return ServerCertificate(
        authority=folder / "authority.pem",
        chain=folder / "server.pem",
        key=folder / "server.key",
        fingerprint=":".join(digest[place : place + 2] for place in range(0, len(digest), 2)),
        is_renewed=is_renewed,
    )


def _authority(
    folder: Path, names: Sequence[str], now: datetime
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    certificate_file, key_file = folder / "authority.pem", folder / "authority.key"
    if certificate_file.exists() and key_file.exists():
        certificate, known = _read_pair(certificate_file, key_file)
        is_pair = known.public_key() == certificate.public_key()
        if not (is_pair and isinstance(known, ec.EllipticCurvePrivateKey)):
            raise ValueError("authority.key does not belong to authority.pem")
        limits = certificate.extensions.get_extension_for_class(x509.NameConstraints).value
        permitted = [
            f".{part.value}" for part in limits.permitted_subtrees or () if isinstance(part, x509.DNSName)
        ]
        is_mine = all(f".{name}".endswith(tuple(permitted)) for name in names)
        if is_mine and certificate.not_valid_after_utc - now > SERVER_LASTS:
            return certificate, known
    called = f"wrods lab of {socket.gethostname()}"[:LONGEST_NAME]
    allowed: list[x509.GeneralName] = [x509.DNSName(name) for name in dict.fromkeys((*OWN_NAMES, *names))]
    allowed += [x509.IPAddress(ipaddress.ip_network(every)) for every in ("0.0.0.0/0", "::/0")]
    return _issue(
        folder / "authority",
        called,
        None,
        now,
        AUTHORITY_LASTS,
        (x509.BasicConstraints(ca=True, path_length=0), True),
        (x509.NameConstraints(allowed, None), True),
    )


def _issue(
    stem: Path,
    called: str,
    issuer: tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None,
    now: datetime,
    lasts: timedelta,
    *extensions: tuple[x509.ExtensionType, bool],
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """Create a key and its certificate, signed by an issuer or by itself, and write both to the same folder."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, called)])
    signing_key = key if issuer is None else issuer[1]
    usage = dict.fromkeys(
        (
            *("content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
            *("encipher_only", "decipher_only"),
        ),
        False,
    )
    signs = issuer is None
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer[0].subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now - BACKDATED + lasts)
        .add_extension(
            x509.KeyUsage(digital_signature=not signs, key_cert_sign=signs, crl_sign=signs, **usage),
            critical=True,
        )
    )
    identifier: x509.ExtensionType = (
        x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        if issuer is None
        else x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key())
    )
    for extension, is_critical in (*extensions, (identifier, False)):
        builder = builder.add_extension(extension, critical=is_critical)
    certificate = builder.sign(signing_key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    replace_file(stem.with_suffix(".key"), private, is_private=True)
    replace_file(stem.with_suffix(".pem"), certificate.public_bytes(pem))
    return certificate, key


def _read_pair(certificate: Path, key: Path) -> tuple[x509.Certificate, PrivateKeyTypes]:
    return (
        x509.load_pem_x509_certificate(certificate.read_bytes()),
        serialization.load_pem_private_key(key.read_bytes(), password=None),
    )


def _serves(
    folder: Path, authority: x509.Certificate, names: Sequence[str], addresses: Sequence[str], now: datetime
) -> bool:
    """Return whether the stored certificate is ours, valid, and for these names and addresses."""
    file, key_file = folder / "server.pem", folder / "server.key"
    if not (file.exists() and key_file.exists()):
        return False
    certificate, key = _read_pair(file, key_file)
    for_ = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    known = {*for_.get_values_for_type(x509.DNSName)}
    known |= {str(address) for address in for_.get_values_for_type(x509.IPAddress)}
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return (
        key.public_key() == certificate.public_key()
        and {*names, *addresses} <= known
        and certificate.not_valid_after_utc - now > RENEWED_BEFORE
        and certificate.not_valid_before_utc <= now
    )


PATIENCE_S = 3.0


def try_addresses(addresses: Sequence[str], port: int, authority: Path | None) -> dict[str, str | None]:
    """Return what prevents a connection to the server at each address: over TLS, trusting only the authority, or plain http."""
    context = None if authority is None else ssl.create_default_context(cafile=str(authority))
    return {address: _trouble(address, port, context) for address in addresses}


def _trouble(address: str, port: int, context: ssl.SSLContext | None) -> str | None:
    connection = (
        http.client.HTTPConnection(address, port, timeout=PATIENCE_S)
        if context is None
        else http.client.HTTPSConnection(address, port, timeout=PATIENCE_S, context=context)
    )
    try:
        connection.request("GET", "/robots.txt")
        status = connection.getresponse().status
    except TimeoutError:
        return f"no answer within {PATIENCE_S:g} s: a firewall seems to block port {port}"
    except ssl.SSLCertVerificationError as error:
        return f"the certificate is not valid for this address: {error.verify_message}"
    except (OSError, http.client.HTTPException) as error:
        return f"no connection: {error}"
    finally:
        connection.close()
    return None if status == 200 else f"another program answers there (HTTP {status})"


def firewall_hint(port: int) -> str | None:
    """Return how to open a port if this computer's firewall is active, else None.

    A computer reaches itself through most firewalls, so an address that answers here may still be closed to stations.
    """
    if sys.platform == "win32":
        output = _output("netsh", "advfirewall", "show", "currentprofile", "state")
        is_on = "ON" in output.upper().split()
        mend = f"netsh advfirewall firewall add rule name=wrods dir=in action=allow protocol=TCP localport={port}"
        return f"the Windows firewall is on; run as administrator: {mend}" if is_on else None
    if sys.platform == "darwin":
        output = _output("/usr/libexec/ApplicationFirewall/socketfilterfw", "--getglobalstate")
        is_on = "enabled" in output.lower()
        mend = "open System Settings, Network, Firewall, and allow Python"
        return f"the macOS firewall is on: {mend}" if is_on else None
    if _output("firewall-cmd", "--state").strip() == "running":
        is_open = _output("firewall-cmd", f"--query-port={port}/tcp").strip() == "yes"
        return None if is_open else f"firewalld is on: sudo firewall-cmd --add-port={port}/tcp"
    ufw = Path("/etc/ufw/ufw.conf")
    try:
        is_on = "ENABLED=yes" in ufw.read_text("utf-8", "replace").split()
    except OSError:
        return None
    return f"ufw is on: sudo ufw allow {port}/tcp" if is_on else None


def _output(*command: str) -> str:
    program = shutil.which(command[0])
    if program is None:
        return ""
    try:
        done = subprocess.run(
            [program, *command[1:]], capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


EVERYWHERE = "0.0.0.0"
LOOPBACK = "127.0.0.1"
INDENT = "  "
WIDTH = 16
MOST_STATIONS = 10_000


@dataclass(frozen=True)
class LabServer:
    """A server for stations, bound but not yet running."""

    server: StudyServer
    lab: Lab
    addresses: tuple[str, ...]
    certificate: ServerCertificate | None

    def tell(self, studies: list[str]) -> Iterator[str]:
        """Yield instructions for the experimenter: addresses, downloads, and problems."""
        port = self.server.port
        scheme = "http" if self.certificate is None else "https"
        for address in self.addresses:
            yield _line("stations", f"{scheme}://{_host(address)}:{port}/")
        if not self.addresses:
            yield _line(
                "stations", "no network address was found; check that this computer is connected to a network"
            )
            return
        origin, lacks = self.lab.origins[0], "a less precise clock and no lasting storage;"
        if self.certificate is not None:
            yield _line("first", f"open {origin}/certificate once on each station and trust this computer")
            yield _line("", f"fingerprint {self.certificate.fingerprint}")
            yield _line("or", f"open {origin}/kiosk for a shortcut that needs no certificate")
            yield _line("", f"{origin}/ works without either, but with {lacks}")
        else:
            yield _line(
                "first", f"download the shortcut for each station's system from {origin}/kiosk, or type:"
            )
            for system in SYSTEMS:
                yield _line(f"  {system.name}", command(system, f"{origin}/{studies[0]}/"))
            yield _line("", f"Without the shortcut's switch, pages have {lacks}")
        yield _line("", "the start screen reports this.")

    def tell_reach(self) -> Iterator[str]:
        """Yield the results of connections to this computer's own addresses; call it while the server runs."""
        port = self.server.port
        authority = None if self.certificate is None else self.certificate.authority
        for address, trouble in try_addresses(self.addresses, port, authority).items():
            why = "" if trouble is None else f" ({trouble})"
            yield _line("NOT reached" if trouble else "reached", f"{address}:{port}{why}")
        hint = firewall_hint(port)
        if hint is not None:
            yield _line("firewall", hint)
        for words in (
            "Each station is listed here when it first connects. A station that is not listed is blocked by a firewall",
            "or by a network that isolates its computers (guest and campus wireless networks often do).",
        ):
            yield _line("", words)


class Meeting:
    """Reports each other computer once, when it first connects."""

    def __init__(self, own: Iterable[str], tell: Callable[[str], None]) -> None:
        self._known = set(own)
        self._tell = tell

    def meet(self, address: str) -> None:
        """Record a connection from an address."""
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
    pin: str | None,
    certificates: Path | None,
    tell: Callable[[str], None],
) -> LabServer:
    """Bind a server for stations, at all of this computer's addresses if none is given.

    The folder ``certificates`` holds certificate and keys; None serves plain http for kiosk shortcuts. ``tell`` is called with
    a line for each station that connects for the first time.
    """
    given = host or EVERYWHERE
    addresses = tuple(lan_addresses()) if given == EVERYWHERE else (given,)
    valid_addresses = [str(ipaddress.ip_address(address)) for address in addresses if _is_address(address)]
    certificate = None
    if certificates is not None:
        names = own_names() + [address for address in addresses if not _is_address(address)]
        certificate = server_certificate(
            certificates, list(dict.fromkeys(names)), [*valid_addresses, LOOPBACK]
        )

    tls = None if certificate is None else tls_of(certificate)
    server = StudyServer(app, listen(given, port), tls=tls, on_visitor=Meeting(valid_addresses, tell).meet)
    hosts = (*addresses, *own_names())
    lab = Lab(
        has_stations=True,
        origins=tuple(f"http://{_host(host)}:{server.port}" for host in hosts),
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
