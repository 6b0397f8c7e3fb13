# SPDX-License-Identifier: Apache-2.0
"""Cells of CUDA in Jupyter and IPython:

    import sys; sys.path.insert(0, "/path/to/weft/tools")
    %load_ext lab.notebook

    %%cuda [run|profile] [weft-lab's options]
    …a whole program…

`profile`, the default, prints what each source line costs, and races; `run` prints the program's output alone."""
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

LAB = Path(__file__).resolve().parent.parent / "weft-lab"


def cuda(line, cell):
    """Compiles and runs a cell on the emulated GPU, by tools/weft-lab."""
    words = shlex.split(line)
    command = words.pop(0) if words and words[0] in ("run", "profile") else "profile"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cell.cu"
        file.write_text(cell, encoding="utf-8")
        done = subprocess.run([sys.executable, str(LAB), command, *(["--text"] if command == "profile" else []), *words, str(file)],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
        print((done.stdout + done.stderr).replace(str(file), file.name), end="")


def load_ipython_extension(ipython):
    ipython.register_magic_function(cuda, "cell", "cuda")
