// SPDX-License-Identifier: Apache-2.0
#include "dist/group/nccl_library.h"

#include <dlfcn.h>

#include "kernels/engines/vendor_library.h"
#include "kernels/error.h"

namespace weft::dist {
namespace {

constexpr int kOldest = 21800;

NcclLibrary load() {
  kernels::vendor::VendorLibrary found("libnccl.so.2", WEFT_NCCL_FOLDER, "NCCL 2.18 or later", "");
  NcclLibrary functions;
#define WEFT_NCCL_FIND(name) found.find(functions.name, "nccl" #name);
  WEFT_NCCL_FUNCTIONS(WEFT_NCCL_FIND)
#undef WEFT_NCCL_FIND
  WEFT_CHECK(found.missing.empty(), "process group nccl: ", found.missing);
  functions.CommInitRankScalable =
      reinterpret_cast<NcclLibrary::InitScalable>(dlsym(found.handle, "ncclCommInitRankScalable"));
  int version = 0;
  functions.GetVersion(&version);
  WEFT_CHECK(version >= kOldest, "process group nccl: expected NCCL 2.18 or later, got version code ", version);
  return functions;
}

}  // namespace

const NcclLibrary& nccl() {
  static const NcclLibrary library = load();
  return library;
}

std::string nccl_version() {
  int code = 0;
  nccl().GetVersion(&code);
  return str(code / 10000, '.', code / 100 % 100, '.', code % 100);
}

}  // namespace weft::dist
