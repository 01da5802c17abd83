"""Runs a module in a process that reads given folders and nothing else: `python sandbox.py MODULE FOLDER...`.

What may run there is decided by `lakeview.predicates.query`; this is the second wall, which holds even if that list has
a hole. It is raised before any library is imported, because Landlock binds a thread and the threads made after it:

- files: Landlock (Linux 5.13 and later): the folders, the interpreter and its packages, the system's libraries; nothing
  is written.
- sockets: a seccomp filter that lets `socket` fail with EACCES.

Where the system has neither, the module runs all the same. It imports the standard library alone.
"""

import ctypes
import errno
import os
import platform
import runpy
import struct
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""System calls of Landlock: these have the same numbers on every architecture."""

_SOCKET_CALLS = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""Architecture to its number for audits and its number of the call `socket` (linux/audit.h, asm/unistd.h)."""

_IO_URING_CALLS = (425, 426, 427)
"""Calls that set up a ring of requests, by which sockets are made too: the same numbers on every architecture."""

_X32_CALLS = 0x40000000
"""From here on the numbers of calls mean others (x32 on x86_64)."""

_EXECUTE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 2, 1 << 3
_FILE_RIGHTS = (1 << 13) - 1
"""All rights to files of Landlock's first version: execute, write, read, list, remove and make of each kind."""

_READ = _EXECUTE | _READ_FILE | _READ_DIR
_SYSTEM = (
    "/usr", "/lib", "/lib64", "/nix/store", "/etc/ld.so.cache", "/etc/localtime", "/etc/timezone", "/proc/meminfo",
    "/proc/cpuinfo", "/proc/stat", "/sys/devices/system/cpu", "/sys/fs/cgroup", "/dev/null", "/dev/urandom",
)  # fmt: skip
"""What an interpreter and its libraries read of a system. Not /proc/self: its file `environ` may hold credentials."""

_PACKAGE = "lakeview"


def restrict(folders: Iterable[str], names_only: Iterable[str] = ()) -> None:
    """Leaves this thread, and those that it makes, with reading below `folders` and of the system's libraries, with the
    names in `names_only` folders, and without sockets."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _restrict_files(libc, [*_SYSTEM, *folders], names_only)
    _refuse_sockets(libc)


def limit_memory(size: int) -> None:
    """Sets the most memory this process may take, where the system knows such a limit."""
    try:
        import resource  # not on every system
    except ImportError:
        return
    with suppress(ValueError, OSError):  # a lower limit is set already
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def _restrict_files(libc: ctypes.CDLL, folders: Iterable[str], names_only: Iterable[str]) -> None:
    rights = ctypes.create_string_buffer(struct.pack("Q", _FILE_RIGHTS), 8)
    ruleset = libc.syscall(_CREATE_RULESET, rights, 8, 0)
    if ruleset < 0:  # a kernel without Landlock, or one that has it switched off
        return
    for folder in folders:
        _allow(libc, ruleset, folder, _READ)
    for folder in names_only:
        _allow(libc, ruleset, folder, _READ_DIR)
    libc.syscall(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    with suppress(OSError):  # what is not there needs no right
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        access = rights if os.path.isdir(path) else rights & ~_READ_DIR
        rule = ctypes.create_string_buffer(struct.pack("=Qi", access, place), 12)
        libc.syscall(_ADD_RULE, ruleset, 1, rule, 0)
        os.close(place)


def _refuse_sockets(libc: ctypes.CDLL) -> None:
    numbers = _SOCKET_CALLS.get(platform.machine())
    if numbers is None:
        return
    architecture, socket = numbers
    load, equal, at_least, answer = 0x20, 0x15, 0x35, 0x06  # BPF: load a word, jump if equal or at least, return
    allow, refuse = 0x7FFF0000, 0x00050000 | errno.EACCES
    program = b"".join(
        struct.pack("=HBBI", *step)
        for step in (
            (load, 0, 0, 4),  # the architecture of the call
            (equal, 1, 0, architecture),
            (answer, 0, 0, refuse),  # a call by the numbers of another architecture
            (load, 0, 0, 0),  # its number
            (at_least, 0, 1, _X32_CALLS),
            (answer, 0, 0, refuse),
            *(step for call in (socket, *_IO_URING_CALLS) for step in ((equal, 0, 1, call), (answer, 0, 0, refuse))),
            (answer, 0, 0, allow),
        )
    )
    steps = ctypes.create_string_buffer(program, len(program))
    sock_fprog = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(steps)))
    libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, sock_fprog, 0, 0)


def _packages() -> Iterator[tuple[str, bool]]:
    """Folders that modules are imported from, and whether packages were installed there. A checkout, or the folder of
    the script that was started, holds other things too: of those the names and the package alone."""
    yield from ((prefix, True) for prefix in (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix))
    for folder in sys.path:
        with suppress(OSError):  # an entry that is no folder
            has_packages = any(name.endswith(".dist-info") for name in os.listdir(folder))
            yield folder, has_packages
            if not has_packages:
                yield os.path.join(folder, _PACKAGE), True


def main() -> None:
    """Restricts this process to the folders in its arguments, and runs the module."""
    module, *folders = sys.argv[1:]
    packages = list(_packages())
    if folders:
        restrict([*folders, *(p for p, whole in packages if whole)], [p for p, whole in packages if not whole])
    sys.argv[1:] = []
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
