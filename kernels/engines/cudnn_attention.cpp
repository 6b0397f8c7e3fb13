// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/cudnn_attention.h"

#include <limits>

#include "kernels/cuda/attention/attention_lengths.h"

namespace weft::kernels::vendor {
namespace {

int64_t padded(int64_t bytes) { return (bytes + 255) / 256 * 256; }

/// A graph's own memory, consecutive, without the call's tensors.
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
  if (call.arguments.window > 0) return "our graph for cuDNN has no window";
  if (call.k.sizes[2] != q.sizes[2]) return "our graph for cuDNN has a head of keys for each head of queries";
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
    cuda::attention_lengths(call.queue, lengths, call.key_lengths, call.q.sizes[1], call.k.sizes[1]);
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
    cuda::attention_clear_gradients(call.queue, call.dq, call.dk, call.dv, call.key_lengths);
  else
    cuda::attention_clear_results(call.queue, call.y, call.lse, call.key_lengths);
}

namespace {

using Tensor = CudnnOperations::Tensor;

/// cuDNN's order {B, H, N, D} over our [B, N, H, D], as it lies.
CudnnLayout heads_second(const View& view) {
  return {{view.sizes[0], view.sizes[2], view.sizes[1], view.sizes[3]},
          {view.strides[0], view.strides[2], view.strides[1], 1}};
}

}  // namespace

/// The scores, with which both directions begin.
struct CudnnAttentionGraph::Builder {
  CudnnOperations& to;
  const AttentionCall& call;
  const cudnnDataType_t type = cudnn_data_type(call.q.dtype);
  const int64_t B = call.q.sizes[0], N = call.q.sizes[1], M = call.k.sizes[1], H = call.q.sizes[2];
  const CudnnLayout weights = CudnnLayout::dense({B, H, N, M}), rows = CudnnLayout::dense({B, H, N, 1});
  const Tensor q = view(kQ, call.q), scale = to.scalar(kScale);
  const Tensor masked = call.arguments.causal || call.key_lengths ? to.scalar(kMasked) : nullptr;
  const Tensor queries = lengths(kQueries), keys = lengths(kKeys);

  Tensor view(Id id, const View& one) { return to.memory(id, type, heads_second(one)); }
  Tensor transposed(Id id, const View& one) { return to.memory(id, type, heads_second(one).transposed()); }
  Tensor lengths(Id id) {
    return call.key_lengths ? to.memory(id, CUDNN_DATA_INT32, CudnnLayout::dense({B, 1, 1, 1})) : nullptr;
  }

  Tensor combine(cudnnPointwiseMode_t mode, const CudnnLayout& layout, Tensor x, Tensor b = nullptr) {
    const Tensor result = to.between(layout);
    to.pointwise(mode, result, x, b);
    return result;
  }
  Tensor test(cudnnPointwiseMode_t mode, Tensor x, Tensor b) {
    const Tensor result = to.between(weights, CUDNN_DATA_BOOLEAN);
    to.pointwise(mode, result, x, b, nullptr, CUDNN_DATA_BOOLEAN);
    return result;
  }
  Tensor index(Tensor like, int64_t dimension) {
    const Tensor result = to.between(weights, CUDNN_DATA_INT32);
    to.index(result, like, dimension);
    return result;
  }
  /// s where `seen`, else -infinity.
  Tensor select(Tensor s, Tensor seen) {
    const Tensor result = to.between(weights);
    to.pointwise(CUDNN_POINTWISE_BINARY_SELECT, result, s, masked, seen);
    return result;
  }

  Tensor scores(Tensor k_transposed) {
    const Tensor s = to.between(weights);
    to.matmul(q, k_transposed, s, {queries, keys, nullptr});
    return combine(CUDNN_POINTWISE_MUL, weights, s, scale);
  }
  Tensor without_padding(Tensor s) {
    if (!call.key_lengths) return s;
    const Tensor row = test(CUDNN_POINTWISE_CMP_LT, index(s, 2), queries);
    const Tensor column = test(CUDNN_POINTWISE_CMP_LT, index(s, 3), keys);
    return select(s, test(CUDNN_POINTWISE_LOGICAL_AND, row, column));
  }
  Tensor without_later_keys(Tensor s) {
    if (!call.arguments.causal) return s;
    const Tensor row = index(s, 2), column = index(s, 3);
    return select(s, test(CUDNN_POINTWISE_CMP_GE, row, column));
  }

  void forward() {
    const Tensor s = without_later_keys(without_padding(scores(transposed(kK, call.k))));
    const Tensor most = to.between(rows), sum = to.between(rows);
    to.reduce(CUDNN_REDUCE_TENSOR_MAX, most, s);
    const Tensor powers = combine(CUDNN_POINTWISE_EXP, weights, combine(CUDNN_POINTWISE_SUB, weights, s, most));
    to.reduce(CUDNN_REDUCE_TENSOR_ADD, sum, powers);
    const Tensor lse = to.memory(kLse, CUDNN_DATA_FLOAT, rows);
    to.pointwise(CUDNN_POINTWISE_ADD, lse, most, combine(CUDNN_POINTWISE_LOG, rows, sum));
    const Tensor p = to.between(weights, type);
    to.pointwise(CUDNN_POINTWISE_DIV, p, powers, sum);
    to.matmul(p, view(kV, call.v), view(kY, call.y), {queries, nullptr, keys});
  }

  /// delta = rowsum(dy y), in memory because two passes need it.
  Tensor delta(Tensor dy) {
    const CudnnLayout layout = CudnnLayout::dense({B, H, N, call.q.sizes[3]});
    const Tensor products = combine(CUDNN_POINTWISE_MUL, layout, dy, view(kY, call.y)), sum = to.between(rows);
    to.reduce(CUDNN_REDUCE_TENSOR_ADD, sum, products);
    const Tensor delta = to.memory(kDelta, CUDNN_DATA_FLOAT, rows);
    to.pointwise(CUDNN_POINTWISE_MUL, delta, sum, to.scalar(kOne));  // instead of dropout's factor
    return delta;
  }
  /// The transpose of weights or slopes, rounded, as a product's left factor.
  Tensor turned(Tensor x) {
    const Tensor result = to.between(weights.transposed(), type);
    to.reshape(result, x);
    return result;
  }

  void backward(bool ordered) {
    const Tensor dy = view(kDy, call.dy), k_transposed = transposed(kK, call.k);
    const Tensor delta_of_rows = delta(dy);
    const Tensor lse = to.memory(kLse, CUDNN_DATA_FLOAT, rows);
    const Tensor s = without_padding(scores(k_transposed));
    const Tensor p =
        combine(CUDNN_POINTWISE_EXP, weights, without_later_keys(combine(CUDNN_POINTWISE_SUB, weights, s, lse)));
    to.matmul(turned(p), dy, view(kDv, call.dv), {keys, nullptr, queries});

    const Tensor dp = to.between(weights);
    to.matmul(dy, transposed(kV, call.v), dp, {queries, keys, nullptr});
    const Tensor slopes =
        combine(CUDNN_POINTWISE_MUL, weights, combine(CUDNN_POINTWISE_SUB, weights, dp, delta_of_rows), p);
    const Tensor ds = to.between(weights, CUDNN_DATA_FLOAT);
    to.pointwise(CUDNN_POINTWISE_MUL, ds, slopes, scale);
    to.matmul(turned(ds), q, view(kDk, call.dk), {keys, nullptr, queries});

    const Tensor k = to.between(heads_second(call.k), type);
    to.reshape(k, k_transposed);
    const CudnnOperations::Lengths over_keys{queries, nullptr, keys};
    if (ordered) return to.matmul(ds, k, view(kDq, call.dq), over_keys);
    const Tensor sums = to.memory(kSums, CUDNN_DATA_FLOAT, CudnnLayout::dense({B, H, N, call.q.sizes[3]}));
    to.matmul(ds, k, sums, over_keys);
    to.pointwise(CUDNN_POINTWISE_IDENTITY, view(kDq, call.dq), sums);
  }
};

CudnnAttentionGraph::CudnnAttentionGraph(const CudnnTarget& target, const AttentionCall& call, bool ordered)
    : operations_(target) {
  Builder builder{operations_, call};
  if (call.backward)
    builder.backward(ordered);
  else
    builder.forward();
  graph_ = &operations_.finish();
}

}  // namespace weft::kernels::vendor
