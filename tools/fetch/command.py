# SPDX-License-Identifier: Apache-2.0
"""What the programs that fetch have in common: flags of a download, errors as one line, an orderly end when interrupted."""
import signal
import sys

from .errors import FetchError


def number(kind, least):
    """A parser of numbers of at least `least`; its name stands in argparse's error."""
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
                        help="attempts after one that brought nothing (default: 5)")
    parser.add_argument("--retry-wait", type=number(float, 0), default=1.0,
                        help="seconds before the first of them; doubles up to 60 (default: 1)")
    parser.add_argument("--timeout", type=number(float, 0.001), default=30.0,
                        help="seconds without a byte until an attempt fails (default: 30)")


def guarded_main(name, run):
    """Runs `run`; its exit code: 1 after a FetchError, 130 after an interruption."""
    def stop(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    try:
        sys.stdout.reconfigure(line_buffering=True)
        run()
        return 0
    except FetchError as error:
        print(f"{name}: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\n{name}: interrupted. What has arrived is kept; run the same command again to go on", file=sys.stderr)
        return 130
