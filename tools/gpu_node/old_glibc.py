# SPDX-License-Identifier: Apache-2.0
"""Lets programs and libraries that were linked with this machine's glibc run with one as old as 2.28 (RHEL 8, Debian 10).

Each undefined symbol of a shared object names the version of glibc that it was linked with: pthread_create@GLIBC_2.34. Of most, earlier
glibcs have the same function under an earlier version, and the symbol loses its version here: the loader then takes an old glibc's own. (2.34
moved pthread_create from libpthread into libc, 2.29 gave exp a version that sets errno otherwise.) What no earlier one has,
old_glibc.c supplies, as the library NAME that each such file loads first. The formats are those of the ELF specification's
symbol tables and of the Linux Standard Base's symbol versions.
"""
import pathlib
import struct
import subprocess

from . import symbol_versions
from .bundled_libraries import Missing

LEAST = "2.28"
NAME = "libweft_old_glibc.so"
SOURCE = pathlib.Path(__file__).with_name("old_glibc.c")
DYNSYM, VERSION_NEEDS, VERSION_OF_SYMBOL = 11, 0x6FFFFFFE, 0x6FFFFFFF  # types of sections
UNVERSIONED = 1


def is_newer(version):
    """GLIBC_2.34: whether LEAST lacks it."""
    return symbol_versions.as_numbers(version.removeprefix("GLIBC_")) > symbol_versions.as_numbers(LEAST)


class Elf:
    """A 64-bit little-endian file, as x86-64 and aarch64 have them; all of it in memory."""

    def __init__(self, path):
        self.data = bytearray(path.read_bytes())
        table, = struct.unpack_from("<Q", self.data, 0x28)
        size, count = struct.unpack_from("<HH", self.data, 0x3A)
        rows = [struct.unpack_from("<IIQQQQIIQQ", self.data, table + size * i) for i in range(count)]
        self.sections = {row[1]: row for row in rows if row[1] in (DYNSYM, VERSION_NEEDS, VERSION_OF_SYMBOL)}
        self.strings = rows[self.sections[DYNSYM][6]][4] if DYNSYM in self.sections else 0

    def string(self, offset):
        begin = self.strings + offset
        return self.data[begin:self.data.index(b"\0", begin)].decode()

    def needs(self):
        """(index, name, offset) of each version that the file asks of a library."""
        if VERSION_NEEDS not in self.sections:
            return
        at = self.sections[VERSION_NEEDS][4]
        while True:
            _, count, _, auxiliary, following = struct.unpack_from("<HHIII", self.data, at)
            entry = at + auxiliary
            for _ in range(count):
                _, _, index, name, step = struct.unpack_from("<IHHII", self.data, entry)
                yield index, self.string(name), entry
                entry += step
            if not following:
                return
            at += following

    def symbols(self):
        """(name, offset of its version) of each symbol."""
        _, _, _, _, begin, size, *_ = self.sections[DYNSYM]
        versions = self.sections[VERSION_OF_SYMBOL][4]
        for i in range(size // 24):
            yield self.string(struct.unpack_from("<I", self.data, begin + 24 * i)[0]), versions + 2 * i


def loosen(path, offered):
    """Takes the versions above LEAST off the symbols of a file; whether there were any. `offered` is symbol_versions.offered() and the stand-ins."""
    elf = Elf(path)
    needs = [need for need in elf.needs() if need[1].startswith("GLIBC_") and need[1][6].isdigit()]
    newer = {index: version for index, version, _ in needs if is_newer(version)}
    if not newer:
        return False
    for symbol, at in elf.symbols():
        index = struct.unpack_from("<H", elf.data, at)[0]
        if index in newer:
            _, oldest = offered.get(symbol, ("", "9"))
            if is_newer(f"GLIBC_{oldest}"):
                raise Missing(f"expected what glibc {LEAST} offers or {SOURCE.name} stands in for, {path.name} calls {symbol}@{newer[index]}")
            struct.pack_into("<H", elf.data, at, UNVERSIONED)
    # No symbol asks for them any more. The loader would miss them all the same: they become the oldest one, which every library of glibc has.
    _, _, oldest = min((need for need in needs if need[0] not in newer), key=lambda need: symbol_versions.as_numbers(need[1].partition("_")[2]))
    for index, _, entry in needs:
        if index in newer:
            elf.data[entry:entry + 4] = elf.data[oldest:oldest + 4]  # the hash
            elf.data[entry + 8:entry + 12] = elf.data[oldest + 8:oldest + 12]  # the name
    path.write_bytes(elf.data)
    return True


def loosen_all(files, folder):
    """Loosens the files and puts what they then load first into `folder`; those that were changed."""
    library = folder / NAME
    subprocess.run(["gcc", "-std=gnu11", "-O2", "-fPIC", "-shared", "-fno-builtin", "-s", f"-Wl,-soname,{NAME}", "-o", str(library), str(SOURCE)], check=True)
    defined = symbol_versions.nm("-D", "--defined-only", str(library))
    offered = {**symbol_versions.offered(), **{line.split()[-1].split("@")[0]: ("GLIBC", "0") for line in defined}}
    changed = [path for path in files if loosen(path, offered)]
    loosen(library, offered)
    # Before 2.34 these two were libraries of their own.
    subprocess.run(["patchelf", "--add-needed", "libdl.so.2", "--add-needed", "libpthread.so.0", str(library)], check=True)
    return changed
