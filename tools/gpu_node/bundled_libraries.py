# SPDX-License-Identifier: Apache-2.0
"""The third-party libraries of a bundle: collected from Debian's packages into one prefix, include/ lib/ src/ licenses/.

No symbolic links and no folders per architecture, so that any CMake finds them through CMAKE_PREFIX_PATH and any way of
copying keeps them whole. Where a package's own CMake files name other folders, this writes its own.
"""
import pathlib
import platform
import re
import shutil
import subprocess

INCLUDE = pathlib.Path("/usr/include")
TRIPLET = f"{platform.machine()}-linux-gnu"  # Debian's; the node has this machine's architecture
LIBRARIES = pathlib.Path("/usr/lib") / TRIPLET
ARCHITECTURE_INCLUDE = INCLUDE / TRIPLET

HEADER_ONLY = """# SPDX-License-Identifier: Apache-2.0
# Written by tools/bundle: {package} as headers alone.
if(NOT TARGET {target})
  add_library({target} INTERFACE IMPORTED)
  set_target_properties({target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${{CMAKE_CURRENT_LIST_DIR}}/../../../include"
    INTERFACE_COMPILE_DEFINITIONS "{definitions}")
endif()
"""
VERSION = """# SPDX-License-Identifier: Apache-2.0
set(PACKAGE_VERSION {version})
if(NOT PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
"""
GOOGLETEST = """# SPDX-License-Identifier: Apache-2.0
# Written by tools/bundle: GoogleTest is built from its source, by the compiler that builds the tests.
if(NOT TARGET GTest::gtest)
  set(INSTALL_GTEST OFF CACHE INTERNAL "")
  set(CMAKE_WARN_DEPRECATED OFF)
  add_subdirectory("${CMAKE_CURRENT_LIST_DIR}/../../../src/googletest" googletest EXCLUDE_FROM_ALL)
endif()
"""


class Missing(Exception):
    """A Debian package that the bundle needs is not installed here."""


def version_of(package):
    done = subprocess.run(["dpkg-query", "-W", "-f=${db:Status-Status} ${Version}", package], capture_output=True, text=True)
    status, _, version = done.stdout.partition(" ")
    if done.returncode or status != "installed":
        raise Missing(f"expected the Debian package {package} on this machine. apt-get install {package}")
    return version


class Prefix:
    """The folder deps/ while it is filled."""

    def __init__(self, folder):
        self.folder = folder
        self.packages = {}

    def take(self, package):
        """Notes a package and copies its license."""
        if package not in self.packages:
            self.packages[package] = version_of(package)
            target = self.folder / "licenses" / package
            target.mkdir(parents=True)
            shutil.copyfile(f"/usr/share/doc/{package}/copyright", target / "copyright")
        return re.sub(r"^\d+:|[-+].*$", "", self.packages[package])

    def headers(self, package, *paths, base=INCLUDE):
        version = self.take(package)
        for path in paths:
            if (base / path).is_dir():
                shutil.copytree(base / path, self.folder / "include" / path)
            else:
                target = self.folder / "include" / path
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(base / path, target)
        return version

    def library(self, package, path, *names):
        """Copies a library, through its links, under each of the names; debug information is dropped."""
        self.take(package)
        (self.folder / "lib").mkdir(exist_ok=True)
        for name in names:
            shutil.copyfile(path, self.folder / "lib" / name)
            subprocess.run(["strip", "--strip-debug", str(self.folder / "lib" / name)], check=True)

    def finds_its_neighbours(self, *names):
        """Sets the runpath of shared libraries to their own folder: a program's runpath does not apply to their dependencies."""
        if shutil.which("patchelf") is None:
            raise Missing("expected the program patchelf on this machine. apt-get install patchelf")
        for name in names:
            subprocess.run(["patchelf", "--set-rpath", "$ORIGIN", str(self.folder / "lib" / name)], check=True)

    def header_only_config(self, name, target, version, definitions=""):
        folder = self.folder / "lib/cmake" / name
        folder.mkdir(parents=True)
        (folder / f"{name}Config.cmake").write_text(HEADER_ONLY.format(package=name, target=target, definitions=definitions))
        (folder / f"{name}ConfigVersion.cmake").write_text(VERSION.format(version=version))


def merge_static(out, archives):
    """Merges several static libraries into one, so that users link only that."""
    script = f"CREATE {out}\n" + "".join(f"ADDLIB {archive}\n" for archive in archives) + "SAVE\nEND\n"
    subprocess.run(["ar", "-M"], input=script, text=True, check=True)


def gather(folder):
    """Fills the folder; returns the packages taken, as (name, Debian version)."""
    prefix = Prefix(folder)

    version = prefix.headers("nlohmann-json3-dev", "nlohmann")
    prefix.header_only_config("nlohmann_json", "nlohmann_json::nlohmann_json", version)
    version = prefix.headers("libcli11-dev", "CLI")
    prefix.header_only_config("CLI11", "CLI11::CLI11", version)
    version = prefix.headers("libfmt-dev", "fmt")
    prefix.header_only_config("fmt", "fmt::fmt", version, "FMT_HEADER_ONLY=1")
    prefix.headers("libtomlplusplus-dev", "toml++")

    version = prefix.take("googletest")
    for part in ("googletest", "googlemock"):
        for piece in ("include", "src", "cmake", "CMakeLists.txt"):
            source, target = pathlib.Path("/usr/src/googletest") / part / piece, folder / "src/googletest" / part / piece
            if source.is_dir():
                shutil.copytree(source, target)
            elif source.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
    shutil.copyfile("/usr/src/googletest/CMakeLists.txt", folder / "src/googletest/CMakeLists.txt")
    config = folder / "lib/cmake/GTest"
    config.mkdir(parents=True)
    (config / "GTestConfig.cmake").write_text(GOOGLETEST)
    (config / "GTestConfigVersion.cmake").write_text(VERSION.format(version=version))

    # HDF5's C library with its two compression libraries; the shared one would need libcurl and its dependencies.
    serial = INCLUDE / "hdf5/serial"
    names = [path.name for path in serial.glob("*.h") if re.fullmatch(r"(hdf5|H5\w*|H5[A-Z]*public)\.h", path.name)]
    prefix.headers("libhdf5-dev", *sorted(names), base=serial)
    prefix.take("libaec-dev")
    merge_static(folder / "lib/libhdf5.a", [LIBRARIES / name for name in ("libhdf5_serial.a", "libsz.a", "libaec.a")])
    subprocess.run(["strip", "--strip-debug", str(folder / "lib/libhdf5.a")], check=True)

    prefix.headers("libjpeg62-turbo-dev", "jpeglib.h", "jmorecfg.h", "jerror.h")
    prefix.headers("libjpeg62-turbo-dev", "jconfig.h", base=ARCHITECTURE_INCLUDE)
    prefix.library("libjpeg62-turbo-dev", LIBRARIES / "libjpeg.a", "libjpeg.a")
    # libspng exists only as a shared library, and needs zlib's.
    prefix.headers("zlib1g-dev", "zlib.h", "zconf.h")
    prefix.library("zlib1g", LIBRARIES / "libz.so", "libz.so", "libz.so.1")
    prefix.headers("libspng-dev", "spng.h")
    prefix.library("libspng0", LIBRARIES / "libspng.so", "libspng.so", "libspng.so.0")

    # libzip, also only shared, needs two libraries that other distributions name differently or lack. Weft needs one of them, too.
    prefix.headers("libzip-dev", "zip.h", "zipconf.h")
    prefix.library("libzip4", LIBRARIES / "libzip.so.4", "libzip.so", "libzip.so.4")
    prefix.library("libbz2-1.0", LIBRARIES / "libbz2.so.1.0", "libbz2.so.1.0")
    prefix.library("libssl3", LIBRARIES / "libcrypto.so.3", "libcrypto.so", "libcrypto.so.3")
    prefix.finds_its_neighbours("libzip.so", "libzip.so.4")

    prefix.headers("libutf8proc-dev", "utf8proc.h")
    prefix.library("libutf8proc-dev", LIBRARIES / "libutf8proc.a", "libutf8proc.a")

    prefix.headers("libyaml-cpp-dev", "yaml-cpp")
    prefix.library("libyaml-cpp-dev", LIBRARIES / "libyaml-cpp.a", "libyaml-cpp.a")

    prefix.headers("libssl-dev", "openssl")
    for name in ("configuration.h", "opensslconf.h"):  # these depend on the architecture, and lie beside the others in a bundle
        prefix.headers("libssl-dev", f"openssl/{name}", base=ARCHITECTURE_INCLUDE)
    return sorted(prefix.packages.items())
