// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cudnn_adv.h>
#include <cudnn_graph.h>

#include <string>

namespace weft::kernels::vendor {

/// The functions of cuDNN that Weft calls, found in libcudnn.so.9 when the first is needed: the graph API in plain C,
/// and the calls of recurrent layers, which that API has not.
struct CudnnLibrary {
#define WEFT_CUDNN_FUNCTIONS(X) \
  X(GetVersion)                 \
  X(GetErrorString)             \
  X(GetLastErrorString)         \
  X(Create)                     \
  X(SetStream)                  \
  X(BackendCreateDescriptor)    \
  X(BackendDestroyDescriptor)   \
  X(BackendSetAttribute)        \
  X(BackendGetAttribute)        \
  X(BackendFinalize)            \
  X(BackendExecute)             \
  X(CreateTensorDescriptor)     \
  X(DestroyTensorDescriptor)    \
  X(SetTensorNdDescriptor)      \
  X(CreateRNNDescriptor)        \
  X(DestroyRNNDescriptor)       \
  X(SetRNNDescriptor_v8)        \
  X(CreateRNNDataDescriptor)    \
  X(DestroyRNNDataDescriptor)   \
  X(SetRNNDataDescriptor)       \
  X(GetRNNWeightSpaceSize)      \
  X(GetRNNTempSpaceSizes)       \
  X(GetRNNWeightParams)         \
  X(RNNForward)                 \
  X(RNNBackwardData_v8) X(RNNBackwardWeights_v8)
#define WEFT_CUDNN_MEMBER(name) decltype(&cudnn##name) name = nullptr;
  WEFT_CUDNN_FUNCTIONS(WEFT_CUDNN_MEMBER)
#undef WEFT_CUDNN_MEMBER

  /// Why the library cannot be used, with the cure; empty where it can.
  std::string missing;

  /// Throws `function: status: cuDNN's message` unless the status is success.
  void check(cudnnStatus_t status, const std::string& function) const;
};

/// Loads it at the first call. Throws nothing: see CudnnLibrary::missing.
const CudnnLibrary& cudnn_library();
/// Loads it where `obstacle` is empty. Tests have none under weft-emulate: what they call needs no GPU.
CudnnLibrary load_cudnn(const std::string& obstacle);

}  // namespace weft::kernels::vendor
