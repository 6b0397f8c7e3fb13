// SPDX-License-Identifier: Apache-2.0
#include "dist/group/nccl_library.h"

#include <dlfcn.h>

#include "kernels/error.h"
#include "kernels/shared_library.h"

namespace weft::dist {
namespace {

constexpr int kOldest = 21800;

NcclLibrary load() {
  const kernels::SharedLibrary shared("libnccl.so.2", WEFT_NCCL_FOLDER);
  WEFT_CHECK(shared.handle, "process group nccl: cannot load libnccl.so.2 (", shared.error,
             "). Put its folder into LD_LIBRARY_PATH");
  NcclLibrary functions;
#define WEFT_NCCL_LOAD(name)                                                                       \
  functions.name = reinterpret_cast<decltype(functions.name)>(dlsym(shared.handle, "nccl" #name)); \
  WEFT_CHECK(functions.name, "process group nccl: libnccl.so.2 has no nccl" #name ". Take NCCL 2.18 or later");
  WEFT_NCCL_FUNCTIONS(WEFT_NCCL_LOAD)
#undef WEFT_NCCL_LOAD
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

}  // namespace weft::dist
