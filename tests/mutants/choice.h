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

/// The number of the mutant that this process runs, from WEFT_MUTANT; 0: none. tools/mutants puts this header in front of
/// a source and `(weft::mutants::chosen == 17 ? (wrong) : (right))` where a table names a site.
inline const int chosen = [] {
  const char* const text = std::getenv("WEFT_MUTANT");
  return text ? std::atoi(text) : 0;
}();

}  // namespace weft::mutants
