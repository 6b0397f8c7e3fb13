// SPDX-License-Identifier: Apache-2.0
#include "apps/finetune/evaluation.h"

#include <algorithm>

#include "core/autograd.h"
#include "core/ops/losses.h"
#include "core/ops/reduce.h"

namespace weft::finetune {

Score evaluate(train::Engine& engine, const Options& options, const Texts& texts, int64_t padding_id) {
  const NoGrad no_grad;
  const dist::World& world = engine.parts().world;
  const data::Sampler order(
      static_cast<int64_t>(texts.labels.size()),
      {.shuffle = false, .rank = world.rank(), .world = world.size(), .tail = data::Tail::uneven});
  TextLoader loader(texts, order, std::max<int64_t>(options.batch_size, 32), padding_id, world.device());
  const int64_t idle = engine.parts().strategy.steps_to_join(world, loader.steps_per_epoch());
  double loss = 0, count = 0, right = 0, hits = 0, guessed = 0, there = 0;
  Tensor like;
  engine.progress().begin("evaluation", loader.steps_per_epoch());
  while (const auto batch = loader.next()) {
    like = batch->input;
    const Tensor logits = engine.forward(batch->input);
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
    engine.progress().step({.images = batch->count * world.size()});
  }
  engine.progress().drop();
  if (!like.defined()) like = Tensor::zeros({1, 3, 2}, DType::i64, world.device());
  for (int64_t step = 0; step < idle; ++step) engine.forward(like);
  const std::vector<double> sums = world.sum({loss, count, right, hits, guessed, there}, "evaluation");
  return {.loss = sums[0] / sums[1],
          .accuracy = sums[2] / sums[1],
          .f1 = sums[4] + sums[5] > 0 ? 2 * sums[3] / (sums[4] + sums[5]) : 0};
}

}  // namespace weft::finetune
