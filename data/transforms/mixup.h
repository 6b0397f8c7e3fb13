// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"
#include "data/draw.h"

namespace weft::data {

/// Images, and the probability of each class as target of cross entropy: f32 [count, classes].
struct MixedBatch {
  Tensor images;
  Tensor targets;
};

/// mixup (Zhang et al., ICLR 2018): every image is blended with its neighbour in the batch (the first with the last): x
/// = l x_i + (1 - l) x_{i-1}. One-hot targets are blended likewise; one l ~ Beta(alpha, alpha) per batch.
/// images: floating [N, H, W, C]; labels: i64 [N], on the same device, where all work happens: the same draw makes the
/// same bits on each. Errors: alpha not positive; labels as mixed_targets() says.
MixedBatch mixup(const Tensor& images, const Tensor& labels, int64_t classes, double alpha, Draw& draw);

/// CutMix (Yun et al., ICCV 2019): a random box of the neighbour is pasted into every image; targets are mixed by area.
MixedBatch cutmix(const Tensor& images, const Tensor& labels, int64_t classes, double alpha, Draw& draw);

namespace detail {
/// Beta(alpha, alpha) in [0, 1], from two gamma variables (Marsaglia and Tsang, ACM TOMS 26, 2000).
double symmetric_beta(double alpha, Draw& draw);
}  // namespace detail

}  // namespace weft::data
