"""Runs one program in the sandbox; started by :mod:`experiment.scoring.sandbox` as a file, never imported.

The program and the judge of its answers run one after another in two processes with the same restrictions: user, network,
process, mount and IPC namespaces, a file system with only Python's standard library (read-only) and an empty folder of limited
size, resource limits, a system call filter, no capabilities. The program's process receives expressions to evaluate and answers
with plain values; the expected values reach this file's own process only after the program has ended, and its judge without the
program. If a restriction cannot be set up, it exits with code 3 and the reason on standard error: nothing runs with partial
restrictions. Linux only; it uses only the standard library, since no packages are available.
"""

# paths are passed to the kernel unchanged
# ruff: noqa: PTH102, PTH103, PTH106, PTH110, PTH112, PTH114, PTH118, PTH120, PTH123, PTH208, PTH211
from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import mmap
import os
import pathlib
import resource
import signal
import socket
import struct
import sys
import sysconfig
import time
from collections.abc import Callable, ItemsView, KeysView, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

NEW_NAMESPACES = 0x00020000 | 0x08000000 | 0x20000000 | 0x40000000  # mounts, IPC, processes, network
NEW_USERS = 0x10000000
BIND, RECURSIVE, REMOUNT, READ_ONLY, PRIVATE = 0x1000, 0x4000, 0x20, 0x1, 0x40000
NO_SETUID, NO_DEVICES, NO_EXEC = 0x2, 0x4, 0x8
DETACH = 2
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 24, 38
FILTER_CALLS = 2
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, DENY, KILL = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x80000000
CAPABILITIES_V3 = 0x20080522
NOBODY = 65534
REFUSED = 3
LOCKED = b"locked"
LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib")
WORK = "/work"
MOST_ANSWERED = 1_000_000
"""Most bytes of answers that are read; a longer output counts as no answers."""
DEEPEST = 60

libc = ctypes.CDLL(None, use_errno=True)


class LockUnavailable(Exception):
    """A restriction that this machine does not support."""


def called(operation: str, value: int) -> None:
    """Raise LockUnavailable if a call into the C library failed."""
    if value != 0:
        raise LockUnavailable(f"{operation}: {os.strerror(ctypes.get_errno())}")


def enter_namespaces() -> None:
    """Enter new namespaces; a user who is not root becomes root of a user namespace without rights outside."""
    if os.geteuid() == 0:
        called("namespaces of networks and processes (unshare)", libc.unshare(NEW_NAMESPACES))
        return
    user, group = os.geteuid(), os.getegid()
    called("namespaces of users and networks (unshare)", libc.unshare(NEW_NAMESPACES | NEW_USERS))
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def leave_root() -> None:
    """Become nobody if started by root, whose rights and number of processes are not limited."""
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """Mount, or raise LockUnavailable."""
    encoded = [None if text is None else text.encode() for text in (source, target, kind)]
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
    return [
        folder_path for folder_path in real if not any(folder_path.startswith(other + "/") for other in real)
    ]


def shut_in(kilobytes: int, owner: int, pivot_root: int) -> list[str]:
    """Replace the file system by one with only Python's library and an empty folder."""
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
    called("a root of its own", libc.syscall(pivot_root, b".", b"old"))
    os.chdir("/")
    called("leaving the old root", libc.umount2(b"/old", DETACH))
    os.rmdir("/old")
    mount(None, "/", None, REMOUNT | BIND | READ_ONLY | NO_SETUID | NO_DEVICES)
    os.chdir(WORK)
    return folders


def drop_rights(is_root: bool) -> None:
    """Drop every capability irrevocably."""
    for capability in range(64):
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    if is_root:
        leave_root()
    called("prctl", libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    head = struct.pack("Ii", CAPABILITIES_V3, 0)
    called("capset", libc.capset(head, bytes(24)))
    called("prctl", libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))


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


def require_limits(job: Mapping[str, Any]) -> None:
    """Verify the limits by starting a process and allocating too much memory, shared memory included."""
    try:
        child = os.fork()
    except OSError:
        pass
    else:
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        raise LockUnavailable("the number of processes: a child could be started")
    for sort in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
        with contextlib.suppress(OSError):
            mmap.mmap(-1, int(job["memory_megabytes"]) * 2**20, sort | mmap.MAP_ANONYMOUS)
            raise LockUnavailable("memory: more than the limit could be taken")


def filter_calls(calls: Mapping[str, Any]) -> None:
    """Have the kernel refuse every system call that a program does not need, as not permitted."""
    lines = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, calls["architecture"]), (RETURN, 0, 0, KILL), (LOAD, 0, 0, 0)]
    for number, argument, values in calls["allowed_with"]:
        lines += [(EQUAL, 0, len(values) + 3, number), (LOAD, 0, 0, 16 + 8 * argument)]
        lines += [(EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
        lines += [(RETURN, 0, 0, DENY), (RETURN, 0, 0, ALLOW)]
    for number in calls["allowed"]:
        lines += [(EQUAL, 0, 1, number), (RETURN, 0, 0, ALLOW)]
    lines.append((RETURN, 0, 0, DENY))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
    program = struct.pack("HxxxxxxP", len(lines), ctypes.addressof(code))
    called("a filter of system calls (seccomp)", libc.prctl(PR_SET_SECCOMP, FILTER_CALLS, program, 0, 0))


def require_locked(folders: Sequence[str], calls: Mapping[str, Any], interfaces: Sequence[str]) -> None:
    """Raise an error if a forbidden action succeeds."""
    for name, number in calls["tried"].items():
        ctypes.set_errno(0)
        if libc.syscall(number, -1, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() != errno.EPERM:
            raise LockUnavailable(f"the filter of system calls: {name} is not refused")
    if interfaces:
        raise LockUnavailable(f"the network: an interface {interfaces[0]} is there")
    ends = {*folders, *LIBRARIES, WORK}
    ways = {str(parent) for folder in folders for parent in pathlib.PurePath(folder).parents}
    for folder in ways:
        strange = [name for name in os.listdir(folder) if os.path.join(folder, name) not in ways | ends]
        if strange:
            raise LockUnavailable(f"the file system: {os.path.join(folder, strange[0])} is there")
    if os.listdir(WORK):
        raise LockUnavailable("the folder is not empty")
    if len(os.environ) > 1 or not set(os.environ) <= {"LC_CTYPE"}:
        raise LockUnavailable("the environment is not empty")


class Other:
    """An answer that is not a plain value; it equals nothing."""


def packed(value: object, depth: int = 0) -> object:
    """Return a value as JSON with the type of each part; a subclass counts as its plain base type.

    Any other value is ``["other"]``.
    """
    if value is None or value is True or value is False:
        return value
    if isinstance(value, int):
        return ["int", hex(int.__add__(value, 0))]
    if isinstance(value, float):
        return ["float", float.hex(value)]
    if isinstance(value, str):
        return ["str", value]
    if isinstance(value, complex):
        return ["complex", float.hex(value.real), float.hex(value.imag)]
    if isinstance(value, bytes | bytearray):
        return ["bytes", bytes(value).hex()]
    if isinstance(value, Decimal | Fraction):
        return [type(value).__name__, str(value)]
    if isinstance(value, range):
        return ["range", *(hex(part) for part in (value.start, value.stop, value.step))]
    if depth < DEEPEST:
        for kind in (list, tuple, set, frozenset):
            if isinstance(value, kind):
                parts: Any = kind.__iter__(cast(Any, value))
                return [kind.__name__, [packed(part, depth + 1) for part in parts]]
        if isinstance(value, dict):
            pairs = dict.items(value)
            return ["dict", [[packed(key, depth + 1), packed(part, depth + 1)] for key, part in pairs]]
        if isinstance(value, KeysView | ItemsView):
            return ["set", [packed(part, depth + 1) for part in value]]
    return ["other"]


def unpacked(said: Any) -> Any:
    """Return the value that :func:`packed` wrote; raise ValueError or TypeError for anything else."""
    if said is None or said is True or said is False:
        return said
    kind, *rest = said
    if kind == "dict":
        (pairs,) = rest
        return {unpacked(key): unpacked(part) for key, part in pairs}
    if kind in ("list", "tuple", "set", "frozenset"):
        (parts,) = rest
        container: Any = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}[kind]
        return container(unpacked(part) for part in parts)
    if kind == "other":
        return Other()
    if not all(isinstance(part, str) for part in rest):
        raise ValueError("an answer's parts are texts")
    read: dict[str, Callable[..., Any]] = {
        "int": lambda text: int(text, 16),
        "float": float.fromhex,
        "str": lambda text: text,
        "complex": lambda real, imaginary: complex(float.fromhex(real), float.fromhex(imaginary)),
        "bytes": bytes.fromhex,
        "Decimal": Decimal,
        "Fraction": Fraction,
        "range": lambda *ends: range(*(int(end, 16) for end in ends)),
    }
    return read[kind](*rest)


def error_text(error: BaseException) -> str:
    """Return an error as Python reports it; a program's own error class may itself fail to be formatted."""
    name = str.__str__(type(error).__name__)
    try:
        return f"{name}: {error}"[:300]
    except BaseException:
        return name[:300]


def say(pipe: int, message: object) -> None:
    """Write a whole line of JSON into a pipe."""
    line = json.dumps(message).encode() + b"\n"
    while line:
        line = line[os.write(pipe, line) :]


def answer(job: Mapping[str, Any], pipe: int) -> None:
    """Run as the program's process: run the program, then each test's statements and expressions.

    The first line reports the program itself (null, or its error), followed by a line for each test: its values, or its error.
    """
    space: dict[str, Any] = {"__name__": "__main__"}
    try:
        try:
            exec(compile(job["setup"], "<setup>", "exec"), space)
            late = ""
        except NameError:
            late = job["setup"]  # it needs what the program defines
        for source in (job["program"], late):
            exec(compile(source, "<program>", "exec"), space)
    except BaseException as error:
        say(pipe, error_text(error))
        return
    say(pipe, None)
    for steps in job["tests"]:
        values: list[object] = []
        try:
            for kind, source in steps:
                if kind == "ask":
                    values.append(packed(eval(compile(source, "<test>", "eval"), space)))
                else:
                    exec(compile(source, "<test>", "exec"), space)
            line: object = {"values": values}
        except BaseException as error:
            line = {"raised": error_text(error)}
        say(pipe, line)


def judge(job: Mapping[str, Any], pipe: int) -> None:
    """Run as the judge's process: compare each test's answers with the expected ones; one line each, null or the reason."""
    for line, (source, wanted) in zip(job["answers"], job["judgements"], strict=True):
        say(pipe, judged(line, source, wanted))


def judged(line: str, source: str, wanted: int) -> str | None:
    """Return why a test does not hold, or None."""
    try:
        reply = json.loads(line)
        if "raised" in reply:
            return str(reply["raised"])
        values = [unpacked(value) for value in reply["values"]]
        if len(values) != wanted:
            return "its answers cannot be read"
    except Exception:
        return "its answers cannot be read"
    try:
        exec(compile(source, "<test>", "exec"), {f"__answer_{n}__": value for n, value in enumerate(values)})
    except Exception as error:
        return error_text(error)
    return None


def inside(
    job: Mapping[str, Any], task: Callable[[Mapping[str, Any], int], None], pipe: int, status: int
) -> dict[str, Any]:
    """Run as the first process of the new namespaces: restrict the task's process, and end it at the time limit."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    is_root, calls = bool(job["is_root"]), job["calls"]
    folders = shut_in(job["file_kilobytes"], NOBODY if is_root else 0, calls["pivot_root"])
    drop_rights(is_root)
    complaints, complaint = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(status)
        os.close(complaints)
        try:
            interfaces = [name for _, name in socket.if_nameindex() if name != "lo"]
            limit(job)
            require_limits(job)
            filter_calls(calls)
            require_locked(folders, calls, interfaces)
        except (LockUnavailable, OSError) as error:
            os.write(complaint, str(error).encode())
            os._exit(REFUSED)
        os.write(complaint, LOCKED)
        os.close(complaint)
        task(job, pipe)
        os._exit(0)
    os.close(complaint)
    os.close(pipe)
    message = os.read(complaints, 500)
    if message != LOCKED:
        raise LockUnavailable(message.decode("utf-8", "replace") or "the locked process did not begin")
    until = time.monotonic() + float(job["wall_seconds"])
    while True:
        ended, how = os.waitpid(child, os.WNOHANG)
        if ended:
            return {"code": os.waitstatus_to_exitcode(how)}
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            return {"late": True}
        time.sleep(0.002)


def locked_in(
    job: Mapping[str, Any], task: Callable[[Mapping[str, Any], int], None]
) -> tuple[str | None, dict[str, Any]]:
    """Run a task in new namespaces; return its output (None if too long) and how it ended."""
    complaint_end, pipe = os.pipe()
    result_end, status = os.pipe()
    gate = os.fork()
    if gate == 0:
        nothing = os.open("/dev/null", os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        for end in (nothing, complaint_end, result_end):
            os.close(end)
        try:
            enter_namespaces()
            first = os.fork()
            if first:
                os.close(pipe)
                os.waitpid(first, 0)
            else:
                say(status, inside(job, task, pipe, status))
        except LockUnavailable as error:
            say(status, {"refused": str(error)})
        except OSError as error:
            say(status, {"refused": f"{error.strerror or error}: {error.filename or ''}"})
        os._exit(0)
    os.close(pipe)
    os.close(status)
    text, length = [], 0
    while part := os.read(complaint_end, 65536):
        length += len(part)
        if length <= MOST_ANSWERED:
            text.append(part)
    os.waitpid(gate, 0)
    how: dict[str, Any] = json.loads(os.read(result_end, 65536) or b"{}")
    os.close(complaint_end)
    os.close(result_end)
    if "refused" in how:
        raise LockUnavailable(how["refused"])
    return None if length > MOST_ANSWERED else b"".join(text).decode("utf-8", "replace"), how


def frame() -> Any:
    """Return the next of the two parts of the job; the rest stays in the pipe."""

    def exactly(length: int) -> bytes:
        parts = b""
        while len(parts) < length:
            part = os.read(0, length - len(parts))
            if not part:
                raise EOFError
            parts += part
        return parts

    return json.loads(exactly(*struct.unpack(">Q", exactly(8))))


def main() -> None:
    """Have the program answer, then have its answers judged, and print the results of both."""
    os.closerange(3, 4096)
    job = frame() | {"is_root": os.geteuid() == 0}
    try:
        answers, outcome = locked_in(job, answer)
        first, *answered = (answers or "").split("\n")[:-1] or [""]
        answered = answered[: len(job["tests"])]
        outcome |= {"is_too_long": answers is None, "raised": program_error(first), "tests": None}
        if first == "null" and len(answered) == len(job["tests"]) and outcome.get("code") == 0:
            judgements = frame()
            if judgements is None:  # the values themselves are wanted
                outcome["tests"] = [json.loads(line) for line in answered]
            else:
                judging = {**job, "program": "", "answers": answered, "judgements": judgements}
                verdicts, _ = locked_in(judging, judge)
                outcome["tests"] = [json.loads(line) for line in (verdicts or "").split("\n")[:-1]]
    except LockUnavailable as error:
        os.write(2, str(error).encode())
        os._exit(REFUSED)
    os.write(1, json.dumps(outcome).encode())


def program_error(line: str) -> str | None:
    """Return the error in the first line of answers, if it is one."""
    try:
        reply = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return reply if isinstance(reply, str) else None


if __name__ == "__main__":
    main()
