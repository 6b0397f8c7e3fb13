// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdlib>

// Wrong code may look wrong.
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wdangling-else"
#pragma GCC diagnostic ignored "-Wempty-body"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wunused-value"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wbool-compare"
#pragma GCC diagnostic ignored "-Wint-in-bool-context"
#pragma GCC diagnostic ignored "-Wmisleading-indentation"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Warray-bounds"
#pragma GCC diagnostic ignored "-Wstringop-overflow"

namespace weft::mutants {

/// The number of the mutant that this process runs, from WEFT_MUTANT; 0: none. weft-emulate gives a kernel the same number, in a register that
/// GPUs leave to their drivers. tools/mutants puts this header in front of a source and
/// `(weft::mutants::chosen() == 17 ? (wrong) : (right))` where a table names a site.
#ifdef __CUDACC__
__host__ __device__
#endif
inline int chosen() {
#ifdef __CUDA_ARCH__
  int number;
  asm("mov.b32 %0, %%envreg3;" : "=r"(number));
  return number;
#else
  static const int number = [] {
    const char* const text = std::getenv("WEFT_MUTANT");
    return text ? std::atoi(text) : 0;
  }();
  return number;
#endif
}

}  // namespace weft::mutants
