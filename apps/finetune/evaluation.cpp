// SPDX-License-Identifier: Apache-2.0
#include "apps/finetune/evaluation.h"

#include <algorithm>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/argmax.h"
#include "core/ops/cross_entropy.h"

namespace weft::finetune {

Score evaluate(const Options& options, const support::Ranks& ranks, support::Parallel& parallel, const Texts& texts,
               int64_t padding_id, support::Progress* progress) {
  const NoGrad no_grad;
  const data::Sampler order(
      static_cast<int64_t>(texts.labels.size()),
      {.shuffle = false, .rank = ranks.rank(), .world = ranks.size(), .tail = data::Tail::uneven});
  TextLoader loader(texts, order, std::max<int64_t>(options.batch_size, 32), padding_id, ranks.device());
  const int64_t most = ranks.max(loader.steps(), "steps of the evaluation");
  double loss = 0, count = 0, right = 0, hits = 0, guessed = 0, there = 0;
  const auto forward = [&](const Tensor& input) {
    const Autocast low(precision_of(options));
    return parallel.forward(input);
  };
  int64_t steps = 0;
  Tensor like;
  if (progress) progress->begin("evaluation", loader.steps());
  while (const auto batch = loader.next()) {
    like = batch->input;
    const Tensor logits = forward(batch->input);
    loss += cross_entropy(logits, batch->labels, {.reduction = Reduction::sum}).item();
    const std::vector<int64_t> guesses = argmax(logits, 1).to_vector<int64_t>(),
                               labels = batch->labels.to_vector<int64_t>();
    for (size_t i = 0; i < labels.size(); ++i) {
      right += guesses[i] == labels[i];
      hits += guesses[i] == 1 && labels[i] == 1;
      guessed += guesses[i] == 1;
      there += labels[i] == 1;
    }
    count += static_cast<double>(batch->count);
    ++steps;
    if (progress) progress->step({.images = batch->count * ranks.size()});
  }
  if (progress) progress->drop();
  if (!like.defined()) like = Tensor::zeros({1, 3, 2}, DType::i64, ranks.device());
  for (; parallel.is_sharded() && steps < most; ++steps) forward(like);  // the others need this rank's weights
  const std::vector<double> sums = ranks.sum({loss, count, right, hits, guessed, there}, "evaluation");
  return {.loss = sums[0] / sums[1],
          .accuracy = sums[2] / sums[1],
          .f1 = sums[4] + sums[5] > 0 ? 2 * sums[3] / (sums[4] + sums[5]) : 0};
}

}  // namespace weft::finetune
