# SPDX-License-Identifier: Apache-2.0
"""Finds the glibc and libstdc++ versions that a library needs.

A shared library names the version of every symbol it needs. A static one names none: for each undefined symbol the oldest
version counts in which this machine's libc, libm or libstdc++ offers it, since linking on the node picks what is there.
"""
import re
import subprocess

FAMILIES = ("GLIBC", "GLIBCXX")
PROVIDERS = ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1")
VERSIONED = re.compile(r" (\w) (\S+?)@{1,2}(GLIBCXX|GLIBC)_(\d[\d.]*)$")


def as_numbers(version):
    return tuple(int(part) for part in version.split("."))


def nm(*words):
    return subprocess.run(["nm", *words], capture_output=True, text=True, check=True).stdout.splitlines()


def offered():
    """symbol -> (family, oldest version) of this machine's system libraries."""
    oldest = {}
    for name in PROVIDERS:
        path = subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        if path == name:
            continue  # not on this machine
        for line in nm("-D", "--with-symbol-versions", "--defined-only", path):
            if found := VERSIONED.search(line):
                _, symbol, family, version = found.groups()
                if symbol not in oldest or as_numbers(version) < as_numbers(oldest[symbol][1]):
                    oldest[symbol] = (family, version)
    return oldest


def needed(library, oldest):
    """Yields (family, version, symbol) for every system symbol that the library leaves undefined."""
    if library.suffix == ".a":
        for line in nm("-u", str(library)):
            symbol = line.split()[-1] if line.startswith(" ") else ""
            if symbol in oldest:
                yield (*oldest[symbol], symbol)
        return
    for line in nm("-D", "--with-symbol-versions", "-u", str(library)):
        if found := VERSIONED.search(line):
            _, symbol, family, version = found.groups()
            yield family, version, symbol


def newest_needed(libraries):
    """family -> (version, symbol, name of the library) of the newest symbol that any of the libraries needs."""
    oldest = offered()
    newest = {}
    for library in libraries:
        for family, version, symbol in needed(library, oldest):
            if family not in newest or as_numbers(version) > as_numbers(newest[family][0]):
                newest[family] = (version, symbol, library.name)
    return newest
