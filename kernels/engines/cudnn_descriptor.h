// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <initializer_list>
#include <vector>

#include "kernels/engines/cudnn_library.h"

namespace weft::kernels::vendor {

/// The attribute name of a type of the graph API.
template <class T>
inline constexpr auto kCudnnType = nullptr;  // not a type of the graph API: does not compile as an attribute
template <>
inline constexpr auto kCudnnType<int64_t> = CUDNN_TYPE_INT64;
template <>
inline constexpr auto kCudnnType<float> = CUDNN_TYPE_FLOAT;
template <>
inline constexpr auto kCudnnType<bool> = CUDNN_TYPE_BOOLEAN;
template <>
inline constexpr auto kCudnnType<void*> = CUDNN_TYPE_VOID_PTR;
template <>
inline constexpr auto kCudnnType<cudnnHandle_t> = CUDNN_TYPE_HANDLE;
template <>
inline constexpr auto kCudnnType<cudnnDataType_t> = CUDNN_TYPE_DATA_TYPE;
template <>
inline constexpr auto kCudnnType<cudnnConvolutionMode_t> = CUDNN_TYPE_CONVOLUTION_MODE;
template <>
inline constexpr auto kCudnnType<cudnnPointwiseMode_t> = CUDNN_TYPE_POINTWISE_MODE;
template <>
inline constexpr auto kCudnnType<cudnnReduceTensorOp_t> = CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;
template <>
inline constexpr auto kCudnnType<cudnnBackendHeurMode_t> = CUDNN_TYPE_HEUR_MODE;
template <>
inline constexpr auto kCudnnType<cudnnBackendNumericalNote_t> = CUDNN_TYPE_NUMERICAL_NOTE;

/// One object of cuDNN's graph API: attributes are set, then it is finalised. Errors name the function and the object.
class CudnnDescriptor {
 public:
  /// `name`: a string literal, for errors.
  CudnnDescriptor(const CudnnLibrary& library, cudnnBackendDescriptorType_t type, const char* name);
  ~CudnnDescriptor();
  CudnnDescriptor(CudnnDescriptor&& other) noexcept;
  CudnnDescriptor(const CudnnDescriptor&) = delete;
  CudnnDescriptor& operator=(const CudnnDescriptor&) = delete;

  template <class T>
  CudnnDescriptor& set(cudnnBackendAttributeName_t attribute, const T& value) {
    return set(attribute, kCudnnType<T>, 1, &value);
  }
  template <class T>
  CudnnDescriptor& set(cudnnBackendAttributeName_t attribute, const std::vector<T>& values) {
    return set(attribute, kCudnnType<T>, static_cast<int64_t>(values.size()), values.data());
  }
  CudnnDescriptor& set(cudnnBackendAttributeName_t attribute, std::initializer_list<const CudnnDescriptor*> others);
  CudnnDescriptor& set(cudnnBackendAttributeName_t attribute, const CudnnDescriptor& other) {
    return set(attribute, {&other});
  }
  CudnnDescriptor& set(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type, int64_t count,
                       const void* values);
  void finalize();

  template <class T>
  T get(cudnnBackendAttributeName_t attribute) const {
    T value{};
    get(attribute, kCudnnType<T>, 1, &value);
    return value;
  }
  /// Returns how many there are; `values` takes `most` of them.
  int64_t get(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type, int64_t most,
              void* values) const;

  cudnnBackendDescriptor_t raw() const { return descriptor_; }

 private:
  void check(cudnnStatus_t status, const char* function) const;

  const CudnnLibrary& library_;
  const char* name_;
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

}  // namespace weft::kernels::vendor
