// SPDX-License-Identifier: Apache-2.0
#include "data/loader.h"

#include "benchmarks/cases/cases.h"
#include "benchmarks/harness/pictures.h"
#include "data/image_folder.h"

// A folder of 256 JPEG pictures through two workers: decoded, random resized crop to 224x224, mirrored half of the
// time, normalised, in batches of 32. One step is one epoch.

namespace weft::benchmarks {

namespace {

struct Pictures {
  bench::PictureFolder folder;
  data::Loader loader;
  int64_t epoch = 0;

  Pictures(int per_class, int64_t edge, int64_t batch)
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
  static data::LoaderOptions options(int64_t batch) {
    return {.batch_size = batch, .mean = {0.485f, 0.456f, 0.406f}, .std = {0.229f, 0.224f, 0.225f}};
  }
};

}  // namespace

void add_loader_cases(Cases& cases, const Target& target) {
  cases.push_back({"loader_jpeg", "images/s", [=] {
                     const int64_t per_class = target.size(128, 2);
                     const auto pictures = std::make_shared<Pictures>(static_cast<int>(per_class), target.size(224, 32),
                                                                      target.size(32, 2));
                     return work_on(
                         target, [=] { pictures->run_epoch(); }, 2 * static_cast<double>(per_class));
                   }});
}

}  // namespace weft::benchmarks
