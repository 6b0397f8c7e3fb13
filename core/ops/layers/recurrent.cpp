// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/recurrent.h"

#include <algorithm>
#include <array>
#include <vector>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/backward_context.h"
#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/layers/linear.h"
#include "core/ops/matmul.h"
#include "core/ops/rearrange.h"
#include "core/ops/unary.h"
#include "core/trace.h"
#include "kernels/contracts/linear.h"
#include "kernels/contracts/matmul.h"
#include "kernels/contracts/recurrent.h"
#include "kernels/engines/recurrent.h"

namespace weft {
namespace {

/// Steps in the order of the computation; `hidden` [T + 1, B, H] holds h before and after each.
struct Steps {
  int64_t count;
  bool is_forward;

  int64_t at(int64_t step) const { return is_forward ? step : count - 1 - step; }
  int64_t before(int64_t t) const { return is_forward ? t : t + 1; }
  int64_t after(int64_t t) const { return is_forward ? t + 1 : t; }
  /// The part of `hidden` with each step's h before the step, or after: [T, B, H].
  Tensor all_before(const Tensor& hidden) const { return hidden.slice(0, is_forward ? 0 : 1, count); }
  Tensor all_after(const Tensor& hidden) const { return hidden.slice(0, is_forward ? 1 : 0, count); }
};

void check(const char* op, const Tensor& from_x, const Tensor& weight, int64_t gates, const Tensor& h) {
  WEFT_CHECK(from_x.defined() && from_x.is_floating() && from_x.dim() == 3 && from_x.size(0) > 0, op,
             ": expected floating [steps, batch, ", gates, " units] with a step, got ", from_x);
  const int64_t B = from_x.size(1), H = from_x.size(2) / gates;
  WEFT_CHECK(weight.defined() && weight.sizes() == (Shape{gates * H, H}) && weight.dtype() == from_x.dtype(), op,
             ": expected a weight ", from_x.dtype(), "[", gates * H, ", ", H, "], got ", weight);
  WEFT_CHECK(h.defined() && h.sizes() == (Shape{B, H}) && h.dtype() == from_x.dtype(), op, ": expected a state ",
             from_x.dtype(), "[", B, ", ", H, "], got ", h);
}

/// y = a @ b (+ bias), or added to y: rank 2.
void product(const Tensor& y, const Tensor& a, const Tensor& b, kernels::Grad grad, const Tensor& bias = {}) {
  kernels::matmul(y.queue(), y.unsqueeze(0), a.unsqueeze(0), b.unsqueeze(0), bias, {.grad = grad});
}

Tensor flat(const Tensor& x) { return x.reshape({x.size(0) * x.size(1), x.size(2)}); }

/// x, its weights and biases, h and c, dense; undefined ones are not there. In this order cuDNN's gradients come.
using LayerInputs = std::array<Tensor, 7>;

kernels::vendor::RecurrentCall call_of(const kernels::Queue& queue, kernels::vendor::Pass pass, const LayerInputs& in,
                                       const Tensor& result) {
  const auto& [x, of_x, of_h, bias_x, bias_h, h, c] = in;
  const int64_t T = x.size(0);
  return {queue,
          pass,
          x,
          h,
          c,
          {of_x, of_h, bias_x, bias_h},
          result.slice(0, 0, T),
          c.defined() ? result.select(0, T) : Tensor()};
}

/// The layer, forward in time, by cuDNN; undefined where that is not to run. `inputs` as those of LayerInputs.
Tensor layer_by_cudnn(const std::vector<Tensor>& inputs, const std::function<Tensor()>& own) {
  using kernels::vendor::Pass, kernels::vendor::RecurrentCall;
  const bool is_lstm = inputs.back().defined();
  const int64_t T = inputs[0].size(0), B = inputs[0].size(1), H = inputs[5].size(1);
  const kernels::Queue queue = inputs[0].queue();
  LayerInputs in;
  bool wants = false;
  Tensor result, reserve;
  {
    const NoGrad no_grad;
    for (size_t i = 0; i < in.size(); ++i)
      if (inputs[i].defined()) in[i] = inputs[i].detach().contiguous();
    result = Tensor::empty({is_lstm ? T + 1 : T, B, H}, in[0].dtype(), in[0].device());
  }
  for (const Tensor& input : inputs) wants = wants || wants_gradient(input);
  RecurrentCall call = call_of(queue, wants ? Pass::training : Pass::inference, in, result);
  if (!takes_recurrent(call, [&] { own(); })) return {};
  if (wants) {
    reserve = Tensor::empty({recurrent_reserve(call)}, DType::u8, result.device());
    call.reserve = reserve;
  }
  recurrent(call);
  std::array<Saved, 7> saved;
  std::copy(in.begin(), in.end(), saved.begin());
  return differentiable(result, call.op(), inputs,
                        [is_lstm, T, saved, result = Saved(result), reserve = Saved(reserve)](const Tensor& gradient) {
                          const Tensor dy = gradient.contiguous();
                          const Tensor used = reserve.get().clone();  // a pass changes it, and another may come
                          const kernels::Queue current = dy.queue();
                          LayerInputs kept, d;
                          for (size_t i = 0; i < kept.size(); ++i) {
                            kept[i] = saved[i].get();
                            if (kept[i].defined()) d[i] = empty_like(kept[i]);
                          }
                          RecurrentCall backward = call_of(current, Pass::backward, kept, result);
                          backward.reserve = used;
                          backward.dy = dy.slice(0, 0, T);
                          if (is_lstm) backward.dlast_c = dy.select(0, T);
                          backward.dx = d[0], backward.dh = d[5], backward.dc = d[6];
                          backward.dweights = {d[1], d[2], d[3], d[4]};
                          recurrent(backward);
                          return Grads(d.begin(), d.end());
                        });
}

// Second derivatives: the layers by ops, with values that the forward has kept.

/// The function's kept value, with the history of its argument, whose own value is not looked at.
Tensor logistic_of(const Tensor& argument, const Tensor& kept) {
  const Tensor y = kept.detach();
  return differentiable(y, "sigmoid", {argument}, [y = Saved(y)](const Tensor& dy) {
    const Tensor value = y;
    return Grads{mul(dy, mul(value, affine(value, -1, 1)))};
  });
}

Tensor tanh_of(const Tensor& argument, const Tensor& kept) {
  const Tensor y = kept.detach();
  return differentiable(y, "tanh", {argument},
                        [y = Saved(y)](const Tensor& dy) { return Grads{mul(dy, affine(square(y), -1, 1))}; });
}

/// in: from_x, weight, h and c before the first step; gates: all steps'.
Tensor lstm_by_ops(const std::vector<Tensor>& in, const Tensor& gates, const Steps& steps) {
  Tensor h = in[2], c = in[3];
  std::vector<Tensor> result(static_cast<size_t>(steps.count + 1));
  for (int64_t step = 0; step < steps.count; ++step) {
    const int64_t t = steps.at(step);
    const std::vector<Tensor> sums = chunk(add(in[0].select(0, t), matmul(h, in[1].transpose(0, 1))), 4, 1);
    const std::vector<Tensor> kept = chunk(gates.select(0, t), 4, 1);
    const Tensor i = logistic_of(sums[0], kept[0]), f = logistic_of(sums[1], kept[1]);
    c = add(mul(f, c), mul(i, tanh_of(sums[2], kept[2])));
    h = mul(logistic_of(sums[3], kept[3]), tanh(c));
    result[static_cast<size_t>(t)] = h;
  }
  result.back() = c;
  return stack(result, 0);
}

/// in: from_x, weight, bias, and h before the first step; saved: r, z, n and h_n of all steps.
Tensor gru_by_ops(const std::vector<Tensor>& in, const Tensor& saved, const Steps& steps) {
  Tensor h = in[3];
  std::vector<Tensor> result(static_cast<size_t>(steps.count));
  for (int64_t step = 0; step < steps.count; ++step) {
    const int64_t t = steps.at(step);
    const std::vector<Tensor> x = chunk(in[0].select(0, t), 3, 1), kept = chunk(saved.select(0, t), 4, 1);
    const std::vector<Tensor> from_h = chunk(linear(h, in[1], in[2]), 3, 1);
    const Tensor r = logistic_of(add(x[0], from_h[0]), kept[0]), z = logistic_of(add(x[1], from_h[1]), kept[1]);
    const Tensor n = tanh_of(add(x[2], mul(r, with_history_of(from_h[2], kept[3]))), kept[2]);
    h = add(n, mul(z, sub(h, n)));
    result[static_cast<size_t>(t)] = h;
  }
  return stack(result, 0);
}

}  // namespace

Tensor lstm(const Tensor& given_x, const Tensor& given_weight, const Tensor& given_h, const Tensor& given_c,
            Direction direction) {
  const OpScope scope("lstm");
  const Tensor from_x = autocast_full(given_x), weight = autocast_full(given_weight).contiguous();
  const Tensor h0 = autocast_full(given_h), c0 = autocast_full(given_c);
  check("lstm", from_x, weight, 4, h0);
  WEFT_CHECK(c0.defined() && c0.sizes() == h0.sizes() && c0.dtype() == h0.dtype(),
             "lstm: expected a cell state like h ", h0, ", got ", c0);
  const int64_t T = from_x.size(0), B = from_x.size(1), H = h0.size(1);
  const Steps steps{T, direction == Direction::forward};
  const bool wants = wants_gradient(from_x) || wants_gradient(weight) || wants_gradient(h0) || wants_gradient(c0);
  Tensor result = Tensor::empty({T + 1, B, H}, from_x.dtype(), from_x.device()), gates, hidden, cells;
  {
    const NoGrad no_grad;
    gates = from_x.detach().contiguous().clone();
    hidden = Tensor::empty({T + 1, B, H}, from_x.dtype(), from_x.device());
    cells = empty_like(hidden);
    const int64_t first = steps.before(steps.at(0)), last = steps.after(steps.at(T - 1));
    hidden.select(0, first).copy_(h0);
    cells.select(0, first).copy_(c0);
    for (int64_t step = 0; step < T; ++step) {
      const int64_t t = steps.at(step), before = steps.before(t), after = steps.after(t);
      const Tensor gate = gates.select(0, t);
      product(gate, hidden.select(0, before), weight.transpose(0, 1), kernels::Grad::accumulate);
      kernels::lstm_cell_forward(gate.queue(), hidden.select(0, after), cells.select(0, after), gate,
                                 cells.select(0, before));
    }
    result.slice(0, 0, T).copy_(steps.all_after(hidden));
    result.select(0, T).copy_(cells.select(0, last));
  }
  if (!wants) return result;
  return differentiable(
      result, "lstm", {from_x, weight, h0, c0},
      [steps, B, H, gates, hidden, cells, weight = Saved(weight)](const Tensor& gradient, BackwardContext& context) {
        if (grad_enabled()) {
          const auto with_history = [&](size_t i, const Tensor& value) {
            return add(value, context.history(i, value.sizes(), value.dtype(), value.device()));
          };
          const int64_t first = steps.before(steps.at(0));
          const Tensor sums = context.history(0, gates.sizes(), gates.dtype(), gates.device());
          return gradients_by_ops(
              [&](const std::vector<Tensor>& in) { return lstm_by_ops(in, gates, steps); },
              {sums, weight, with_history(2, hidden.select(0, first)), with_history(3, cells.select(0, first))},
              gradient, context);
        }
        const Tensor dy = gradient.contiguous(), w = weight, saved = gates, c = cells;
        const Tensor dgates = empty_like(saved), dc = dy.select(0, steps.count).clone();
        const Tensor dh = Tensor::empty({B, H}, dy.dtype(), dy.device());
        for (int64_t step = steps.count - 1; step >= 0; --step) {
          const int64_t t = steps.at(step);
          const Tensor dgate = dgates.select(0, t);
          kernels::lstm_cell_backward(dgate.queue(), dgate, dc, dy.select(0, t), step + 1 < steps.count ? dh : Tensor(),
                                      saved.select(0, t), c.select(0, steps.after(t)), c.select(0, steps.before(t)));
          product(dh, dgate, w, kernels::Grad::overwrite);
        }
        const Tensor dw = empty_like(w), before = flat(steps.all_before(hidden));
        product(dw, flat(dgates).transpose(0, 1), before, kernels::Grad::overwrite);
        return Grads{dgates, dw, dh, dc};
      });
}

Tensor gru(const Tensor& given_x, const Tensor& given_weight, const Tensor& given_bias, const Tensor& given_h,
           Direction direction) {
  const OpScope scope("gru");
  const Tensor from_x = autocast_full(given_x).contiguous(), weight = autocast_full(given_weight).contiguous();
  const Tensor bias = autocast_full(given_bias), h0 = autocast_full(given_h);
  check("gru", from_x, weight, 3, h0);
  const int64_t T = from_x.size(0), B = from_x.size(1), H = h0.size(1);
  WEFT_CHECK(!bias.defined() || (bias.sizes() == Shape{3 * H} && bias.dtype() == from_x.dtype()),
             "gru: expected a bias ", from_x.dtype(), "[", 3 * H, "], got ", bias);
  const Steps steps{T, direction == Direction::forward};
  const bool wants = wants_gradient(from_x) || wants_gradient(weight) || wants_gradient(bias) || wants_gradient(h0);
  Tensor result, hidden, saved;
  {
    const NoGrad no_grad;
    hidden = Tensor::empty({T + 1, B, H}, from_x.dtype(), from_x.device());
    saved = Tensor::empty({T, B, 4 * H}, from_x.dtype(), from_x.device());
    const Tensor from_h = Tensor::empty({B, 3 * H}, from_x.dtype(), from_x.device());
    hidden.select(0, steps.before(steps.at(0))).copy_(h0);
    for (int64_t step = 0; step < T; ++step) {
      const int64_t t = steps.at(step);
      const Tensor before = hidden.select(0, steps.before(t));
      product(from_h, before, weight.transpose(0, 1), kernels::Grad::overwrite, bias);
      kernels::gru_cell_forward(hidden.queue(), hidden.select(0, steps.after(t)), saved.select(0, t),
                                from_x.select(0, t), from_h, before);
    }
    result = steps.all_after(hidden).clone();
  }
  if (!wants) return result;
  return differentiable(
      result, "gru", {from_x, weight, bias, h0},
      [steps, B, H, has_bias = bias.defined(), saved, hidden, weight = Saved(weight)](const Tensor& gradient,
                                                                                      BackwardContext& context) {
        if (grad_enabled()) {
          const auto history = [&](size_t i, const Shape& sizes) {
            return context.history(i, sizes, saved.dtype(), saved.device());
          };
          const Tensor h_before = hidden.select(0, steps.before(steps.at(0)));
          return gradients_by_ops([&](const std::vector<Tensor>& in) { return gru_by_ops(in, saved, steps); },
                                  {history(0, {steps.count, B, 3 * H}), weight,
                                   has_bias ? history(2, {3 * H}) : Tensor(), add(h_before, history(3, {B, H}))},
                                  gradient, context);
        }
        const Tensor dy = gradient.contiguous(), w = weight, values = saved, h = hidden;
        const Tensor dx = Tensor::empty({steps.count, B, 3 * H}, dy.dtype(), dy.device()), ds = empty_like(dx);
        const Tensor dh = Tensor::empty({B, H}, dy.dtype(), dy.device());
        for (int64_t step = steps.count - 1; step >= 0; --step) {
          const int64_t t = steps.at(step);
          const Tensor of_step = ds.select(0, t);
          kernels::gru_cell_backward(dh.queue(), dx.select(0, t), of_step, dh, dy.select(0, t),
                                     step + 1 < steps.count ? dh : Tensor(), values.select(0, t),
                                     h.select(0, steps.before(t)));
          product(dh, of_step, w, kernels::Grad::accumulate);
        }
        const Tensor dw = empty_like(w), before = flat(steps.all_before(h));
        Tensor db;
        if (has_bias) {
          db = Tensor::empty({3 * H}, dy.dtype(), dy.device());
          kernels::linear_backward_weight(dw.queue(), dw, db, flat(ds), before);
        } else {
          product(dw, flat(ds).transpose(0, 1), before, kernels::Grad::overwrite);
        }
        return Grads{dx, dw, db, dh};
      });
}

Tensor recurrent_layer(const Tensor& x, const RecurrentWeights& weights, const Tensor& h, const Tensor& c,
                       Direction direction, const std::function<Tensor()>& own) {
  const auto& [of_x, of_h, bias_x, bias_h] = weights;
  if (kernels::engine() == kernels::Engine::own || x.device().kind != DeviceKind::cuda || autocast_dtype())
    return own();
  for (const Tensor& part : {of_x, of_h, bias_x, bias_h, h, c})  // else `own` names the error
    if (part.defined() && (part.dtype() != x.dtype() || part.device() != x.device())) return own();
  const OpScope scope(c.defined() ? "lstm" : "gru");
  const bool is_turned = direction == Direction::backward;
  const Tensor y = layer_by_cudnn({is_turned ? flip(x, {0}) : x, of_x, of_h, bias_x, bias_h, h, c}, own);
  if (!y.defined()) return own();
  if (!is_turned) return y;
  const int64_t T = x.size(0);
  const Tensor in_order = flip(y.slice(0, 0, T), {0});
  return c.defined() ? concat({in_order, y.slice(0, T, 1)}, 0) : in_order;
}

}  // namespace weft
