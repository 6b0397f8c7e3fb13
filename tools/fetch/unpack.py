# SPDX-License-Identifier: Apache-2.0
"""Unpacks .tar.gz, .zip and .gz into a folder, and copies other files. An archive brings files and folders only: it cannot write
outside, nor leave links, devices or permissions."""
import gzip
import os
import shutil
import tarfile
import zipfile
import zlib

from .common import FetchError


def safe_name(archive, name, inside):
    """The relative path to write, None for what lies outside `inside`. Errors: a path that leaves the folder."""
    pieces = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or ".." in pieces or ":" in pieces[0] or "\0" in name:
        raise FetchError(f"{os.path.basename(archive)}: entry '{name}' points outside the folder; nothing is unpacked")
    path = "/".join(piece for piece in pieces if piece not in ("", "."))
    if not (path + "/").startswith(inside):
        return None
    return path[len(inside):]


def write_file(source, target):
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "xb") as file:
        shutil.copyfileobj(source, file, 1 << 20)


def unpack_tar(archive, folder, inside):
    with tarfile.open(archive, "r:gz") as tar:
        members = tar.getmembers()
        for member in members:  # all names are looked at before the first is written
            safe_name(archive, member.name, inside)
            if not (member.isreg() or member.isdir()):
                raise FetchError(f"{os.path.basename(archive)}: entry '{member.name}' is neither file nor folder; "
                                 "nothing is unpacked")
        for member in members:
            path = safe_name(archive, member.name, inside)
            if path and member.isreg():
                write_file(tar.extractfile(member), os.path.join(folder, path))


def unpack_zip(archive, folder, inside):
    with zipfile.ZipFile(archive) as packed:
        entries = packed.infolist()
        for entry in entries:
            safe_name(archive, entry.filename, inside)
            if (entry.external_attr >> 16) & 0o170000 == 0o120000:
                raise FetchError(f"{os.path.basename(archive)}: entry '{entry.filename}' is a link; nothing is unpacked")
        for entry in entries:
            path = safe_name(archive, entry.filename, inside)
            if path and not entry.is_dir():
                with packed.open(entry) as source:
                    write_file(source, os.path.join(folder, path))


def unpack(archive, folder, inside=""):
    """Unpacks what lies under `inside` of the archive into `folder`. Errors: FetchError; OSError of the disk."""
    try:
        if archive.endswith(".tar.gz"):
            unpack_tar(archive, folder, inside)
        elif archive.endswith(".zip"):
            unpack_zip(archive, folder, inside)
        elif not archive.endswith(".gz"):
            shutil.copy(archive, folder)
        else:
            with gzip.open(archive) as source:
                write_file(source, os.path.join(folder, os.path.basename(archive)[:-len(".gz")]))
    except (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, EOFError, zlib.error, FileExistsError,
            RuntimeError) as error:  # RuntimeError: an encrypted zip, a method that Python lacks
        raise FetchError(f"{os.path.basename(archive)} cannot be unpacked: {error}") from error
