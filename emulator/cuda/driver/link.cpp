// SPDX-License-Identifier: Apache-2.0
// The linker of the driver, for PTX: its output is PTX again, in one text.
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>

#include "emulator/cuda/driver/call.h"
#include "emulator/ptx/parse/ast.h"

using namespace emulator;
using namespace emulator::cuda;

namespace {

struct Link {
  std::string text;
  int files = 0;  ///< number of inputs so far, as `.file` numbers them
  /// The caller's, or nullptr.
  char* errors = nullptr;
  size_t error_bytes = 0;
};

Link& link_of(CUlinkState state) {
  require(state != nullptr, cudaErrorInvalidResourceHandle);
  return *reinterpret_cast<Link*>(state);
}

void add(Link& link, CUjitInputType type, const void* data, size_t bytes, const char* name) {
  require(data != nullptr && bytes > 0);
  if (type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_FATBINARY)
    fail(cudaErrorNotSupported, cat("cuLinkAddData: an input that is neither PTX nor a fat binary: only PTX can be linked"));
  std::string ptx;
  if (type == CU_JIT_INPUT_PTX) {
    ptx.assign(static_cast<const char*>(data), bytes);
    ptx.resize(std::strlen(ptx.c_str()));
  } else {
    ptx = read_image(data, bytes).ptx_for(Device::get(current_device()).gpu().capability());
    require(!ptx.empty(), cudaErrorNoKernelImageForDevice);
  }
  const int before = link.files;
  std::string text = link.text + renumbered(ptx, before, link.files) + '\n';
  try {
    ptx::parse_module(text);
  } catch (const Fault& fault) {
    const std::string said = cat(name ? name : "PTX", ": ", fault.what());
    if (link.errors && link.error_bytes > 0) link.errors[said.copy(link.errors, link.error_bytes - 1)] = 0;
    fail(cudaErrorInvalidPtx, cat("cuLinkAddData: ", said));
  }
  link.text = std::move(text);
}

}  // namespace

CUresult cuLinkCreate(unsigned count, CUjit_option* options, void** values, CUlinkState* state) {
  return call([&] {
    require(state != nullptr && (count == 0 || (options && values)));
    current_device();
    auto* const link = new Link;
    char* notes = nullptr;
    for (unsigned i = 0; i < count; ++i) {
      if (options[i] == CU_JIT_INFO_LOG_BUFFER) notes = static_cast<char*>(values[i]);
      if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES && notes && values[i]) *notes = 0;
      if (options[i] == CU_JIT_ERROR_LOG_BUFFER) link->errors = static_cast<char*>(values[i]);
      if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) link->error_bytes = reinterpret_cast<uintptr_t>(values[i]);
      if (options[i] == CU_JIT_WALL_TIME && values[i]) *static_cast<float*>(values[i]) = 0;
    }
    if (link->errors && link->error_bytes > 0) *link->errors = 0;
    *state = reinterpret_cast<CUlinkState>(link);
  });
}
CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t bytes, const char* name, unsigned,
                       CUjit_option*, void**) {
  return call([&] { add(link_of(state), type, data, bytes, name); });
}
CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned, CUjit_option*, void**) {
  return call([&] {
    std::ifstream file(path ? path : "", std::ios::binary);
    require(bool(file), cudaErrorFileNotFound);
    const std::string data(std::istreambuf_iterator<char>(file), {});
    add(link_of(state), type, data.c_str(), data.size() + 1, path);
  });
}
CUresult cuLinkComplete(CUlinkState state, void** image, size_t* bytes) {
  return call([&] {
    Link& link = link_of(state);
    require(!link.text.empty() && image != nullptr);
    *image = link.text.data();
    if (bytes) *bytes = link.text.size() + 1;
  });
}
CUresult cuLinkDestroy(CUlinkState state) {
  return call([&] { delete &link_of(state); });
}

#undef cuLinkCreate
#undef cuLinkAddData
#undef cuLinkAddFile
WEFT_EXPORT CUresult cuLinkCreate(unsigned count, CUjit_option* options, void** values, CUlinkState* state) {
  return cuLinkCreate_v2(count, options, values, state);
}
WEFT_EXPORT CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t bytes, const char* name,
                                   unsigned count, CUjit_option* options, void** values) {
  return cuLinkAddData_v2(state, type, data, bytes, name, count, options, values);
}
WEFT_EXPORT CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned count,
                                   CUjit_option* options, void** values) {
  return cuLinkAddFile_v2(state, type, path, count, options, values);
}
