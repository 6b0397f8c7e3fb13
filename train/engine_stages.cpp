// SPDX-License-Identifier: Apache-2.0
// The engine's step of a model in stages.
#include <algorithm>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/trace.h"
#include "dist/pipeline/pipeline.h"
#include "train/engine.h"

namespace weft::train {

/// The step of a model in stages. All batches of the step, each in micro_batches parts, go through the pipeline in one
/// schedule. The last stage has the losses; all ranks of the row get them, and count them as if they had them.
void Engine::update_in_stages(dist::Pipeline& pipeline, std::vector<Tensor> batch, int64_t samples) {
  const double mean_samples = mean_samples_in_step();
  parts_.strategy.zero_grad(parts_.optimizer);
  dist::MicroBatches step{.precision = options_.precision};
  std::vector<Batch> parts;
  Batch whole{std::move(batch), samples};
  for (int64_t done = 0; done < batches_in_step(); ++done) {
    if (done > 0) whole = next_in_step(done);
    const int64_t rows = whole.tensors.front().size(0), count = std::min(options_.micro_batches, rows);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t first = rows * i / count, own = rows * (i + 1) / count - first;
      Batch part{{}, whole.samples == 0 ? 0 : own};
      for (const Tensor& tensor : whole.tensors) part.tensors.push_back(tensor.slice(0, first, own));
      step.inputs.push_back(part.tensors.front());
      parts.push_back(std::move(part));
    }
    step.samples += whole.samples;
  }
  const Tensor mean = Tensor::zeros({}, DType::f32, step.inputs.front().device());
  step.loss = [&](size_t i) {
    const Measured measured = task_.loss(parts[i].tensors);
    WEFT_CHECK(!measured.correct.defined(), "engine: right answers are not counted in a pipeline");
    const double share =
        step.samples == 0 ? 0 : static_cast<double>(parts[i].samples) / static_cast<double>(step.samples);
    const Tensor loss = times(measured.loss, share);
    {
      const NoGrad no_grad;
      mean.add_(loss.detach().to(DType::f32));
    }
    return scaled(loss);
  };
  pipeline.run(step);
  pipeline.broadcast_from_last(mean, "loss");
  last_loss_ = mean;
  const bool by_step = options_.sum == LossSum::per_step;
  interruption_.sums.add(by_step ? times(mean, static_cast<double>(step.samples) / mean_samples) : mean, step.samples);
  const TraceScope scope("optimizer");
  apply_gradients();
}

}  // namespace weft::train
