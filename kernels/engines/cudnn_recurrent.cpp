// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/cudnn_recurrent.h"

#include <cstdlib>
#include <limits>
#include <vector>

#include "kernels/contracts/copy.h"
#include "kernels/contracts/fill.h"
#include "kernels/engines/calls.h"

namespace weft::kernels::vendor {
namespace {

size_t padded(size_t bytes) { return (bytes + 255) / 256 * 256; }

View bytes_of(void* data, size_t count) { return View::dense(data, DType::u8, {static_cast<int64_t>(count)}); }

}  // namespace

std::string cudnn_refusal(const RecurrentCall& call) {
  if (!nondeterministic_engines_allowed() && !std::getenv("CUBLAS_WORKSPACE_CONFIG"))
    return "cuDNN's RNN gives the same bits in every run only where CUBLAS_WORKSPACE_CONFIG is set";
  if (call.x.numel() == 0 || call.h.numel() == 0) return "there is nothing to compute";
  for (const View* const view : {&call.x, &call.y, &call.weights[0], &call.weights[1]})
    if (view->numel() > std::numeric_limits<int32_t>::max()) return "cuDNN's RNN counts by 32 bits";
  return "";
}

CudnnRecurrentPlan::CudnnRecurrentPlan(const CudnnTarget& target, const RecurrentCall& call)
    : library_(target.library),
      handle_(target.handle),
      backward_(call.pass == Pass::backward),
      rnn_(make_descriptor(library_.CreateRNNDescriptor, library_.DestroyRNNDescriptor)),
      x_(make_descriptor(library_.CreateRNNDataDescriptor, library_.DestroyRNNDataDescriptor)),
      y_(make_descriptor(library_.CreateRNNDataDescriptor, library_.DestroyRNNDataDescriptor)),
      state_(make_descriptor(library_.CreateTensorDescriptor, library_.DestroyTensorDescriptor)),
      matrix_(make_descriptor(library_.CreateTensorDescriptor, library_.DestroyTensorDescriptor)),
      bias_(make_descriptor(library_.CreateTensorDescriptor, library_.DestroyTensorDescriptor)) {
  const auto size = [](int64_t n) { return static_cast<int>(n); };
  const int T = size(call.x.sizes[0]), B = size(call.x.sizes[1]), I = size(call.x.sizes[2]), H = size(call.h.sizes[1]);
  const DType dtype = call.x.dtype;
  const cudnnDataType_t type = dtype == DType::f64 ? CUDNN_DATA_DOUBLE : cudnn_data_type(dtype);
  const cudnnDataType_t sums = dtype == DType::f64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  const cudnnMathType_t math = dtype == DType::f32 && !may_use_tf32(dtype) ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH;
  library_.check(library_.SetRNNDescriptor_v8(
                     rnn_.get(), CUDNN_RNN_ALGO_STANDARD, call.is_lstm() ? CUDNN_LSTM : CUDNN_GRU,
                     call.weights[2] ? CUDNN_RNN_DOUBLE_BIAS : CUDNN_RNN_NO_BIAS, CUDNN_UNIDIRECTIONAL,
                     CUDNN_LINEAR_INPUT, type, sums, math, I, H, H, 1, nullptr, CUDNN_RNN_PADDED_IO_ENABLED),
                 "cudnnSetRNNDescriptor_v8");
  const std::vector<int> lengths(static_cast<size_t>(B), T);
  for (const auto& [descriptor, units] : {std::pair{x_.get(), I}, {y_.get(), H}})
    library_.check(library_.SetRNNDataDescriptor(descriptor, type, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, T, B,
                                                 units, lengths.data(), nullptr),
                   "cudnnSetRNNDataDescriptor");
  const int sizes[] = {1, B, H}, strides[] = {B * H, H, 1};
  library_.check(library_.SetTensorNdDescriptor(state_.get(), type, 3, sizes, strides), "cudnnSetTensorNdDescriptor");
  library_.check(library_.GetRNNWeightSpaceSize(handle_, rnn_.get(), &weight_bytes_), "cudnnGetRNNWeightSpaceSize");
  const bool training = call.pass != Pass::inference;
  library_.check(
      library_.GetRNNTempSpaceSizes(handle_, rnn_.get(), training ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE,
                                    x_.get(), &work_bytes_, training ? &reserve_bytes_ : nullptr),
      "cudnnGetRNNTempSpaceSizes");
}

int64_t CudnnRecurrentPlan::workspace(int) const {
  return static_cast<int64_t>(padded(weight_bytes_) * (backward_ ? 2 : 1) + work_bytes_);
}

/// Our four tensors as they lie in the library's buffer, whose matrices and biases are asked for gate by gate.
std::array<View, 4> CudnnRecurrentPlan::weights_in(void* buffer, const RecurrentCall& call) const {
  std::array<View, 4> views{};
  const int gates = call.is_lstm() ? 4 : 3;
  for (size_t side = 0; side < 2; ++side)
    for (int gate = 0; gate < gates; ++gate) {
      void *matrix = nullptr, *bias = nullptr;
      library_.check(library_.GetRNNWeightParams(handle_, rnn_.get(), 0, weight_bytes_, buffer,
                                                 static_cast<int>(side) * gates + gate, matrix_.get(), &matrix,
                                                 bias_.get(), &bias),
                     "cudnnGetRNNWeightParams");
      for (const auto& [i, address] : {std::pair{side, matrix}, {2 + side, bias}}) {
        const View& own = call.weights[i];
        if (!own) continue;
        const int64_t offset = gate * own.numel() / gates * static_cast<int64_t>(size_of(own.dtype));
        if (gate == 0) {
          views[i] = own;
          views[i].data = address;
        }
        WEFT_CHECK(address == static_cast<char*>(views[i].data) + offset, "gates of a weight do not follow each other");
      }
    }
  return views;
}

void CudnnRecurrentPlan::run(const RecurrentCall& call, int, void* workspace) const {
  char* const weights = static_cast<char*>(workspace);
  char* const gradients = weights + padded(weight_bytes_);
  char* const work = backward_ ? gradients + padded(weight_bytes_) : gradients;
  const std::array<View, 4> packed = weights_in(weights, call);
  for (size_t i = 0; i < packed.size(); ++i)
    if (packed[i]) copy(call.queue, packed[i], call.weights[i]);
  if (!backward_) {
    const bool training = call.pass == Pass::training;
    return library_.check(
        library_.RNNForward(handle_, rnn_.get(), training ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE, nullptr,
                            x_.get(), call.x.data, y_.get(), call.y.data, state_.get(), call.h.data, nullptr,
                            state_.get(), call.c.data, call.last_c.data, weight_bytes_, weights, work_bytes_, work,
                            reserve_bytes_, call.reserve.data),
        "cudnnRNNForward");
  }
  library_.check(library_.RNNBackwardData_v8(handle_, rnn_.get(), nullptr, y_.get(), call.y.data, call.dy.data,
                                             x_.get(), call.dx.data, state_.get(), call.h.data, nullptr, call.dh.data,
                                             state_.get(), call.c.data, call.dlast_c.data, call.dc.data, weight_bytes_,
                                             weights, work_bytes_, work, reserve_bytes_, call.reserve.data),
                 "cudnnRNNBackwardData_v8");
  fill(call.queue, bytes_of(gradients, weight_bytes_), 0);  // the library can only add
  library_.check(
      library_.RNNBackwardWeights_v8(handle_, rnn_.get(), CUDNN_WGRAD_MODE_ADD, nullptr, x_.get(), call.x.data,
                                     state_.get(), call.h.data, y_.get(), call.y.data, weight_bytes_, gradients,
                                     work_bytes_, work, reserve_bytes_, call.reserve.data),
      "cudnnRNNBackwardWeights_v8");
  const std::array<View, 4> made = weights_in(gradients, call);
  for (size_t i = 0; i < made.size(); ++i)
    if (made[i]) copy(call.queue, call.dweights[i], made[i]);
}

}  // namespace weft::kernels::vendor
