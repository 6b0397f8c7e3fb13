// SPDX-License-Identifier: Apache-2.0
#include "data/pipeline.h"

#include <algorithm>
#include <charconv>

#include "core/nearest.h"
#include "data/transforms/crop.h"
#include "data/transforms/random_resized_crop.h"
#include "data/transforms/resize.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

int64_t parse_size(const std::string& text, const std::string& size, int64_t fallback) {
  if (size.empty() && fallback > 0) return fallback;
  int64_t value = 0;
  const auto [end, problem] = std::from_chars(size.data(), size.data() + size.size(), value);
  const bool whole = problem == std::errc() && end == size.data() + size.size();
  WEFT_CHECK(whole && value > 0 && value <= 1 << 14, "augment: expected NAME:SIZE with a size from 1 to 16384, got '",
             text, "'");
  return value;
}

Place random_flip(Draw& draw) { return {0, 0, draw.coin() ? 1 : 0}; }

std::function<Place(Draw&)> random_shift_and_flip(int64_t padding) {
  return [padding](Draw& draw) {
    const auto shift = [&] { return static_cast<int32_t>(draw.below(2 * padding + 1) - padding); };
    const int32_t top = shift(), left = shift();
    return Place{top, left, draw.coin() ? 1 : 0};
  };
}

Pipeline imagenet(int64_t size, Split split) {
  Pipeline pipeline{"imagenet", size, size, {}, {}};
  if (split == Split::train) {
    pipeline.prepare = [size](Picture picture, Draw& draw) {
      return random_resized_crop(picture, {.height = size, .width = size}, draw);
    };
    pipeline.place = random_flip;
  } else {
    const int64_t edge = size * 8 / 7;
    pipeline.prepare = [size, edge](Picture picture, Draw&) {
      return centre_crop(resize_shortest_edge(picture, edge), size, size);
    };
  }
  return pipeline;
}

}  // namespace

std::vector<std::string> pipeline_names() { return {"none", "flip", "cifar", "shapes", "imagenet", "resize"}; }

Pipeline make_pipeline(const std::string& text, Split split) {
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const std::string size = colon == std::string::npos ? "" : text.substr(colon + 1);
  const std::vector<std::string> names = pipeline_names();
  WEFT_CHECK(std::find(names.begin(), names.end(), kind) != names.end(), "augment: unknown name '", kind,
             "'.", suggestion(kind, names));
  const bool train = split == Split::train;
  if (kind == "imagenet") return imagenet(parse_size(text, size, 224), split);
  if (kind == "resize") {
    const int64_t edge = parse_size(text, size, 0);
    Pipeline pipeline{kind, edge, edge, {}, {}};
    pipeline.prepare = [edge](Picture picture, Draw&) { return resize(picture, edge, edge); };
    if (train) pipeline.place = random_flip;
    return pipeline;
  }
  WEFT_CHECK(colon == std::string::npos, "augment: expected ", kind, " without a size, got '", text, "'");
  Pipeline pipeline;
  pipeline.name = kind;
  if (train && kind == "flip") pipeline.place = random_flip;
  if (train && kind == "cifar") pipeline.place = random_shift_and_flip(4);
  if (train && kind == "shapes") pipeline.place = random_shift_and_flip(2);
  return pipeline;
}

std::string default_pipeline(const std::string& dataset) {
  const std::string kind = dataset.substr(0, dataset.find(':'));
  if (kind == "shapes") return "shapes";
  if (kind.starts_with("cifar")) return "cifar";
  return kind == "folder" ? "imagenet" : "none";
}

}  // namespace weft::data
