// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/cudnn_library.h"

#include "kernels/engines/vendor_library.h"
#include "kernels/error.h"

namespace weft::kernels::vendor {

constexpr const char* kCudnnFile = "libcudnn.so.9";

CudnnLibrary load_cudnn(const std::string& obstacle) {
  VendorLibrary found(kCudnnFile, WEFT_CUDNN_FOLDER, "cuDNN 9", obstacle);
  CudnnLibrary library;
#define WEFT_CUDNN_FIND(name) found.find(library.name, "cudnn" #name);
  WEFT_CUDNN_FUNCTIONS(WEFT_CUDNN_FIND)
#undef WEFT_CUDNN_FIND
  library.missing = found.missing;
  return library;
}

void CudnnLibrary::check(cudnnStatus_t status, const std::string& function) const {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char text[1024] = "";
  GetLastErrorString(text, sizeof text);
  text[sizeof text - 1] = '\0';
  fail(function, ": ", GetErrorString(status), *text ? " (" : "", text, *text ? ")" : "");
}

const CudnnLibrary& cudnn_library() {
  static const CudnnLibrary library = load_cudnn(why_not_under_emulator(kCudnnFile));
  return library;
}

}  // namespace weft::kernels::vendor
