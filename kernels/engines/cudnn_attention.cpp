// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/cudnn_attention.h"

#include <limits>

#include "kernels/cuda/attention_lengths.h"

namespace weft::kernels::vendor {
namespace {

/// One of the two functions of attention_lengths.h; simt: for tests, which have no GPU.
template <class Function, class... Arguments>
void on_device(Function* on_cuda, Function* on_simt, const Queue& queue, const Arguments&... arguments) {
  (queue.device.kind == DeviceKind::simt ? on_simt : on_cuda)(queue, arguments...);
}

int64_t padded(int64_t bytes) { return (bytes + 255) / 256 * 256; }

/// A graph's own memory besides the call's tensors, consecutive.
struct OwnMemory {
  int64_t lengths, delta, sums;  ///< bytes

  OwnMemory(const AttentionCall& call, bool ordered)
      : lengths(call.key_lengths ? padded(2 * call.q.sizes[0] * 4) : 0),
        delta(call.backward ? padded(call.lse.numel() * 4) : 0),
        sums(call.backward && !ordered ? padded(call.q.numel() * 4) : 0) {}
  int64_t bytes() const { return lengths + delta + sums; }
};

}  // namespace

std::string cudnn_refusal(const AttentionCall& call) {
  const View& q = call.q;
  if (q.dtype != DType::bf16 && q.dtype != DType::f16) return "cuDNN's attention computes bf16 and f16 alone";
  if (call.arguments.dropout > 0) return "cuDNN drops other weights than the contract's Philox numbers say";
  if (call.key_mask) return "cuDNN masks keys by a length, not one by one";
  if (q.sizes[3] % 8 != 0 || q.sizes[3] > 128) return "cuDNN's attention takes 8, 16, … 128 channels per head";
  if (q.numel() == 0 || call.k.numel() == 0) return "there is nothing to compute";
  if (call.backward && !(call.dq && call.dk)) return "cuDNN computes the gradients of q, k and v together";
  const View* const views[] = {&call.q, &call.k, &call.v, &call.y, &call.dy, &call.dq, &call.dk, &call.dv};
  for (const View* const view : views) {
    if (!*view) continue;
    bool fits = reinterpret_cast<uintptr_t>(view->data) % 16 == 0;
    for (int d = 0; d < 3; ++d)
      fits = fits && view->strides[d] > 0 && (view->sizes[d] == 1 || view->strides[d] % 8 == 0);
    if (!fits) return str("rows of ", *view, " do not begin at multiples of 16 bytes");
  }
  return "";
}

CudnnAttentionPlan::CudnnAttentionPlan(const CudnnTarget& target, const AttentionCall& call)
    : target_(target),
      engines_(target, call.q.dtype),
      ordered_(!nondeterministic_engines_allowed()),
      own_bytes_(OwnMemory(call, ordered_).bytes()),
      graph_(std::make_unique<CudnnAttentionGraph>(target_, call, ordered_)) {
  engines_.find(graph_->descriptor());
  if (make(1) == 0) engines_.fail_without();
}

void CudnnAttentionPlan::run(const AttentionCall& call, int variant, void* workspace) const {
  const OwnMemory own(call, ordered_);
  auto* const lengths = static_cast<int32_t*>(workspace);
  char* const delta = static_cast<char*>(workspace) + own.lengths;
  char* const sums = delta + own.delta;
  const float scale = static_cast<float>(call.arguments.scale), masked = -std::numeric_limits<float>::infinity(),
              one = 1;
  using Graph = CudnnAttentionGraph;
  CudnnPointers pointers;
  pointers.add(Graph::kQ, call.q.data);
  pointers.add(Graph::kK, call.k.data);
  pointers.add(Graph::kV, call.v.data);
  pointers.add(Graph::kY, call.y.data);
  pointers.add(Graph::kLse, call.lse.data);
  pointers.add(Graph::kScale, &scale);
  if (call.arguments.causal || call.key_lengths) pointers.add(Graph::kMasked, &masked);
  if (call.key_lengths) {
    pointers.add(Graph::kQueries, lengths);
    pointers.add(Graph::kKeys, lengths + call.q.sizes[0]);
    on_device(&cuda::attention_lengths, &simt::attention_lengths, call.queue, lengths, call.key_lengths,
              call.q.sizes[1], call.k.sizes[1]);
  }
  if (call.backward) {
    pointers.add(Graph::kDy, call.dy.data);
    pointers.add(Graph::kDq, call.dq.data);
    pointers.add(Graph::kDk, call.dk.data);
    pointers.add(Graph::kDv, call.dv.data);
    pointers.add(Graph::kOne, &one);
    pointers.add(Graph::kDelta, delta);
    if (!ordered_) pointers.add(Graph::kSums, sums);
  }
  engines_.run(variant, pointers, static_cast<char*>(workspace) + own.bytes());
  if (!call.key_lengths) return;
  if (call.backward)
    on_device(&cuda::attention_clear_gradients, &simt::attention_clear_gradients, call.queue, call.dq, call.dk, call.dv,
              call.key_lengths);
  else
    on_device(&cuda::attention_clear_results, &simt::attention_clear_results, call.queue, call.y, call.lse,
              call.key_lengths);
}

}  // namespace weft::kernels::vendor
