// SPDX-License-Identifier: Apache-2.0
#include "data/field_loader.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/profile/recorder.h"
#include "core/stream.h"
#include "core/trace.h"
#include "data/staging_memory.h"
#include "kernels/transfer.h"

namespace weft::data {
namespace {

/// A batch that is being read. Its memory is pinned for a GPU, and the tensors' own on the CPU.
struct Slot {
  int64_t claimed = 0, finished = 0;  ///< samples; guarded by the mutex
  std::exception_ptr failure;
  StagingMemory staged_input, staged_target;
  Tensor input, target;
  float *to_input = nullptr, *to_target = nullptr;
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
  }

  int64_t steps() const { return sampler_.size() / options_.batch_size; }

  void start(int64_t epoch, int64_t step) {
    WEFT_CHECK(step >= 0 && step <= steps(), "field loader: expected a step of 0 to ", steps(), ", got ", step);
    stop();
    const std::lock_guard lock(mutex_);
    epoch_ = epoch;
    next_ = first_ = step;
    open_slots();
    there_is_work_.notify_all();
  }

  std::optional<FieldBatch> next() {
    const TraceScope scope("next batch");
    std::unique_lock lock(mutex_);
    WEFT_CHECK(next_ >= 0, "field loader: expected start(epoch) before next()");
    if (next_ >= steps()) return std::nullopt;
    if (threads_.empty())
      while (claim(lock)) continue;
    Slot& slot = *slots_.front();
    batch_done_.wait(lock, [&] { return slot.finished == options_.batch_size; });
    const std::unique_ptr<Slot> ready = std::move(slots_.front());
    slots_.pop_front();
    ++first_;
    ++next_;
    if (ready->failure) std::rethrow_exception(ready->failure);
    open_slots();
    there_is_work_.notify_all();
    lock.unlock();
    return handed_over(*ready);
  }

 private:
  Shape sizes(int64_t channels) const {
    return {options_.batch_size, series_->options().rows, series_->options().columns, channels};
  }

  /// Room for the batches that may be read now. Without workers that is the one that is asked for.
  void open_slots() {
    const size_t wanted = threads_.empty() ? 1 : static_cast<size_t>(options_.prefetch) + 1;
    while (slots_.size() < wanted && first_ + static_cast<int64_t>(slots_.size()) < steps()) {
      auto slot = std::make_unique<Slot>();
      const Shape input = sizes(series_->options().in_channels), target = sizes(series_->options().out_channels);
      if (options_.device.kind == DeviceKind::cpu) {
        slot->input = Tensor::empty(input);
        slot->target = Tensor::empty(target);
        slot->to_input = slot->input.data<float>();
        slot->to_target = slot->target.data<float>();
      } else {
        const DeviceKind kind = options_.device.kind;
        slot->staged_input = StagingMemory(kind, static_cast<size_t>(input.numel()) * sizeof(float));
        slot->staged_target = StagingMemory(kind, static_cast<size_t>(target.numel()) * sizeof(float));
        slot->to_input = slot->staged_input.as<float>();
        slot->to_target = slot->staged_target.as<float>();
      }
      slots_.push_back(std::move(slot));
    }
  }

  /// Reads one sample; false when none is to be read now.
  bool claim(std::unique_lock<std::mutex>& lock) {
    for (size_t i = 0; i < slots_.size(); ++i) {
      Slot& slot = *slots_[i];
      if (slot.claimed == options_.batch_size) continue;
      const int64_t position = slot.claimed++, step = first_ + static_cast<int64_t>(i), epoch = epoch_;
      ++reading_;
      lock.unlock();
      std::exception_ptr failure;
      try {
        const FieldSeriesOptions& o = series_->options();
        const int64_t places = o.rows * o.columns;
        series_->read(sampler_.index(epoch, step * options_.batch_size + position),
                      slot.to_input + position * places * o.in_channels,
                      slot.to_target + position * places * o.out_channels);
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      --reading_;
      if (failure && !slot.failure) slot.failure = failure;
      ++slot.finished;
      batch_done_.notify_all();
      return true;
    }
    return false;
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (!closing_)
      if (!claim(lock)) there_is_work_.wait(lock);
  }

  /// Drops what is open; nobody reads any more then.
  void stop() {
    std::unique_lock lock(mutex_);
    for (const auto& slot : slots_) slot->claimed = options_.batch_size;
    batch_done_.wait(lock, [&] { return reading_ == 0; });
    slots_.clear();
  }

  FieldBatch handed_over(Slot& slot) {
    if (options_.device.kind == DeviceKind::cpu) return {slot.input, slot.target};
    const TraceScope scope("data copy in");
    const auto copy = [&](const float* from, int64_t channels) {
      const Tensor to = Tensor::empty(sizes(channels), DType::f32, options_.device);
      kernels::transfer(to.queue(), "copy_to_device", to.raw_data(), from, to.nbytes());
      return to;
    };
    FieldBatch batch{copy(slot.to_input, series_->options().in_channels),
                     copy(slot.to_target, series_->options().out_channels)};
    Event copied(options_.device);
    copied.record(current_stream(options_.device));
    copied.synchronize();  // the pinned memory goes with the slot
    return batch;
  }

  std::shared_ptr<const FieldSeries> series_;
  Sampler sampler_;
  FieldLoaderOptions options_;

  std::mutex mutex_;
  std::condition_variable there_is_work_, batch_done_;
  bool closing_ = false;
  int64_t epoch_ = 0;
  int64_t first_ = 0;    ///< the step of the first slot
  int64_t next_ = -1;    ///< the step that next() returns; -1: not started
  int64_t reading_ = 0;  ///< samples that are being read now
  std::deque<std::unique_ptr<Slot>> slots_;
  std::vector<std::thread> threads_;
};

FieldLoader::FieldLoader(std::shared_ptr<const FieldSeries> series, Sampler sampler, FieldLoaderOptions options)
    : readers_(std::make_unique<Readers>(std::move(series), sampler, options)) {}
FieldLoader::~FieldLoader() = default;
int64_t FieldLoader::steps_per_epoch() const { return readers_->steps(); }
void FieldLoader::start(int64_t epoch, int64_t step) { readers_->start(epoch, step); }
std::optional<FieldBatch> FieldLoader::next() { return readers_->next(); }

}  // namespace weft::data
