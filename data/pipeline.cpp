// SPDX-License-Identifier: Apache-2.0
#include "data/pipeline.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/text.h"
#include "data/policy.h"
#include "data/transforms/crop.h"
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

Pipeline imagenet(int64_t size, Split split, const PipelineOptions& options) {
  Pipeline pipeline{"imagenet", size, size, {}, {}};
  RandomResizedCropOptions crop = options.crop;
  crop.height = crop.width = size;
  if (split == Split::train) {
    pipeline.prepare = [crop](const Image& image, Draw& draw) { return random_resized_crop(image, crop, draw); };
    pipeline.place = random_flip;
  } else {
    const int64_t edge = size * 8 / 7;
    pipeline.prepare = [size, edge, filter = crop.filter](const Image& image, Draw&) {
      return centre_crop(resize_shortest_edge(image, edge, filter), size, size);
    };
  }
  return pipeline;
}

/// Stretched to edge x edge.
Pipeline resizing(int64_t edge, Filter filter) {
  Pipeline pipeline{"resize", edge, edge, {}, {}};
  pipeline.prepare = [edge, filter](const Image& image, Draw&) { return resize(image, edge, edge, filter); };
  return pipeline;
}

Pipeline make_geometry(const std::string& text, Split split, const PipelineOptions& options) {
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const std::string size = colon == std::string::npos ? "" : text.substr(colon + 1);
  std::vector<std::string> names = pipeline_names();
  const bool known = std::find(names.begin(), names.end(), kind) != names.end();
  for (const std::string& policy : policy_names()) names.push_back(policy);
  WEFT_CHECK(!is_policy(text), "augment: expected the geometry first, such as flip+", text, ", got ", text);
  WEFT_CHECK(known, "augment: unknown name '", kind, "'.", suggestion(kind, names));
  if (kind == "imagenet") return imagenet(parse_size(text, size, 224), split, options);
  Pipeline pipeline;
  if (colon != std::string::npos || kind == "resize")
    pipeline = resizing(parse_size(text, size, 0), options.crop.filter);
  pipeline.name = kind;
  if (split == Split::val) return pipeline;
  if (kind == "flip" || kind == "resize") pipeline.place = random_flip;
  if (kind == "cifar") pipeline.place = random_shift_and_flip(4);
  if (kind == "shapes") pipeline.place = random_shift_and_flip(2);
  return pipeline;
}

/// Appends a change of pixels to what `prepare` does.
void append(Pipeline& pipeline, ImagePolicy change) {
  pipeline.prepare = [before = std::move(pipeline.prepare), change = std::move(change)](Image image, Draw& draw) {
    if (before) image = before(std::move(image), draw);
    return change(std::move(image), draw);
  };
}

/// Moves window and mirroring from `place` into `prepare`: what follows sees the image as the model does.
void settle_place(Pipeline& pipeline) {
  if (!pipeline.place) return;
  append(pipeline, [place = std::move(pipeline.place)](const Image& image, Draw& draw) {
    Image out = black_image(image.height, image.width, image.channels, image.label);
    cut_out(out.pixels.data(), out.height, out.width, {image.pixels.data(), image.height, image.width, image.channels},
            place(draw));
    return out;
  });
  pipeline.place = nullptr;
}

}  // namespace

std::vector<std::string> pipeline_names() { return {"none", "flip", "cifar", "shapes", "imagenet", "resize"}; }

Pipeline make_pipeline(const std::string& text, Split split, const PipelineOptions& options) {
  const size_t plus = text.find('+');
  if (plus == std::string::npos && is_policy(text)) return make_pipeline("none+" + text, split, options);
  Pipeline pipeline = make_geometry(text.substr(0, plus), split, options);
  check(options.jitter);
  ImagePolicy policy;
  if (plus != std::string::npos) policy = make_policy(text.substr(plus + 1));
  if (split == Split::val) return pipeline;
  pipeline.name = text;
  if (policy) append(pipeline, std::move(policy));
  const ColorJitterOptions& jitter = options.jitter;
  if (jitter.brightness > 0 || jitter.contrast > 0 || jitter.saturation > 0 || jitter.hue > 0)
    append(pipeline, [jitter](Image image, Draw& draw) { return color_jitter(std::move(image), jitter, draw); });
  if (options.erasing.probability > 0) {
    settle_place(pipeline);
    append(pipeline, [erasing = options.erasing](Image image, Draw& draw) {
      return random_erasing(std::move(image), erasing, draw);
    });
  }
  return pipeline;
}

std::string default_pipeline(const std::string& dataset) {
  const std::string kind = dataset.substr(0, dataset.find(':'));
  if (kind == "shapes") return "shapes";
  if (kind.starts_with("cifar")) return "cifar";
  return kind == "folder" || kind == "hdf5" || kind == "packed" ? "imagenet" : "none";
}

std::string resolve_pipeline(const std::string& text, const std::string& dataset) {
  const size_t plus = text.find('+');
  std::string geometry = text.substr(0, plus), policy = plus == std::string::npos ? "" : text.substr(plus + 1);
  if (policy.empty() && is_policy(geometry)) policy = std::exchange(geometry, "auto");
  if (geometry == "auto" || geometry == "standard") geometry = default_pipeline(dataset);
  if (policy == "autoaugment" && dataset.starts_with("cifar")) policy += ":cifar10";
  const std::string whole = policy.empty() && plus == std::string::npos ? geometry : geometry + '+' + policy;
  // `resize` and `imagenet` may still be waiting for their size.
  make_pipeline(geometry == "resize" ? "resize:1" + whole.substr(geometry.size()) : whole, Split::train);
  return whole;
}

}  // namespace weft::data
