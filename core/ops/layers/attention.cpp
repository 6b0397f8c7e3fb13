// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/backward_context.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/concat.h"
#include "core/ops/layers/softmax.h"
#include "core/ops/matmul.h"
#include "core/ops/unary.h"
#include "core/random.h"
#include "core/trace.h"
#include "kernels/contracts/attention.h"

namespace weft {
namespace {

using kernels::View;

constexpr int64_t kMostChannels = 256;

void check(const char* op, int64_t B, int64_t M, int64_t D, Device device, const AttentionOptions& o) {
  WEFT_CHECK(D >= 1 && D <= kMostChannels, op, ": expected 1 to ", kMostChannels, " channels per head, got ", D);
  WEFT_CHECK(!o.scale || *o.scale > 0, op, ": expected a positive scale, got ", o.scale.value_or(0));
  WEFT_CHECK(o.dropout >= 0 && o.dropout <= 1, op, ": expected dropout in [0, 1], got ", o.dropout);
  WEFT_CHECK(o.window.value_or(1) >= 1, op, ": expected a window of at least 1 key, got ", *o.window);
  WEFT_CHECK(!o.window || o.causal, op, ": expected `causal` with a window, got a window of ", o.window.value_or(0),
             " without");
  const Tensor &lengths = o.key_lengths, &mask = o.key_mask;
  WEFT_CHECK(!lengths.defined() || (lengths.dtype() == DType::i64 && lengths.dim() == 1 && lengths.size(0) == B &&
                                    lengths.device() == device),
             op, ": expected key_lengths i64[", B, "] on ", device, ", got ", lengths);
  for (int64_t b = 0; lengths.defined() && device.kind == DeviceKind::cpu && b < B; ++b) {
    const int64_t length = static_cast<const int64_t*>(lengths.raw_data())[b * lengths.stride(0)];
    WEFT_CHECK(length >= 0 && length <= M, op, ": expected key_lengths from 0 to ", M, ", got ", length,
               " for batch entry ", b);
  }
  WEFT_CHECK(!mask.defined() || (mask.dtype() == DType::boolean && mask.dim() == 2 && mask.size(0) == B &&
                                 mask.size(1) == M && mask.device() == device),
             op, ": expected key_mask bool[", B, ",", M, "] on ", device, ", got ", mask);
}

void check_bias(const char* op, const Tensor& bias, const Shape& sizes, Device device) {
  bool fits = (bias.is_floating() || bias.dtype() == DType::boolean) && bias.dim() <= 4 && bias.device() == device;
  for (int d = 1; fits && d <= bias.dim(); ++d) fits = bias.size(-d) == 1 || bias.size(-d) == sizes[4 - d];
  WEFT_CHECK(fits, op, ": expected a floating or bool bias that broadcasts to ", sizes, " on ", device, ", got ", bias);
}

/// Shared by forward and backward.
struct Call {
  Saved key_lengths, key_mask;
  Tensor state;
  kernels::AttentionArguments arguments;

  /// Takes the Philox blocks of B H heads with N x M weights, if weights are dropped.
  Call(const AttentionOptions& options, int64_t B, int64_t H, int64_t N, int64_t M, int64_t D, Device device)
      : key_lengths(options.key_lengths.defined() ? options.key_lengths.contiguous() : Tensor()),
        key_mask(options.key_mask.defined() ? options.key_mask.contiguous() : Tensor()) {
    arguments.scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(D)));
    arguments.causal = options.causal;
    arguments.window = options.window.value_or(0);
    arguments.dropout = options.dropout;
    if (options.dropout == 0) return;
    state = dropout_state(device);
    arguments.random.offset = generator(device).take(static_cast<uint64_t>(B * H * ((N + 1) / 2) * ((M + 1) / 2)));
  }
};

Tensor lse_for(int64_t B, int64_t H, int64_t N, DType dtype, Device device) {
  return Tensor::empty({B, H, N}, dtype == DType::f64 ? DType::f64 : DType::f32, device);
}

/// q, k or v (0, 1, 2) of qkv [B, N, 3, H, D].
View part_of(const View& qkv, int part) {
  View view = qkv;
  view.rank = 4;
  for (const int d : {2, 3}) {
    view.sizes[d] = qkv.sizes[d + 1];
    view.strides[d] = qkv.strides[d + 1];
  }
  view.data = static_cast<char*>(qkv.data) + part * qkv.strides[2] * static_cast<int64_t>(size_of(qkv.dtype));
  return view;
}

/// x with stride 1 in its last dimension, copied only where it has another.
Tensor with_dense_rows(const Tensor& x) { return x.size(-1) == 1 || x.stride(-1) == 1 ? x : x.contiguous(); }

/// Which weights [B, H, N, M] the dropout of a call keeps: what attention makes of equal weights and of columns of the
/// identity as v.
Tensor kept_by(const Call& call, int64_t B, int64_t H, int64_t N, int64_t M, DType dtype, Device device) {
  const NoGrad no_grad;
  kernels::AttentionArguments arguments = call.arguments;
  arguments.causal = false;
  arguments.window = 0;
  const int64_t D = std::min(M, kMostChannels);
  const Tensor zeros = Tensor::zeros({1, 1, 1, D}, dtype, device), lse = lse_for(B, H, N, dtype, device);
  const Tensor rows = Tensor::arange(M, DType::i64, device).reshape({M, 1});
  std::vector<Tensor> parts;
  for (int64_t first = 0; first < M; first += D) {
    const Tensor columns = Tensor::arange(D, DType::i64, device, first);
    const Tensor v = eq(rows, columns).to(dtype).reshape({1, M, 1, D}), y = Tensor::empty({B, N, H, D}, dtype, device);
    kernels::attention_forward(y.queue(), y, lse, zeros.expand({B, N, H, D}), zeros.expand({B, M, H, D}),
                               v.expand({B, M, H, D}), {}, {}, call.state, arguments);
    parts.push_back(gt(y, 0).permute({0, 2, 1, 3}));
  }
  return concat(parts, -1).slice(-1, 0, M);
}

/// Attention by ops, for second derivatives: the weights are stored. q [B, N, H, D], k and v [B, M, G, D].
Tensor attention_by_ops(const Tensor& q, const Tensor& k, const Tensor& v, const Call& call, const Tensor& bias = {}) {
  if (size_of(q.dtype()) == 2)
    return attention_by_ops(q.to(DType::f32), k.to(DType::f32), v.to(DType::f32), call, bias).to(q.dtype());
  const auto [B, N, H, D] = q.dims<4>();
  const int64_t M = k.size(1), G = k.size(2);
  const auto by_head = [](const Tensor& x) { return x.permute({0, 2, 1, 3}); };
  const auto of_queries = [&, B = B, H = H, D = D](const Tensor& x) {  // a head of keys for each head of queries
    return by_head(G == H ? x : x.unsqueeze(3).expand({B, M, G, H / G, D}).reshape({B, M, H, D}));
  };
  const Tensor keys = Tensor::arange(M, DType::i64, q.device());
  Tensor seen = Tensor::ones({1, 1, 1, M}, DType::boolean, q.device());
  if (call.arguments.causal) {
    const Tensor queries = Tensor::arange(N, DType::i64, q.device()).unsqueeze(1);
    seen = logical_and(seen, le(keys, queries));
    if (const int64_t window = std::min(call.arguments.window, N); window > 0)
      seen = logical_and(seen, gt(keys + window, queries));
  }
  if (call.key_lengths) seen = logical_and(seen, lt(keys, call.key_lengths.get().reshape({B, 1, 1, 1})));
  if (call.key_mask) seen = logical_and(seen, call.key_mask.get().reshape({B, 1, 1, M}));
  Tensor scores = affine(matmul(by_head(q), of_queries(k).transpose(2, 3)), call.arguments.scale, 0);
  if (bias.defined() && bias.is_floating()) {
    scores = add(scores, bias.to(q.dtype()));
    seen = logical_and(seen, ne(bias, -std::numeric_limits<double>::infinity()));
  }
  if (bias.defined() && !bias.is_floating()) seen = logical_and(seen, bias);
  // A query that sees no key: its weights are 0, not NaN.
  Tensor weights = where(seen, softmax(where(seen, scores, -1e30), -1), 0);
  const double dropout = call.arguments.dropout;
  if (dropout > 0) {
    const Tensor kept = kept_by(call, B, H, N, M, q.dtype(), q.device());
    weights = where(kept, affine(weights, dropout < 1 ? 1 / (1 - dropout) : 0, 0), 0);
  }
  return by_head(matmul(weights, of_queries(v)));
}

}  // namespace

Tensor attention(const Tensor& input_q, const Tensor& input_k, const Tensor& input_v, const AttentionOptions& options) {
  const OpScope scope("attention");
  WEFT_CHECK(input_q.defined() && input_k.defined() && input_v.defined() && input_q.dim() == 4 && input_k.dim() == 4 &&
                 input_k.sizes() == input_v.sizes() && input_k.size(0) == input_q.size(0) &&
                 input_k.size(3) == input_q.size(3),
             "attention: expected q [B, N, H, D], k and v [B, M, G, D], got ", input_q, ", ", input_k, ", ", input_v);
  WEFT_CHECK(input_k.device() == input_q.device() && input_v.device() == input_q.device(),
             "attention: expected tensors on one device, got ", input_q, ", ", input_k, ", ", input_v);
  const Tensor q = with_dense_rows(autocast_low(input_q)), k = with_dense_rows(autocast_low(input_k));
  const Tensor v = with_dense_rows(autocast_low(input_v));
  WEFT_CHECK(q.is_floating() && k.dtype() == q.dtype() && v.dtype() == q.dtype(),
             "attention: expected one floating dtype, got ", q, ", ", k, ", ", v);
  const auto [B, N, H, D] = q.dims<4>();
  const int64_t M = k.size(1), G = k.size(2);
  WEFT_CHECK(G == H || (G > 0 && H > 0 && H % G == 0),
             "attention: expected heads of q that are a multiple of those of k and v, got ", q, " and ", k);
  check("attention", B, M, D, q.device(), options);
  if (N == 1 && G != H && !options.causal &&
      !options.bias.defined())  // the heads of a group as queries of one head: its keys are read once
    return attention(q.reshape({B, G, H / G, D}).transpose(1, 2), k, v, options).transpose(1, 2).reshape({B, 1, H, D});
  if (options.bias.defined()) check_bias("attention", options.bias, {B, H, N, M}, q.device());
  const Call call(options, B, H, N, M, D, q.device());
  if (options.bias.defined()) return attention_by_ops(q, k, v, call, options.bias);
  const Tensor y = Tensor::empty(q.sizes(), q.dtype(), q.device()), lse = lse_for(B, H, N, q.dtype(), q.device());
  kernels::attention_forward(y.queue(), y, lse, q, k, v, call.key_lengths, call.key_mask, call.state, call.arguments);

  const bool wants_q = wants_gradient(q), wants_keys = wants_gradient(k) || wants_gradient(v);
  if (!wants_q && !wants_keys) return y;
  return differentiable(y, "attention", {q, k, v},
                        [call, wants_q, wants_keys, q = Saved(q), k = Saved(k), v = Saved(v), y = Saved(y),
                         lse = Saved(lse)](const Tensor& gradient, BackwardContext& context) {
                          if (grad_enabled())
                            return gradients_by_ops(
                                [&](const auto& in) { return attention_by_ops(in[0], in[1], in[2], call); }, {q, k, v},
                                gradient, context);
                          const Tensor dy = with_dense_rows(gradient);
                          const auto like = [&](bool wanted, const Shape& sizes) {
                            return wanted ? Tensor::empty(sizes, dy.dtype(), dy.device()) : Tensor();
                          };
                          const Tensor dq = like(wants_q, q.sizes());
                          const Tensor dk = like(wants_keys, k.sizes()), dv = like(wants_keys, v.sizes());
                          kernels::attention_backward(dy.queue(), dq, dk, dv, dy, q, k, v, y, lse, call.key_lengths,
                                                      call.key_mask, call.state, call.arguments);
                          return Grads{dq, dk, dv};
                        });
}

Tensor attention_packed(const Tensor& input, const AttentionOptions& options) {
  const OpScope scope("attention_packed");
  WEFT_CHECK(input.defined() && input.dim() == 5 && input.size(2) == 3,
             "attention_packed: expected qkv [B, N, 3, H, D], got ", input);
  const Tensor qkv = with_dense_rows(autocast_low(input));
  WEFT_CHECK(qkv.is_floating(), "attention_packed: expected a floating dtype, got ", qkv);
  const int64_t B = qkv.size(0), N = qkv.size(1), H = qkv.size(3), D = qkv.size(4);
  check("attention_packed", B, N, D, qkv.device(), options);
  if (options.bias.defined()) return attention(qkv.select(2, 0), qkv.select(2, 1), qkv.select(2, 2), options);
  const Call call(options, B, H, N, N, D, qkv.device());
  const Tensor y = Tensor::empty({B, N, H, D}, qkv.dtype(), qkv.device());
  const Tensor lse = lse_for(B, H, N, qkv.dtype(), qkv.device());
  const View& packed = qkv;
  kernels::attention_forward(y.queue(), y, lse, part_of(packed, 0), part_of(packed, 1), part_of(packed, 2),
                             call.key_lengths, call.key_mask, call.state, call.arguments);
  if (!wants_gradient(qkv)) return y;
  return differentiable(
      y, "attention_packed", {qkv},
      [call, qkv = Saved(qkv), y = Saved(y), lse = Saved(lse)](const Tensor& gradient, BackwardContext& context) {
        if (grad_enabled())
          return gradients_by_ops(
              [&](const auto& in) {
                const auto part = [&](int i) { return in[0].select(2, i); };
                return attention_by_ops(part(0), part(1), part(2), call);
              },
              {qkv}, gradient, context);
        const Tensor dy = with_dense_rows(gradient);
        const Tensor dqkv = Tensor::empty(qkv.sizes(), dy.dtype(), dy.device());
        const View &from = qkv, &to = dqkv;
        kernels::attention_backward(dy.queue(), part_of(to, 0), part_of(to, 1), part_of(to, 2), dy, part_of(from, 0),
                                    part_of(from, 1), part_of(from, 2), y, lse, call.key_lengths, call.key_mask,
                                    call.state, call.arguments);
        return Grads{dqkv};
      });
}

}  // namespace weft
