# SPDX-License-Identifier: Apache-2.0
"""One file over HTTP: resumed where an earlier attempt stopped, tried again with backoff, checked against its sums.

Beside FILE stand FILE.part, what has arrived, and FILE.part.tag, the server's ETag or Last-Modified of it: a file that
changed between two attempts is fetched anew (If-Range, RFC 9110 section 13.1.5).
"""
import hashlib
import http.client
import os
import socket
import ssl
import sys
import time
import urllib.error
import urllib.request

from .errors import FetchError, cannot_write
from .progress import Progress, size_text

BLOCK = 1 << 16
TRY_AGAIN = {408, 425, 429, 500, 502, 503, 504}


class NotThere(Exception):
    """This address does not have the file; another may."""


class Broken(Exception):
    """The transfer failed in a way that another attempt may cure."""


def check_sums(path, entry):
    """None when the file has the size and the sums of its entry, else what is wrong."""
    size = os.path.getsize(path)
    if entry.get("bytes") not in (None, size):
        return f"it has {size} bytes, expected {entry['bytes']}"
    sums = {kind: hashlib.new(kind) for kind in ("sha256", "md5") if kind in entry}
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            for one in sums.values():
                one.update(block)
    for kind, one in sums.items():
        if one.hexdigest() != entry[kind]:
            return f"its {kind.upper()} is {one.hexdigest()}, expected {entry[kind]}"
    return None


def size_of(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


def remove(*paths):
    for path in paths:
        if os.path.exists(path):
            os.remove(path)


def open_url(url, part, timeout):
    """The response, and the position from which it delivers."""
    request = urllib.request.Request(url, headers={"User-Agent": "weft-fetch-data", "Accept-Encoding": "identity"})
    start = size_of(part)
    tag_file = part + ".tag"
    if start > 0:
        request.add_header("Range", f"bytes={start}-")
        if os.path.exists(tag_file):
            with open(tag_file, encoding="latin-1") as file:
                request.add_header("If-Range", file.read())
    try:
        response = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416:  # our part is longer than the file
            remove(part, tag_file)
            raise Broken("the server has no such range; starting anew") from error
        if error.code in TRY_AGAIN:
            raise Broken(f"the server answers {error.code} {error.reason}") from error
        raise NotThere(f"{error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            raise NotThere(f"the server's certificate is not trusted ({error.reason.verify_message})") from error
        raise Broken(str(getattr(error.reason, "strerror", None) or error.reason)) from error
    if response.status == 206:
        range_text = response.headers.get("Content-Range", "")
        if not range_text.startswith(f"bytes {start}-"):
            raise Broken(f"the server sent another range ('{range_text}')")
    elif start > 0:
        print("The server sends the file from its start: what was there is fetched anew.", file=sys.stderr)
        start = 0
    tag = response.headers.get("ETag", "")
    if not tag or tag.startswith("W/"):  # If-Range takes strong validators only
        tag = response.headers.get("Last-Modified", "")
    if start == 0:
        remove(tag_file)
        if tag:
            with open(tag_file, "w", encoding="latin-1") as file:
                file.write(tag)
    return response, start


def length_of(response, start):
    """How large the server says that the whole file is."""
    length = response.headers.get("Content-Length", "")
    if not length.isdigit():
        raise NotThere("the server does not say how large the file is")
    return start + int(length)


def receive(response, part, start, progress):
    """Writes what comes to `part` from `start` on, at most a block more than the whole."""
    with open(part, "r+b" if start else "wb") as file:
        file.seek(start)
        file.truncate()
        try:
            while progress.done <= progress.total:
                try:
                    block = response.read1(BLOCK)
                except (http.client.HTTPException, OSError) as error:
                    raise Broken(str(error) or type(error).__name__) from error
                if not block:
                    break
                file.write(block)
                progress.advance(len(block))
        finally:
            progress.end()


def transfer(url, part, entry, timeout):
    """One attempt: appends to `part` until it has all bytes. An entry without a size takes the server's. Errors: NotThere,
    Broken; OSError of the disk."""
    try:
        response, start = open_url(url, part, timeout)
    except (http.client.HTTPException, ConnectionError, socket.timeout) as error:
        raise Broken(str(error) or type(error).__name__) from error
    with response:
        if entry.get("bytes") is None:
            entry["bytes"] = length_of(response, start)
        progress = Progress(entry["name"], entry["bytes"], start)
        receive(response, part, start, progress)
    if progress.done < entry["bytes"]:
        raise Broken(f"the connection ended after {progress.done} of {entry['bytes']} bytes")


def download_from(url, part, entry, options):
    """Attempts at one address until the part is whole; whether bytes of an earlier attempt are in it. Waits double from
    one attempt to the next and start again small when bytes have arrived."""
    failures, had_part = 0, False
    while True:
        before = size_of(part)
        had_part = had_part or before > 0
        if before > 0 and before == entry.get("bytes"):
            return had_part
        try:
            transfer(url, part, entry, options.timeout)
            return had_part
        except Broken as error:
            failures = 0 if size_of(part) > before else failures + 1
            if failures > options.retries:
                raise FetchError(f"{url}: {error}. Gave up after {failures} attempts without progress; "
                                 f"{size_text(size_of(part))} are kept, run the same command again to go on") from error
            wait = min(60.0, options.retry_wait * 2 ** max(0, failures - 1))
            print(f"{entry['name']}: {error}; trying again in {wait:g} s", file=sys.stderr)
            time.sleep(wait)


def download(entry, addresses, folder, options):
    """Fetches one file of a set into `folder` and returns its path. Errors: FetchError."""
    path = os.path.join(folder, entry["name"])
    part = path + ".part"
    try:
        if os.path.exists(path) and check_sums(path, entry) is None:
            return path
        remove(path)
        for attempt in ("resumed", "anew"):
            had_part = fetch_part(entry, addresses, part, options)
            wrong = check_sums(part, entry)
            if wrong is None:
                os.replace(part, path)
                remove(part + ".tag")
                return path
            if attempt == "anew" or not had_part:
                os.replace(part, path + ".wrong")
                remove(part + ".tag")
                raise FetchError(f"{entry['name']} is not the published file: {wrong}. It was damaged on the way or has "
                                 f"changed at its source; what came is {path}.wrong")
            print(f"{entry['name']}: {wrong}; the pieces do not fit, fetching it anew", file=sys.stderr)
            remove(part, part + ".tag")
    except OSError as error:
        raise cannot_write(error.filename or part, error) from error


def fetch_part(entry, addresses, part, options):
    """Goes through the addresses until one delivers; whether bytes of an earlier attempt were used."""
    reasons = []
    for number, address in enumerate(addresses):
        url = address.rstrip("/") + "/" + entry["name"]
        try:
            return download_from(url, part, entry, options)
        except NotThere as error:
            reasons.append(f"{url}: {error}")
        except FetchError as error:
            reasons.append(str(error))
        if number + 1 < len(addresses):
            print(f"{reasons[-1]}. Going on with {addresses[number + 1]}", file=sys.stderr)
    raise FetchError("; ".join(reasons))
