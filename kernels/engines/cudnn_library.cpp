// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/cudnn_library.h"

#include "kernels/engines/under_emulator.h"
#include "kernels/error.h"
#include "kernels/shared_library.h"

namespace weft::kernels::vendor {
namespace {

CudnnLibrary load() {
  constexpr const char* kFile = "libcudnn.so.9";
  CudnnLibrary library;
  library.missing = why_not_under_emulator(kFile);
  if (!library.missing.empty()) return library;
  const SharedLibrary shared(kFile, WEFT_CUDNN_FOLDER);
  if (!shared.handle) {
    library.missing = str("cannot load ", kFile, " (", shared.error, "). Put its folder into LD_LIBRARY_PATH");
    return library;
  }
#define WEFT_CUDNN_LOAD(name)                                                                   \
  library.name = reinterpret_cast<decltype(library.name)>(dlsym(shared.handle, "cudnn" #name)); \
  if (!library.name && library.missing.empty()) library.missing = str(kFile, " has no cudnn" #name ". Take cuDNN 9");
  WEFT_CUDNN_FUNCTIONS(WEFT_CUDNN_LOAD)
#undef WEFT_CUDNN_LOAD
  return library;
}

}  // namespace

void CudnnLibrary::check(cudnnStatus_t status, const std::string& function) const {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char text[1024] = "";
  GetLastErrorString(text, sizeof text);
  text[sizeof text - 1] = '\0';
  fail(function, ": ", GetErrorString(status), *text ? " (" : "", text, *text ? ")" : "");
}

const CudnnLibrary& cudnn_library() {
  static const CudnnLibrary library = load();
  return library;
}

}  // namespace weft::kernels::vendor
