// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <mutex>
#include <string>
#include <string_view>

#include "emulator/cuda/driver/call.h"
#include "emulator/machine/findings.h"

using namespace emulator;
using namespace emulator::cuda;

namespace {

/// Calls whose form has changed: the symbol that a name means from each version of CUDA on. Sources: cuda.h's
/// renaming macros, and cudaTypedefs.h for the versions.
struct Form {
  std::string_view name;
  int since;
  const char* symbol;
};
constexpr Form kForms[] = {
#include "emulator/cuda/driver/forms.inc"
};

void* own(const std::string& symbol) {
  static void* const library = [] {
    Dl_info self{};
    dladdr(reinterpret_cast<void*>(&own), &self);
    return dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  return dlsym(library, symbol.c_str());
}

}  // namespace

// Refused calls have an address, too: calling it reports the refusal.
CUresult cuGetProcAddress(const char* name, void** function, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult* status) {
  if (!name || !function) return CUDA_ERROR_INVALID_VALUE;
  *function = nullptr;
  std::string symbol = name;
  int best = -1;
  bool later = false;
  for (const Form& form : kForms) {
    if (form.name != name) continue;
    if (form.since > version) {
      later = true;
    } else if (form.since > best) {
      best = form.since;
      symbol = form.symbol;
    }
  }
  if (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) {
    *function = own(symbol + "_ptsz");
    if (!*function) *function = own(symbol + "_ptds");
  }
  if (!*function && !(later && best < 0)) *function = own(symbol);
  if (status) {
    *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS
              : later   ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                        : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
#undef cuGetProcAddress
WEFT_EXPORT CUresult cuGetProcAddress(const char* name, void** function, int version, cuuint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}

/// NVIDIA's libraries ask for undocumented tables and do without missing ones. A runtime inside a program does not.
WEFT_EXPORT CUresult cuGetExportTable(const void** table, const CUuuid* id) {
  if (!table || !id) return CUDA_ERROR_INVALID_VALUE;
  *table = nullptr;
  constexpr unsigned char kRuntimes[16] = {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a,
                                           0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9};
  if (std::memcmp(id->bytes, kRuntimes, sizeof(kRuntimes)) != 0) return CUDA_ERROR_NOT_FOUND;
  static std::once_flag told;
  std::call_once(told, [caller = __builtin_return_address(0)] {
    Dl_info place{};
    link_map* object = nullptr;
    dladdr1(caller, &place, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP);
    report(cat(place.dli_fname ? place.dli_fname : "the program",
               " has CUDA's runtime inside, which no auditor has led to the emulator's: start it by weft-emulate, unstripped, or "
               "link the shared runtime (nvcc -cudart shared)"));
    // Whoever opened a library hears of the error by its calls, and may do without, as Weft does without cuDNN's engines.
    if (!object || object->l_name[0] == '\0') count_fault();
  });
  return CUDA_ERROR_NOT_SUPPORTED;
}
