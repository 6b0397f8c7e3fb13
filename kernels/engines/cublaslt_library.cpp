// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/cublaslt_library.h"

#include "kernels/engines/under_emulator.h"
#include "kernels/error.h"
#include "kernels/shared_library.h"

namespace weft::kernels::vendor {
namespace {

CublasLtLibrary load() {
  const std::string file = str("libcublasLt.so.", CUBLAS_VER_MAJOR);  // another major version has another ABI
  CublasLtLibrary library;
  library.missing = why_not_under_emulator(file);
  if (!library.missing.empty()) return library;
  const SharedLibrary shared(file, WEFT_CUBLASLT_FOLDER);
  if (!shared.handle) {
    library.missing = str("cannot load ", file, " (", shared.error, "). Put its folder into LD_LIBRARY_PATH");
    return library;
  }
#define WEFT_CUBLASLT_LOAD(name)                                                                   \
  library.name = reinterpret_cast<decltype(library.name)>(dlsym(shared.handle, "cublasLt" #name)); \
  if (!library.name && library.missing.empty())                                                    \
    library.missing = str(file, " has no cublasLt" #name, ". Take that of the CUDA toolkit");
  WEFT_CUBLASLT_FUNCTIONS(WEFT_CUBLASLT_LOAD)
#undef WEFT_CUBLASLT_LOAD
  return library;
}

}  // namespace

const CublasLtLibrary& cublaslt_library() {
  static const CublasLtLibrary library = load();
  return library;
}

}  // namespace weft::kernels::vendor
