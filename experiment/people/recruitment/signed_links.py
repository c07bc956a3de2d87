"""Links that identify a person: signed by the platform (Prolific's JSON Web Token), or with the study's own key.

A token is checked against the platform's published keys. A study's own link contains an id, the second at which it expires, and
a signature over study, id and second, so that only someone with the key can make links.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlencode, urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers
from cryptography.hazmat.primitives.hashes import SHA256

from experiment.people.recruitment.codes import Signing

if TYPE_CHECKING:
    from experiment.people.service import StudyService

FRESH_S = 24 * 3600
TRY_AGAIN_S = 60
"""Seconds after a fetch before keys are fetched again, whatever keys tokens name."""
PATIENCE_S = 5
LARGEST = 256 * 1024
SMALLEST_BITS = 2048

Find = Callable[[str], RSAPublicKey | None]


class KeysUnavailable(Exception):
    """A platform's keys cannot be reached, and none are cached."""


@dataclass
class _Known:
    keys: Mapping[str, RSAPublicKey]
    fetched_at: float | None = None
    tried_at: float | None = None


class KeySets:
    """The platforms' keys by the address or file of their key set."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._lock = threading.Lock()

    def of(self, place: str) -> Find:
        """Return a function that finds a key by its id in the set at an address or in a file; it raises ``KeysUnavailable``."""
        return lambda key_id: self._find(place, key_id)

    def _find(self, place: str, key_id: str) -> RSAPublicKey | None:
        now = self._clock()
        known = self._known.get(place)
        if known is not None and key_id in known.keys and now - (known.fetched_at or 0) <= FRESH_S:
            return known.keys[key_id]  # without waiting for a fetch in progress
        with self._lock:
            known = self._known.setdefault(place, _Known({}))
            is_old = known.fetched_at is None or now - known.fetched_at > FRESH_S
            # an unknown key may be a new one
            may_try = known.tried_at is None or now - known.tried_at > TRY_AGAIN_S
            if (is_old or key_id not in known.keys) and may_try:
                known.tried_at = now
                try:
                    known.keys = read_keys(_fetched(place))
                    known.fetched_at = now
                except (OSError, ValueError):
                    pass  # cached keys stay valid
            if known.fetched_at is None:
                raise KeysUnavailable(place)
            return known.keys.get(key_id)


def _fetched(place: str) -> bytes:
    if not place.startswith(("https://", "http://")):
        return Path(place).expanduser().read_bytes()
    with urllib.request.urlopen(place, timeout=PATIENCE_S) as reply:
        return bytes(reply.read(LARGEST))


def read_keys(data: bytes) -> dict[str, RSAPublicKey]:
    """Return the RSA keys of a set by their id."""
    given = json.loads(data)
    entries = given.get("keys") if isinstance(given, dict) else None
    keys = {}
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("kty") == "RSA" and entry.get("use", "sig") == "sig":
            key = RSAPublicNumbers(_number(entry.get("e")), _number(entry.get("n"))).public_key()
            if key.key_size >= SMALLEST_BITS:
                keys[str(entry.get("kid"))] = key
    if not keys:
        raise ValueError("the set has no RSA key for signatures")
    return keys


def _number(text: object) -> int:
    if not isinstance(text, str):
        raise ValueError("a number of the key is missing")
    return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), "big")


LEEWAY_S = 60
"""Largest difference between the clocks of platform and server."""
ALGORITHM = "RS256"
LONGEST_TOKEN = 4096
ID, UNTIL, SIGNATURE = OWN_PARAMETERS = ("id", "until", "signature")


Standing = Literal["absent", "valid", "expired", "invalid", "unchecked"]


@dataclass(frozen=True)
class Signed:
    """The result of checking a link's signature."""

    standing: Standing
    parameters: Mapping[str, str]


ABSENT, EXPIRED = Signed("absent", {}), Signed("expired", {})
INVALID, UNCHECKED = Signed("invalid", {}), Signed("unchecked", {})


def check_link(service: StudyService, given: Mapping[str, str], *, host: str, keys: KeySets) -> Signed:
    """Return the result of checking a link's signature."""
    recruitment = service.recruitment
    signing = None if recruitment is None or recruitment.platform is None else recruitment.platform.signing
    if recruitment is None or signing is None:
        return ABSENT
    if signing.by == "key":
        return check_own(recruitment.link_key, service.study, given)
    token = given.get(signing.parameters[0])
    if not token:
        return ABSENT
    try:
        claims = read_token(token, keys.of(recruitment.key_set or signing.keys))
    except KeysUnavailable:
        return UNCHECKED
    return INVALID if claims is None else _signed(signing, claims, given, service.study, host)


def read_token(token: str, find: Any) -> dict[str, Any] | None:
    """Return the claims of a JSON Web Token (RFC 7519) signed with one of a platform's keys, else None."""
    if len(token) > LONGEST_TOKEN:
        return None
    try:
        head, body, signature = token.encode("ascii").split(b".")
        header, claims = json.loads(_decoded(head)), json.loads(_decoded(body))
        # the algorithm is ours to choose, never the token's
        if header["alg"] != ALGORITHM or not isinstance(claims, dict):
            return None
        key = find(str(header["kid"]))
        if key is None:
            return None
        key.verify(_decoded(signature), head + b"." + body, PKCS1v15(), SHA256())
    except (ValueError, KeyError, TypeError, RecursionError, InvalidSignature):
        return None
    return claims


def _decoded(part: bytes) -> bytes:
    try:
        return base64.b64decode(part + b"=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError("not base64url") from error


def _signed(
    signing: Signing, claims: Mapping[str, Any], given: Mapping[str, str], study: str, host: str
) -> Signed:
    now = time.time()
    expires, identity = claims.get("exp"), claims.get(signing.claim or "")
    if not isinstance(expires, int | float) or not isinstance(identity, Mapping):
        return INVALID
    parameters = {
        name: value for name in signing.signs if isinstance(value := identity.get(name), str) and value
    }
    contradicts = any(given.get(name, value) != value for name, value in parameters.items())
    if signing.identity not in parameters or contradicts or not _is_for(claims.get("aud"), study, host):
        return INVALID
    return EXPIRED if expires < now - LEEWAY_S else Signed("valid", parameters)


def _is_for(audience: object, study: str, host: str) -> bool:
    """Return whether a token is for this server, and for this study if it names an address rather than a host."""
    for entry in audience if isinstance(audience, list) else [audience]:
        if not isinstance(entry, str):
            continue
        address = urlsplit(entry if "//" in entry else f"//{entry}")
        path = address.path.strip("/").split("/")
        if (address.hostname or "").lower() == host.lower() and path[-1] in ("", study):
            return True
    return False


def check_own(key: str | None, study: str, given: Mapping[str, str]) -> Signed:
    """Return the result of checking a link signed with the study's own key."""
    until, signature = given.get(UNTIL, ""), given.get(SIGNATURE)
    if not signature:
        return ABSENT
    if key is None or not (until.isascii() and until.isdecimal() and len(until) <= 12):
        return INVALID
    right = sign(key, study, given.get(ID, ""), int(until))
    if not given.get(ID) or not hmac.compare_digest(right.encode(), signature.encode()):
        return INVALID
    return EXPIRED if int(until) < time.time() else Signed("valid", {ID: given[ID]})


def sign(key: str, study: str, external_id: str, until: int) -> str:
    """Return the signature of a link: HMAC-SHA256 over study, id and second, one per line, in hexadecimal."""
    text = f"{study}\n{external_id}\n{until}"
    return hmac.digest(key.encode(), text.encode(), hashlib.sha256).hex()


def signed_link(base_url: str, key: str, study: str, external_id: str, until: int) -> str:
    """Return a link for a person with the user's own id, valid until a second of Unix time."""
    signature = sign(key, study, external_id, until)
    query = urlencode({ID: external_id, UNTIL: str(until), SIGNATURE: signature})
    return f"{base_url.rstrip('/')}/{study}/?{query}"
