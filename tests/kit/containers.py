# SPDX-License-Identifier: Apache-2.0
"""apps/container: both definitions are well formed, do the same, and name files that are there."""
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HEADERS = {"bootstrap", "from", "stage"}
SECTIONS = {"files", "post", "environment", "runscript", "test", "labels", "help"}
INSTRUCTIONS = {"ARG", "FROM", "COPY", "RUN", "ENV", "LABEL", "CMD"}


def stages_of_definition(text):
    """Each stage of an Apptainer definition: {'from': …, 'stage': …, 'files': [lines], 'post': [lines], …}."""
    stages, section = [], None
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.lower().startswith("bootstrap:"):
            stages.append({"bootstrap": line.split(":", 1)[1].strip()})
            section = None
        elif line.startswith("%"):
            name, _, rest = line[1:].partition(" ")
            assert name in SECTIONS, f"line {number}: there is no section %{name}"
            section = name if not rest else f"{name} {rest.strip()}"
            assert section not in stages[-1], f"line {number}: a second %{section}"
            stages[-1][section] = []
        elif section is None:
            key, colon, value = line.partition(":")
            assert colon and key.lower() in HEADERS, f"line {number}: expected a header, got '{line}'"
            stages[-1][key.lower()] = value.strip()
        else:
            assert line.startswith("    "), f"line {number}: expected an indented line, got '{line}'"
            stages[-1][section].append(line.strip())
    return stages


def stages_of_dockerfile(text):
    """Each stage of a Dockerfile: [(instruction, rest), …], with the defaults of its arguments."""
    stages, arguments = [], {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        word, _, rest = line.partition(" ")
        assert word in INSTRUCTIONS, f"line {number}: there is no instruction {word}"
        if word == "ARG":
            arguments.update([rest.split("=", 1)])
            continue
        rest = re.sub(r"\$(\w+)", lambda found: arguments.get(found[1], found[0]), rest)
        if word == "FROM":
            stages.append([])
        stages[-1].append((word, rest))
    return stages


class Containers(unittest.TestCase):
    folder = ROOT / "apps" / "container"
    definition = stages_of_definition((folder / "weft.def").read_text(encoding="utf-8"))
    docker = stages_of_dockerfile((folder / "Dockerfile").read_text(encoding="utf-8"))

    def test_both_begin_with_the_same_images(self):
        self.assertEqual(
            [stage["from"] for stage in self.definition], [stage[0][1].split(" ")[0] for stage in self.docker]
        )
        self.assertIn("-devel-", self.definition[0]["from"])
        self.assertEqual(self.definition[0]["from"].replace("devel", "runtime"), self.definition[1]["from"])

    def test_both_run_the_same_commands(self):
        ran = [rest for stage in self.docker for word, rest in stage if word == "RUN"]
        self.assertEqual([line for stage in self.definition for line in stage["post"]], ran)
        for command in ran:
            self.assertRegex(command, r"(/src/apps/container/build|/opt/weft/runtime)\.sh /opt/weft$")

    def test_files_are_there(self):
        named = [line.split()[0] for stage in self.definition for line in stage.get("files", [])]
        named += [rest.split()[0] for stage in self.docker for word, rest in stage if word == "COPY" and "--from" not in rest]
        self.assertGreaterEqual(len(named), 4)
        for path in named:
            self.assertTrue((ROOT / path).exists(), f"there is no {path}")

    def test_a_library_that_is_loaded_late_is_installed_too(self):
        """ldd does not show HDF5: build.sh takes its name from CMake."""
        script = (self.folder / "build.sh").read_text(encoding="utf-8")
        (line,) = [line for line in script.split("\n") if line.strip().startswith("sed ")]
        for library, listed in (("/opt/hdf5/lib/libhdf5.so", True), ("/opt/hdf5/lib/libhdf5.a", False), ("WEFT_HDF5-NOTFOUND", False)):
            with tempfile.TemporaryDirectory() as build:
                cache = f"WEFT_HDF5:FILEPATH={library}\nWEFT_HDF5_INCLUDE:PATH=/opt/hdf5/include\n"
                (Path(build) / "CMakeCache.txt").write_text(cache, encoding="utf-8")
                found = subprocess.run(["bash", "-c", f"build={build}\n{line}"], capture_output=True, text=True, check=True)
            self.assertEqual(found.stdout, f"{library}\n" if listed else "")

    def test_a_stage_copies_only_from_one_before_it(self):
        names = {stage["stage"] for stage in self.definition}
        copied = {section.split()[-1] for stage in self.definition for section in stage if section.startswith("files from")}
        self.assertEqual(copied, {"build"})
        self.assertLessEqual(copied, names)

    def test_programs_are_found_by_their_names(self):
        """Workflows' job scripts start programs in the image by name alone: each folder that installs some is in PATH."""
        folders = set()
        for rules in (ROOT / "apps").glob("*/CMakeLists.txt"):
            text = rules.read_text(encoding="utf-8")
            folders |= {"/opt/weft/bin"} if "CMAKE_INSTALL_BINDIR" in text else set()
            folders |= {f"$WEFT/{name}" for name in re.findall(r"\$\{CMAKE_INSTALL_LIBEXECDIR\}/weft/(\w+)", text)}
        self.assertGreaterEqual(len(folders), 7)
        settings = [rest for stage in self.docker for word, rest in stage if word == "ENV"]
        paths = [line.removeprefix("export ") for line in self.definition[-1]["environment"]]
        for lines in (settings, paths):
            self.assertIn("WEFT=/opt/weft/libexec/weft", lines)
            path = next(line for line in lines if line.startswith("PATH=")).split(" ")[0].removeprefix("PATH=")
            self.assertLessEqual(folders, set(path.split(":")))

    def test_a_mistake_is_found(self):
        with self.assertRaisesRegex(AssertionError, "no section %pots"):
            stages_of_definition("Bootstrap: docker\nFrom: a\n%pots\n    ls")
        with self.assertRaisesRegex(AssertionError, "no instruction RUM"):
            stages_of_dockerfile("FROM a\nRUM ls")


if __name__ == "__main__":
    unittest.main()
