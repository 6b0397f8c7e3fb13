// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft::nersc_vit {

/// The mean over the samples of ||prediction - target|| / ||target||; [N, rows, columns, channels] both, in f32.
Tensor relative_l2_loss(const Tensor& prediction, const Tensor& target);

/// For each channel the mean over the samples of the root mean square error. The cosine of latitude is each place's
/// weight (rows from 90 degrees north to 90 south; Rasp et al. 2020, "WeatherBench", equation 2). [channels].
Tensor latitude_weighted_rmse(const Tensor& prediction, const Tensor& target);

}  // namespace weft::nersc_vit
