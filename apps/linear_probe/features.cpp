// SPDX-License-Identifier: Apache-2.0
#include "apps/linear_probe/features.h"

#include <memory>

#include "core/autograd.h"
#include "core/ops/concat.h"
#include "train/progress.h"

namespace weft::linear_probe {
namespace {

/// The ranks' rows in turn, [each, …] from every rank, as the rows of the set.
Tensor bring_together(const Tensor& own, int64_t images, const dist::World& ranks, const std::string& what) {
  if (ranks.size() == 1) return own;
  const bool on_host = ranks.group()->backend() != "nccl";
  const Tensor part = (on_host ? own.to(Device{}) : own).contiguous();
  Shape sizes = part.sizes();
  const int64_t each = sizes[0], world = ranks.size();
  sizes[0] = world * each;
  const Tensor all = Tensor::empty(sizes, part.dtype(), part.device());
  ranks.group()->all_gather(all.flatten(), part.flatten(), {.name = what})->wait();
  // Rank r had the images r, r + ranks, …
  const Tensor rows = all.reshape({world, each, all.numel() / (world * each)}).transpose(0, 1).contiguous();
  Shape of_set = own.sizes();
  of_set[0] = world * each;
  return rows.reshape(of_set).slice(0, 0, images).contiguous().to(own.device());
}

}  // namespace

Features compute_features(const Images& images, data::Split split, const dist::World& ranks,
                          const std::function<Tensor(const Tensor&)>& backbone) {
  const NoGrad no_grad;
  const auto loader = images.in_order(split, /*repeat=*/true);
  std::vector<Tensor> values, labels;
  std::unique_ptr<train::Progress> progress;
  if (ranks.is_first()) {
    progress = std::make_unique<train::Progress>();
    progress->begin(split == data::Split::train ? "features of the training part" : "features of the validation part",
                    loader->steps_per_epoch());
  }
  loader->start(0);
  while (const auto batch = loader->next()) {
    values.push_back(backbone(images.prepare(batch->images)).to(DType::f32));
    labels.push_back(batch->labels);
    if (progress) progress->step({.images = batch->count * ranks.size()});
  }
  if (progress) progress->end();
  const int64_t count = images.size(split);
  return {bring_together(concat(values), count, ranks, "features"),
          bring_together(concat(labels), count, ranks, "labels of features")};
}

}  // namespace weft::linear_probe
