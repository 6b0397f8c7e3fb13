// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/cublaslt_library.h"

#include "kernels/engines/vendor_library.h"
#include "kernels/error.h"

namespace weft::kernels::vendor {
namespace {

CublasLtLibrary load() {
  const std::string file = str("libcublasLt.so.", CUBLAS_VER_MAJOR);  // another major version has another ABI
  VendorLibrary found(file, WEFT_CUBLASLT_FOLDER, "that of the CUDA toolkit", why_not_under_emulator(file));
  CublasLtLibrary library;
#define WEFT_CUBLASLT_FIND(name) found.find(library.name, "cublasLt" #name);
  WEFT_CUBLASLT_FUNCTIONS(WEFT_CUBLASLT_FIND)
#undef WEFT_CUBLASLT_FIND
  library.missing = found.missing;
  return library;
}

}  // namespace

const CublasLtLibrary& cublaslt_library() {
  static const CublasLtLibrary library = load();
  return library;
}

}  // namespace weft::kernels::vendor
