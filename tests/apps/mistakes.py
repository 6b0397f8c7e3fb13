# SPDX-License-Identifier: Apache-2.0
"""Every program's answer to a mistake: one line on stderr that names it, exit code 2 for what was typed and 1 for what is missing, and no
file left behind."""
import pathlib
import tempfile
import unittest

import programs

# How each program is asked for something that is not there, and which exit code that is.
MISSING = {
    "ddp": (["--data", "missing"], "error"),
    "finetune": (["--data", "missing"], "error"),
    "linear_probe": (["--data", "cifar100:missing", "--weights", "random", "--model", "vit_tiny4"], "error"),
    "load_bench": (["--data_root", "missing"], "error"),
    "make_fields": (["--out", "/dev/null/missing"], "error"),
    "mnist": (["--data-dir", "missing"], "error"),
    "multinode": (["2", "1", "--device", "cuda:missing"], "error"),
    "one_gpu": (["--data", "missing"], "error"),
    "ouai_demo": (["--weights", "missing.pth"], "error"),
    "pack": (["--data_root", "missing"], "error"),
    "sample_gpt": (["--weights", "missing"], "error"),
    "single_gpu": (["2", "1", "--device", "cuda:missing"], "error"),
    "train_gpt": (["--data", "missing"], "error"),
    "train_image": (["--data", "cifar10:missing"], "error"),
    "train_multi_gpu": (["--yaml_config", "missing.yaml"], "usage"),
    "train_single_gpu": (["--yaml_config", "missing.yaml"], "usage"),
    "train_vit": (["--yaml_config", "missing.yaml"], "usage"),
    "weft-info": None,  # reads no file
    "weft-run": (["./missing"], "error"),
    "weft-sweep": (["--sweep", "missing.yaml", "--", "true"], "usage"),
    "weft-watch": (["missing"], "error"),
    "weft-weights show": (["missing.pt"], "error"),
    "weft-weights convert": (["missing.pt", "to.safetensors"], "error"),
    "weft-weights diff": (["missing.pt", "missing.pt"], "usage"),  # 1 says that they differ
}
# The flags that name a YAML file, and what comes with them.
YAML = {
    "finetune": ["--config_file", "FILE"],
    "train_multi_gpu": ["--config", "default", "--yaml_config", "FILE"],
    "train_single_gpu": ["--config", "default", "--yaml_config", "FILE"],
    "train_vit": ["--config", "default", "--yaml_config", "FILE"],
    "weft-run": ["--config_file", "FILE", "true"],
    "weft-sweep": ["--sweep", "FILE", "--", "true"],
}
NAMES_OF_MNIST = ("mnist_", "base_training", "ddp_training", "horovod_training", "ddp_example")
TAILS = {"weft-run": ["true"], "weft-sweep": ["--", "true"]}  # required words after the flags


def table_name(words):
    """Links to one program share its row."""
    return "mnist" if words[0].startswith(NAMES_OF_MNIST) else " ".join(words)


class Mistakes(programs.Case):
    def leaves(self):
        """The programs, or their commands where they have some, with their help."""
        return [(words, page) for words, (_, page) in self.helps.items() if page.commands == [""]]

    def test_a_wrong_flag(self):
        for words, _ in self.leaves():
            with self.subTest(" ".join(words)):
                run = self.run_of(words, "--no-such-flag", *TAILS.get(words[0], []))
                self.expect_refusal(run, "usage", "--no-such-flag")

    def test_a_bad_value_of_every_number_and_choice(self):
        for words, page in self.leaves():
            if words[0].startswith(NAMES_OF_MNIST):
                continue  # links
            for flag in filter(programs.Flag.refuses_words, page.flags):
                with self.subTest(f"{' '.join(words)} --{flag.name}"):
                    run = self.run_of(words, f"--{flag.name}", "nonsense", *TAILS.get(words[0], []))
                    self.expect_refusal(run, "usage", f"--{flag.name}".replace("_", "-"), "nonsense")

    def test_something_that_is_missing(self):
        for words, _ in self.leaves():
            name = table_name(words)
            with self.subTest(" ".join(words)):
                self.assertIn(name, MISSING, "a program that this test does not know: say in MISSING how it meets a missing file")
                if MISSING[name] is not None:
                    arguments, code = MISSING[name]
                    without_yaml = name in YAML and code == "usage" and "yaml-cpp" not in self.parts
                    self.expect_refusal(self.run_of(words, *arguments), "error" if without_yaml else code, *([] if without_yaml else ["missing"]))

    def test_a_missing_or_wrong_file_of_flags(self):
        with tempfile.TemporaryDirectory() as folder:
            wrong = pathlib.Path(folder, "wrong.toml")
            wrong.write_text("# flags\nno-such-key = 1\n")
            for words, page in self.leaves():
                if "FILE.toml" not in [flag.kind for flag in page.flags]:
                    continue
                with self.subTest(" ".join(words)):
                    tail = TAILS.get(words[0], [])
                    self.expect_refusal(self.run_of(words, "--config", "missing.toml", *tail), "usage", "missing.toml")
                    self.expect_refusal(self.run_of(words, "--config", str(wrong), *tail), "usage", f"{wrong} line 2: ", "no-such-key")

    def test_a_bad_key_a_bad_value_and_no_yaml_at_all_with_their_lines(self):
        reads = {table_name(words) for words, (run, _) in self.helps.items() if "YAML" in run.out or "--yaml_config" in run.out}
        self.assertEqual(reads, set(YAML), "programs whose help speaks of YAML, and those that this test knows")
        if "yaml-cpp" not in self.parts:
            self.skipTest("this build has no yaml-cpp")
        texts = {
            "finetune": ("# a\nno_such_key: 1\n", "# a\nnum_machines: many\n", 2),
            "weft-run": ("# a\nno_such_key: 1\n", "# a\nnum_machines: many\n", 2),
            "weft-sweep": ("# a\nno_such_key: 1\n", "# a\nmethod: guess\n", 2),
        }
        section = ("default: &D\n  lr: 1E-3\n  no_such_key: 1\n", "default: &D\n\n  lr: fast\n", 3)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "a.yaml")
            for name, arguments in YAML.items():
                bad_key, bad_value, line = texts.get(name, section)
                if name == "train_vit":  # what must be there comes first
                    paths = "".join(f"  {key}: x\n" for key in ("train_data_path", "valid_data_path", "global_means_path", "global_stds_path"))
                    bad_key += paths
                words = [str(file) if word == "FILE" else word for word in arguments]
                for text, at, found in ((bad_key, line, "no_such_key"), (bad_value, line, "expected" if name != "weft-sweep" else "unknown value"),
                                        ("a: 1\nb: [1\n", None, "")):
                    with self.subTest(f"{name}: {text!r}"):
                        file.write_text(text)
                        where = f"{file}:{at}: " if at else f"{file}:"
                        self.expect_refusal(self.run_of((name,), *words), "usage", where, found)


if __name__ == "__main__":
    programs.main()
