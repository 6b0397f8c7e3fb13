# SPDX-License-Identifier: Apache-2.0
"""An installation that runs wherever it is unpacked: programs, libweft.so, and every library that they need but glibc's own.

Libraries and programs find each other by runpaths relative to themselves, and run with glibc 2.28 or newer (old_glibc.py). In bin/ and libexec/
stand scripts of the programs' names, which compare the machine's glibc with that, so that an older one gives one line."""
import pathlib
import platform
import re
import shutil
import subprocess

from . import old_glibc
from .bundled_libraries import LIBRARIES, Missing, merge_static

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Of glibc and of the kernel's driver: those of the machine that it runs on.
OWN = re.compile(r"^(linux-vdso|ld-linux[\w-]*|lib(c|m|dl|pthread|rt|resolv|util|anl|mvec|cuda|nvidia-ml))\.so")
START = """#!/bin/sh
# Starts the program of this name in elf/, where this machine's glibc is new enough for it.
have=$(getconf GNU_LIBC_VERSION 2>/dev/null)
if ! [ "${{have#glibc 2.}}" -ge {minor} ] 2>/dev/null; then
  echo "${{0##*/}}: error: expected glibc 2.{minor} or newer, got ${{have:-none}}. tools/install of the sources builds it here" >&2
  exit 1
fi
exec "$(dirname "$(readlink -f "$0")")/{up}elf/${{0##*/}}" "$@"
"""


def is_elf(path):
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def needed_libraries(files, have=()):
    """name -> path of everything that these files load at their start, directly or not, but OWN. Names in `have` may be found nowhere."""
    found = {}
    for line in subprocess.run(["ldd", *map(str, files)], capture_output=True, text=True, check=False).stdout.splitlines():
        words = line.split()
        if len(words) < 3 or words[1] != "=>" or OWN.match(words[0]):
            continue
        if words[2] == "not":
            if words[0] in have:
                continue
            raise Missing(f"expected {words[0]} on this machine, ldd did not find it")
        found[words[0]] = pathlib.Path(words[2])
    return found


def copy_license(library, folder):
    """The copyright file of the Debian package that a library is from; its package's name, or none."""
    names = {str(library), str(library.resolve()), f"/usr{library}"}
    for name in sorted(names):
        done = subprocess.run(["dpkg-query", "--search", name], capture_output=True, text=True, check=False)
        package = done.stdout.split(":")[0]
        if done.returncode == 0 and package:
            source = pathlib.Path("/usr/share/doc") / package / "copyright"
            if source.exists():
                (folder / package).mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, folder / package / "copyright")
            return package
    return None


def relocate(tree):
    """Makes an installation in `tree` run from anywhere, with old_glibc.LEAST or newer."""
    if shutil.which("patchelf") is None:
        raise Missing("expected the program patchelf on this machine. apt-get install patchelf")
    files = [path for path in sorted(tree.rglob("*")) if is_elf(path) and not path.is_symlink()]
    folders = [tree / "bin", *sorted(folder for folder in (tree / "libexec/weft").iterdir() if not folder.is_symlink())]
    programs = [path for folder in folders for path in sorted(folder.iterdir()) if is_elf(path)]
    lib = tree / "lib"
    shipped = {path.name for path in lib.iterdir()}
    manifest = []
    for name, source in sorted(needed_libraries(files, {path.name for path in tree.rglob("*")}).items()):
        if name in shipped:
            continue
        shutil.copyfile(source, lib / name)
        (lib / name).chmod(0o755)
        files.append(lib / name)
        manifest.append(f"{name} {copy_license(source, tree / 'licenses') or source}\n")
    (tree / "licenses").mkdir(exist_ok=True)
    (tree / "licenses/libraries.txt").write_text("".join(manifest))
    (tree / "elf").mkdir()
    for path in programs:
        target = tree / "elf" / path.name
        if path.is_symlink():  # a second name: mnist_ddp is mnist
            target.symlink_to(path.readlink().name)
            path.unlink()
        else:
            shutil.move(path, target)
        path.write_text(START.format(minor=old_glibc.LEAST.split(".")[1], up="../" * (len(path.relative_to(tree).parts) - 1)))
        path.chmod(0o755)
    files = [path for path in sorted(tree.rglob("*")) if is_elf(path) and not path.is_symlink()]
    changed = old_glibc.loosen_all(files, lib)
    for path in [*files, lib / old_glibc.NAME]:
        up = "../" * (len(path.relative_to(tree).parts) - 1)
        subprocess.run(["patchelf", "--set-rpath", f"$ORIGIN:$ORIGIN/{up}lib", str(path)], check=True)
        if path in changed:  # not in the same run: patchelf 0.14 then takes this name for the runpath
            subprocess.run(["patchelf", "--add-needed", old_glibc.NAME, str(path)], check=True)


def make(tree, flags, build=None):
    """Builds (or takes what is built in the folder `build`), installs into `tree` and relocates it. Returns the name of the tar
    without its ending."""
    if build is None:
        # MPI's libraries belong to a site's network and launcher: ranks meet over TCP and NCCL, and mpirun may start them all the same.
        # HDF5 as a static library: Debian's shared one needs libcurl and what that needs.
        flags = ["-DWEFT_WITHOUT=MPI", "-DCMAKE_INSTALL_LIBDIR=lib", *flags]
        archives = [LIBRARIES / name for name in ("libhdf5_serial.a", "libsz.a", "libaec.a")]
        if all(path.exists() for path in archives):
            merge_static(tree.parent / "libhdf5.a", archives)
            flags.append(f"-DWEFT_HDF5={tree.parent / 'libhdf5.a'}")
        done = subprocess.run([str(ROOT / "tools/install"), "--prefix", str(tree), "--as-is", *flags], check=False)
        if done.returncode:
            raise Missing("expected tools/install to succeed, see above")
    else:
        subprocess.run(["cmake", "--install", str(build), "--prefix", str(tree)], check=True, stdout=subprocess.DEVNULL)
    for name in ("include", "lib/cmake", "lib/pkgconfig"):
        shutil.rmtree(tree / name, ignore_errors=True)
    relocate(tree)
    return f"weft-{platform.machine()}-glibc{old_glibc.LEAST}"
