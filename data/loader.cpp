// SPDX-License-Identifier: Apache-2.0
#include "data/loader.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/ops/image_normalize.h"
#include "core/profile/recorder.h"
#include "core/stream.h"
#include "core/trace.h"
#include "data/staging_memory.h"
#include "data/statistics.h"
#include "data/upload.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

/// How images travel from the worker to the model.
enum class Route : uint8_t {
  normalized,  ///< the worker normalises into the batch's own f32 memory: CPU in f32
  on_host,     ///< the worker normalises, f32 travels
  as_stored,   ///< the worker cuts out u8 windows: u8 images
  on_device,   ///< whole u8 pictures and places travel, kernels::image_normalize does the rest
};

Route route_of(const LoaderOptions& options) {
  if (options.dtype == DType::u8) return Route::as_stored;
  const bool on_cpu = options.device.kind == DeviceKind::cpu;
  if (options.transform_on == TransformOn::host) {
    WEFT_CHECK(options.dtype == DType::f32, "loader: expected f32 of pictures that are normalised on the host, got ",
               options.dtype);
    return on_cpu ? Route::normalized : Route::on_host;
  }
  if (options.transform_on == TransformOn::device) return Route::on_device;
  return on_cpu && options.dtype == DType::f32 ? Route::normalized : Route::on_device;
}

struct Size {
  int64_t height = 0, width = 0, channels = 0;
  int64_t count() const { return height * width * channels; }
  bool operator==(const Size&) const = default;
};

/// One batch under assembly. Workers write pictures at their position; the rest belongs to the consumer.
struct Slot {
  StagingMemory pixels, places, labels;
  Tensor images;           ///< route normalized: the batch's own memory
  int64_t count = 0;       ///< pictures of the batch
  int64_t left = 0;        ///< pictures still to come; guarded by the mutex
  int64_t failed_at = -1;  ///< lowest position that failed, so that the error does not depend on timing
  std::exception_ptr failure;
  std::unique_ptr<Event> copied;  ///< the last copy out of the staging memory
};

/// A batch on its way to the device.
struct Upload {
  int64_t step = 0;
  Tensor images, places, labels;
};

constexpr int64_t kChunk = 8;  // pictures that a worker takes at once

}  // namespace

/// The threads and buffers behind a Loader.
class Loader::Workshop {
 public:
  Workshop(std::shared_ptr<const Dataset> set, Sampler sampler, Pipeline pipeline, LoaderOptions options);
  ~Workshop();

  int64_t steps_per_epoch() const {
    const int64_t b = options_.batch_size;
    return options_.drop_last ? sampler_.size() / b : (sampler_.size() + b - 1) / b;
  }
  void start(int64_t epoch, int64_t step);
  std::optional<Batch> next();

  LoaderOptions options_;
  LoaderStatistics statistics_;

 private:
  void find_sizes();
  Slot& slot(int64_t step) { return slots_[static_cast<size_t>(step) % slots_.size()]; }
  void prepare(int64_t step);
  void work();
  void assemble(Slot& slot, int64_t step, int64_t position);
  void assemble_chunk(std::unique_lock<std::mutex>& lock);
  void wait_for(int64_t step);
  void stop_claims();
  bool is_whole(int64_t step);
  Upload send(int64_t step);

  std::shared_ptr<const Dataset> set_;
  Sampler sampler_;
  Pipeline pipeline_;
  Route route_;
  NormalizeTable table_;
  Size stored_;  ///< of one picture as the worker hands it over
  Size seen_;    ///< of one picture as the model sees it
  std::unique_ptr<Stream> copy_stream_;
  std::vector<Slot> slots_;

  // The consumer's position.
  bool started_ = false;
  bool untouched_ = false;  ///< no batch was asked for since the start
  int64_t epoch_ = 0;
  int64_t next_step_ = 0;
  std::optional<Upload> ahead_;  ///< under way before it was asked for

  // Shared with the workers.
  std::mutex mutex_;
  std::condition_variable work_there_, work_done_;
  bool closing_ = false;
  int64_t claim_step_ = 0;      ///< the batch from which the next chunk is taken,
  int64_t claim_position_ = 0;  ///< and where
  int64_t open_until_ = 0;      ///< slots of steps below this one may be filled
  int64_t in_flight_ = 0;       ///< chunks that workers hold
  std::vector<std::thread> workers_;
};

Loader::Workshop::Workshop(std::shared_ptr<const Dataset> set, Sampler sampler, Pipeline pipeline,
                           LoaderOptions options)
    : options_(std::move(options)), set_(std::move(set)), sampler_(sampler), pipeline_(std::move(pipeline)) {
  WEFT_CHECK(options_.batch_size > 0, "loader: expected a batch size of at least 1, got ", options_.batch_size);
  WEFT_CHECK(options_.batch_size <= sampler_.size(), "loader: expected a batch size of at most ", sampler_.size(),
             ", the number of pictures of this rank, got ", options_.batch_size, " (", set_->describe(), ", ",
             sampler_.options().world, " ranks)");
  WEFT_CHECK(options_.workers >= 0 && options_.prefetch >= 1,
             "loader: expected at least 0 workers and 1 batch of prefetch, got ", options_.workers, " and ",
             options_.prefetch);
  const bool known = options_.dtype == DType::f32 || options_.dtype == DType::f64 || options_.dtype == DType::bf16 ||
                     options_.dtype == DType::u8;
  WEFT_CHECK(known, "loader: expected images in f32, f64, bf16 or u8, got ", options_.dtype);
  route_ = route_of(options_);
  WEFT_CHECK(options_.mean.size() == options_.std.size(), "loader: expected mean and std of the same length, got ",
             options_.mean.size(), " and ", options_.std.size());
  if (options_.mean.empty() && route_ != Route::as_stored) {
    const ChannelStatistics& statistics = channel_statistics(*set_);
    options_.mean.assign(statistics.mean.begin(), statistics.mean.end());
    options_.std.assign(statistics.std.begin(), statistics.std.end());
  }
  if (route_ != Route::as_stored) {
    WEFT_CHECK(static_cast<int64_t>(options_.mean.size()) == set_->channels(), "loader: expected mean and std of ",
               set_->channels(), " channels, got ", options_.mean.size());
    table_ = NormalizeTable(options_.mean, options_.std);
  }
  find_sizes();
  copy_stream_ = std::make_unique<Stream>(options_.device);
  const int64_t batch = options_.batch_size;
  slots_.resize(static_cast<size_t>(options_.workers == 0 ? 2 : options_.prefetch + 2));
  for (Slot& one : slots_) {
    const DeviceKind kind = options_.device.kind;
    if (route_ == Route::on_host)
      one.pixels = StagingMemory(kind, static_cast<size_t>(batch * seen_.count()) * sizeof(float));
    if (route_ == Route::as_stored) one.pixels = StagingMemory(kind, static_cast<size_t>(batch * seen_.count()));
    if (route_ == Route::on_device) one.pixels = StagingMemory(kind, static_cast<size_t>(batch * stored_.count()));
    one.places = StagingMemory(kind, static_cast<size_t>(batch) * sizeof(Place));
    one.labels = StagingMemory(kind, static_cast<size_t>(batch) * sizeof(int64_t));
    one.copied = std::make_unique<Event>(options_.device);
  }
  for (int w = 0; w < options_.workers; ++w)
    workers_.emplace_back([this, w] {
      profile::name_thread(str("loader ", w));
      work();
    });
}

Loader::Workshop::~Workshop() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  work_there_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  // Copies out of the staging memory must end before it goes. A destructor does not throw.
  try {
    copy_stream_->synchronize();
  } catch (const Error&) {
  }
}

void Loader::Workshop::find_sizes() {
  if (const Storage* storage = set_->storage(); storage != nullptr && !pipeline_.prepare) {
    stored_ = {storage->height, storage->width, storage->channels};
  } else {
    stored_ = {pipeline_.height, pipeline_.width, set_->channels()};
    if (pipeline_.height == 0) {  // the first picture sets the size, the others are held to it
      const Picture first = set_->get(0);
      stored_ = {first.height, first.width, first.channels};
    }
  }
  seen_ = stored_;
  if (pipeline_.height > 0) seen_.height = pipeline_.height, seen_.width = pipeline_.width;
}

/// Fetches, augments and lays down one picture.
void Loader::Workshop::assemble(Slot& to, int64_t step, int64_t position) {
  const int64_t index = sampler_.index(epoch_, step * options_.batch_size + position);
  Draw draw = Draw::of_sample(options_.seed, epoch_, index);
  const Storage* storage = set_->storage();
  Picture picture;
  PictureView view;
  int64_t label = 0;
  if (storage != nullptr && !pipeline_.prepare) {
    view = {storage->picture(index), storage->height, storage->width, storage->channels};
    label = storage->labels[index];
  } else {
    {
      const TraceScope scope("decode");
      picture = set_->get(index);
    }
    if (pipeline_.prepare) {
      const TraceScope scope("augment");
      picture = pipeline_.prepare(std::move(picture), draw);
    }
    view = {picture.pixels.data(), picture.height, picture.width, picture.channels};
    label = picture.label;
  }
  const Size got{view.height, view.width, view.channels};
  WEFT_CHECK(got == stored_, "loader: expected pictures of one size, ", stored_.height, "x", stored_.width, "x",
             stored_.channels, ", got ", got.height, "x", got.width, "x", got.channels, " from ", set_->origin(index),
             ". Choose an augmentation that gives one size, such as imagenet or resize:SIZE.");
  const Place place = pipeline_.place ? pipeline_.place(draw) : Place{};
  to.labels.as<int64_t>()[position] = label;
  const TraceScope scope("crop, flip, lay down");
  if (route_ == Route::normalized || route_ == Route::on_host) {
    float* images = route_ == Route::normalized ? to.images.data<float>() : to.pixels.as<float>();
    normalize(images + position * seen_.count(), seen_.height, seen_.width, view, place, table_);
  } else if (route_ == Route::as_stored) {
    cut_out(to.pixels.as<uint8_t>() + position * seen_.count(), seen_.height, seen_.width, view, place);
  } else {
    std::memcpy(to.pixels.as<uint8_t>() + position * stored_.count(), view.pixels,
                static_cast<size_t>(stored_.count()));
    to.places.as<Place>()[position] = place;
  }
}

/// Takes the next chunk, which must be there, and makes it without holding the lock.
void Loader::Workshop::assemble_chunk(std::unique_lock<std::mutex>& lock) {
  const int64_t step = claim_step_, first = claim_position_;
  Slot& to = slot(step);
  const int64_t end = std::min(to.count, first + kChunk);
  claim_position_ = end;
  if (end == to.count) ++claim_step_, claim_position_ = 0;
  ++in_flight_;
  lock.unlock();
  int64_t failed_at = -1;
  std::exception_ptr failure;
  {
    const TraceScope scope("assemble pictures");
    for (int64_t position = first; position < end && !failure; ++position) {
      try {
        assemble(to, step, position);
      } catch (...) {
        failure = std::current_exception();
        failed_at = position;
      }
    }
  }
  lock.lock();
  --in_flight_;
  to.left -= end - first;
  if (failure && (!to.failure || failed_at < to.failed_at)) to.failure = failure, to.failed_at = failed_at;
  work_done_.notify_all();
}

void Loader::Workshop::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_there_.wait(lock, [this] { return closing_ || claim_step_ < open_until_; });
    if (closing_) return;
    assemble_chunk(lock);
  }
}

/// Makes the slot of `step` ready to be filled; the caller then raises open_until_.
void Loader::Workshop::prepare(int64_t step) {
  Slot& one = slot(step);
  one.copied->synchronize();
  one.count = one.left = std::min(options_.batch_size, sampler_.size() - step * options_.batch_size);
  one.failure = nullptr;
  one.failed_at = -1;
  if (route_ == Route::normalized)
    one.images = Tensor::empty({one.count, seen_.height, seen_.width, seen_.channels}, DType::f32);
}

void Loader::Workshop::stop_claims() {
  std::unique_lock lock(mutex_);
  open_until_ = claim_step_ = 0;
  claim_position_ = 0;
  work_done_.wait(lock, [this] { return in_flight_ == 0; });
}

void Loader::Workshop::start(int64_t epoch, int64_t step) {
  WEFT_CHECK(epoch >= 0 && step >= 0 && step <= steps_per_epoch(), "loader: expected a step from 0 to ",
             steps_per_epoch(), ", got epoch ", epoch, " step ", step);
  if (started_ && untouched_ && epoch == epoch_ && step == next_step_) return;
  stop_claims();
  ahead_.reset();
  epoch_ = epoch;
  next_step_ = step;
  started_ = untouched_ = true;
  const int64_t end = std::min(steps_per_epoch(), step + static_cast<int64_t>(slots_.size()) - 1);
  for (int64_t s = step; s < end; ++s) prepare(s);
  {
    const std::lock_guard lock(mutex_);
    claim_step_ = step;
    claim_position_ = 0;
    open_until_ = end;
  }
  work_there_.notify_all();
}

/// Until the batch is whole; without workers, by making it here. Throws what its assembly threw.
void Loader::Workshop::wait_for(int64_t step) {
  const TraceScope scope("wait for batch");
  const auto since = std::chrono::steady_clock::now();
  Slot& wanted = slot(step);
  std::exception_ptr failure;
  {
    std::unique_lock lock(mutex_);
    if (workers_.empty())
      while (wanted.left > 0) assemble_chunk(lock);
    else
      work_done_.wait(lock, [&] { return wanted.left == 0; });
    failure = wanted.failure;
  }
  statistics_.waited_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
  if (failure) {
    started_ = false;
    stop_claims();
    std::rethrow_exception(failure);
  }
}

/// Sends a whole slot on its way.
Upload Loader::Workshop::send(int64_t step) {
  const TraceScope scope("upload batch");
  Slot& from = slot(step);
  const int64_t n = from.count;
  Upload sent{step, {}, {}, upload(from.labels.as<void>(), {n}, DType::i64, *copy_stream_)};
  if (route_ == Route::normalized) {
    sent.images = std::exchange(from.images, Tensor());
  } else {
    const Size& size = route_ == Route::on_device ? stored_ : seen_;
    const DType dtype = route_ == Route::on_host ? DType::f32 : DType::u8;
    sent.images = upload(from.pixels.as<void>(), {n, size.height, size.width, size.channels}, dtype, *copy_stream_);
    if (route_ == Route::on_device) sent.places = upload(from.places.as<void>(), {n, 3}, DType::i32, *copy_stream_);
  }
  from.copied->record(copy_stream_->handle());
  return sent;
}

bool Loader::Workshop::is_whole(int64_t step) {
  const std::lock_guard lock(mutex_);
  return slot(step).left == 0 && !slot(step).failure;
}

std::optional<Batch> Loader::Workshop::next() {
  const TraceScope scope("next batch");
  WEFT_CHECK(started_, "loader: expected start(epoch) before next()");
  untouched_ = false;
  const int64_t step = next_step_, steps = steps_per_epoch();
  if (step >= steps) return std::nullopt;
  if (!ahead_) {
    wait_for(step);
    ahead_ = send(step);
  }
  Upload sent = *std::exchange(ahead_, std::nullopt);
  hand_over(*slot(step).copied, {sent.images, sent.places, sent.labels});
  Batch batch{sent.images, sent.labels, slot(step).count, epoch_, step};
  if (route_ == Route::on_device)
    batch.images = image_normalize(sent.images, sent.places, options_.mean, options_.std, seen_.height, seen_.width,
                                   options_.dtype);
  next_step_ = step + 1;
  ++statistics_.batches;
  statistics_.pictures += batch.count;

  // The slot before this one is free: its copy has ended or is about to.
  const int64_t opened = step + static_cast<int64_t>(slots_.size()) - 1;
  if (opened < steps) {
    prepare(opened);
    {
      const std::lock_guard lock(mutex_);
      open_until_ = opened + 1;
    }
    work_there_.notify_all();
  }
  // The next batch travels while the model works on this one.
  const bool overlaps = options_.device.kind != DeviceKind::cpu;
  if (overlaps && next_step_ < steps && is_whole(next_step_)) ahead_ = send(next_step_);
  return batch;
}

Loader::Loader(std::shared_ptr<const Dataset> set, Sampler sampler, Pipeline pipeline, LoaderOptions options)
    : workshop_(std::make_unique<Workshop>(std::move(set), sampler, std::move(pipeline), std::move(options))) {}
Loader::~Loader() = default;

int64_t Loader::steps_per_epoch() const { return workshop_->steps_per_epoch(); }
void Loader::start(int64_t epoch, int64_t step) { workshop_->start(epoch, step); }
std::optional<Batch> Loader::next() { return workshop_->next(); }
const LoaderOptions& Loader::options() const { return workshop_->options_; }
LoaderStatistics Loader::statistics() const { return workshop_->statistics_; }
void Loader::reset_statistics() { workshop_->statistics_ = {}; }

}  // namespace weft::data
