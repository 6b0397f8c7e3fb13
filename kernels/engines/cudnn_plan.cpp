// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/cudnn_plan.h"

#include <algorithm>

#include "kernels/contracts/binary.h"

namespace weft::kernels::vendor {

CudnnPlan::CudnnPlan(const CudnnTarget& target, const Conv2dCall& call)
    : target_(target), engines_(target, call.x.dtype), adds_bias_(call.bias && call.direction == Direction::forward) {
  const auto find = [&] {
    graph_ = std::make_unique<CudnnGraph>(target_, call, adds_bias_);
    engines_.find(graph_->descriptor());
    return make(1) > 0;
  };
  if (adds_bias_) {
    try {
      if (find()) return;
    } catch (const Error&) {  // the graph itself is refused
    }
    adds_bias_ = false;
  }
  if (!find()) engines_.fail_without();
}

void CudnnPlan::run(const Conv2dCall& call, int variant, void* workspace) const {
  CudnnPointers pointers;
  pointers.add(CudnnGraph::kX, call.x.data);
  pointers.add(CudnnGraph::kW, call.w.data);
  pointers.add(CudnnGraph::kY, call.y.data);
  if (adds_bias_) pointers.add(CudnnGraph::kBias, call.bias.data);
  engines_.run(variant, pointers, workspace);
  if (!call.bias || adds_bias_) return;
  View bias = call.y;
  bias.data = call.bias.data;
  bias.dtype = call.bias.dtype;
  bias.strides = {0, 0, 0, 1};
  binary_forward(call.queue, Binary::add, call.y, call.y, bias, 1);
}

namespace {

/// cuDNN's order of dimensions over ours: {N, C, H, W} of a dense [N, H, W, C].
std::vector<int64_t> channels_second(const View& view) {
  return {view.sizes[0], view.sizes[3], view.sizes[1], view.sizes[2]};
}

/// Where the elements of {N, C, H, W} lie: C next to each other.
std::vector<int64_t> channels_last_strides(const std::vector<int64_t>& dims) {
  return {dims[1] * dims[2] * dims[3], 1, dims[3] * dims[1], dims[1]};
}

}  // namespace

CudnnDescriptor CudnnGraph::tensor(Id id, DType dtype, const std::vector<int64_t>& dims, int64_t alignment,
                                   bool is_virtual) const {
  CudnnDescriptor tensor(target_.library, CUDNN_BACKEND_TENSOR_DESCRIPTOR, "tensor");
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, cudnn_data_type(dtype))
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims)
      .set(CUDNN_ATTR_TENSOR_STRIDES, channels_last_strides(dims))
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, static_cast<int64_t>(id))
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment)
      .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_virtual);
  tensor.finalize();
  return tensor;
}

CudnnGraph::CudnnGraph(const CudnnTarget& target, const Conv2dCall& call, bool with_bias)
    : target_(target), graph_(target.library, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "graph") {
  const CudnnLibrary& library = target.library;
  const Conv2dArguments& arguments = call.arguments;
  auto x = tensor(kX, call.x.dtype, channels_second(call.x), alignment_of(call.x), false);
  auto w = tensor(kW, call.w.dtype, channels_second(call.w), alignment_of(call.w), false);
  const auto y_dims = channels_second(call.y);
  auto y = tensor(kY, call.y.dtype, y_dims, alignment_of(call.y), false);
  auto sums = tensor(kSums, DType::f32, y_dims, 16, true);  // the sums before the bias, never stored

  CudnnDescriptor convolution(library, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "convolution");
  const std::vector<int64_t> padding{arguments.padding.h, arguments.padding.w};
  convolution.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{2})
      .set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, padding)
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, padding)
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, std::vector<int64_t>{arguments.stride.h, arguments.stride.w})
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, std::vector<int64_t>{arguments.dilation.h, arguments.dilation.w});
  convolution.finalize();

  // The attributes of the three directions have the same meaning and different names.
  struct Names {
    cudnnBackendDescriptorType_t type;
    const char* name;
    cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
  };
  constexpr Names kNames[] = {
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, "forward convolution",
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, "convolution's input gradient",
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, "convolution's weight gradient",
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};
  const Names& names = kNames[static_cast<int>(call.direction)];
  CudnnDescriptor operation(library, names.type, names.name);
  operation.set(names.x, x)
      .set(names.w, w)
      .set(names.y, with_bias ? sums : y)
      .set(names.convolution, convolution)
      .set(names.alpha, 1.0f)
      .set(names.beta, 0.0f);
  operation.finalize();

  if (with_bias) {
    auto bias = tensor(kBias, call.bias.dtype, {1, y_dims[1], 1, 1}, alignment_of(call.bias), false);
    CudnnDescriptor add(library, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "pointwise function");
    add.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_ADD).set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
    add.finalize();
    CudnnDescriptor addition(library, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "addition");
    addition.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, add)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, sums)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, bias)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    addition.finalize();
    graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, {&operation, &addition});
    for (CudnnDescriptor* const part : {&bias, &add, &addition}) parts_.push_back(std::move(*part));
  } else {
    graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  }
  if (target.handle) graph_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, target.handle);
  graph_.finalize();
  for (CudnnDescriptor* const part : {&x, &w, &y, &sums, &convolution, &operation}) parts_.push_back(std::move(*part));
}

}  // namespace weft::kernels::vendor
