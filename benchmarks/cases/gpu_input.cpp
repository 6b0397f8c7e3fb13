// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/cases/cases.h"
#include "data/image_loader.h"
#include "data/random_images.h"
#include "data/transforms/mixup.h"

// The model's input: images 32x32 in memory through two workers. A window of the image padded by 4 is mirrored half of
// the time, normalised, in batches of 256 on the device. _mixed: mixup or CutMix on top; _on_host: the workers
// normalise, and floats are copied. A step is an epoch. Compare with resnet18_cifar_b256_*: the loader never limits
// where these rates are higher.

namespace weft::benchmarks {

namespace {

Work epoch_of_images(const Target& target, data::TransformOn where, bool mixed) {
  const int64_t count = target.size(8192, 6), classes = 10;
  const auto set = data::random_images({.count = count, .classes = classes, .seed = 1}, data::Split::train);
  const data::ImageLoaderOptions options{.batch_size = target.size(256, 2),
                                         .device = target.device,
                                         .transform_on = where,
                                         .mean = {0.5f, 0.5f, 0.5f},
                                         .std = {0.25f, 0.25f, 0.25f}};
  const auto loader = std::make_shared<data::ImageLoader>(set, data::Sampler(count),
                                                          data::make_pipeline("cifar", data::Split::train), options);
  const auto epoch = std::make_shared<int64_t>(0);
  return work_on(
      target,
      [=] {
        data::Draw draw(3, static_cast<uint64_t>(*epoch));
        loader->start((*epoch)++);
        while (const auto batch = loader->next()) {
          if (!mixed) continue;
          if (draw.coin())
            data::cutmix(batch->images, batch->labels, classes, 1, draw);
          else
            data::mixup(batch->images, batch->labels, classes, 0.2, draw);
        }
      },
      static_cast<double>(count));
}

}  // namespace

void add_gpu_input_cases(Cases& cases, const Target& target) {
  const auto add = [&](const char* name, data::TransformOn where, bool mixed) {
    cases.push_back({name, "images/s", [=] { return epoch_of_images(target, where, mixed); }});
  };
  add("input_cifar_b256", data::TransformOn::device, false);
  add("input_cifar_b256_mixed", data::TransformOn::device, true);
  add("input_cifar_b256_on_host", data::TransformOn::host, false);
}

}  // namespace weft::benchmarks
