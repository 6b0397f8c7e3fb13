// SPDX-License-Identifier: Apache-2.0
#include "optim/optimizers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <unordered_map>

#include "core/capture.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "kernels/contracts/optimizer.h"

namespace weft::optim {

SGD::SGD(const ParameterGroups& groups, const SgdOptions& options)
    : Optimizer("SGD", groups, options.lr, options.weight_decay,
                options.momentum != 0 ? std::vector<std::string>{"momentum_buffer"} : std::vector<std::string>{}),
      options_(options) {
  WEFT_CHECK(options.momentum >= 0, "SGD: expected a momentum of at least 0, got ", options.momentum);
  WEFT_CHECK(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
             "SGD: nesterov expects a momentum and no dampening, got momentum ", options.momentum, ", dampening ",
             options.dampening);
}

void SGD::update(const Range& range) {
  kernels::sgd_step(range.w.queue(), range.w, range.states.empty() ? Tensor() : range.states[0], range.compute_copy,
                    range.g, range.scalars,
                    {.momentum = options_.momentum,
                     .dampening = options_.dampening,
                     .weight_decay = range.weight_decay,
                     .nesterov = options_.nesterov,
                     .maximize = options_.maximize});
}

Adam::Adam(const ParameterGroups& groups, const AdamOptions& options)
    : Adam("Adam", groups, options, /*decoupled=*/false) {}

Adam::Adam(const char* name, const std::vector<ParameterGroup>& groups, const AdamOptions& options, bool decoupled)
    : Optimizer(name, groups, options.lr, options.weight_decay,
                options.amsgrad ? std::vector<std::string>{"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}
                                : std::vector<std::string>{"exp_avg", "exp_avg_sq"}),
      options_(options),
      decoupled_(decoupled) {
  for (const double beta : {options.beta1, options.beta2})
    WEFT_CHECK(beta >= 0 && beta < 1, name, ": expected betas in [0, 1), got ", beta);
  WEFT_CHECK(options.eps >= 0, name, ": expected an eps of at least 0, got ", options.eps);
}

void Adam::update(const Range& range) {
  kernels::adam_step(range.w.queue(), range.w, range.states[0], range.states[1],
                     options_.amsgrad ? range.states[2] : Tensor(), range.compute_copy, range.g, range.scalars,
                     {.beta1 = options_.beta1,
                      .beta2 = options_.beta2,
                      .eps = options_.eps,
                      .weight_decay = range.weight_decay,
                      .decoupled = decoupled_,
                      .maximize = options_.maximize});
}

AdamW::AdamW(const ParameterGroups& groups, const AdamWOptions& options)
    : Adam("AdamW", groups,
           {.lr = options.lr,
            .beta1 = options.beta1,
            .beta2 = options.beta2,
            .eps = options.eps,
            .weight_decay = options.weight_decay,
            .maximize = options.maximize,
            .amsgrad = options.amsgrad},
           /*decoupled=*/true) {}

Adagrad::Adagrad(const ParameterGroups& groups, const AdagradOptions& options)
    : Optimizer("Adagrad", groups, options.lr, options.weight_decay, {"sum"}), options_(options) {
  for (const double value : {options.lr_decay, options.initial_accumulator_value, options.eps})
    WEFT_CHECK(value >= 0, "Adagrad: expected lr_decay, initial_accumulator_value and eps of at least 0, got ", value);
  fill_state(0, options.initial_accumulator_value);
}

void Adagrad::update(const Range& range) {
  kernels::adagrad_step(range.w.queue(), range.w, range.states[0], range.compute_copy, range.g, range.scalars,
                        {.lr_decay = options_.lr_decay,
                         .eps = options_.eps,
                         .weight_decay = range.weight_decay,
                         .maximize = options_.maximize});
}

Adadelta::Adadelta(const ParameterGroups& groups, const AdadeltaOptions& options)
    : Optimizer("Adadelta", groups, options.lr, options.weight_decay, {"square_avg", "acc_delta"}), options_(options) {
  WEFT_CHECK(options.rho >= 0 && options.rho <= 1, "Adadelta: expected rho in [0, 1], got ", options.rho);
  WEFT_CHECK(options.eps >= 0, "Adadelta: expected an eps of at least 0, got ", options.eps);
}

void Adadelta::update(const Range& range) {
  kernels::adadelta_step(
      range.w.queue(), range.w, range.states[0], range.states[1], range.compute_copy, range.g, range.scalars,
      {.rho = options_.rho, .eps = options_.eps, .weight_decay = range.weight_decay, .maximize = options_.maximize});
}

namespace {

std::vector<std::string> states(const RMSpropOptions& options) {
  std::vector<std::string> names{"square_avg"};
  if (options.momentum > 0) names.emplace_back("momentum_buffer");
  if (options.centered) names.emplace_back("grad_avg");
  return names;
}

}  // namespace

RMSprop::RMSprop(const ParameterGroups& groups, const RMSpropOptions& options)
    : Optimizer("RMSprop", groups, options.lr, options.weight_decay, states(options)), options_(options) {
  WEFT_CHECK(options.alpha >= 0 && options.alpha <= 1, "RMSprop: expected alpha in [0, 1], got ", options.alpha);
  WEFT_CHECK(options.eps >= 0, "RMSprop: expected an eps of at least 0, got ", options.eps);
  WEFT_CHECK(options.momentum >= 0, "RMSprop: expected a momentum of at least 0, got ", options.momentum);
}

void RMSprop::update(const Range& range) {
  const bool has_momentum = options_.momentum > 0;
  kernels::rmsprop_step(range.w.queue(), range.w, range.states.front(), has_momentum ? range.states[1] : Tensor(),
                        options_.centered ? range.states.back() : Tensor(), range.compute_copy, range.g, range.scalars,
                        {.alpha = options_.alpha,
                         .eps = options_.eps,
                         .weight_decay = range.weight_decay,
                         .momentum = options_.momentum,
                         .maximize = options_.maximize});
}

Lion::Lion(const ParameterGroups& groups, const LionOptions& options)
    : Optimizer("Lion", groups, options.lr, options.weight_decay, {"exp_avg"}), options_(options) {
  for (const double beta : {options.beta1, options.beta2})
    WEFT_CHECK(beta >= 0 && beta < 1, "Lion: expected betas in [0, 1), got ", beta);
}

void Lion::update(const Range& range) {
  kernels::lion_step(range.w.queue(), range.w, range.states[0], range.compute_copy, range.g, range.scalars,
                     {.beta1 = options_.beta1,
                      .beta2 = options_.beta2,
                      .weight_decay = range.weight_decay,
                      .maximize = options_.maximize});
}

namespace {

Tensor table(const std::vector<int64_t>& rows, Device device) {
  return Tensor::from(rows, {static_cast<int64_t>(rows.size()) / 3, 3}, device);
}

}  // namespace

ByParameter::ByParameter(const char* name, const std::vector<ParameterGroup>& groups, double lr, double weight_decay,
                         std::vector<std::string> states, bool always_adapt)
    : Optimizer(name, groups, lr, weight_decay, std::move(states)), always_adapt_(always_adapt) {
  launches_changed();
}

void ByParameter::launches_changed() {
  std::unordered_map<const TensorImpl*, size_t> launch_of;
  for (size_t i = 0; i < launches().size(); ++i)
    for (const NamedTensor& parameter : launches()[i].parameters) launch_of[parameter.tensor.impl()] = i;
  std::vector<int64_t> all, firsts{0};
  std::vector<std::vector<int64_t>> of_launch(launches().size());
  int64_t number = 0;
  for (const FlatSlice& slice : flat()->slices()) {
    const auto found = launch_of.find(slice.parameter.impl());
    const int64_t end = slice.offset + slice.numel;
    for (int64_t begin = slice.offset; found != launch_of.end() && begin < end; begin += kernels::kChunkElements)
      for (std::vector<int64_t>* rows : {&all, &of_launch[found->second]})
        rows->insert(rows->end(), {begin, std::min(end, begin + kernels::kChunkElements), number});
    firsts.push_back(static_cast<int64_t>(all.size()) / 3);
    ++number;
  }
  const Device device = flat()->device();
  all_chunks_ = table(all, device);
  firsts_ = Tensor::from(firsts, device);
  chunks_.clear();
  for (const std::vector<int64_t>& rows : of_launch) chunks_.push_back(table(rows, device));
}

Tensor ByParameter::squares(const std::vector<Tensor>& buffers) const {
  bool any = false;
  for (const Launch& launch : launches()) any |= adapts(launch.group);
  if (!any) return {};
  if (capture_number() != 0)
    on_each_run([held = std::tuple(all_chunks_, firsts_, chunks_)] {});  // as long as the graph
  const Tensor sums =
      Tensor::empty({static_cast<int64_t>(buffers.size()), firsts_.numel() - 1}, flat()->dtype(), flat()->device());
  const Tensor partial = Tensor::empty({all_chunks_.size(0)}, flat()->dtype(), flat()->device());
  for (size_t i = 0; i < buffers.size(); ++i)
    kernels::parameter_squares(sums.queue(), sums.select(0, static_cast<int64_t>(i)), partial, buffers[i], all_chunks_,
                               firsts_);
  return flat()->whole_sums(sums);
}

LARS::LARS(const ParameterGroups& groups, const LarsOptions& options)
    : ByParameter("LARS", groups, options.lr, options.weight_decay, {"momentum_buffer"}, options.always_adapt),
      options_(options) {
  for (const double value : {options.momentum, options.trust, options.eps})
    WEFT_CHECK(value >= 0, "LARS: expected a momentum, trust and eps of at least 0, got ", value);
}

void LARS::update_all() {
  const Tensor norms = squares({flat()->master(), flat()->gradient()});
  for (const Launch& launch : launches()) {
    const Range all = whole_range(launch);
    const bool adapt = adapts(launch.group);
    kernels::lars_step(all.w.queue(), all.w, all.states[0], all.compute_copy, all.g, all.scalars, chunks(launch),
                       adapt ? norms.select(0, 0) : Tensor(), adapt ? norms.select(0, 1) : Tensor(),
                       {.momentum = options_.momentum,
                        .weight_decay = all.weight_decay,
                        .nesterov = options_.nesterov,
                        .maximize = options_.maximize,
                        .trust = options_.trust,
                        .eps = options_.eps});
  }
}

LAMB::LAMB(const ParameterGroups& groups, const LambOptions& options)
    : ByParameter("LAMB", groups, options.lr, options.weight_decay, {"exp_avg", "exp_avg_sq"}, options.always_adapt),
      options_(options) {
  for (const double beta : {options.beta1, options.beta2})
    WEFT_CHECK(beta >= 0 && beta < 1, "LAMB: expected betas in [0, 1), got ", beta);
  WEFT_CHECK(options.eps >= 0, "LAMB: expected an eps of at least 0, got ", options.eps);
}

void LAMB::update_all() {
  const kernels::LambArguments rule{.beta1 = options_.beta1,
                                    .beta2 = options_.beta2,
                                    .eps = options_.eps,
                                    .clip_trust = options_.clip_trust,
                                    .maximize = options_.maximize};
  const Tensor moves = empty_like(flat()->master());
  for (const Launch& launch : launches()) {
    kernels::LambArguments arguments = rule;
    arguments.weight_decay = weight_decay(launch.group);
    const Range all = whole_range(launch);
    kernels::lamb_direction(all.w.queue(), moves, all.states[0], all.states[1], all.w, all.g, all.scalars,
                            chunks(launch), arguments);
  }
  const Tensor norms = squares({flat()->master(), moves});
  for (const Launch& launch : launches()) {
    const Range all = whole_range(launch);
    const bool adapt = adapts(launch.group);
    kernels::lamb_step(all.w.queue(), all.w, all.compute_copy, moves, all.scalars, chunks(launch),
                       adapt ? norms.select(0, 0) : Tensor(), adapt ? norms.select(0, 1) : Tensor(), rule);
  }
}

Adafactor::Adafactor(const ParameterGroups& given, const AdafactorOptions& options)
    : Optimizer("Adafactor", given, options.lr, options.weight_decay, {}), options_(options) {
  WEFT_CHECK(options.beta2_decay <= 0, "Adafactor: expected a beta2_decay of at most 0, got ", options.beta2_decay);
  WEFT_CHECK(options.eps1.value_or(0) >= 0 && options.eps2 >= 0,
             "Adafactor: expected eps1 and eps2 of at least 0, got ", options.eps1.value_or(0), " and ", options.eps2);
  WEFT_CHECK(options.d >= 1, "Adafactor: expected a d of at least 1, got ", options.d);
  for (int group = 0; group < groups(); ++group)
    for (const NamedTensor& parameter : parameters(group)) Adafactor::added(group, parameter);
}

void Adafactor::added(int, const NamedTensor& parameter) {
  const Tensor& w = parameter.tensor;
  WEFT_CHECK(!flat()->is_divided(w), "Adafactor: '", parameter.name, "' ", w,
             " is one rank's part: its rows and columns are not here. Use DDP, or another optimizer");
  const auto add = [&](const char* state, const Shape& sizes) {
    const Tensor zeros = Tensor::zeros(sizes, flat()->dtype(), flat()->device());
    add_state(parameter.name + '.' + state, zeros);
    return zeros;
  };
  const std::vector<FlatSlice>& slices = flat()->slices();
  Moments one{.slice = *std::find_if(slices.begin(), slices.end(),
                                     [&](const FlatSlice& slice) { return slice.parameter.is_same(w); }),
              .rows = {},
              .columns = {}};
  if (w.dim() > 1) {
    Shape rows = w.sizes(), columns = w.sizes();
    rows[w.dim() - 1] = columns[w.dim() - 2] = 1;
    one.rows = add("row_var", rows);
    one.columns = add("col_var", columns);
  } else {
    one.columns = add("variance", w.sizes());
  }
  moments_.emplace(w.impl(), std::move(one));
}

void Adafactor::update_all() {
  constexpr double kAny = std::numeric_limits<double>::infinity();
  const double eps1 = options_.eps1.value_or(flat()->dtype() == DType::f64 ? std::numeric_limits<double>::epsilon()
                                                                           : std::numeric_limits<float>::epsilon());
  const Tensor gradient = flat()->gradient();
  for (const Launch& launch : launches())
    for (const NamedTensor& parameter : launch.parameters) {
      const auto& [slice, rows, columns] = moments_.at(parameter.tensor.impl());
      if (slice.numel == 0) continue;
      const Range own = range(launch, {slice.offset, slice.numel});
      const Tensor step = own.scalars.select(0, kStep), fresh = pow(step, options_.beta2_decay);
      const auto average = [&](const Tensor& state, const Tensor& now) { state.copy_(state + (now - state) * fresh); };
      const Tensor g = FlatParameters::place(gradient, slice), squares = square(g);
      Tensor variance = columns;
      if (rows.defined()) {
        average(rows, mean(squares, {-1}, true));
        average(columns, mean(squares, {-2}, true));
        variance = rows / clamp(mean(rows, {-2}, true), eps1, kAny) * columns;
      } else {
        average(columns, squares);
      }
      const Tensor u = g * rsqrt(clamp(variance, eps1 * eps1, kAny));
      const double root = std::sqrt(static_cast<double>(slice.numel));
      // sgd_step() multiplies by lr: the share of it that counts is min(1, 1 / (lr sqrt(step))).
      const Tensor share = clamp(rsqrt(step) / own.scalars.select(0, kLr), 0, 1);
      const Tensor rate =
          clamp(norm(own.w) / root, options_.eps2, kAny) / clamp(norm(u) / (root * options_.d), 1, kAny);
      kernels::sgd_step(own.w.queue(), own.w, Tensor(), own.compute_copy, (u * (rate * share)).reshape({slice.numel}),
                        own.scalars, {.weight_decay = own.weight_decay, .maximize = options_.maximize});
    }
}

}  // namespace weft::optim
