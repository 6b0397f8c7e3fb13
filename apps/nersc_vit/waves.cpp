// SPDX-License-Identifier: Apache-2.0
#include "apps/nersc_vit/waves.h"

#include <cmath>
#include <numbers>
#include <random>

namespace weft::nersc_vit {
namespace {

constexpr int kWaves = 4;
constexpr double kTurn = 2 * std::numbers::pi;

/// Equal on every machine, unlike the standard library's distributions.
double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

}  // namespace

Waves::Waves(const data::FieldSize& size, uint64_t seed) : size_(size) {
  std::mt19937_64 of_channels(1);  // speeds and amplitudes are the weather's, phases the year's
  std::mt19937_64 of_year(seed);
  for (int64_t c = 0; c < size.channels; ++c) {
    Channel channel{.mean = 20 * uniform(of_channels) - 10, .amplitude = 1 + 9 * uniform(of_channels), .waves = {}};
    for (int k = 0; k < kWaves; ++k)
      channel.waves.push_back({.number = 1 + static_cast<int64_t>(3 * uniform(of_channels)),
                               .phase = kTurn * uniform(of_year),
                               .speed = 0.1 + 0.3 * uniform(of_channels),
                               .amplitude = 0.5 + uniform(of_channels),
                               .tilt = 2 * uniform(of_channels) - 1});
    channels_.push_back(std::move(channel));
  }
}

void Waves::fill(int64_t time, float* values) const {
  for (const Channel& channel : channels_)
    for (int64_t row = 0; row < size_.rows; ++row) {
      const double latitude = (static_cast<double>(row) + 0.5) / static_cast<double>(size_.rows) - 0.5;  // half turns
      for (int64_t column = 0; column < size_.columns; ++column) {
        const double longitude = static_cast<double>(column) / static_cast<double>(size_.columns);  // turns
        double sum = 0;
        for (const Wave& wave : channel.waves)
          sum += wave.amplitude * std::sin(kTurn * static_cast<double>(wave.number) * longitude + wave.phase +
                                           wave.tilt * latitude * kTurn - wave.speed * static_cast<double>(time));
        *values++ = static_cast<float>(channel.mean + channel.amplitude * std::cos(latitude * std::numbers::pi) * sum);
      }
    }
}

}  // namespace weft::nersc_vit
