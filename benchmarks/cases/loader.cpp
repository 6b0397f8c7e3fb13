// SPDX-License-Identifier: Apache-2.0
#include "data/image_loader.h"

#include "benchmarks/cases/cases.h"
#include "benchmarks/harness/image_folder.h"
#include "data/image_folder.h"

// A folder of 256 JPEG images through two workers: decoded, random resized crop to 224x224, mirrored half of the
// time, normalised, in batches of 32. A step is an epoch. And the cost of each augmentation on one thread: from a
// decoded image 500x375 to 224x224 bytes.

namespace weft::benchmarks {

namespace {

struct Images {
  bench::ImageFolder folder;
  data::ImageLoader loader;
  int64_t epoch = 0;

  Images(int per_class, int64_t edge, int64_t batch)
      : folder(2, per_class), loader(set(), data::Sampler(2 * per_class), pipeline(edge), options(batch)) {}

  void run_epoch() {
    loader.start(epoch++);
    while (loader.next()) {
    }
  }

 private:
  std::shared_ptr<const data::Dataset> set() const { return data::image_folder_root(folder.path(), "bench"); }
  static data::Pipeline pipeline(int64_t edge) {
    return data::make_pipeline(str("imagenet:", edge), data::Split::train);
  }
  static data::ImageLoaderOptions options(int64_t batch) {
    return {.batch_size = batch, .mean = {0.485f, 0.456f, 0.406f}, .std = {0.229f, 0.224f, 0.225f}};
  }
};

/// Smooth with some noise, as a photograph.
data::Image photograph() {
  data::Image image = data::black_image(375, 500, 3);
  data::Draw draw(1, 2);
  for (size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<uint8_t>((i / 1500 + i % 1500 / (i % 3 + 7) + draw.below(16)) % 256);
  return image;
}

void add_augmentation(Cases& cases, const Target& target, const char* name, const std::string& policy,
                      const data::PipelineOptions& options = {}) {
  cases.push_back({name, "images/s", [=] {
                     const std::string text = str("imagenet:", target.size(224, 16), policy);
                     const auto prepare = data::make_pipeline(text, data::Split::train, options).prepare;
                     const auto counter = std::make_shared<uint64_t>(0);
                     const int64_t count = target.size(64, 2);  // so that a step sees many draws
                     return work_on(
                         target,
                         [=, image = photograph()] {
                           for (int64_t i = 0; i < count; ++i) {
                             data::Draw draw(7, (*counter)++);
                             prepare(image, draw);
                           }
                         },
                         static_cast<double>(count));
                   }});
}

}  // namespace

void add_loader_cases(Cases& cases, const Target& target) {
  cases.push_back({"loader_jpeg", "images/s", [=] {
                     const int64_t per_class = target.size(128, 2);
                     const auto images = std::make_shared<Images>(static_cast<int>(per_class), target.size(224, 32),
                                                                      target.size(32, 2));
                     return work_on(
                         target, [=] { images->run_epoch(); }, 2 * static_cast<double>(per_class));
                   }});
  add_augmentation(cases, target, "augment_standard", "");
  add_augmentation(cases, target, "augment_autoaugment", "+autoaugment");
  add_augmentation(cases, target, "augment_randaugment", "+randaugment:2,9");
  add_augmentation(cases, target, "augment_trivialaugment", "+trivialaugment");
  add_augmentation(cases, target, "augment_color_jitter", "", {.jitter = {0.4, 0.4, 0.4, 0.1}});
  add_augmentation(cases, target, "augment_random_erasing", "", {.erasing = {.probability = 1}});
}

}  // namespace weft::benchmarks
