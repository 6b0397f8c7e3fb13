# SPDX-License-Identifier: Apache-2.0
"""tools/spack: the recipe, run with directives that only note what they are told. What it asks for is what Weft is built from."""
import re
import sys
import types
import unittest
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
RECIPE = ROOT / "tools" / "spack" / "spack_repo" / "weft" / "packages" / "weft" / "package.py"


def load(without):
    """The recipe's class, what it noted, and its CMake arguments for a spec of which only `without` is not satisfied."""
    noted = {"depends_on": [], "variant": [], "conflicts": [], "version": [], "license": []}

    @contextmanager
    def when(_):
        yield

    spack = types.ModuleType("spack.package")
    for name, calls in noted.items():
        setattr(spack, name, lambda *args, _calls=calls, **kwargs: _calls.append((args, kwargs)))
    spack.when = when

    class CMakePackage:
        def define(self, name, value):
            return (name, value)

        def define_from_variant(self, name, variant):
            return (name, f"+{variant}" not in without)

    cmake = types.ModuleType("spack_repo.builtin.build_systems.cmake")
    cmake.CMakePackage, cmake.generator = CMakePackage, lambda *names: None
    cuda = types.ModuleType("spack_repo.builtin.build_systems.cuda")
    cuda.CudaPackage = type("CudaPackage", (), {})
    modules = {"spack": types.ModuleType("spack"), "spack.package": spack, cmake.__name__: cmake, cuda.__name__: cuda}
    for parent in ("spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"):
        modules[parent] = types.ModuleType(parent)
    kept = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        space = {"__file__": str(RECIPE), "__name__": "recipe"}
        exec(compile(RECIPE.read_text(encoding="utf-8"), RECIPE, "exec"), space)  # pylint: disable=exec-used
    finally:
        for name, module in kept.items():
            sys.modules.pop(name) if module is None else sys.modules.update({name: module})
    package = space["Weft"]()
    arches = types.SimpleNamespace(value=("80", "90"))
    package.spec = types.SimpleNamespace(satisfies=lambda what: what not in without, variants={"cuda_arch": arches})
    return space["Weft"], noted, dict(package.cmake_args())


def names(calls):
    return {re.split(r"[@+~% ]", args[0])[0] for args, _ in calls}


class Spack(unittest.TestCase):
    def test_it_asks_for_what_weft_is_built_from(self):
        _, noted, _ = load(set())
        built_from = []
        for line in (ROOT / "tools" / "packages.txt").read_text(encoding="utf-8").split("\n"):
            parts = [part.strip() for part in line.split("|")]
            if len(parts) > 1 and parts[1] == "build":
                self.assertEqual(len(parts), 6, f"{parts[0]} has no names for builds without root")
                built_from.append((parts[4],))
        libraries = names((call, {}) for call in built_from) - {"gcc", "ninja", "ccache"}  # come with Spack's compilers, or help alone
        self.assertEqual(libraries, names(noted["depends_on"]) - {"arrow", "c", "cxx", "cuda", "nccl", "cudnn", "googletest", "python"})

    def test_what_is_left_out_are_parts_of_the_build(self):
        parts = set(re.search(r"set\(optional_parts ([^)]*)\)", (ROOT / "cmake/parts.cmake").read_text(encoding="utf-8")).group(1).split())
        _, noted, arguments = load(set())
        self.assertEqual(arguments["WEFT_WITHOUT"], [])
        variants = {f"+{args[0]}" for args, _ in noted["variant"]}
        _, _, arguments = load(variants | {"+cuda"})
        self.assertLessEqual(set(arguments["WEFT_WITHOUT"]), parts)
        self.assertEqual(parts - set(arguments["WEFT_WITHOUT"]), {"cuBLASLt", "cuFFT", "cuSOLVER", "nvJPEG"})  # they come with CUDA
        self.assertFalse(arguments["WEFT_CUDA"])

    def test_gpus(self):
        _, _, arguments = load(set())
        self.assertEqual(arguments["WEFT_CUDA_ARCHITECTURES"], ["80-real", "90a-real"])

    def test_it_builds_this_repository(self):
        weft, _, _ = load(set())
        self.assertEqual(weft.git, f"file://{ROOT}")
        self.assertTrue((RECIPE.parents[2] / "repo.yaml").exists())


if __name__ == "__main__":
    unittest.main()
