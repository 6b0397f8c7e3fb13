// SPDX-License-Identifier: Apache-2.0
#include "train/record/step_sums.h"

#include <cmath>
#include <string_view>
#include <utility>

#include "core/autograd.h"

namespace weft::train {

StepSums::StepSums(const dist::World& world, Signals& signals, LossSum kind)
    : world_(world),
      signals_(signals),
      kind_(kind),
      loss_sum_(Tensor::zeros({}, DType::f64, world.device())),
      correct_sum_(Tensor::zeros({}, DType::f32, world.device())) {}

void StepSums::add(const Tensor& loss, int64_t samples, const Tensor& correct) const {
  const NoGrad no_grad;
  loss_sum_.add_(loss.detach().to(DType::f64), kind_ == LossSum::per_step ? 1 : static_cast<double>(samples));
  if (correct.defined()) correct_sum_.add_(correct);
}

void StepSums::count(int64_t samples, double waited) {
  samples_ += samples;
  waited_ += waited;
  ++steps_;
}

StepSums::Totals StepSums::read() {
  if (steps_ == 0) return {};
  Totals totals{.steps = std::exchange(steps_, 0),
                .own_loss = loss_sum_.item(),
                .own_correct = correct_sum_.item(),
                .own_samples = std::exchange(samples_, 0)};
  const std::string_view stop = signals_.stop_signal();
  const std::vector<double> all = world_.sum(
      {totals.own_loss, totals.own_correct, static_cast<double>(totals.own_samples), std::exchange(waited_, 0),
       stop == "SIGINT" ? 1.0 : 0.0, stop == "SIGTERM" ? 1.0 : 0.0, signals_.take_save_request() ? 1.0 : 0.0,
       gradient_is_finite_ ? 0.0 : 1.0, stop == "SIGHUP" ? 1.0 : 0.0},
      "loss, counts and signals");
  loss_sum_.zero_();
  correct_sum_.zero_();
  totals.own_loss_is_finite = std::isfinite(totals.own_loss);
  totals.loss = all[0];
  totals.own_gradient_is_finite = std::exchange(gradient_is_finite_, true);
  totals.gradients_are_finite = all[7] == 0;
  totals.correct = all[1];
  totals.samples = std::llround(all[2]);
  totals.waited = all[3] / world_.size();
  if (all[4] > 0) stop_signal_ = "SIGINT";
  if (all[8] > 0) stop_signal_ = "SIGHUP";
  if (all[5] > 0) stop_signal_ = "SIGTERM";
  save_ = save_ || all[6] > 0;
  return totals;
}

std::string StepSums::stop_signal() {
  if (world_.size() == 1) stop_signal_ = signals_.stop_signal();
  return stop_signal_;
}

bool StepSums::take_save_request() {
  if (world_.size() == 1) save_ = save_ || signals_.take_save_request();
  return std::exchange(save_, false);
}

}  // namespace weft::train
