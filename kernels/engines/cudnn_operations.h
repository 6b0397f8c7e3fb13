// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <deque>
#include <vector>

#include "kernels/engines/cudnn_engines.h"

namespace weft::kernels::vendor {

/// A tensor's layout.
struct CudnnLayout {
  std::vector<int64_t> dims, strides;

  /// Row-major.
  static CudnnLayout dense(std::vector<int64_t> dims);
  /// Swaps the last two dimensions: the same memory.
  CudnnLayout transposed() const;
};

/// An operation graph that grows: tensors and operations, and at the end the graph of them all. Everything between two
/// operations is computed in f32 unless something else is said.
class CudnnOperations {
 public:
  using Tensor = const CudnnDescriptor*;

  explicit CudnnOperations(const CudnnTarget& target)
      : target_(target), graph_(target.library, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "graph") {}
  CudnnOperations(const CudnnOperations&) = delete;
  CudnnOperations& operator=(const CudnnOperations&) = delete;

  /// Memory that a run names by `id`, on 16 bytes (f32 and i32: on 4).
  Tensor memory(int64_t id, cudnnDataType_t type, const CudnnLayout& layout);
  /// A number that a run gives, in the host's memory.
  Tensor scalar(int64_t id, cudnnDataType_t type = CUDNN_DATA_FLOAT);
  /// A tensor that exists only between two operations.
  Tensor between(const CudnnLayout& layout, cudnnDataType_t type = CUDNN_DATA_FLOAT);

  struct Lengths {  ///< i32 [batch, 1, 1, 1]: the valid rows, columns, depth of a product; null: all
    Tensor rows = nullptr, columns = nullptr, depth = nullptr;
  };
  void matmul(Tensor a, Tensor b, Tensor result, const Lengths& lengths);
  /// result = mode(x, b, t). `type`: in which it is computed.
  void pointwise(cudnnPointwiseMode_t mode, Tensor result, Tensor x, Tensor b = nullptr, Tensor t = nullptr,
                 cudnnDataType_t type = CUDNN_DATA_FLOAT);
  /// result = the index of each of its elements along a dimension; `like`: a tensor of its size.
  void index(Tensor result, Tensor like, int64_t dimension);
  void reduce(cudnnReduceTensorOp_t mode, Tensor result, Tensor x);
  void reshape(Tensor result, Tensor x);

  /// Nothing can be added any more. Errors: cuDNN's.
  const CudnnDescriptor& finish();

 private:
  Tensor tensor(int64_t id, cudnnDataType_t type, const CudnnLayout& layout, bool is_virtual, bool by_value);
  CudnnDescriptor& part(cudnnBackendDescriptorType_t type, const char* name);
  void add(CudnnDescriptor& operation);

  const CudnnTarget target_;
  std::deque<CudnnDescriptor> parts_;  ///< objects that the graph refers to
  std::vector<cudnnBackendDescriptor_t> operations_;
  int64_t last_id_ = 1000;  ///< counts unnamed tensors
  CudnnDescriptor graph_;
};

}  // namespace weft::kernels::vendor
