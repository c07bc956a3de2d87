"""A certificate authority of this computer's own, and the certificate with which it answers stations.

Browsers keep their exact clock and their lasting storage for pages whose sender they can be sure of. The authority is made
once, stays in the user's configuration folder and can vouch for this computer's names and for addresses only, never for
another site's name: who trusts it on a station gives away nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import socket
import ssl
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from stimuli.errors import UserError
from stimuli.files import replace_file

AUTHORITY_LASTS = timedelta(days=3650)
# Apple's systems refuse server certificates of more than 825 days
SERVER_LASTS = timedelta(days=397)
RENEWED_BEFORE = timedelta(days=30)
# stations whose clocks are behind
BACKDATED = timedelta(days=2)
OWN_NAMES = ("localhost", "local")
LONGEST_NAME = 64


@dataclass(frozen=True)
class ServerCertificate:
    """What answers stations over TLS."""

    authority: Path
    chain: Path
    key: Path
    fingerprint: str
    is_renewed: bool


def tls_of(certificate: ServerCertificate) -> ssl.SSLContext:
    """Return with what a server answers callers that speak TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate.chain, certificate.key)
    context.set_alpn_protocols(["http/1.1"])
    return context


def own_names() -> list[str]:
    """Return the names by which this computer may be known in its network, likeliest first."""
    name = socket.gethostname().lower()
    found = [name, f"{name.split('.')[0]}.local", "localhost"]
    return [one for one in dict.fromkeys(found) if one and len(one) <= LONGEST_NAME]


def server_certificate(
    folder: Path, names: Sequence[str], addresses: Sequence[str], *, moment: datetime | None = None
) -> ServerCertificate:
    """Return a certificate for some names and addresses, making what is missing, too old or for other ones."""
    now = moment or datetime.now(UTC)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        certificate, key = _authority(folder, names, now)
        is_renewed = not _serves(folder, certificate, names, addresses, now)
        if is_renewed:
            _make_server(folder, certificate, key, names, addresses, now)
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


def spki_digest(chain: Path) -> str:
    """Return the Base64 SHA-256 of a certificate's public key, as Chromium's switches name certificates."""
    public = x509.load_pem_x509_certificate(chain.read_bytes()).public_key()
    data = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(data).digest()).decode()


def _authority(
    folder: Path, names: Sequence[str], now: datetime
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    certificate_file, key_file = folder / "authority.pem", folder / "authority.key"
    if certificate_file.exists() and key_file.exists():
        certificate = x509.load_pem_x509_certificate(certificate_file.read_bytes())
        key = serialization.load_pem_private_key(key_file.read_bytes(), password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
            raise ValueError("authority.key does not belong to authority.pem")
        covered = _permitted(certificate)
        is_mine = all(_is_below(name, covered) for name in names)
        if is_mine and certificate.not_valid_after_utc - now > SERVER_LASTS:
            return certificate, key
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _authority_certificate(key, names, now)
    replace_file(key_file, _private(key), is_private=True)
    replace_file(certificate_file, certificate.public_bytes(serialization.Encoding.PEM))
    return certificate, key


def _authority_certificate(
    key: ec.EllipticCurvePrivateKey, names: Iterable[str], now: datetime
) -> x509.Certificate:
    called = f"wrods lab of {socket.gethostname()}"[:LONGEST_NAME]
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, called)])
    permitted: list[x509.GeneralName] = [x509.DNSName(one) for one in dict.fromkeys((*OWN_NAMES, *names))]
    permitted += [
        x509.IPAddress(ipaddress.ip_network("0.0.0.0/0")),
        x509.IPAddress(ipaddress.ip_network("::/0")),
    ]
    return (
        _builder(name, name, key.public_key(), now, AUTHORITY_LASTS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.NameConstraints(permitted, None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _make_server(
    folder: Path,
    authority: x509.Certificate,
    authority_key: ec.EllipticCurvePrivateKey,
    names: Sequence[str],
    addresses: Sequence[str],
    now: datetime,
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, (names or addresses)[0])])
    asked: list[x509.GeneralName] = [x509.DNSName(name) for name in names]
    asked += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
    certificate = (
        _builder(subject, authority.subject, key.public_key(), now, SERVER_LASTS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(asked), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
        )
        .sign(authority_key, hashes.SHA256())
    )
    replace_file(folder / "server.key", _private(key), is_private=True)
    replace_file(folder / "server.pem", certificate.public_bytes(serialization.Encoding.PEM))


def _serves(
    folder: Path, authority: x509.Certificate, names: Sequence[str], addresses: Sequence[str], now: datetime
) -> bool:
    """Say whether the certificate that lies there is ours, fresh, and for these names and addresses."""
    file, key_file = folder / "server.pem", folder / "server.key"
    if not (file.exists() and key_file.exists()):
        return False
    certificate = x509.load_pem_x509_certificate(file.read_bytes())
    key = serialization.load_pem_private_key(key_file.read_bytes(), password=None)
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


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, lasts: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now - BACKDATED + lasts)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _permitted(authority: x509.Certificate) -> list[str]:
    limits = authority.extensions.get_extension_for_class(x509.NameConstraints).value
    return [str(one.value) for one in limits.permitted_subtrees or [] if isinstance(one, x509.DNSName)]


def _is_below(name: str, permitted: Iterable[str]) -> bool:
    return any(name == one or name.endswith(f".{one}") for one in permitted)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
