# SPDX-License-Identifier: Apache-2.0
"""runtime_inside.py LIBRARY: loaded under two names, its runtimes have a last error each; a library of CUDA's by a full path is the emulator's."""
import ctypes
import pathlib
import shutil
import sys
import tempfile

with tempfile.TemporaryDirectory() as folder:
    one = ctypes.CDLL(sys.argv[1])
    other = ctypes.CDLL(shutil.copy(sys.argv[1], pathlib.Path(folder) / "other.so"))
    assert one.use_wrong_device() and not other.ask_last_error()
    assert one.ask_last_error() and not one.ask_last_error()
    assert other.squares() == 10416
    assert hasattr(ctypes.CDLL(shutil.copy(sys.argv[1], pathlib.Path(folder) / "libcuda.so.1")), "cuInit")
