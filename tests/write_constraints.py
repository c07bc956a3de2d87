"""Writes ``constraints.txt`` and ``pip.txt``: each version that wrods installs, with the hashes of all its files.

Run ``make constraints``. Versions stay as they are unless uv's options say otherwise: ``make constraints OPTIONS=--upgrade``
for all of them, ``OPTIONS="--upgrade-package numpy"`` for one. Only the package index is asked.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Collection
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.markers import Marker

from hatch_build import read_pins

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
PIP = ROOT / "pip.txt"
SYSTEMS = [
    {
        "sys_platform": platform,
        "platform_system": system,
        "os_name": "nt" if platform == "win32" else "posix",
        "platform_machine": machine,
        "python_version": python,
        "python_full_version": f"{python}.0",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
    }
    for platform, system, machines in (
        ("linux", "Linux", ("x86_64", "aarch64")),
        ("darwin", "Darwin", ("x86_64", "arm64")),
        ("win32", "Windows", ("AMD64", "ARM64")),
    )
    for machine in machines
    for python in ("3.11", "3.12", "3.13")
]
"""The systems that wrods runs on, as markers of requirements name them."""
CONSTRAINTS_HEAD = """\
# The versions that `make` and the README install on Linux, macOS and Windows, with the SHA-256 of each of their files, which pip
# checks. `make constraints` writes this file (tests/write_constraints.py). The ranges of versions that work are in pyproject.toml.
# The comment before a version names what needs it: plain (every installation; its licence follows), local (the extra) or other
# (other extras, tests, building). torch and torchvision have no hashes, so that pip may take a CPU build of them from another index
# or folder; it checks their files against the hash that the index states.
"""
PIP_HEAD = """\
# The pip that installs wrods: from 26.2 on, pip checks the hashes in constraints.txt. `make constraints` writes this file.
"""
ANY_BUILD = ("torch", "torchvision")
"""Listed without hashes: pip prefers files of known hash, and so would take the CUDA build where a CPU build is at hand."""
LICENCES_READ = {
    "colorama": "BSD-3-Clause",
    "contourpy": "BSD-3-Clause",
    "cycler": "BSD-3-Clause",
    "itsdangerous": "BSD-3-Clause",
    "jinja2": "BSD-3-Clause",
    "kiwisolver": "BSD-3-Clause",
    "locate": "MIT",
    "patsy": "BSD-2-Clause",
    "scipy": "BSD-3-Clause",
    "segno": "BSD-3-Clause",
    "transformers": "Apache-2.0",
    "wordfreq": "Apache-2.0 AND CC-BY-SA-4.0",
}
"""Licences as their texts say, of distributions whose metadata name none, name it unclearly, or leave out that of their data."""
CLASSIFIERS = {
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: ISC License (ISCL)": "ISC",
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: Python Software Foundation License": "PSF-2.0",
}


def licence_of(name: str) -> str:
    """Return a distribution's licence as an SPDX expression: the one that was read, else what the installed metadata say.

    Raises
    ------
    ValueError
        When the metadata do not say it in a form that can be read.
    """
    if name in LICENCES_READ:
        return LICENCES_READ[name]
    try:
        metadata = distribution(name).metadata
    except PackageNotFoundError:
        raise ValueError(f"{name} is not installed: read its licence and add it to LICENCES_READ") from None
    for field in ("License-Expression", "License"):
        try:
            return canonicalize_license_expression(metadata.get(field) or "")
        except InvalidLicenseExpression:
            continue
    told = {one for one in metadata.get_all("Classifier") or () if one.startswith("License ::")}
    if len(told) == 1 and told <= set(CLASSIFIERS):
        return CLASSIFIERS[told.pop()]
    raise ValueError(f"{name}'s metadata name no clear licence: read its licence and add it to LICENCES_READ")


def compiled(kept: str, *options: str) -> str:
    """Return what uv resolves ``pyproject.toml`` to, for every system at once, keeping versions where it can."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "constraints.txt"
        file.write_text(kept, "utf-8")
        compile = ["-m", "uv", "pip", "compile", "pyproject.toml", "--quiet", "--no-header", "--no-annotate"]
        systems = ("--universal", "--fork-strategy", "fewest", "--python-version", "3.11")
        command = [sys.executable, *compile, *systems, "--output-file", str(file), *options]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        return file.read_text("utf-8")


def resolved(text: str) -> dict[str, tuple[str, list[str]]]:
    """Return by name each version that a supported system needs, as ``name==version``, and its hashes.

    Raises
    ------
    ValueError
        When systems need different versions.
    """
    found: dict[str, tuple[str, list[str]]] = {}
    for pin, marker, hashes in re.findall(
        r"(?m)^(\S+==\S+)(?: ; (.+?))?(?: \\)?\n((?:    --hash=.*\n)*)", text
    ):
        if marker and not any(Marker(marker).evaluate(one) for one in SYSTEMS):
            continue
        name = pin.partition("==")[0]
        if name in found:
            raise ValueError(
                f"{pin} and {found[name][0]} are for different systems; choose a version for all of them"
            )
        found[name] = pin, re.findall(r"sha256:[0-9a-f]{64}", hashes)
    return found


def written(whole: str, plain: Collection[str], local: Collection[str]) -> tuple[str, str]:
    """Return the texts of ``constraints.txt`` and ``pip.txt``."""
    constraints, pip = CONSTRAINTS_HEAD, PIP_HEAD
    for name, (pin, hashes) in resolved(whole).items():
        lines = " \\\n    --hash=".join((pin, *([] if name in ANY_BUILD else hashes))) + "\n"
        if name == "pip":
            pip += lines
        elif name in plain:
            constraints += f"# plain; {licence_of(name)}\n{lines}"
        else:
            constraints += f"# {'local' if name in local else 'other'}\n{lines}"
    return constraints, pip


def main(options: list[str]) -> None:
    """Resolve, mark what needs each version, and write both files."""
    kept = "".join(
        f"{pin.name}=={pin.version}\n"
        for file in (CONSTRAINTS, PIP)
        for pin in read_pins(file.read_text("utf-8"))
    )
    whole = compiled(kept, "--all-extras", "--group", "constraints", "--generate-hashes", *options)
    plain = resolved(compiled(whole))
    local = resolved(compiled(whole, "--extra", "local"))
    constraints, pip = written(whole, plain, local)
    CONSTRAINTS.write_text(constraints, "utf-8")
    PIP.write_text(pip, "utf-8")
    print(f"{len(read_pins(constraints))} versions, {constraints.count('--hash=')} hashes")


if __name__ == "__main__":
    main(sys.argv[1:])
