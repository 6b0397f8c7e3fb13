# SPDX-License-Identifier: Apache-2.0
"""One file by curl: FILE.part is resumed where an earlier attempt stopped, and becomes FILE once its checksums are right.

curl drops the bytes of a failed attempt when it retries by itself, so each attempt is a run of its own.
"""
import os
import re
import subprocess
import sys
import time

from .common import FetchError, file_sum, size_text

TRY_AGAIN = {408, 425, 429, 500, 502, 503, 504}  # HTTP
# Exit codes of curl.
BAD_ADDRESS = {1, 3, 47, 60, 77}  # protocol, URL, redirects, certificates: another attempt would fail again
DISK = 23
NO_RANGE = 33


class SourceError(Exception):
    """This address does not deliver the file; another may."""


def check_sums(path, entry):
    """None when the file has the size and the checksums of its entry, else what is wrong."""
    size = os.path.getsize(path)
    if entry.get("bytes", size) != size:
        return f"it has {size} bytes, expected {entry['bytes']}"
    for kind in ("sha256", "md5"):
        if kind in entry and file_sum(path, kind) != entry[kind]:
            return f"its {kind.upper()} is {file_sum(path, kind)}, expected {entry[kind]}"
    return None


def size_of(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


def run_curl(url, part, timeout):
    """curl's exit code and error. Its progress meter is shown on terminals only."""
    shows_meter = sys.stderr.isatty()
    command = ["curl", "--fail", "--location", "--globoff", "--continue-at", "-", "--connect-timeout", str(timeout),
               "--speed-limit", "1", "--speed-time", str(timeout), "--output", part, "--url", url]
    # restore_signals=False: curl reports a file that exceeds `ulimit -f` instead of being killed.
    with subprocess.Popen(command + ([] if shows_meter else ["--silent", "--show-error"]), stdin=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, restore_signals=False) as curl:
        text = b""
        try:
            for block in iter(lambda: curl.stderr.read1(4096), b""):
                text += block
                if shows_meter:
                    sys.stderr.buffer.write(block)
                    sys.stderr.flush()
        except BaseException:
            curl.kill()
            raise
    errors = re.findall(r"curl: \(\d+\) (.*)", text.decode(errors="replace"))
    return curl.returncode, errors[-1] if errors else f"curl ended with exit code {curl.returncode}"


def transfer(url, part, entry, options):
    """Attempts at one address until the part is whole; whether a part was resumed. The wait doubles after each attempt that
    received nothing new."""
    failures, best, resumed = 0, size_of(part), False
    while True:
        before = size_of(part)
        resumed = resumed or before > 0
        if before > 0 and before == entry.get("bytes"):
            return resumed
        code, error = run_curl(url, part, options.timeout)
        if code == 0:
            return resumed
        if code == DISK:
            raise FetchError(f"cannot write {part}: {error}. What was received is kept; run the same command again to continue")
        status = re.search(r"returned error: (\d+)", error)
        if code in BAD_ADDRESS or (status and int(status[1]) not in TRY_AGAIN):
            raise SourceError(f"{url}: {error}")
        if code == NO_RANGE:
            error = "the server cannot resume, the file is downloaded again"
            os.remove(part)
        failures = 0 if size_of(part) > best else failures + 1
        best = max(best, size_of(part))
        if failures > options.retries:
            raise SourceError(f"{url}: {error}. Gave up after {failures} attempts without progress; {size_text(size_of(part))} "
                              "are kept, run the same command again to continue")
        wait = min(60.0, options.retry_wait * 2 ** max(0, failures - 1))
        print(f"{entry['name']}: {error}; trying again in {wait:g} s", file=sys.stderr)
        time.sleep(wait)


def transfer_from_any(addresses, part, entry, options):
    """Tries the addresses in turn; whether a part was resumed."""
    reasons = []
    for address, following in zip(addresses, [*addresses[1:], None]):
        try:
            return transfer(address.rstrip("/") + "/" + entry["name"], part, entry, options)
        except SourceError as error:
            reasons.append(str(error))
            if following:
                print(f"{error}. Continuing with {following}", file=sys.stderr)
    raise FetchError("; ".join(reasons))


def download(entry, addresses, folder, options):
    """Fetches one file into `folder` and returns its path. Errors: FetchError; OSError of the disk."""
    path = os.path.join(folder, entry["name"])
    part = path + ".part"
    if os.path.exists(path) and check_sums(path, entry) is None:
        return path
    for attempt in ("first", "last"):
        resumed = transfer_from_any(addresses, part, entry, options)
        wrong = check_sums(part, entry)
        if wrong is None:
            os.replace(part, path)
            return path
        if attempt == "last" or not resumed:
            os.replace(part, path + ".wrong")
            raise FetchError(f"{entry['name']} is not the published file: {wrong}. It was damaged on the way or has changed at "
                             f"its source; {path}.wrong is what was received")
        print(f"{entry['name']}: {wrong}; the pieces do not fit, downloading it again", file=sys.stderr)
        os.remove(part)
