# SPDX-License-Identifier: Apache-2.0
"""What fetch_data and fetch_weights share: flags, tables, checks of the disk, and an orderly end."""
import contextlib
import fcntl
import json
import os
import shutil
import signal
import stat
import subprocess
import sys

TOOLS = ("curl", "sha256sum", "md5sum")


class FetchError(Exception):
    """Ends the program with this one line and exit code 1."""


def number(kind, least):
    """A parser of numbers of at least `least`; argparse prints its name in errors."""
    def parse(text):
        value = kind(text)
        if not least <= value < 1e6:
            raise ValueError
        return value
    parse.__name__ = f"number of at least {least}"
    return parse


def add_download_flags(parser):
    parser.add_argument("--base-url", metavar="URL", help="take the files from URL/FILE instead, such as a mirror")
    parser.add_argument("--retries", type=number(int, 0), default=5,
                        help="further attempts after one that received nothing (default: 5)")
    parser.add_argument("--retry-wait", type=number(float, 0), default=1.0,
                        help="seconds before the first of them; doubles up to 60 (default: 1)")
    parser.add_argument("--timeout", type=number(int, 1), default=30,
                        help="seconds without a byte until an attempt fails (default: 30)")


def read_table(path, check_file, keys):
    """The JSON table of a program: name -> row with `files` and `keys`."""
    try:
        with open(path, encoding="utf-8") as file:
            table = json.load(file)
        for name, row in table.items():
            for entry in row["files"]:
                wrong = "a plain name" if "/" in entry["name"] else check_file(entry)
                if wrong:
                    raise ValueError(f"{name}: each file needs {wrong}")
            for key in keys:
                row[key]
        return table
    except KeyError as error:
        raise FetchError(f"{path}: {error} is missing") from error
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise FetchError(f"{path}: {error}") from error


def size_text(count):
    """`160.7 MiB`."""
    return f"{count / 2**20:.1f} MiB" if count >= 2**20 else f"{count / 2**10:.1f} KiB"


def file_sum(path, kind="sha256"):
    try:
        with open(path, "rb") as file:
            return subprocess.run([kind + "sum"], stdin=file, stdout=subprocess.PIPE, check=True, text=True).stdout.split()[0]
    except OSError as error:
        raise FetchError(f"cannot read {path}: {error.strerror}") from error


@contextlib.contextmanager
def locked(folder):
    """Creates the folder of a download; a second run that wants it ends. Errors: another user can write into it, and so put links and files
    of their own in the place of those that are written and checked."""
    os.makedirs(os.path.dirname(folder) or ".", exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o755)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise FetchError(f"{folder}: expected a folder that this user alone can write into. Remove it, or give another DIR")
    with open(os.path.join(folder, "lock"), "a", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            program = os.path.basename(sys.argv[0])
            raise FetchError(f"{folder} is in use by another {program}") from None
        yield


def check_space(folder, name, needed):
    """`needed`: bytes of the download, those received so far included, and of what is unpacked."""
    received = sum(entry.stat().st_size for entry in os.scandir(folder) if entry.is_file() and not entry.name.endswith(".wrong"))
    free = shutil.disk_usage(folder).free
    if free < needed - received:
        raise FetchError(f"{folder}: expected {size_text(needed - received)} of free space for {name}, got "
                         f"{size_text(free)}. Free some, or give another folder")


def guarded_main(name, run):
    """Runs `run`; its exit code: 1 after an error, 130 after an interruption."""
    def stop(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    try:
        sys.stdout.reconfigure(line_buffering=True)
        if missing:
            raise FetchError(f"needs {' and '.join(missing)}, which this machine does not have")
        run()
        return 0
    except FetchError as error:
        print(f"{name}: error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{name}: error: cannot write {error.filename}: {error.strerror}. What was received is kept; run the same command "
              "again to continue", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\n{name}: interrupted. What was received is kept; run the same command again to continue", file=sys.stderr)
        return 130
