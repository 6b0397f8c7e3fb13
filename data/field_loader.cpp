// SPDX-License-Identifier: Apache-2.0
#include "data/field_loader.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/profile/recorder.h"
#include "core/stream.h"
#include "core/trace.h"
#include "data/staging_memory.h"
#include "data/upload.h"

namespace weft::data {
namespace {

/// A place for a batch that is being read: pinned memory for a GPU, used again and again; on the CPU the batch's own.
struct Slot {
  int64_t finished = 0;  ///< samples; guarded by the mutex
  std::exception_ptr failure;
  StagingMemory staged_input, staged_target;
  Tensor input, target;
  float *to_input = nullptr, *to_target = nullptr;
  std::unique_ptr<Event> copied;  ///< the last copy out of the staging memory
};

}  // namespace

class FieldLoader::Readers {
 public:
  Readers(std::shared_ptr<const FieldSeries> series, Sampler sampler, FieldLoaderOptions options)
      : series_(std::move(series)), sampler_(sampler), options_(options) {
    WEFT_CHECK(options_.workers >= 0 && options_.prefetch >= 1,
               "field loader: expected at least 0 workers and 1 batch of prefetch, got ", options_.workers, " and ",
               options_.prefetch);
    WEFT_CHECK(options_.batch_size > 0 && options_.batch_size <= sampler_.size(),
               "field loader: expected a batch size of 1 to ", sampler_.size(),
               ", the number of samples of this rank, got ", options_.batch_size, " (", series_->describe(), ", ",
               sampler_.options().world, " ranks)");
    const Device device = options_.device;
    copy_stream_ = std::make_unique<Stream>(device);
    ring_.resize(static_cast<size_t>(window() + 1));
    for (Slot& slot : ring_) {
      slot.copied = std::make_unique<Event>(device);
      if (device.kind == DeviceKind::cpu) continue;
      slot.staged_input = StagingMemory(device.kind, static_cast<size_t>(input_sizes().numel()) * sizeof(float));
      slot.staged_target = StagingMemory(device.kind, static_cast<size_t>(target_sizes().numel()) * sizeof(float));
      slot.to_input = slot.staged_input.as<float>();
      slot.to_target = slot.staged_target.as<float>();
    }
    for (int w = 0; w < options_.workers; ++w)
      threads_.emplace_back([this, w] {
        profile::name_thread(str("loader ", w));
        work();
      });
  }

  ~Readers() {
    stop();
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    there_is_work_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    // Copies out of the staging memory must end before it goes. A destructor does not throw.
    try {
      copy_stream_->synchronize();
    } catch (const Error&) {
    }
  }

  int64_t steps() const { return sampler_.size() / options_.batch_size; }

  void start(int64_t epoch, int64_t step) {
    WEFT_CHECK(step >= 0 && step <= steps(), "field loader: expected a step of 0 to ", steps(), ", got ", step);
    stop();
    next_ = step;
    const int64_t end = std::min(steps(), step + window());
    for (int64_t s = step; s < end; ++s) prepare(s);
    {
      const std::lock_guard lock(mutex_);
      epoch_ = epoch;
      claim_step_ = step;
      claim_position_ = 0;
      open_until_ = end;
    }
    there_is_work_.notify_all();
  }

  std::optional<FieldBatch> next() {
    const TraceScope scope("next batch");
    WEFT_CHECK(next_ >= 0, "field loader: expected start(epoch) before next()");
    if (next_ >= steps()) return std::nullopt;
    const int64_t step = next_++;
    Slot& wanted = slot(step);
    std::exception_ptr failure;
    {
      std::unique_lock lock(mutex_);
      if (threads_.empty())
        while (claim(lock)) continue;
      batch_done_.wait(lock, [&] { return wanted.finished == options_.batch_size; });
      failure = wanted.failure;
    }
    FieldBatch batch;
    if (!failure) batch = handed_over(wanted);
    // The slot before this one is free: its copy has ended or is about to.
    if (const int64_t opened = step + window(); opened < steps()) {
      prepare(opened);
      {
        const std::lock_guard lock(mutex_);
        open_until_ = opened + 1;
      }
      there_is_work_.notify_all();
    }
    if (failure) std::rethrow_exception(failure);
    return batch;
  }

 private:
  Shape sizes(int64_t channels) const {
    return {options_.batch_size, series_->options().rows, series_->options().columns, channels};
  }
  Shape input_sizes() const { return sizes(series_->options().in_channels); }
  Shape target_sizes() const { return sizes(series_->options().out_channels); }

  /// Batches that may be read at a time. Without workers that is the one that is asked for.
  int64_t window() const { return options_.workers == 0 ? 1 : options_.prefetch + 1; }
  Slot& slot(int64_t step) { return ring_[static_cast<size_t>(step) % ring_.size()]; }

  /// Makes the slot of `step` ready to be filled; the caller then raises open_until_.
  void prepare(int64_t step) {
    Slot& one = slot(step);
    one.copied->synchronize();
    one.finished = 0;
    one.failure = nullptr;
    if (options_.device.kind != DeviceKind::cpu) return;
    one.input = Tensor::empty(input_sizes());
    one.target = Tensor::empty(target_sizes());
    one.to_input = one.input.data<float>();
    one.to_target = one.target.data<float>();
  }

  /// Reads one sample; false when none is to be read now.
  bool claim(std::unique_lock<std::mutex>& lock) {
    if (claim_step_ >= open_until_) return false;
    const int64_t position = claim_position_++, step = claim_step_, epoch = epoch_;
    if (claim_position_ == options_.batch_size) ++claim_step_, claim_position_ = 0;
    Slot& to = slot(step);
    ++reading_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      const FieldSeriesOptions& o = series_->options();
      const int64_t places = o.rows * o.columns;
      series_->read(sampler_.index(epoch, step * options_.batch_size + position),
                    to.to_input + position * places * o.in_channels, to.to_target + position * places * o.out_channels);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    --reading_;
    if (failure && !to.failure) to.failure = failure;
    ++to.finished;
    batch_done_.notify_all();
    return true;
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (!closing_)
      if (!claim(lock)) there_is_work_.wait(lock);
  }

  /// Drops what is open; nobody reads any more then.
  void stop() {
    std::unique_lock lock(mutex_);
    open_until_ = claim_step_ = 0;
    batch_done_.wait(lock, [&] { return reading_ == 0; });
  }

  FieldBatch handed_over(Slot& from) {
    if (options_.device.kind == DeviceKind::cpu)
      return {std::exchange(from.input, Tensor()), std::exchange(from.target, Tensor())};
    const TraceScope scope("data copy in");
    const FieldBatch batch{upload(from.to_input, input_sizes(), DType::f32, *copy_stream_),
                           upload(from.to_target, target_sizes(), DType::f32, *copy_stream_)};
    from.copied->record(copy_stream_->handle());
    hand_over(*from.copied, {batch.input, batch.target});
    return batch;
  }

  std::shared_ptr<const FieldSeries> series_;
  Sampler sampler_;
  FieldLoaderOptions options_;
  std::unique_ptr<Stream> copy_stream_;
  std::vector<Slot> ring_;
  int64_t next_ = -1;  ///< the step that next() returns; -1: not started

  // Shared with the workers.
  std::mutex mutex_;
  std::condition_variable there_is_work_, batch_done_;
  bool closing_ = false;
  int64_t epoch_ = 0;
  int64_t claim_step_ = 0, claim_position_ = 0;  ///< the sample that is read next
  int64_t open_until_ = 0;                       ///< slots of steps below this one may be filled
  int64_t reading_ = 0;                          ///< samples that are being read now
  std::vector<std::thread> threads_;
};

FieldLoader::FieldLoader(std::shared_ptr<const FieldSeries> series, Sampler sampler, FieldLoaderOptions options)
    : readers_(std::make_unique<Readers>(std::move(series), sampler, options)) {}
FieldLoader::~FieldLoader() = default;
int64_t FieldLoader::steps_per_epoch() const { return readers_->steps(); }
void FieldLoader::start(int64_t epoch, int64_t step) { readers_->start(epoch, step); }
std::optional<FieldBatch> FieldLoader::next() { return readers_->next(); }

}  // namespace weft::data
