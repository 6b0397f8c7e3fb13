# SPDX-License-Identifier: Apache-2.0
"""The files of published weights on disk: DIR/FILE once it is whole, DIR/.FILE.download while it arrives."""
import fcntl
import os
import shutil

from .data_set import file_sum
from .download import download
from .errors import FetchError, cannot_write
from .progress import size_text


class Weights:
    """`place` is what programs are given: the file, or the folder where there are several."""

    def __init__(self, row, parent):
        self.entries = row["files"]
        self.parent = os.path.join(parent, row["folder"]) if "folder" in row else parent
        self.place = self.parent if "folder" in row else os.path.join(parent, self.entries[0]["name"])

    def path(self, entry):
        return os.path.join(self.parent, entry["name"])

    def missing(self):
        """The files that are not there yet. Errors: one is there and is another."""
        absent = []
        for entry in self.entries:
            path = self.path(entry)
            if not os.path.lexists(path):
                absent.append(entry)
                continue
            try:
                found = file_sum(path)
            except OSError as error:
                raise FetchError(f"cannot read {path}: {error.strerror}") from error
            if found != entry["sha256"]:
                raise FetchError(f"{path} is there, but is another file: its SHA256 is {found}, expected "
                                 f"{entry['sha256']}. Move it away, then run the same command again")
        return absent

    def fetch(self, missing, addresses, options):
        """Downloads, checks, renames. Errors: FetchError."""
        for entry in missing:
            self.fetch_one(entry, addresses, options)
            print(f"Checked {self.path(entry)}: its SHA256 is right.")

    def fetch_one(self, entry, addresses, options):
        folder = os.path.join(self.parent, f".{entry['name']}.download")
        try:
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, "lock"), "w", encoding="utf-8") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise FetchError(f"{folder} is in use: another fetch_weights is at work there") from None
                if os.path.lexists(self.path(entry)):  # another run has ended in between
                    return
                self.check_space(entry, folder)
                os.rename(download(entry, addresses, folder, options), self.path(entry))
                shutil.rmtree(folder)
        except OSError as error:
            raise cannot_write(error.filename or self.parent, error) from error

    def check_space(self, entry, folder):
        part = os.path.join(folder, entry["name"] + ".part")
        needed = entry.get("bytes", 0) - (os.path.getsize(part) if os.path.exists(part) else 0)
        free = shutil.disk_usage(folder).free
        if free < needed:
            raise FetchError(f"{self.parent}: expected {size_text(needed)} of free space for {entry['name']}, got "
                             f"{size_text(free)}. Free some, or give another folder")
