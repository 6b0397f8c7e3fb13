// SPDX-License-Identifier: Apache-2.0
#include "data/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "data/parallel_for.h"

namespace weft::data {
namespace {

/// Per channel: how often each byte occurs gives both sums exactly.
using Histogram = std::array<std::array<int64_t, 256>, 4>;

struct Moments {
  std::array<double, 4> first{}, second{};
};

Moments moments(const uint8_t* pixels, int64_t count, int64_t channels) {
  Histogram histogram{};
  for (int64_t p = 0; p < count; ++p)
    for (int64_t c = 0; c < channels; ++c) ++histogram[c][*pixels++];
  Moments result;
  for (int64_t c = 0; c < channels; ++c)
    for (int byte = 0; byte < 256; ++byte) {
      const double share = static_cast<double>(histogram[c][byte]) / static_cast<double>(count);
      result.first[c] += share * byte / 255;
      result.second[c] += share * byte * byte / (255.0 * 255.0);
    }
  return result;
}

ChannelStatistics compute(const Dataset& set, int threads) {
  // Chunks of fixed size, summed in order: the result does not depend on the number of threads.
  const Storage* storage = set.storage();
  const int64_t used = storage ? set.size() : std::min(set.size(), kStatisticsImages);
  const int64_t per_chunk = storage ? 512 : 1;
  const int64_t chunks = (used + per_chunk - 1) / per_chunk;
  std::vector<Moments> parts(static_cast<size_t>(chunks));
  parallel_for(chunks, threads, [&](int64_t chunk) {
    if (storage != nullptr) {
      const int64_t first = chunk * per_chunk, count = std::min(per_chunk, used - first);
      parts[chunk] = moments(storage->image(first), count * storage->height * storage->width, storage->channels);
      for (double& value : parts[chunk].first) value *= static_cast<double>(count);
      for (double& value : parts[chunk].second) value *= static_cast<double>(count);
    } else {
      const Image image = set.get(chunk * set.size() / used);
      parts[chunk] = moments(image.pixels.data(), image.height * image.width, image.channels);
    }
  });
  ChannelStatistics result;
  for (int64_t c = 0; c < set.channels(); ++c) {
    double first = 0, second = 0;
    for (const Moments& part : parts) first += part.first[c], second += part.second[c];
    const double mean = first / static_cast<double>(used);
    const double variance = std::max(0.0, second / static_cast<double>(used) - mean * mean);
    result.mean.push_back(mean);
    result.std.push_back(variance < 1e-12 ? 1.0 : std::sqrt(variance));
  }
  return result;
}

}  // namespace

const ChannelStatistics& channel_statistics(const Dataset& set, int threads) {
  const std::lock_guard lock(set.statistics_mutex_);
  if (!set.statistics_) set.statistics_ = compute(set, threads);
  return *set.statistics_;
}

}  // namespace weft::data
