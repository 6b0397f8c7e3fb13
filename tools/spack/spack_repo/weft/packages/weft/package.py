# SPDX-License-Identifier: Apache-2.0
"""Weft for Spack 1.x: spack repo add tools/spack/spack_repo/weft && spack install weft +cuda cuda_arch=80"""
from pathlib import Path

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *

CHECKOUT = Path(__file__).resolve().parents[6]


class Weft(CMakePackage, CudaPackage):
    """A deep-learning framework in C++20 and CUDA with data parallelism built in, and its training programs."""

    # The recipe is part of the repository that it builds.
    git = f"file://{CHECKOUT}"

    license("Apache-2.0")

    version("main", branch="main")

    variant("onednn", default=True, description="Fast convolution on the CPU")
    variant("fft", default=True, description="Fourier transforms")
    variant("lapack", default=True, description="Linear algebra")
    variant("hdf5", default=True, description="Images in HDF5")
    variant("parquet", default=False, description="Tables in Parquet")
    variant("images", default=True, description="JPEG, PNG and .gz data sets")
    variant("weights", default=True, description="PyTorch's weight files")
    variant("text", default=True, description="Words of any script, for BERT")
    variant("yaml", default=True, description="Configurations in YAML")
    variant("tcp", default=True, description="Rendezvous and process groups over TCP")
    variant("mpi", default=True, description="Process groups over MPI")
    variant("nccl", default=True, when="+cuda", description="Process groups between GPUs")
    variant("cudnn", default=True, when="+cuda", description="cuDNN's convolutions as an alternative")
    variant("emulator", default=True, when="+cuda", description="weft-emulate: CUDA programs without a GPU")
    variant("tests", default=False, description="Build the tests")

    generator("ninja")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("fmt")
    depends_on("nlohmann-json")
    depends_on("cli11")
    depends_on("tomlplusplus")
    depends_on("onednn", when="+onednn")
    depends_on("kissfft", when="+fft")
    depends_on("netlib-lapack", when="+lapack")
    depends_on("hdf5~mpi+hl", when="+hdf5")
    depends_on("arrow+parquet", when="+parquet")
    with when("+images"):
        depends_on("libjpeg-turbo")
        depends_on("libspng")
        depends_on("leptonica")
        depends_on("zlib-api")
    depends_on("libzip", when="+weights")
    depends_on("utf8proc", when="+text")
    depends_on("yaml-cpp", when="+yaml")
    with when("+tcp"):
        depends_on("openssl@3:")
        depends_on("gloo")
    depends_on("openmpi", when="+mpi")
    depends_on("cuda@12:", when="+cuda")
    depends_on("nccl@2.18:", when="+nccl")
    depends_on("cudnn@9:", when="+cudnn")
    depends_on("zstd", when="+emulator")
    depends_on("googletest+gmock", when="+tests")
    depends_on("python@3.9:", type="test", when="+tests")

    conflicts("%gcc@:11", msg="Weft needs C++20 as g++ 12 has it")
    conflicts("cuda_arch=none", when="+cuda", msg="name the GPUs: cuda_arch=80, 90")

    def cmake_args(self):
        without = {
            "oneDNN": "+onednn",
            "kissfft": "+fft",
            "LAPACKE": "+lapack",
            "HDF5": "+hdf5",
            "Parquet": "+parquet",
            "libjpeg-turbo": "+images",
            "libspng": "+images",
            "Leptonica": "+images",
            "zlib": "+images",
            "libzip": "+weights",
            "utf8proc": "+text",
            "yaml-cpp": "+yaml",
            "libcrypto": "+tcp",
            "Gloo": "+tcp",
            "MPI": "+mpi",
            "NCCL": "+nccl",
            "cuDNN": "+cudnn",
            "libzstd": "+emulator",
        }
        args = [
            self.define_from_variant("WEFT_CUDA", "cuda"),
            self.define_from_variant("WEFT_BUILD_TESTS", "tests"),
            self.define("WEFT_BUILD_BENCHMARKS", False),
            self.define("WEFT_WITHOUT", [part for part, variant in without.items() if not self.spec.satisfies(variant)]),
        ]
        if self.spec.satisfies("+cuda"):
            # sm_90a is the architecture with wgmma and TMA.
            named = {"90": "90a"}
            arches = [named.get(arch, arch) + "-real" for arch in self.spec.variants["cuda_arch"].value]
            args.append(self.define("WEFT_CUDA_ARCHITECTURES", arches))
        return args
