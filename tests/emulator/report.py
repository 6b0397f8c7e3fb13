#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""report.py WEFT_EMULATE FAULTS RACES [STATIC]: the reports of weft-emulate --report and compute-sanitizer's flags."""
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

EMULATE, FAULTS, RACES = sys.argv[1:4]
STATIC = sys.argv[4:5]


class Report(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.place.name)
        self.addCleanup(self.place.cleanup)

    def run_it(self, *words, expect):
        done = subprocess.run([EMULATE, *words], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=100)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done

    def test_sarif_names_the_line(self):
        self.run_it("--report", "r.sarif", FAULTS, "global_beyond", expect=86)
        run, = json.loads((self.folder / "r.sarif").read_text())["runs"]
        self.assertEqual(run["tool"]["driver"]["name"], "weft-emulate")
        result = run["results"][0]
        place = result["locations"][0]["physicalLocation"]
        self.assertRegex(place["artifactLocation"]["uri"], r"faults\.cu$")
        line = int(re.search(r"faults\.cu:(\d+)", result["message"]["text"])[1])
        self.assertEqual(place["region"]["startLine"], line)
        self.assertEqual({rule["id"] for rule in run["tool"]["driver"]["rules"]}, {one["ruleId"] for one in run["results"]})
        self.assertEqual([path.name for path in self.folder.iterdir()], ["r.sarif"])

    def test_a_race_has_both_lines(self):
        self.run_it("--tool", "racecheck", "--report", "r.sarif", RACES, "between_warps", expect=86)
        results = json.loads((self.folder / "r.sarif").read_text())["runs"][0]["results"]
        self.assertEqual(results[0]["ruleId"], "race")
        self.assertGreaterEqual(len(results[0]["relatedLocations"]), 1)

    def test_junit(self):
        self.run_it("--report", "r.xml", FAULTS, "global_beyond", expect=86)
        suite = xml.parse(self.folder / "r.xml").getroot()[0]
        self.assertEqual(suite.get("failures"), "1")
        self.assertIn("0 bytes past the end", suite[0][0].text)
        self.run_it("--report", "r.xml", RACES, "between_warps_right", expect=0)
        suite = xml.parse(self.folder / "r.xml").getroot()[0]
        self.assertEqual((suite.get("tests"), suite.get("failures")), ("1", "0"))

    def test_all_that_a_script_starts(self):
        script = f'"{FAULTS}" global_beyond; "{RACES}" between_warps; exit 5'
        self.run_it("--check", "races", "--allow-none", "--report", "r.json", "sh", "-c", script, expect=5)
        kinds = [one["kind"] for one in json.loads((self.folder / "r.json").read_text())["findings"]]
        self.assertIn("error", kinds)
        self.assertIn("race", kinds)

    def test_without_the_tool_no_race(self):
        self.run_it("--tool", "memcheck", "--tool", "synccheck", RACES, "between_warps", expect=0)

    def test_uninitialised_by_initcheck(self):
        done = self.run_it("--tool", "initcheck", RACES, "uninitialised_shared", expect=86)
        self.assertIn("uninitialised", done.stderr)

    def test_exit_code(self):
        self.run_it("--error-exitcode", "3", FAULTS, "global_beyond", expect=3)
        self.run_it("--report", "r.json", "sh", "-c", "kill -9 $$", expect=128 + 9)
        self.assertIn("signal 9", (self.folder / "r.json").read_text())
        self.run_it("--report", "r.xml", "--allow-none", "no_such_program", expect=127)
        self.assertIn('failures="1"', (self.folder / "r.xml").read_text())

    def test_signals_reach_the_program(self):
        for name in ("TERM", "INT", "HUP", "USR1"):
            words = [EMULATE, "--allow-none", "--report", "r.json", "sh", "-c", f"trap 'exit 7' {name}; echo ready; while :; do sleep 0.05; done"]
            with subprocess.Popen(words, cwd=self.folder, stdout=subprocess.PIPE, text=True, start_new_session=True) as program:
                self.assertEqual(program.stdout.readline(), "ready\n")
                program.send_signal(getattr(signal, "SIG" + name))
                self.assertEqual(program.wait(60), 7, name)
            self.assertEqual([path.name for path in self.folder.iterdir()], ["r.json"])

    @unittest.skipUnless(STATIC, "needs a program with the static runtime")
    def test_a_script_that_names_its_interpreter(self):
        script = self.folder / "s.sh"
        script.write_text(f'#!/bin/sh\n"{STATIC[0]}"\n' if STATIC else "")
        script.chmod(0o755)
        self.run_it(script, expect=0)

    def test_wrong_words(self):
        for words, text in ((("--report", "r.txt", FAULTS), "--report: expected a name that ends in .sarif, .xml or .json, got 'r.txt'"),
                            (("--tool", "lint", FAULTS), "--tool: expected memcheck, racecheck, initcheck or synccheck, got 'lint'"),
                            (("--report", "none/r.xml", FAULTS), "cannot write none/r.xml: No such file or directory"),
                            (("--error-exitcode", "256", FAULTS), "--error-exitcode (WEFT_EMULATE_ERROR_EXITCODE): expected a number from 0 to 255")):
            self.assertIn(text, self.run_it(*words, expect=2).stderr)

    @unittest.skipUnless(STATIC, "needs a program with the static runtime")
    def test_a_runner_of_programs_with_the_static_runtime(self):
        self.run_it("--allow-none", "sh", "-c", f'"{STATIC[0]}"', expect=0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
