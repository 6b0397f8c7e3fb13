// SPDX-License-Identifier: Apache-2.0
#include "apps/finetune/evaluation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/ops/layers/losses.h"
#include "core/ops/reduce.h"
#include "train/loader_task.h"

namespace weft::finetune {

namespace {

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// The values of all ranks, one after the other.
std::vector<double> gathered(const std::vector<double>& own, const dist::World& world) {
  std::vector<double> counts(static_cast<size_t>(world.size()));
  counts[static_cast<size_t>(world.rank())] = static_cast<double>(own.size());
  counts = world.sum(counts, "evaluation");
  std::vector<double> all(static_cast<size_t>(std::accumulate(counts.begin(), counts.end(), 0.0)));
  std::copy(own.begin(), own.end(),
            all.begin() + static_cast<ptrdiff_t>(std::accumulate(counts.begin(), counts.begin() + world.rank(), 0.0)));
  return world.sum(all, "evaluation");
}

}  // namespace

double correlation(const std::vector<double>& x, const std::vector<double>& y) {
  const double a = mean_of(x), b = mean_of(y);
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - a) * (y[i] - b);
    xx += (x[i] - a) * (x[i] - a);
    yy += (y[i] - b) * (y[i] - b);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = static_cast<double>(begin + end + 1) / 2;
  }
  return ranks;
}

Score evaluate(train::Engine& engine, const Options& options, const Texts& texts, int64_t padding_id) {
  const dist::World& world = engine.parts().world;
  const data::Sampler order(static_cast<int64_t>(texts.labels.size()), train::validation_order(world));
  TextLoader loader(texts, order, std::max<int64_t>(options.batch_size, 32), padding_id, world.device());
  double loss = 0, count = 0, right = 0, hits = 0, guessed = 0, there = 0;
  std::vector<double> predictions, scores;  // for a regression
  Tensor like;
  const auto each = [&](const TextBatch& batch) {
    like = batch.input;
    count += static_cast<double>(batch.count);
    const Tensor logits = engine.forward(batch.input);
    if (texts.regression) {
      const Tensor values = logits.to(DType::f32).select(1, 0).contiguous();
      loss += mse_loss(values, batch.labels, Reduction::sum).item();
      for (const float value : values.to_vector<float>()) predictions.push_back(value);
      for (const float value : batch.labels.to_vector<float>()) scores.push_back(value);
      return;
    }
    loss += cross_entropy(logits, batch.labels, {.reduction = Reduction::sum}).item();
    const std::vector<int64_t> guesses = argmax(logits, 1).to_vector<int64_t>(),
                               labels = batch.labels.to_vector<int64_t>();
    for (size_t i = 0; i < labels.size(); ++i) {
      right += guesses[i] == labels[i];
      hits += guesses[i] == 1 && labels[i] == 1;
      guessed += guesses[i] == 1;
      there += labels[i] == 1;
    }
  };
  train::evaluate_batches(world, engine.parts().strategy, engine.progress(), "evaluation", &loader, each, [&] {
    engine.forward(like.defined() ? like : Tensor::zeros({1, 3, 2}, DType::i64, world.device()));
  });
  const std::vector<double> sums = world.sum({loss, count, right, hits, guessed, there}, "evaluation");
  if (texts.regression) {
    predictions = gathered(predictions, world);
    scores = gathered(scores, world);
    return {.loss = sums[0] / sums[1],
            .pearson = correlation(predictions, scores),
            .spearman = correlation(ranks_of(predictions), ranks_of(scores))};
  }
  return {.loss = sums[0] / sums[1],
          .accuracy = sums[2] / sums[1],
          .f1 = sums[4] + sums[5] > 0 ? 2 * sums[3] / (sums[4] + sums[5]) : 0};
}

}  // namespace weft::finetune
