# SPDX-License-Identifier: Apache-2.0
"""Errors that a user can reach: one line each."""


class FetchError(Exception):
    """Ends the program with its text and exit code 1."""


def cannot_write(path, error):
    """The one line for a full disk, a read-only folder and their kin."""
    return FetchError(f"cannot write {path}: {error.strerror or error}. What has arrived is kept; run the same command "
                      "again to go on")
