# SPDX-License-Identifier: Apache-2.0
# cmake -DIN=FILE.cu -DOUT=FILE.cpp -P launch_syntax.cmake: what a host compiler can read, for the device simt. It rewrites the two
# constructs of CUDA C++ that no header can define: `kernel<<<…>>>(…)` and `extern __shared__ T name[];`. Errors name lines of IN.
file(READ ${IN} text)
set(name "[A-Za-z_][A-Za-z0-9_:]*(<[^<>;{}]*(<[^<>;{}]*>[^<>;{}]*)*>)?")
string(REGEX REPLACE "(${name})[ \t\n]*<<<([^;]*)>>>[ \t\n]*\\(" "::emulator::source::api::chevrons(\\1, \\4)(" text "${text}")
string(REGEX REPLACE "extern[ \t\n]+__shared__[ \t\n]+(__align__\\([0-9]+\\)[ \t\n]+)?([A-Za-z_][A-Za-z0-9_:<>, ]*)[ \t\n]+([A-Za-z_][A-Za-z0-9_]*)\\[\\]"
       "\\2* const \\3 = static_cast<\\2*>(::emulator::source::dynamic_shared())" text "${text}")
file(WRITE ${OUT} "#include <cuda_runtime.h>\n#include <weft/emulator/source/chevrons.h>\n#line 1 \"${IN}\"\n${text}")
