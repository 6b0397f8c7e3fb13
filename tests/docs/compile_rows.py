#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compile_rows.py ROOT COMPILER FLAG…: the column Weft of docs/from_pytorch.md compiles.

A name is declared in Weft's namespaces, in a type that its row names, or as a member of the types of OWNERS; the names of the first column
are, too, where the row says `the same`. Other code compiles with the variables of VARIABLES. `.name` follows the code before, `name()` its
object, and braces alone replace those in it. Code is compiled in several ways, and one must do. Prints the code that does not compile, and
exits 1.
"""
import itertools
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SCOPES = ["", "nn::", "optim::", "data::", "dist::", "train::", "autograd::", "distributions::"]
OWNERS = ["Tensor", "dist::ProcessGroup", "dist::FSDP", "distributions::Normal", "data::Table", "nn::Module"]
PROGRAMS = {"weft-run"}
# Each line: names, then what they may be.
VARIABLES = """
x y z t v w p q index source grid h | Tensor; ComplexTensor; std::vector<NamedTensor>
a b | Tensor; std::vector<NamedTensor>; std::shared_ptr<const data::FieldSeries>
mask m | Tensor
i j k n r c dim width heads size step count H W least | int64_t; Tensor
s | double; uint64_t; Tensor
replacement descending right upper | bool
before | int64_t; nn::Module::Before
after | int64_t; nn::Module::After
weights | Tensor; std::vector<double>
lengths indices output_rows input_rows | std::vector<int64_t>
in out | Tensor
params | optim::ParameterGroups
device | Device
group | dist::ProcessGroupPtr
set | std::shared_ptr<const data::FieldSeries>
model module | nn::Module&; std::shared_ptr<nn::Module>; nn::ModuleOf<Tensor>&; nn::VisionTransformer&
lstm | nn::LSTM&
cell | nn::RNNCell&; nn::LSTMCell&
sgd | optim::SGD&
schedule | optim::StepSchedule&
ddp | dist::DDP&
fsdp | dist::FSDP&
samples | int64_t
f | std::filesystem::path; std::function<Tensor(const Tensor&)>
table | data::Table&
train | data::ImageLoader&
make | std::function<std::shared_ptr<nn::Linear>()>; std::function<std::unique_ptr<optim::Optimizer>(const optim::ParameterGroups&)>
"""
TYPES = {name: types.strip().split("; ") for names, types in (line.split(" | ") for line in VARIABLES.strip().splitlines()) for name in names.split()}
NAME = re.compile(r"[A-Za-z_][\w:]*")


def codes(cell):
    return re.findall(r"`([^`]+)`", cell)


def continues(code, before):
    """Whether the code may be a member of the object of the code before."""
    return re.match(r"\w+\(", code) and re.match(r"\w+\.", before)


def ways(code, before, types_of_row):
    """The (declarations, statement) in which this code may be meant. `before`: the code before it in the row."""
    if NAME.fullmatch(code):
        yield from (("", f"using weft::{scope}{code};") for scope in SCOPES)
        yield from (("", f"struct Of : {owner} {{ using {owner}::{code}; }};") for owner in OWNERS)
        yield from (("", f"(void){owner}::{code};") for owner in types_of_row)
        if "::" in code:
            yield from (("", f"struct Of : {scope}{code.rsplit('::', 1)[0]} {{ using {scope}{code}; }};") for scope in SCOPES)
        return
    texts = [code]
    if code.startswith("."):
        texts = [re.sub(r"\.\w+$", "", before) + code]
    elif code.startswith("{") and "{" in before:
        texts.append(re.sub(r"\{.*\}", lambda _: code, before))
    elif continues(code, before):
        texts.append(re.match(r"\w+\.", before).group() + code)
    for text in texts:
        used = [name for name in dict.fromkeys(re.findall(r"(?<![\w.:>])[a-z_A-Z]\w*", text)) if name in TYPES]
        for types in itertools.product(*(TYPES[name] + (["="] if re.search(rf"\b{name}\(", text) else []) for name in used)):
            declared = " ".join(f"{type_} {name};" for type_, name in zip(types, used) if type_ != "=")
            for scope in SCOPES[:2] if re.match(r"[A-Z]", text) else SCOPES[:1]:
                yield from ((declared, statement) for statement in (f"{scope}{text};", f"(void)({scope}{text});", f"using It = {scope}{text};"))
            if text.startswith("{"):
                yield from ((declared, f"const {type_} it {text};") for type_ in ("Shape", "nn::LstmState", "std::vector<Tensor>"))


def spans(page):
    """(row, code, code before it, types that the row names)"""
    table = page.split("\n## ")[0]
    for number, line in enumerate(table.splitlines(), start=1):
        cells = line.strip("| \n").split(" | ")
        if not line.startswith("| ") or len(cells) != 2 or cells[0] in ("PyTorch", "---"):
            continue
        ours = codes(cells[1])
        types = dict.fromkeys(name.rstrip(":") for code in ours for name in re.findall(r"(?:\w+::)+(?=\w)", code))
        types = [scope + name for name in types for scope in ("", "nn::")]
        if "the same " in cells[1]:
            for code in codes(re.sub(r"`[\w.]+`:", "", cells[0])):  # `torch.fft`: what follows is of it
                name = re.match(r"[\w.]*", code).group().split(".")[-1]
                if name and name.lower() not in {other.lower() for other in ours}:
                    yield number, name, "", types
        before = ""
        for code in ours:
            if code in PROGRAMS or code in TYPES or not re.search(r"\w", code) or code.startswith("weft::") and NAME.fullmatch(code):
                continue
            yield number, code, before, types
            if not code.startswith((".", "{")) and not continues(code, before):
                before = code


def main(root, compiler):
    page = root / "docs/from_pytorch.md"
    found = list(spans(page.read_text(encoding="utf-8")))
    lines, owner = ["#include <iostream>", "#include <weft/weft.h>"], [None, None]
    for number, span in [*enumerate(found), (-1, (0, "Tensor", "", [])), (-2, (0, "no_such_name", "", []))]:
        for declared, statement in ways(*span[1:]):
            here = f"namespace t{len(lines)}"
            lines.append(f"{here} {{ using namespace weft; using Layer = nn::Linear; struct It {{ {declared} void run() {{ {statement} }} }}; }}")
            owner.append(number)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "rows.cpp"
        source.write_text("\n".join(lines) + "\n", encoding="utf-8")
        printed = subprocess.run([*compiler, "-std=c++20", "-fopenmp", "-fsyntax-only", "-w",
                                  f"-I{root}", f"-I{root}/include", str(source)], capture_output=True, text=True, check=False).stderr
    # An error within a header names the line that asked for it.
    wrong = {int(line) for line in re.findall(rf"{re.escape(str(source))}:(\d+):\d+: +(?:error|fatal error|required from|note: in instantiation)", printed)}
    good = {number for line, number in enumerate(owner, start=1) if number is not None and line not in wrong}
    if -1 not in good or -2 in good:
        print(f"expected a compiler that knows Weft's headers, got: {printed[-2000:]}")
        return 1
    faults = [f"docs/from_pytorch.md:{row}: `{code}` does not compile" for number, (row, code, _, _) in enumerate(found) if number not in good]
    print("\n".join(faults) or f"{len(found)} pieces of code compile")
    if faults and os.environ.get("WHY"):
        print(printed)
    return 1 if faults or len(found) < 300 else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
