// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/cudnn_operations.h"

#include <utility>

namespace weft::kernels::vendor {

CudnnLayout CudnnLayout::dense(std::vector<int64_t> dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t d = dims.size() - 1; d > 0; --d) strides[d - 1] = strides[d] * dims[d];
  return {std::move(dims), std::move(strides)};
}

CudnnLayout CudnnLayout::transposed() const {
  CudnnLayout other = *this;
  const size_t last = dims.size() - 1;
  std::swap(other.dims[last], other.dims[last - 1]);
  std::swap(other.strides[last], other.strides[last - 1]);
  return other;
}

CudnnDescriptor& CudnnOperations::part(cudnnBackendDescriptorType_t type, const char* name) {
  return parts_.emplace_back(target_.library, type, name);
}

void CudnnOperations::add(CudnnDescriptor& operation) {
  operation.finalize();
  operations_.push_back(operation.raw());
}

CudnnOperations::Tensor CudnnOperations::tensor(int64_t id, cudnnDataType_t type, const CudnnLayout& layout,
                                                bool is_virtual, bool by_value) {
  const bool wide = type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_INT32;
  CudnnDescriptor& made = part(CUDNN_BACKEND_TENSOR_DESCRIPTOR, "tensor");
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, layout.dims)
      .set(CUDNN_ATTR_TENSOR_STRIDES, layout.strides)
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t{wide && !is_virtual ? 4 : 16})
      .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_virtual);
  if (by_value) made.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
  made.finalize();
  return &made;
}

CudnnOperations::Tensor CudnnOperations::memory(int64_t id, cudnnDataType_t type, const CudnnLayout& layout) {
  return tensor(id, type, layout, false, false);
}
CudnnOperations::Tensor CudnnOperations::scalar(int64_t id, cudnnDataType_t type) {
  return tensor(id, type, CudnnLayout::dense({1, 1, 1, 1}), false, true);
}
CudnnOperations::Tensor CudnnOperations::between(const CudnnLayout& layout, cudnnDataType_t type) {
  return tensor(++last_id_, type, layout, true, false);
}

void CudnnOperations::matmul(Tensor a, Tensor b, Tensor result, const Lengths& lengths) {
  CudnnDescriptor& product = part(CUDNN_BACKEND_MATMUL_DESCRIPTOR, "product");
  product.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  product.finalize();
  CudnnDescriptor& operation = part(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "product's operation");
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, *a)
      .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, *b)
      .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, *result)
      .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, product);
  if (lengths.rows) operation.set(CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, *lengths.rows);
  if (lengths.columns) operation.set(CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, *lengths.columns);
  if (lengths.depth) operation.set(CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, *lengths.depth);
  add(operation);
}

void CudnnOperations::pointwise(cudnnPointwiseMode_t mode, Tensor result, Tensor x, Tensor b, Tensor t,
                                cudnnDataType_t type) {
  CudnnDescriptor& function = part(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "pointwise function");
  function.set(CUDNN_ATTR_POINTWISE_MODE, mode).set(CUDNN_ATTR_POINTWISE_MATH_PREC, type);
  function.finalize();
  CudnnDescriptor& operation = part(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "pointwise operation");
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, *x)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, *result);
  if (b) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
  if (t) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, *t);
  add(operation);
}

void CudnnOperations::index(Tensor result, Tensor like, int64_t dimension) {
  CudnnDescriptor& function = part(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "index");
  function.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_GEN_INDEX)
      .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_INT32)
      .set(CUDNN_ATTR_POINTWISE_AXIS, dimension);
  function.finalize();
  CudnnDescriptor& operation = part(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "index's operation");
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, *like)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, *result);
  add(operation);
}

void CudnnOperations::reduce(cudnnReduceTensorOp_t mode, Tensor result, Tensor x) {
  CudnnDescriptor& reduction = part(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, "reduction");
  reduction.set(CUDNN_ATTR_REDUCTION_OPERATOR, mode).set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  reduction.finalize();
  CudnnDescriptor& operation = part(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, "reduction's operation");
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, reduction)
      .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, *x)
      .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, *result);
  add(operation);
}

void CudnnOperations::reshape(Tensor result, Tensor x) {
  CudnnDescriptor& operation = part(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, "reshaping");
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, *x).set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, *result);
  add(operation);
}

const CudnnDescriptor& CudnnOperations::finish() {
  graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(operations_.size()),
             operations_.data());
  if (target_.handle) graph_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, target_.handle);
  graph_.finalize();
  return graph_;
}

}  // namespace weft::kernels::vendor
