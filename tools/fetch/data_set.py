# SPDX-License-Identifier: Apache-2.0
"""One data set on disk: DIR/NAME once it is whole, DIR/.NAME.download while its files arrive.

DIR/NAME appears by one rename, after everything is unpacked and SHA256SUMS is written: a folder of that name is whole.
"""
import fcntl
import hashlib
import os
import shutil

from .download import download
from .errors import FetchError, cannot_write
from .progress import size_text
from .unpack import unpack

SUMS = "SHA256SUMS"  # in the format of sha256sum


def file_sum(path):
    one = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            one.update(block)
    return one.hexdigest()


def all_files(folder):
    for parent, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            path = os.path.relpath(os.path.join(parent, name), folder)
            if path != SUMS:
                yield path


class DataSet:
    def __init__(self, name, table, parent):
        self.name, self.table, self.parent = name, table, parent
        self.folder = os.path.join(parent, name)
        self.download_folder = os.path.join(parent, f".{name}.download")
        self.unpack_folder = os.path.join(self.download_folder, "unpacked")

    def state(self):
        """`absent`, `whole`, or what is wrong with the folder that is there."""
        if not os.path.lexists(self.folder):
            return "absent"
        try:
            with open(os.path.join(self.folder, SUMS), encoding="utf-8") as file:
                wanted = dict(reversed(line.rstrip("\n").split("  ", 1)) for line in file)
        except (OSError, ValueError, UnicodeDecodeError):
            return f"it has no readable {SUMS}"
        for path, expected in wanted.items():
            full = os.path.join(self.folder, path)
            if not os.path.isfile(full):
                return f"{path} is missing"
            if file_sum(full) != expected:
                return f"{path} is damaged (SHA-256 differs from {SUMS})"
        missing = [path for path in self.table["needs"] if not os.path.exists(os.path.join(self.folder, path))]
        return f"{missing[0]} is missing" if missing else "whole"

    def clear(self):
        """Removes what a run has left that was stopped after its last step."""
        shutil.rmtree(self.download_folder, ignore_errors=True)

    def lock(self):
        """Held until the program ends, so that two runs do not write the same files."""
        file = open(os.path.join(self.download_folder, "lock"), "w", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FetchError(f"{self.download_folder} is in use: another fetch_data is at work there") from None
        return file

    def check_space(self):
        arrived = sum(os.path.getsize(os.path.join(self.download_folder, name))
                      for name in os.listdir(self.download_folder) if not name.endswith(".wrong")
                      and os.path.isfile(os.path.join(self.download_folder, name)))
        packed = sum(entry["bytes"] for entry in self.table["files"])
        needed = max(0, packed - arrived) + self.table["unpacked_bytes"]
        free = shutil.disk_usage(self.download_folder).free
        if free < needed:
            raise FetchError(f"{self.parent}: expected {size_text(needed)} of free space for {self.name}, got "
                             f"{size_text(free)}. Free some, or give another folder")

    def fetch(self, addresses, options):
        """Downloads, checks, unpacks, renames. Errors: FetchError."""
        try:
            os.makedirs(self.download_folder, exist_ok=True)
            held = self.lock()
            if os.path.lexists(self.folder):  # another run has ended in between
                return
            self.check_space()
            archives = [download(entry, addresses, self.download_folder, options) for entry in self.table["files"]]
            print(f"Checked {len(archives)} file{'s' if len(archives) > 1 else ''}: size and "
                  f"{' and '.join(k.upper() for k in ('sha256', 'md5') if k in self.table['files'][0])} are right.")
            self.unpack(archives)
            shutil.rmtree(self.download_folder)
            held.close()
        except OSError as error:
            raise cannot_write(error.filename or self.parent, error) from error

    def unpack(self, archives):
        shutil.rmtree(self.unpack_folder, ignore_errors=True)
        os.mkdir(self.unpack_folder)
        for archive in archives:
            unpack(archive, self.unpack_folder, self.table.get("inside", ""))
        for path in self.table["needs"]:
            if not os.path.exists(os.path.join(self.unpack_folder, path)):
                raise FetchError(f"{path} is not in {', '.join(map(os.path.basename, archives))}")
        with open(os.path.join(self.unpack_folder, SUMS), "w", encoding="utf-8") as sums:
            for path in all_files(self.unpack_folder):
                sums.write(f"{file_sum(os.path.join(self.unpack_folder, path))}  {path}\n")
            sums.flush()
            os.fsync(sums.fileno())
        os.rename(self.unpack_folder, self.folder)
