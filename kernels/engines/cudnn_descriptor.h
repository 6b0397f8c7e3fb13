// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <initializer_list>
#include <vector>

#include "kernels/engines/cudnn_library.h"

namespace weft::kernels::vendor {

/// What a type of the graph API is called in an attribute.
template <class T>
struct CudnnType;
template <>
struct CudnnType<int64_t> {
  static constexpr auto type = CUDNN_TYPE_INT64;
};
template <>
struct CudnnType<float> {
  static constexpr auto type = CUDNN_TYPE_FLOAT;
};
template <>
struct CudnnType<bool> {
  static constexpr auto type = CUDNN_TYPE_BOOLEAN;
};
template <>
struct CudnnType<void*> {
  static constexpr auto type = CUDNN_TYPE_VOID_PTR;
};
template <>
struct CudnnType<cudnnHandle_t> {
  static constexpr auto type = CUDNN_TYPE_HANDLE;
};
template <>
struct CudnnType<cudnnDataType_t> {
  static constexpr auto type = CUDNN_TYPE_DATA_TYPE;
};
template <>
struct CudnnType<cudnnConvolutionMode_t> {
  static constexpr auto type = CUDNN_TYPE_CONVOLUTION_MODE;
};
template <>
struct CudnnType<cudnnPointwiseMode_t> {
  static constexpr auto type = CUDNN_TYPE_POINTWISE_MODE;
};
template <>
struct CudnnType<cudnnReduceTensorOp_t> {
  static constexpr auto type = CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;
};
template <>
struct CudnnType<cudnnBackendHeurMode_t> {
  static constexpr auto type = CUDNN_TYPE_HEUR_MODE;
};
template <>
struct CudnnType<cudnnBackendNumericalNote_t> {
  static constexpr auto type = CUDNN_TYPE_NUMERICAL_NOTE;
};

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
    return set(attribute, CudnnType<T>::type, 1, &value);
  }
  template <class T>
  CudnnDescriptor& set(cudnnBackendAttributeName_t attribute, const std::vector<T>& values) {
    return set(attribute, CudnnType<T>::type, static_cast<int64_t>(values.size()), values.data());
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
    get(attribute, CudnnType<T>::type, 1, &value);
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
