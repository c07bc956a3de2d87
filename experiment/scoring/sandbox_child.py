"""Runs one program under lock and key; started by :mod:`experiment.scoring.sandbox` as a file, never imported.

It reads a job from standard input (JSON: limits, a secret word, the program, its tests), shuts itself in and runs it. Linux only:
user, network, process, mount and IPC namespaces of its own, a file system that holds nothing but Python's own library
(read-only) and an empty folder of bounded size, resource limits, no capabilities. What cannot be set up ends it with exit code 3 and
the reason on standard error: nothing runs half locked. It uses no package but Python's own, since it runs without any.
"""

# paths go to the kernel as they are
# ruff: noqa: PTH102, PTH103, PTH106, PTH110, PTH112, PTH114, PTH118, PTH120, PTH123, PTH208, PTH211
from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pathlib
import resource
import signal
import socket
import struct
import sys
import sysconfig
import time
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

NEW_NAMESPACES = 0x00020000 | 0x08000000 | 0x20000000 | 0x40000000  # mounts, IPC, processes, network
NEW_USERS = 0x10000000
BIND, RECURSIVE, REMOUNT, READ_ONLY, PRIVATE = 0x1000, 0x4000, 0x20, 0x1, 0x40000
NO_SETUID, NO_DEVICES, NO_EXEC = 0x2, 0x4, 0x8
DETACH = 2
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38
CAPABILITIES_V3 = 0x20080522
NOBODY = 65534
REFUSED, LATE = 3, 4
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217}
LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib")
WORK = "/work"

libc = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """A lock that this machine does not give."""


def called(what: str, value: int) -> None:
    """Raise Refused where a call into the C library failed."""
    if value != 0:
        raise Refused(f"{what}: {os.strerror(ctypes.get_errno())}")


def enter_namespaces() -> None:
    """Move into namespaces of its own; whoever is not root becomes root of one of users, which has no rights outside."""
    if os.geteuid() == 0:
        called("namespaces of networks and processes (unshare)", libc.unshare(NEW_NAMESPACES))
        return
    user, group = os.geteuid(), os.getegid()
    called("namespaces of users and networks (unshare)", libc.unshare(NEW_NAMESPACES | NEW_USERS))
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    with contextlib.suppress(OSError):  # a namespace within gives nothing that this one has not
        pathlib.Path("/proc/sys/user/max_user_namespaces").write_text("0")


def leave_root() -> None:
    """Become nobody where started by root, whose rights and number of processes are not limited."""
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """Mount, or raise Refused."""
    encoded = [None if one is None else one.encode() for one in (source, target, kind)]
    given = None if data is None else data.encode()
    called(f"mounting {target}", libc.mount(*encoded, ctypes.c_ulong(flags), given))


def python_folders() -> list[str]:
    """Return the folders that Python needs: its own library and the system's shared libraries."""
    wanted = [
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("platstdlib"),
        os.path.join(sys.base_prefix, "lib"),
    ]
    wanted += [folder for folder in LIBRARIES if os.path.isdir(folder)]
    real = sorted({os.path.realpath(folder) for folder in wanted if os.path.isdir(folder)})
    return [one for one in real if not any(one.startswith(other + "/") for other in real)]


def shut_in(kilobytes: int, owner: int) -> list[str]:
    """Make a file system of Python's library and an empty folder the only one there is."""
    mount(None, "/", None, RECURSIVE | PRIVATE)
    folders = python_folders()
    root = "/tmp"
    mount("tmpfs", root, "tmpfs", NO_SETUID | NO_DEVICES, "size=1m,mode=755")
    for folder in folders:
        target = root + folder
        os.makedirs(target, exist_ok=True)
        mount(folder, target, None, BIND)
        flags = os.statvfs(target).f_flag & (NO_SETUID | NO_DEVICES | NO_EXEC)
        mount(None, target, None, BIND | REMOUNT | READ_ONLY | NO_SETUID | NO_DEVICES | flags)
    for folder in LIBRARIES:
        if os.path.islink(folder) and not os.path.exists(root + folder):
            os.makedirs(os.path.dirname(root + folder), exist_ok=True)
            os.symlink(os.path.realpath(folder), root + folder)
    os.makedirs(root + WORK)
    mount(
        "tmpfs",
        root + WORK,
        "tmpfs",
        NO_SETUID | NO_DEVICES | NO_EXEC,
        f"size={kilobytes}k,mode=700,nr_inodes=200,uid={owner},gid={owner}",
    )
    os.mkdir(root + "/old")
    os.chdir(root)
    number = PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise Refused(f"no root of its own on {os.uname().machine}")
    called("a root of its own", libc.syscall(number, b".", b"old"))
    os.chdir("/")
    called("leaving the old root", libc.umount2(b"/old", DETACH))
    os.rmdir("/old")
    mount(None, "/", None, REMOUNT | BIND | READ_ONLY | NO_SETUID | NO_DEVICES)
    os.chdir(WORK)
    return folders


def drop_rights(is_root: bool) -> None:
    """Give up every capability, for good."""
    for capability in range(64):
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    if is_root:
        leave_root()
    called("prctl", libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    head = struct.pack("Ii", CAPABILITIES_V3, 0)
    called("capset", libc.capset(head, bytes(24)))


def limit(job: Mapping[str, Any]) -> None:
    """Set the limits of one process; after this no further process or thread can be started."""
    seconds, size = int(job["cpu_seconds"]), int(job["memory_megabytes"]) * 2**20
    for what, low, high in (
        (resource.RLIMIT_CPU, seconds, seconds + 1),
        (resource.RLIMIT_AS, size, size),
        (resource.RLIMIT_FSIZE, int(job["file_kilobytes"]) * 1024, int(job["file_kilobytes"]) * 1024),
        (resource.RLIMIT_NOFILE, 16, 16),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_NPROC, 1, 1),
    ):
        resource.setrlimit(what, (low, high))


def require_locked(folders: Sequence[str]) -> None:
    """Try what must not work, and refuse to go on where it does."""
    ends = {*folders, *LIBRARIES, WORK}
    ways = {str(parent) for folder in folders for parent in pathlib.PurePath(folder).parents}
    try:
        child = os.fork()
    except OSError:
        pass
    else:
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        raise Refused("the number of processes: a child could be started")
    if [name for _, name in socket.if_nameindex() if name != "lo"]:
        raise Refused("the network: an interface is there")
    for folder in ways:
        strange = [name for name in os.listdir(folder) if os.path.join(folder, name) not in ways | ends]
        if strange:
            raise Refused(f"the file system: {os.path.join(folder, strange[0])} is there")
    if os.listdir(WORK):
        raise Refused("the folder is not empty")
    if len(os.environ) > 1 or not set(os.environ) <= {"LC_CTYPE"}:
        raise Refused("the environment is not empty")


def report(pipe: int, told: Mapping[str, Any]) -> None:
    """Send what came of it, as a line."""
    os.write(pipe, json.dumps(told).encode() + b"\n")


def run(job: Mapping[str, Any], pipe: int) -> None:
    """Run the program, then each test; say how many hold."""
    space: dict[str, Any] = {"__name__": "__main__"}
    word, tests = job["word"], job["tests"]
    held = 0
    first: str | None = None
    try:
        for source in (job["setup"], job["program"]):
            exec(compile(source, "<program>", "exec"), space)
    except BaseException as error:
        report(pipe, {"word": word, "held": 0, "why": f"{type(error).__name__}: {error}"[:300]})
        return
    for test in tests:
        try:
            exec(compile(test, "<test>", "exec"), space)
            held += 1
        except BaseException as error:
            first = first or f"{type(error).__name__}: {error}"[:300]
    report(pipe, {"word": word, "held": held, "why": first})


def inside(job: Mapping[str, Any], pipe: int, complaints: int, is_root: bool) -> int:
    """Be the first process of the new namespace: shut in, lock, run, and end what takes too long."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    folders = shut_in(job["file_kilobytes"], NOBODY if is_root else 0)
    drop_rights(is_root)
    child = os.fork()
    if child == 0:
        limit(job)
        require_locked(folders)
        os.close(complaints)
        report(pipe, {"locked": True})
        run(job, pipe)
        return 0
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    until = time.monotonic() + float(job["wall_seconds"])
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            report(pipe, {"word": job["word"], "late": True})
            return LATE
        time.sleep(0.005)


def end(code: int) -> NoReturn:
    """End with an exit code as a shell gives it: 128 and the signal where one ended the program."""
    os._exit(code if code >= 0 else 128 - code)


def main() -> None:
    """Read the job, close everything else, go in."""
    job = json.loads(sys.stdin.buffer.read())
    pipe = os.dup(1)
    nothing = os.open("/dev/null", os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    complaints = os.dup(2)
    os.dup2(nothing, 2)
    os.closerange(max(pipe, complaints, nothing) + 1, 4096)
    os.close(nothing)
    try:
        is_root = os.geteuid() == 0
        enter_namespaces()
        first = os.fork()
        if first:
            os.close(pipe)
            _, status = os.waitpid(first, 0)
            end(os.waitstatus_to_exitcode(status))
        end(inside(job, pipe, complaints, is_root))
    except Refused as error:
        os.write(complaints, str(error).encode())
        os._exit(REFUSED)
    except OSError as error:
        os.write(complaints, f"{error.strerror or error}: {error.filename or ''}".encode())
        os._exit(REFUSED)


if __name__ == "__main__":
    main()
