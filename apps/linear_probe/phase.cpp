// SPDX-License-Identifier: Apache-2.0
#include "apps/linear_probe/phase.h"

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "core/ops/layers/losses.h"
#include "kernels/runtime/allocator.h"
#include "optim/layer_decay.h"
#include "optim/optimizers.h"
#include "train/loader_task.h"
#include "train/memory.h"

namespace weft::linear_probe {
namespace {

/// The line that the workflow's program prints of a tensor that holds the accuracy in per cent.
std::string accuracy_line(double accuracy, Device device) {
  char number[32];
  std::snprintf(number, sizeof number, "%.4f", 100 * accuracy);
  const std::string where = device.kind == DeviceKind::cuda ? str(", device='cuda:", device.index, "'") : "";
  return str("{'validation accuracy': tensor(", number, where, ")}");
}

std::vector<optim::ParameterGroup> groups(const std::vector<NamedTensor>& parameters, const PhaseOptions& how,
                                          double weight_decay) {
  if (how.layer_decay < 1)
    return optim::by_layer(parameters, {.lr = how.lr, .factor = how.layer_decay, .weight_decay = weight_decay});
  return weight_decay > 0 ? optim::without_decay_on_vectors(parameters)
                          : std::vector<optim::ParameterGroup>{{parameters}};
}

train::EngineOptions engine_options(const Options& options, const PhaseOptions& how) {
  train::EngineOptions result = train::engine_options(options);
  result.saved_prefix = how.saved_prefix;
  result.line_before_validation = true;
  result.program = "";  // a run has two phases and one line
  return result;
}

/// Images for a backbone, or what a backbone says of them, for the classifier alone.
struct Examples {
  Tensor input, labels;
  void fields(auto& v) { v("input", input), v("labels", labels); }
};

class Phase final : public train::TypedTask<Examples> {
 public:
  Phase(const Options& options, const dist::World& ranks, Session& session, train::Strategy& strategy,
        nn::Module& model, const PhaseOptions& how, PhaseData data)
      : TypedTask(data.training),
        options_(options),
        ranks_(ranks),
        session_(session),
        data_(std::move(data)),
        lr_(how.lr),
        adam_(groups(strategy.parameters(), how, options.weight_decay),
              {.lr = how.lr, .weight_decay = options.weight_decay}),
        averages_(train::make_averages(options.averages, adam_, model)),
        engine_(*this, {ranks, model, strategy, adam_, averages_.get()}, engine_options(options, how),
                session.interruption()) {
    session.resume(engine_);
  }

  bool run() {
    kernels::CachingAllocator::of(ranks_.device()).reset_peak();
    const bool finished = engine_.run() == train::RunEnd::finished;
    if (finished && averages_) averages_->adopt();
    session_.end(engine_.position().step, finished);
    return finished;
  }

 private:
  int64_t batch_size() const override { return options_.batch_size; }

  void epoch_begins() override { std::cout << ranks_.rank() << " epoch" << std::endl; }

  train::Measured loss(const Examples& batch) override {
    return {cross_entropy(engine_.forward(data_.prepare(batch.input)), batch.labels)};
  }

  train::Validation validate(const train::Epoch&) override {
    engine_.parts().model.eval();
    int64_t count = 0;
    double right = 0;
    const auto each = [&](const data::Stacked& batch) {
      const Examples examples = typed(batch.tensors);
      right += train::count_correct(engine_.forward(data_.prepare(examples.input)), examples.labels).item();
      count += batch.count;
    };
    train::evaluate_batches(ranks_, engine_.parts().strategy, engine_.progress(), "validation", data_.validation.get(),
                            each, [&] { engine_.forward(data_.stand_in); });
    const std::vector<double> sums = ranks_.sum({right, static_cast<double>(count)}, "right answers");
    accuracy_ = sums[0] / sums[1];
    return {};
  }

  void epoch_done(const train::Epoch& epoch, const train::Validation&) override {
    PhaseResult& result = session_.result();
    result = {.accuracy = accuracy_,
              .best_accuracy = std::max(result.best_accuracy, accuracy_),
              .train_loss = epoch.loss,
              .images_per_second = static_cast<double>(epoch.samples) / epoch.seconds,
              .peak_tensor_bytes = static_cast<double>(train::peak_tensor_bytes(ranks_.device()))};
    if (ranks_.is_first()) std::cout << accuracy_line(accuracy_, ranks_.device()) << std::endl;
    Record* record = session_.record();
    if (!record) return;
    const int64_t number = session_.first_epoch() + epoch.number;
    record->metrics.append({.epoch = number,
                            .step = engine_.position().step,
                            .split = train::Split::train,
                            .loss = result.train_loss,
                            .accuracy = accuracy_,
                            .lr = lr_,
                            .images_per_second = result.images_per_second});
    record->validated(number, 100 * accuracy_);
    record->board.scalar("training loss", result.train_loss, number);
  }

  std::string save() override {
    session_.save(engine_);
    return "a checkpoint";
  }

  const Options& options_;
  const dist::World& ranks_;
  Session& session_;
  PhaseData data_;
  double lr_;
  optim::AdamW adam_;
  std::unique_ptr<optim::Ema> averages_;
  train::Engine engine_;
  double accuracy_ = 0;  // from the last validation
};

}  // namespace

bool run_phase(const Options& options, const dist::World& ranks, Session& session, train::Strategy& strategy,
               nn::Module& model, const PhaseOptions& how, PhaseData data) {
  return Phase(options, ranks, session, strategy, model, how, std::move(data)).run();
}

}  // namespace weft::linear_probe
