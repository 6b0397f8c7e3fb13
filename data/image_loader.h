// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/dataset.h"
#include "data/loader.h"
#include "data/pipeline.h"

namespace weft::data {

/// The input of a training step.
struct Batch {
  Tensor images;      ///< [count, height, width, channels], normalised (u8: as stored)
  Tensor labels;      ///< i64 [count]
  int64_t count = 0;  ///< the last batch of an epoch may be smaller
  int64_t epoch = 0;
  int64_t step = 0;  ///< position in the epoch
  void fields(auto& v) { v("images", images), v("labels", labels); }
};

/// Where images are cropped, mirrored and normalised.
enum class TransformOn : uint8_t {
  automatic,  ///< device, but for f32 on the CPU, where a worker's pass writes into the batch itself
  host,       ///< in the workers, and f32 travels to the device
  device,     ///< bytes travel, a quarter of that, and kernels::image_normalize does the rest
};

/// Options of the loader (LoaderOptions), and of images.
struct ImageLoaderOptions {
  int64_t batch_size = 64;
  int workers = 2;
  int prefetch = 2;
  bool drop_last = false;
  uint64_t seed = 0;  ///< seeds the augmentation
  Device device{};
  DType dtype = DType::f32;  ///< dtype of the images: f32, f64, bf16, or u8 for images as stored
  /// Both give the same bits; host needs f32, and u8 has nothing to transform but a window to cut out, in the workers.
  TransformOn transform_on = TransformOn::automatic;
  /// Per channel, where white is 1; empty: those of the set (channel_statistics). A validation set wants those of the
  /// training set, which its loader's options() have.
  std::vector<float> mean = {}, std = {};
};

/// Batches of images: workers decode, augment and write them into the batch. On the CPU in f32, crop, flip and
/// normalisation are one pass in the worker; elsewhere bytes travel and kernels::image_normalize does that on the
/// device, on the caller's current stream (TransformOn). Errors: those of BatchQueue; a batch size above the number
/// of images, images of several sizes in one batch, TransformOn::host for another dtype than f32.
class ImageLoader : public Loader<Batch> {
 public:
  ImageLoader(std::shared_ptr<const Dataset> set, const Sampler& sampler, Pipeline pipeline,
              ImageLoaderOptions options = {});
  /// With the mean and std that are used.
  const ImageLoaderOptions& options() const { return options_; }

 private:
  class Collator;
  ImageLoader(const std::shared_ptr<const Collator>& collator, const Sampler& sampler);
  ImageLoaderOptions options_;
};

}  // namespace weft::data
