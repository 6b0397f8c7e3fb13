// SPDX-License-Identifier: Apache-2.0
#include "apps/train_image/pixel_statistics.h"

#include <fmt/format.h>

#include <optional>

#include "apps/support/flags.h"
#include "data/dataset.h"
#include "io/weights/weights_file.h"

namespace weft::train_image {
namespace {

constexpr const char *kMean = "pixel_mean", *kStd = "pixel_std";

std::string joined(const std::vector<float>& values) {
  std::string out;
  for (const float value : values) out += (out.empty() ? "" : ",") + fmt::format("{}", value);
  return out;
}

std::vector<float> per_channel(const char* flag, const std::vector<double>& given, size_t channels) {
  if (given.size() != channels && given.size() != 1)
    throw train::UsageError(str("--", flag, ": expected ", channels, " numbers, one per channel, got ", given.size()));
  std::vector<float> result(channels);
  for (size_t c = 0; c < channels; ++c) result[c] = static_cast<float>(given[given.size() == 1 ? 0 : c]);
  return result;
}

/// What the file tells beside its tensors; nothing where it cannot be read: who loads the weights says why.
std::map<std::string, std::string> metadata(const Options& options) {
  try {
    return open_weights(options.weights, {.key = options.weights_key})->metadata();
  } catch (const Error&) {
    return {};
  }
}

std::optional<PixelStatistics> of_weights(const Options& options, size_t channels) {
  if (options.weights.empty()) return {};
  const auto texts = metadata(options);
  const auto mean = texts.find(kMean), std = texts.find(kStd);
  if (mean == texts.end() || std == texts.end()) return {};
  const auto read = [&](const auto& text) {
    return per_channel(text->first.c_str(), support::parse_list(options.weights, text->second, channels), channels);
  };
  return PixelStatistics{read(mean), read(std), options.weights};
}

PixelStatistics of_set(const data::Dataset& set, const char* part, const Options& options) {
  const data::ChannelStatistics all = data::channel_statistics(set, static_cast<int>(options.workers));
  return {{all.mean.begin(), all.mean.end()}, {all.std.begin(), all.std.end()}, str("the ", part, " part")};
}

/// Whatever keeps the training part from being read, --eval-only needs it for nothing else.
std::shared_ptr<const data::Dataset> training_part_if_there(const Options& options) {
  try {
    return data::open_dataset(options.data, data::Split::train);
  } catch (const Error&) {
    return nullptr;
  }
}

PixelStatistics measured(const Options& options, const data::Dataset* train, const data::Dataset& val) {
  if (train != nullptr) return of_set(*train, "training", options);
  if (const auto known = of_weights(options, static_cast<size_t>(val.channels()))) return *known;
  const auto there = training_part_if_there(options);
  return there && there->channels() == val.channels() ? of_set(*there, "training", options)
                                                      : of_set(val, "validation", options);
}

}  // namespace

std::map<std::string, std::string> PixelStatistics::texts() const {
  return {{kMean, joined(mean)}, {kStd, joined(std)}};
}

PixelStatistics pixel_statistics(const Options& options, const data::Dataset* train, const data::Dataset& val) {
  PixelStatistics result;
  const auto channels = static_cast<size_t>(val.channels());
  if (options.mean.empty() || options.std.empty()) result = measured(options, train, val);
  if (!options.mean.empty()) result.mean = per_channel("mean", options.mean, channels);
  if (!options.std.empty()) result.std = per_channel("std", options.std, channels);
  if (!options.mean.empty() && !options.std.empty()) result.origin = "--mean and --std";
  for (const float value : result.std)
    if (!(value > 0)) throw train::UsageError(str("--std: expected positive numbers, got ", value));
  return result;
}

}  // namespace weft::train_image
