// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>

#include "core/tensor.h"
#include "data/dataset.h"
#include "data/pipeline.h"
#include "data/sampler.h"

namespace weft::data {

/// What one training step eats.
struct Batch {
  Tensor images;      ///< [count, height, width, channels], normalised (u8: as stored)
  Tensor labels;      ///< i64 [count]
  int64_t count = 0;  ///< the last batch of an epoch may be smaller
  int64_t epoch = 0;
  int64_t step = 0;  ///< position in the epoch
};

/// Where pictures are cropped, mirrored and normalised.
enum class TransformOn : uint8_t {
  automatic,  ///< device, but for f32 on the CPU, where a worker's pass writes into the batch itself
  host,       ///< in the workers, and f32 travels to the device
  device,     ///< bytes travel, a quarter of that, and kernels::image_normalize does the rest
};

struct LoaderOptions {
  int64_t batch_size = 64;   ///< of this rank
  int workers = 2;           ///< threads; 0: the caller assembles each batch itself
  int prefetch = 2;          ///< batches assembled ahead
  bool drop_last = false;    ///< leave out the last, smaller batch
  uint64_t seed = 0;         ///< of the augmentation
  Device device{};           ///< where batches arrive
  DType dtype = DType::f32;  ///< of the images: f32, f64, bf16, or u8 for pictures as stored
  /// The same bits either way; host needs f32, and u8 has nothing to transform but a window to cut out, in the workers.
  TransformOn transform_on = TransformOn::automatic;
  /// Per channel; empty: those of the set (channel_statistics).
  std::vector<float> mean = {}, std = {};
};

/// How the time of the consumer went, since the last reset.
struct LoaderStatistics {
  int64_t batches = 0;
  int64_t pictures = 0;
  double waited_seconds = 0;  ///< inside next(), waiting for workers
};

/// Brings batches to a device. Worker threads decode, augment and assemble into a ring of buffers (pinned for a GPU);
/// copies run on a stream of their own, one batch ahead of the model. What is in a batch depends on (seed, epoch, step)
/// alone: not on the number of workers, nor on where the loader was started.
///   loader.start(epoch);                       // or start(epoch, step) to resume
///   while (auto batch = loader.next()) { … }
/// On the CPU in f32, crop, flip and normalisation are one pass in the worker; elsewhere bytes travel and
/// kernels::image_normalize does that on the device, on the caller's current stream (TransformOn).
/// An exception in a worker is thrown again by the next() that would have returned the batch; after it, start anew.
/// Use it from one thread. Errors: a batch size below 1 or above the number of pictures, workers below 0, pictures of
/// several sizes in one batch, TransformOn::host for another dtype than f32.
class Loader {
 public:
  Loader(std::shared_ptr<const Dataset> set, Sampler sampler, Pipeline pipeline, LoaderOptions options = {});
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  int64_t steps_per_epoch() const;
  /// Whatever is under way is dropped; the next batch is `step` of `epoch`, and workers begin with it at once. Where
  /// that is so already, nothing is dropped: start(epoch + 1) ahead of validation, and again ahead of training, has the
  /// first batches made in between. Errors: a step outside 0 … steps_per_epoch().
  void start(int64_t epoch, int64_t step = 0);
  /// The next batch; none at the end of the epoch. Errors: not started; the worker's.
  std::optional<Batch> next();

  const LoaderOptions& options() const;
  LoaderStatistics statistics() const;
  void reset_statistics();

 private:
  class Workshop;
  std::unique_ptr<Workshop> workshop_;
};

}  // namespace weft::data
