// SPDX-License-Identifier: Apache-2.0
#include "apps/support/step_sums.h"

#include <cmath>
#include <string_view>
#include <utility>

#include "core/autograd.h"

namespace weft::support {

StepSums::StepSums(const Ranks& ranks, Signals& signals)
    : ranks_(ranks),
      signals_(signals),
      loss_sum_(Tensor::zeros({}, DType::f32, ranks.device())),
      correct_sum_(Tensor::zeros({}, DType::f32, ranks.device())) {}

void StepSums::add(const Tensor& loss, int64_t images, const Tensor& correct) const {
  const NoGrad no_grad;
  loss_sum_.add_(loss.detach(), static_cast<double>(images));
  if (correct.defined()) correct_sum_.add_(correct);
}

void StepSums::count(int64_t images, double waited) {
  images_ += images;
  waited_ += waited;
  ++steps_;
}

StepSums::Totals StepSums::read() {
  if (steps_ == 0) return {};
  Totals totals{.steps = std::exchange(steps_, 0)};
  const double loss = loss_sum_.item();
  const std::string_view stop = signals_.stop_signal();
  const std::vector<double> all = ranks_.sum(
      {loss, correct_sum_.item(), static_cast<double>(std::exchange(images_, 0)), std::exchange(waited_, 0),
       stop == "SIGINT" ? 1.0 : 0.0, stop == "SIGTERM" ? 1.0 : 0.0, signals_.take_save_request() ? 1.0 : 0.0},
      "loss, counts and signals");
  loss_sum_.zero_();
  correct_sum_.zero_();
  totals.own_loss_is_finite = std::isfinite(loss);
  totals.loss = all[0];
  totals.correct = all[1];
  totals.images = std::llround(all[2]);
  totals.waited = all[3] / ranks_.size();
  if (all[4] > 0) stop_signal_ = "SIGINT";
  if (all[5] > 0) stop_signal_ = "SIGTERM";
  save_ = save_ || all[6] > 0;
  return totals;
}

std::string StepSums::stop_signal() {
  if (ranks_.size() == 1) stop_signal_ = signals_.stop_signal();
  return stop_signal_;
}

bool StepSums::take_save_request() {
  if (ranks_.size() == 1) save_ = save_ || signals_.take_save_request();
  return std::exchange(save_, false);
}

}  // namespace weft::support
