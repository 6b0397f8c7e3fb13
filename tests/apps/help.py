# SPDX-License-Identifier: Apache-2.0
"""Every program's --help: what it is for in one sentence, its usage, every flag with its default, an example whose flags it has."""
import re
import unittest

import programs


class HelpTest(programs.Case):
    def test_the_list_is_whole(self):
        self.assertGreaterEqual(len(self.programs), 25, sorted(self.programs))
        for name in ("train_image", "ouai_demo", "mnist_horovod", "weft-run", "train_vit"):
            self.assertIn(name, self.programs)

    def test_it_goes_to_stdout_with_exit_code_0_and_writes_nothing(self):
        for words, (run, _) in self.helps.items():
            with self.subTest(" ".join(words)):
                self.assertEqual((run.code, run.err, run.left), (0, "", []), run)

    def test_the_version_is_that_of_all(self):
        versions = set()
        for name, path in self.programs.items():
            run = programs.Run(path, ["--version"])
            self.assertRegex(run.out, rf"^{re.escape(name)} of Weft \d+\.\d+\.\d+\n$", run)
            self.assertEqual((run.code, run.err, run.left), (0, "", []), run)
            versions.add(run.out.split()[-1])
        self.assertEqual(len(versions), 1)

    def test_it_begins_with_a_sentence_and_a_line_of_usage(self):
        for words, (run, page) in self.helps.items():
            with self.subTest(" ".join(words)):
                self.assertRegex(page.purpose, r"^[A-Z].+\.$", run)
                self.assertTrue(page.usage.startswith("Usage: " + " ".join(words)), run)

    def test_every_flag_has_a_default_and_a_text(self):
        for words, (run, page) in self.helps.items():
            with self.subTest(" ".join(words)):
                self.assertEqual(page.undecided, [], "expected `--NAME TYPE [DEFAULT]`")
                self.assertTrue(page.flags or page.commands != [""], run)
                lines = run.out.split("\n")
                for flag in page.flags:
                    at = next(i for i, line in enumerate(lines) if re.match(rf"^  --{flag.name} ", line))
                    self.assertTrue(flag.text or lines[at + 1].startswith(" " * 20), f"--{flag.name} has no text")

    def test_its_examples_start_the_program_with_flags_that_it_has(self):
        for words, (run, page) in self.helps.items():
            with self.subTest(" ".join(words)):
                self.assertTrue(page.examples, run)
                for example in page.examples:
                    self.assertRegex(example, rf"(^|[ /]){re.escape(words[0])}( |$)")
                    own = re.split(rf"(?:^|[ /]){re.escape(words[0])} ", " " + example, maxsplit=1)[-1]
                    own = re.split(r" --? | && | train_image ", own)[0]  # the flags of a program behind it are its own
                    names = self.helps[words[0], own.split()[0]][1].names if page.commands != [""] else page.names
                    for flag in re.findall(r"(?<=--)[A-Za-z][\w-]*", own):
                        self.assertIn(flag.replace("_", "-"), names, example)


if __name__ == "__main__":
    programs.main()
