# SPDX-License-Identifier: Apache-2.0
"""An installation that runs wherever it is unpacked: programs, libweft.so, and every library that they need but glibc's own.

Libraries and programs find each other by runpaths relative to themselves, and run with glibc 2.28 or newer (old_glibc.py). In bin/ and libexec/
stand scripts of the programs' names, which compare the machine's glibc with that, so that an older one gives one line."""
import base64
import hashlib
import pathlib
import platform
import re
import shutil
import subprocess
import tempfile
import zipfile

from . import old_glibc
from .bundled_libraries import LIBRARIES, Missing, merge_static

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Libraries of glibc and the kernel's driver come from the machine of the run.
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
    folders = [tree / "bin", *sorted(folder for folder in tree.glob("libexec/weft/*") if not folder.is_symlink())]
    programs = [path for folder in folders for path in sorted(folder.iterdir()) if is_elf(path)]
    lib = tree / "lib"
    shipped = {path.name for path in [*lib.iterdir(), *lib.glob("weft-emulate/libweft_*")]}
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
        own = ":$ORIGIN/../lib/weft-emulate" if path.name == "weft-emulate" else ""
        subprocess.run(["patchelf", "--set-rpath", f"$ORIGIN:$ORIGIN/{up}lib{own}", str(path)], check=True)
        if path in changed:  # not in the same run: patchelf 0.14 then takes this name for the runpath
            subprocess.run(["patchelf", "--add-needed", old_glibc.NAME, str(path)], check=True)


ENTRY = '''# SPDX-License-Identifier: Apache-2.0
"""weft-emulate: runs CUDA programs without a GPU."""
import os
import pathlib
import sys


def main():
    program = pathlib.Path(__file__).parent / "bin/weft-emulate"
    os.execv(program, ["weft-emulate", *sys.argv[1:]])
'''


def make_wheel(out, build):
    """Writes the emulator that is built in the folder `build` into the folder `out`, as a wheel of PyPI's binary format (PEP 427).
    Returns its path."""
    version, = re.findall(r"^project\(weft VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
    tag = f"py3-none-manylinux_{old_glibc.LEAST.replace('.', '_')}_{platform.machine()}"
    info = f"weft_emulate-{version}.dist-info"
    with tempfile.TemporaryDirectory() as work:
        tree = pathlib.Path(work) / "weft_emulate"
        subprocess.run(["cmake", "--install", str(build), "--component", "emulator", "--prefix", str(tree)], check=True, stdout=subprocess.DEVNULL)
        if not (tree / "bin/weft-emulate").exists():
            raise Missing(f"expected weft-emulate in {build}. cmake --build {build} --target weft-emulate")
        relocate(tree)
        files = {f"weft_emulate/{path.relative_to(tree)}": path.read_bytes() for path in sorted(tree.rglob("*")) if path.is_file()}
        executable = {f"weft_emulate/{path.relative_to(tree)}" for path in tree.rglob("*") if path.stat().st_mode & 0o100}
    files |= {
        "weft_emulate/__init__.py": ENTRY.encode(),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: weft-emulate\nVersion: {version}\n"
                            "Summary: Runs CUDA programs without a GPU and reports their faults\nLicense: Apache-2.0\nRequires-Python: >=3.8\n".encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: weft\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
        f"{info}/entry_points.txt": b"[console_scripts]\nweft-emulate = weft_emulate:main\n",
    }  # fmt: skip
    digest = {name: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=") for name, data in files.items()}
    lines = [f"{name},sha256={digest[name]},{len(data)}\n" for name, data in files.items()]
    files[f"{info}/RECORD"] = "".join([*lines, f"{info}/RECORD,,\n"]).encode()
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"weft_emulate-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if name in executable else 0o100644) << 16
            wheel.writestr(entry, data)
    return path


def make(tree, flags, build=None):
    """Builds (or takes what is built in the folder `build`), installs into `tree` and relocates it. Returns the name of the tar
    without its ending."""
    if build is None:
        # MPI's libraries belong to a site's network and launcher: ranks meet over TCP and NCCL, and mpirun may start them all the same.
        # HDF5 as a static library: Debian's shared library needs libcurl and its dependencies.
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
