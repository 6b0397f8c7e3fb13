# SPDX-License-Identifier: Apache-2.0
"""A progress bar on stderr: redrawn in place on a terminal, a line every ten seconds elsewhere."""
import shutil
import sys
import time

WINDOW = 5.0  # seconds over which the rate is taken


def size_text(count):
    """`160.7 MiB`."""
    return f"{count / 2**20:.1f} MiB" if count >= 2**20 else f"{count / 2**10:.1f} KiB"


def time_text(seconds):
    """`1:05`, `1:02:03`."""
    minutes, seconds = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


class Progress:
    """`done` counts from `start`, what an earlier run has left, so that the rate is of this run alone."""

    def __init__(self, what, total, start=0, out=None, clock=time.monotonic):
        self.what, self.total, self.out, self.clock = what, total, out or sys.stderr, clock
        self.is_terminal = self.out.isatty()
        self.done = start
        self.samples = [(clock(), start)]
        self.drawn_at = float("-inf")

    def rate(self):
        """Bytes per second over the last seconds."""
        (first, before), (last, after) = self.samples[0], self.samples[-1]
        return (after - before) / (last - first) if last > first else 0.0

    def line(self, columns=100):
        share = self.done / self.total if self.total else 0
        rate = self.rate()
        left = f"ETA {time_text((self.total - self.done) / rate)}" if rate > 0 else "ETA -:--"
        head, tail = f"{self.what} {100 * share:3.0f}% ", \
            f" {size_text(self.done)} of {size_text(self.total)}  {size_text(rate)}/s  {left}"
        width = min(30, columns - len(head) - len(tail) - 3)
        if width < 5:
            return (head + tail.strip())[:columns]
        filled = int(width * min(share, 1))
        return head + "[" + "=" * filled + " " * (width - filled) + "]" + tail

    def advance(self, count):
        now = self.clock()
        self.done += count
        self.samples.append((now, self.done))
        while len(self.samples) > 2 and now - self.samples[1][0] > WINDOW:
            self.samples.pop(0)
        if now - self.drawn_at >= (0.1 if self.is_terminal else 10):
            self.draw(now)

    def draw(self, now):
        self.drawn_at = now
        if self.is_terminal:
            columns = shutil.get_terminal_size((100, 24)).columns - 1
            self.out.write("\r" + self.line(columns).ljust(columns))
        else:
            self.out.write(self.line() + "\n")
        self.out.flush()

    def end(self):
        """The last state; the cursor stands on a new line afterwards."""
        self.draw(self.clock())
        if self.is_terminal:
            self.out.write("\n")
            self.out.flush()
