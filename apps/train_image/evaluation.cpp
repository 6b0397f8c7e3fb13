// SPDX-License-Identifier: Apache-2.0
#include "apps/train_image/evaluation.h"

#include <chrono>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/argmax.h"
#include "core/ops/cross_entropy.h"
#include "core/trace.h"

namespace weft::train_image {

Evaluation evaluate(nn::Module& model, data::Loader& loader, int classes, DType precision) {
  const TraceScope scope("evaluate");
  const bool was_training = model.is_training();
  model.eval();
  const NoGrad no_grad;
  const auto start = std::chrono::steady_clock::now();
  Evaluation result{.confusion = support::ConfusionMatrix(classes)};
  double loss_sum = 0;
  loader.start(0);
  while (const auto batch = loader.next()) {
    Tensor logits;
    {
      const Autocast low(precision);
      logits = model(batch->images);
    }
    loss_sum += cross_entropy(logits, batch->labels, {.reduction = Reduction::sum}).item();
    const std::vector<int64_t> guesses = argmax(logits, 1).to_vector<int64_t>();
    const std::vector<int64_t> truths = batch->labels.to_vector<int64_t>();
    for (size_t i = 0; i < truths.size(); ++i) {
      result.confusion.add(truths[i], guesses[i]);
      result.correct += truths[i] == guesses[i];
    }
    result.images += batch->count;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double images = static_cast<double>(result.images);
  result.loss = loss_sum / images;
  result.accuracy = static_cast<double>(result.correct) / images;
  result.images_per_second = images / seconds;
  model.train(was_training);
  return result;
}

}  // namespace weft::train_image
