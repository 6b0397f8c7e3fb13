// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

// Numbers from the device's generator (core/random.h); the same on every device for one seed. No gradients.

/// Uniform in [low, high), whatever the dtype: no draw is rounded to high. low = high gives low. Errors: not a floating
/// dtype, low > high, bounds that the dtype does not hold, no number of it between them.
Tensor uniform(const Shape& sizes, double low = 0, double high = 1, DType dtype = DType::f32, Device device = {});
/// Errors: not a floating dtype, a negative std, numbers that are not finite.
Tensor normal(const Shape& sizes, double mean = 0, double std = 1, DType dtype = DType::f32, Device device = {});
/// 1 with probability p, else 0. Any dtype.
Tensor bernoulli(const Shape& sizes, double p, DType dtype = DType::f32, Device device = {});
/// i64 numbers, each of low … high - 1 as likely. Errors: low >= high, more than 2^53 numbers.
Tensor randint(const Shape& sizes, Integer low, Integer high, Device device = {});
/// `count` classes for each row of `weights` [..., C], i64 [..., count], drawn with replacement; a class is as likely
/// as its weight (not negative; they need not sum to 1) among its row's. Without replacement: among the weights of
/// those that are left. Errors: not floating, no classes, count < 1; more than C without replacement; weights that are
/// negative, NaN or infinite, fewer positive ones than one (without replacement: than `count`), on other devices than
/// the CPU at the next wait for the device.
Tensor multinomial(const Tensor& weights, Integer count = 1, bool replacement = true);
/// The numbers 0 … n - 1 in random order, i64.
Tensor permutation(Integer n, Device device = {});

// In place; they return their argument. Errors: a tensor that needs a gradient while gradients are recorded.
const Tensor& uniform_(const Tensor& x, double low = 0, double high = 1);
const Tensor& normal_(const Tensor& x, double mean = 0, double std = 1);

/// Training: each element is 0 with probability p, else x / (1 - p) (Srivastava et al. 2014). Not training, or p = 0:
/// x. The mask is a function of the generator's state and the rank (set_dropout_rank()): it is computed again in
/// backward, never stored. Errors: p outside [0, 1].
Tensor dropout(const Tensor& x, double p = 0.5, bool training = true);
/// As above for whole channels x[n, …, c] of x [N, …, C]: PyTorch's dropout1d to 3d. Errors: less than two dimensions.
Tensor feature_dropout(const Tensor& x, double p = 0.5, bool training = true);

}  // namespace weft
