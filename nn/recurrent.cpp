// SPDX-License-Identifier: Apache-2.0
#include "nn/recurrent.h"

#include <algorithm>
#include <numeric>

#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/gather.h"
#include "core/ops/layers/linear.h"
#include "core/ops/random.h"
#include "core/ops/unary.h"
#include "nn/init.h"

namespace weft::nn {

Lengths::Lengths(std::vector<int64_t> steps) : steps_(std::move(steps)), order_(steps_.size()) {
  WEFT_CHECK(!steps_.empty(), "Lengths: expected at least one length, got none");
  const int64_t shortest = *std::min_element(steps_.begin(), steps_.end());
  WEFT_CHECK(shortest >= 1, "Lengths: expected lengths of at least 1, got ", shortest);
  std::iota(order_.begin(), order_.end(), int64_t{0});
  const auto length = [this](size_t place) { return steps_[static_cast<size_t>(order_[place])]; };
  std::stable_sort(order_.begin(), order_.end(), [this](int64_t a, int64_t b) {
    return steps_[static_cast<size_t>(a)] > steps_[static_cast<size_t>(b)];
  });
  int64_t begin = 0;
  for (size_t count = order_.size(); count > 0; --count)
    if (const int64_t end = length(count - 1); end > begin) {
      segments_.push_back({begin, end, static_cast<int64_t>(count)});
      begin = end;
    }
}

Recurrent::Recurrent(const char* name, int64_t in, int64_t hidden, int64_t gates, RecurrentOptions options)
    : name_(name), in_(in), hidden_(hidden), options_(options) {
  WEFT_CHECK(in > 0 && hidden > 0 && options.layers > 0, name, ": expected positive sizes, got in = ", in,
             ", hidden = ", hidden, ", layers = ", options.layers);
  WEFT_CHECK(options.dropout >= 0 && options.dropout < 1, name, ": expected dropout in [0, 1), got ", options.dropout);
  for (int64_t layer = 0; layer < options.layers; ++layer)
    for (int direction = 0; direction < directions(); ++direction) {
      const int64_t width = layer == 0 ? in : hidden * directions();
      RecurrentWeights w{Tensor::empty({gates * hidden, width}), Tensor::empty({gates * hidden, hidden}), {}, {}};
      if (options.bias) {
        w.bias_x = Tensor::empty({gates * hidden});
        w.bias_h = Tensor::empty({gates * hidden});
      }
      const Tensor like = w.of_h;  // ± 1 / sqrt(hidden) for all of them
      for (const Tensor& part : {w.of_x, w.of_h, w.bias_x, w.bias_h}) {
        if (!part.defined()) continue;
        bias_uniform_(part, like);
        part.requires_grad_();
      }
      weights_.push_back(std::move(w));
    }
}

void Recurrent::fields(Visitor& v) {
  for (size_t i = 0; i < weights_.size(); ++i) {
    const size_t n = static_cast<size_t>(directions());
    const std::string end = str("_l", i / n, i % n == 1 ? "_reverse" : "");
    v("weight_ih" + end, weights_[i].of_x);
    v("weight_hh" + end, weights_[i].of_h);
    v("bias_ih" + end, weights_[i].bias_x);
    v("bias_hh" + end, weights_[i].bias_h);
  }
}

Recurrent::Output Recurrent::run_segments(const Tensor& x, const RecurrentWeights& w, const Tensor& h0,
                                          const Tensor& c0, Direction direction, const Lengths& lengths) const {
  const std::vector<Lengths::Segment>& segments = lengths.segments();
  const bool forward = direction == Direction::forward;
  const int64_t B = x.size(1), T = x.size(0);
  const auto rows = [](const Tensor& state, int64_t first, int64_t end) { return state.slice(0, first, end - first); };
  std::vector<Tensor> y(segments.size()), ended_h, ended_c;
  Tensor h, c;
  for (size_t turn = 0; turn < segments.size(); ++turn) {
    const size_t at = forward ? turn : segments.size() - 1 - turn;
    const auto [begin, end, count] = segments[at];
    const auto state_of = [&, count = count](const Tensor& state, const Tensor& first) {
      if (turn == 0 || !state.defined()) return rows(first, 0, count);
      if (forward) return rows(state, 0, count);
      return concat({state, rows(first, state.size(0), count)}, 0);  // shorter sequences begin here
    };
    const Tensor part = x.slice(0, begin, end - begin).slice(1, 0, count);
    const Output out = run(part, w, state_of(h, h0), state_of(c, c0), direction);
    y[at] = pad(out.y, 1, 0, B - count);
    h = out.h, c = out.c;
    const int64_t next = forward && turn + 1 < segments.size() ? segments[turn + 1].count : 0;
    if (!forward && turn + 1 < segments.size()) continue;
    ended_h.insert(ended_h.begin(), rows(h, next, count));
    if (out.c.defined()) ended_c.insert(ended_c.begin(), rows(c, next, count));
  }
  if (const int64_t longest = segments.back().end; longest < T)
    y.push_back(Tensor::zeros({T - longest, B, hidden_}, y.front().dtype(), x.device()));
  return {concat(y, 0), concat(ended_h, 0), ended_c.empty() ? Tensor() : concat(ended_c, 0)};
}

Recurrent::Output Recurrent::run_all(const Tensor& given, const Tensor& given_h, const Tensor& given_c,
                                     const Lengths* lengths) const {
  WEFT_CHECK(given.defined() && given.dim() == 3 && given.size(2) == in_, name_, ": expected sequences ",
             options_.batch_first ? "[B, T, " : "[T, B, ", in_, "], got ", given);
  Tensor x = options_.batch_first ? given.transpose(0, 1) : given;
  const Shape sizes{static_cast<int64_t>(weights_.size()), x.size(1), hidden_};
  Tensor h = given_h, c = given_c, back;
  for (const Tensor& state : {h, c})
    WEFT_CHECK(!state.defined() || state.sizes() == sizes, name_, ": expected a state ", sizes, ", got ", state);
  if (lengths != nullptr) {
    const std::vector<int64_t>& order = lengths->order();
    WEFT_CHECK(static_cast<int64_t>(order.size()) == x.size(1) && lengths->segments().back().end <= x.size(0), name_,
               ": expected ", x.size(1), " lengths of at most ", x.size(0), ", got ", order.size(), ", the longest ",
               lengths->segments().back().end);
    std::vector<int64_t> places(order.size());
    for (size_t i = 0; i < order.size(); ++i) places[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    const Tensor by_length = Tensor::from(order).to(x.device());
    back = Tensor::from(places).to(x.device());
    x = index_select(x, 1, by_length);
    for (Tensor* const state : {&h, &c})
      if (state->defined()) *state = index_select(*state, 1, by_length);
  }
  const auto state_of = [&](const Tensor& states, size_t i) {
    return states.defined() ? states.select(0, static_cast<int64_t>(i))
                            : Tensor::zeros({sizes[1], sizes[2]}, x.dtype(), x.device());
  };
  std::vector<Tensor> last_h, last_c;
  for (size_t i = 0; i < weights_.size();) {
    std::vector<Tensor> sides;
    for (int direction = 0; direction < directions(); ++direction, ++i) {
      const Direction way = direction == 0 ? Direction::forward : Direction::backward;
      const Output side = lengths == nullptr
                              ? run(x, weights_[i], state_of(h, i), state_of(c, i), way)
                              : run_segments(x, weights_[i], state_of(h, i), state_of(c, i), way, *lengths);
      sides.push_back(side.y);
      last_h.push_back(side.h);
      if (side.c.defined()) last_c.push_back(side.c);
    }
    x = sides.size() == 1 ? sides[0] : concat(sides, -1);
    if (options_.dropout > 0 && is_training() && i < weights_.size()) x = dropout(x, options_.dropout);
  }
  Output all{x, stack(last_h, 0), last_c.empty() ? Tensor() : stack(last_c, 0)};
  for (Tensor* const one : {&all.y, &all.h, &all.c})
    if (back.defined() && one->defined()) *one = index_select(*one, 1, back);
  if (options_.batch_first) all.y = all.y.transpose(0, 1);
  return all;
}

Tensor Recurrent::forward(const Tensor& x) const { return run_all(x, {}, {}, nullptr).y; }

Recurrent::Output Recurrent::call(const Tensor& x, const Tensor& h, const Tensor& c, const Lengths* lengths) const {
  Output output;
  output.y = with_hooks(x, [&] {
    output = run_all(x, h, c, lengths);
    return output.y;
  });
  return output;
}

int64_t Recurrent::flops(const Shape& x, const Shape&) const {
  int64_t per_step = 0;
  for (const RecurrentWeights& w : weights_) per_step += 2 * (w.of_x.numel() + w.of_h.numel());
  return x[0] * x[1] * per_step;
}

Recurrent::Output LSTM::run(const Tensor& x, const RecurrentWeights& w, const Tensor& h, const Tensor& c,
                            Direction direction) const {
  const Tensor all = recurrent_layer(x, w, h, c, direction, [&] {
    const Tensor bias = w.bias_x.defined() ? add(w.bias_x, w.bias_h) : Tensor();
    return lstm(linear(x, w.of_x, bias), w.of_h, h, c, direction);
  });
  const int64_t T = x.size(0);
  return {all.slice(0, 0, T), all.select(0, direction == Direction::forward ? T - 1 : 0), all.select(0, T)};
}

LstmOutput LSTM::operator()(const Tensor& x, const Tensor& h, const Tensor& c) const {
  const Output output = call(x, h, c);
  return {output.y, output.h, output.c};
}

LstmOutput LSTM::operator()(const Tensor& x, const Lengths& lengths, const Tensor& h, const Tensor& c) const {
  const Output output = call(x, h, c, &lengths);
  return {output.y, output.h, output.c};
}

Recurrent::Output GRU::run(const Tensor& x, const RecurrentWeights& w, const Tensor& h, const Tensor&,
                           Direction direction) const {
  const Tensor y = recurrent_layer(x, w, h, {}, direction,
                                   [&] { return gru(linear(x, w.of_x, w.bias_x), w.of_h, w.bias_h, h, direction); });
  return {y, y.select(0, direction == Direction::forward ? x.size(0) - 1 : 0), {}};
}

GruOutput GRU::operator()(const Tensor& x, const Tensor& h) const {
  const Output output = call(x, h, {});
  return {output.y, output.h};
}

GruOutput GRU::operator()(const Tensor& x, const Lengths& lengths, const Tensor& h) const {
  const Output output = call(x, h, {}, &lengths);
  return {output.y, output.h};
}

Recurrent::Output RNN::run(const Tensor& x, const RecurrentWeights& w, const Tensor& h, const Tensor&,
                           Direction direction) const {
  const Tensor from_x = linear(x, w.of_x, w.bias_x);
  const int64_t T = x.size(0);
  WEFT_CHECK(T > 0, "RNN: expected at least one step, got ", x);
  std::vector<Tensor> steps(static_cast<size_t>(T));
  Tensor state = h;
  for (int64_t i = 0; i < T; ++i) {
    const int64_t t = direction == Direction::forward ? i : T - 1 - i;
    const Tensor sum = add(from_x.select(0, t), linear(state, w.of_h, w.bias_h));
    steps[static_cast<size_t>(t)] = state = relu_ ? relu(sum) : tanh(sum);
  }
  return {stack(steps, 0), state, {}};
}

GruOutput RNN::operator()(const Tensor& x, const Tensor& h) const {
  const Output output = call(x, h, {});
  return {output.y, output.h};
}

GruOutput RNN::operator()(const Tensor& x, const Lengths& lengths, const Tensor& h) const {
  const Output output = call(x, h, {}, &lengths);
  return {output.y, output.h};
}

RecurrentCell::RecurrentCell(const char* name, int64_t in, int64_t hidden, int64_t gates, bool bias) : name_(name) {
  WEFT_CHECK(in > 0 && hidden > 0, name, ": expected positive sizes, got in = ", in, ", hidden = ", hidden);
  weight_ih = Tensor::empty({gates * hidden, in});
  weight_hh = Tensor::empty({gates * hidden, hidden});
  if (bias) {
    bias_ih = Tensor::empty({gates * hidden});
    bias_hh = Tensor::empty({gates * hidden});
  }
  for (const Tensor& part : {weight_ih, weight_hh, bias_ih, bias_hh}) {
    if (!part.defined()) continue;
    bias_uniform_(part, weight_hh);  // ± 1 / sqrt(hidden) for all of them
    part.requires_grad_();
  }
}

void RecurrentCell::fields(Visitor& v) {
  v("weight_ih", weight_ih);
  v("weight_hh", weight_hh);
  v("bias_ih", bias_ih);
  v("bias_hh", bias_hh);
}

int64_t RecurrentCell::flops(const Shape& x, const Shape&) const {
  return 2 * x[0] * (weight_ih.numel() + weight_hh.numel());
}

Tensor RecurrentCell::checked(const Tensor& x, const Tensor& state) const {
  const int64_t in = weight_ih.size(1), hidden = weight_hh.size(1);
  WEFT_CHECK(x.defined() && x.dim() == 2 && x.size(1) == in, name_, ": expected an input [B, ", in, "], got ", x);
  const Shape sizes{x.size(0), hidden};
  WEFT_CHECK(!state.defined() || state.sizes() == sizes, name_, ": expected a state ", sizes, ", got ", state);
  return state.defined() ? state : Tensor::zeros(sizes, x.dtype(), x.device());
}

LstmState LSTMCell::step(const Tensor& x, const LstmState& state) const {
  const Tensor h = checked(x, state.h), c = checked(x, state.c);
  const Tensor bias = bias_ih.defined() ? add(bias_ih, bias_hh) : Tensor();
  const Tensor both = lstm(linear(x, weight_ih, bias).unsqueeze(0), weight_hh, h, c);
  return {both.select(0, 0), both.select(0, 1)};
}

LstmState LSTMCell::operator()(const Tensor& x, const LstmState& state) const {
  LstmState next;
  next.h = with_hooks(x, [&] {
    next = step(x, state);
    return next.h;
  });
  return next;
}

Tensor OneStateCell::operator()(const Tensor& x, const Tensor& h) const {
  return with_hooks(x, [&] { return step(x, h); });
}

Tensor GRUCell::step(const Tensor& x, const Tensor& h) const {
  const Tensor before = checked(x, h);
  return gru(linear(x, weight_ih, bias_ih).unsqueeze(0), weight_hh, bias_hh, before).select(0, 0);
}

Tensor RNNCell::step(const Tensor& x, const Tensor& h) const {
  return tanh(add(linear(x, weight_ih, bias_ih), linear(checked(x, h), weight_hh, bias_hh)));
}

}  // namespace weft::nn
