// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/cudnn_descriptor.h"

#include <utility>

namespace weft::kernels::vendor {

CudnnDescriptor::CudnnDescriptor(const CudnnLibrary& library, cudnnBackendDescriptorType_t type, const char* name)
    : library_(library), name_(name) {
  check(library_.BackendCreateDescriptor(type, &descriptor_), "CreateDescriptor");
}
CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor_) library_.BackendDestroyDescriptor(descriptor_);
}
CudnnDescriptor::CudnnDescriptor(CudnnDescriptor&& other) noexcept
    : library_(other.library_), name_(other.name_), descriptor_(std::exchange(other.descriptor_, nullptr)) {}

void CudnnDescriptor::check(cudnnStatus_t status, const char* function) const {
  if (status != CUDNN_STATUS_SUCCESS) library_.check(status, std::string("cudnnBackend") + function + " of a " + name_);
}

CudnnDescriptor& CudnnDescriptor::set(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type,
                                      int64_t count, const void* values) {
  check(library_.BackendSetAttribute(descriptor_, attribute, type, count, values), "SetAttribute");
  return *this;
}

CudnnDescriptor& CudnnDescriptor::set(cudnnBackendAttributeName_t attribute,
                                      std::initializer_list<const CudnnDescriptor*> others) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const CudnnDescriptor* const other : others) raw.push_back(other->descriptor_);
  return set(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(raw.size()), raw.data());
}

void CudnnDescriptor::finalize() { check(library_.BackendFinalize(descriptor_), "Finalize"); }

int64_t CudnnDescriptor::get(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type, int64_t most,
                             void* values) const {
  int64_t count = 0;
  check(library_.BackendGetAttribute(descriptor_, attribute, type, most, &count, values), "GetAttribute");
  return count;
}

}  // namespace weft::kernels::vendor
