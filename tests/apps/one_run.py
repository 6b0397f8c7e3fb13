# SPDX-License-Identifier: Apache-2.0
"""Every program that has a folder of its own refuses one in which another run is at work: one line, exit code 1, nothing changed."""
import fcntl
import pathlib
import subprocess
import tempfile
import unittest

import dry_runs
import programs

NONE = None  # writes no folder that a second run would spoil
# The folder of each program, and the flags for that folder in addition to a dry run's.
FOLDERS = {
    "ddp": NONE,  # each run has its own tb_logs/my_model/version_N
    "finetune": ("run", ["--out", "run"]),
    "linear_probe": ("run", ["--out", "run"]),
    "load_bench": NONE,
    "make_fields": NONE,
    "mnist": ("out", ["--output-dir", "out"]),
    "multinode": (".", []),
    "one_gpu": NONE,
    "ouai_demo": ("run", ["--out", "run"]),
    "pack": NONE,
    "sample_gpt": NONE,
    "single_gpu": (".", []),
    "train_gpt": ("run", ["--out", "run"]),
    "train_image": ("run", ["--out", "run"]),
    "train_multi_gpu": ("outputs/default/0", []),
    "train_single_gpu": ("outputs/default/0", []),
    "train_vit": ("{DATA}/fields/logs/base/1GPU/00", []),
    "weft-info": NONE,
    "weft-run": NONE,
    "weft-sweep": NONE,  # sweeps share their points (tests/weft_sweep)
    "weft-watch": NONE,
    "weft-weights": NONE,
}
WORDS = " is in use by process 7 on elsewhere, and was for the 10 s that this run has waited. End that run, or name another folder"


class Busy:
    """A program that finds another run in its folder."""

    def __init__(self, path, arguments, folder):
        self.place = tempfile.TemporaryDirectory(prefix="weft_busy_")
        self.folder = pathlib.Path(self.place.name, folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.lock = (self.folder / ".run.lock").open("w")
        fcntl.lockf(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.lock.write("process 7 on elsewhere\n")
        self.lock.flush()
        self.name, self.before = path.name, self.entries()
        self.process = subprocess.Popen([path, *arguments], cwd=self.place.name, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)

    def entries(self):
        """Files, with their lengths: folders may be made."""
        return {str(path): path.stat().st_size for top in {self.folder, pathlib.Path(self.place.name)} for path in top.rglob("*") if path.is_file()}

    def end(self, test):
        out, err = self.process.communicate(timeout=120)
        said = f"$ {self.name}\n{out}{err}"
        test.assertEqual(self.process.returncode, 1, said)
        lines = [line for line in err.splitlines() if "run folder" in line or "rror" in line or "warning" in line]
        test.assertEqual(len(lines), 1, said)
        test.assertRegex(lines[0], rf"^{self.name}: error: run folder: ")
        test.assertTrue(lines[0].endswith(WORDS), said)
        test.assertEqual(pathlib.Path(self.place.name, lines[0].removesuffix(WORDS).split("run folder: ")[1]).resolve(), self.folder.resolve())
        test.assertEqual(self.entries(), self.before, said)
        self.lock.close()
        self.place.cleanup()


class OneRun(programs.Case):
    def test_a_folder_in_use_is_refused(self):
        with tempfile.TemporaryDirectory() as name:
            data = pathlib.Path(name)
            dry_runs.make_data(data, self.programs["make_fields"], "HDF5" in self.parts)
            busy = []
            for program, path in self.programs.items():
                row = "mnist" if program.startswith(dry_runs.LINKS) else program
                self.assertIn(row, FOLDERS, "a program that this test does not know: say in FOLDERS where it writes, or that no second run can spoil that")
                if FOLDERS[row] is NONE or not dry_runs.DRY[row][1] <= self.parts:
                    continue
                folder, flags = FOLDERS[row]
                words = [word.replace("{DATA}", name) for word in [*dry_runs.DRY[row][0], *flags]]
                busy.append(Busy(path, words, folder.replace("{DATA}", name)))
            for one in busy:  # they wait side by side
                with self.subTest(one.name):
                    one.end(self)
            self.assertGreater(len(busy), 4)

    def test_what_mnist_and_vista_log_is_a_folder_too(self):
        with tempfile.TemporaryDirectory() as name:
            dry_runs.make_data(pathlib.Path(name), self.programs["make_fields"], False)
            digits = [word.replace("{DATA}", name) for word in dry_runs.DRY["mnist"][0] if word != "--save-model"]
            lines = {"mnist": [*digits, "--log-dir", "log"], "multinode": dry_runs.DRY["multinode"][0]}
            busy = [Busy(self.programs[program], words, "log") for program, words in lines.items()]
            for one in busy:
                with self.subTest(one.name):
                    one.end(self)


if __name__ == "__main__":
    programs.main()
