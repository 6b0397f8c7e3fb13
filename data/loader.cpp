// SPDX-License-Identifier: Apache-2.0
#include "data/loader.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include "core/ops/gather.h"
#include "core/profile/recorder.h"
#include "core/stream.h"
#include "core/text.h"
#include "core/trace.h"
#include "kernels/contracts/philox.h"
#include "kernels/error.h"
#include "kernels/runtime/pinned_memory.h"
#include "kernels/runtime/transfer.h"

namespace weft::data {
namespace {

/// One batch under assembly. Workers write samples at their position; the rest belongs to the consumer.
struct Slot {
  std::vector<Tensor> host;  ///< the batch: on the CPU its own memory, for a GPU a view of `staging`
  std::vector<kernels::PinnedMemory> staging;
  std::vector<std::any> samples;  ///< that get() gave, to be collated
  int64_t count = 0;              ///< samples of the batch; 0: a dummy batch
  int64_t left = 0;               ///< samples still to come; guarded by the mutex
  int64_t failed_at = -1;         ///< lowest position that failed, so that the error does not depend on timing
  std::exception_ptr failure;
  std::unique_ptr<Event> copied;  ///< the last copy out of the staging memory

  int64_t rows() const { return std::max<int64_t>(count, 1); }
  void fail_at(int64_t position, const std::exception_ptr& why) {
    if (!failure || position < failed_at) failure = why, failed_at = position;
  }
};

Shape sizes_of(const Part& part, int64_t count) {
  Shape sizes{count};
  for (const int64_t size : part.sizes) sizes.push_back(size);
  return sizes;
}

/// Enqueues a copy of staging memory on `stream`, to which the tensor's memory belongs.
Tensor upload(const Tensor& host, const Stream& stream) {
  const StreamGuard guard(stream);
  const Tensor to = Tensor::empty(host.sizes(), host.dtype(), stream.device());
  kernels::transfer(to.queue(), "copy_to_device", to.raw_data(), host.raw_data(), to.nbytes());
  return to;
}

/// Lets the current stream use what was uploaded before the event.
void hand_over(const Event& uploaded, const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors) {
    void* const stream = current_stream(tensor.device());
    uploaded.block(stream);
    tensor.storage()->record_stream(stream);
  }
}

// A worker takes several small samples at once, so as to wait rarely for the lock, and large ones singly.
constexpr int64_t kMostSamples = 8;
constexpr int64_t kChunkBytes = 8 << 20;
constexpr int kMostWorkers = 1024;

/// The failure as an Error that names the failed sample; the original is nested.
std::exception_ptr at(const std::string& place, const std::exception_ptr& failure) {
  try {
    try {
      std::rethrow_exception(failure);
    } catch (const OutOfMemory& error) {
      std::throw_with_nested(OutOfMemory(str("loader: ", place, ": ", error.what())));
    } catch (const std::exception& error) {
      std::throw_with_nested(Error(str("loader: ", place, ": ", error.what())));
    } catch (...) {
      std::throw_with_nested(Error(str("loader: ", place, ": an exception without a text")));
    }
  } catch (...) {
    return std::current_exception();
  }
}

/// Samples draw from generators of their own, and the same on all ranks.
struct SampleGenerators {
  SampleGenerators() { set_dropout_rank(0); }
  const ThreadGenerators own;
};

}  // namespace

void Row::put(size_t number, const char* field, const Tensor& value) const {
  const Tensor& whole = parts_[number];
  const Shape sizes = whole.sizes();
  const Part part{whole.dtype(), std::span(sizes.begin(), sizes.end()).subspan(1)};
  WEFT_CHECK(value.defined() && value.device().kind == DeviceKind::cpu, "expected '", field, "' on the CPU, got ",
             value);
  WEFT_CHECK(value.dtype() == part.dtype && value.sizes() == part.sizes, "expected '", field, "' ", part.dtype,
             part.sizes, " in all samples, got ", value, ". Give a collate function that pads where sizes differ.");
  const Tensor dense = value.contiguous();
  std::memcpy(this->part<std::byte>(number), dense.raw_data(), dense.nbytes());
}

void seed_sample(uint64_t seed, int64_t epoch, int64_t index) {
  constexpr uint64_t kOwn = 0x6E75D8A300000000ull;  // other numbers than the sample's Draw has
  Draw draw = Draw::of_sample(seed ^ kOwn, epoch, index);
  const uint64_t high = draw.word();
  manual_seed(high << 32 | draw.word());
}

uint64_t sample_seed(uint64_t loader, uint64_t manual) {
  const Philox4 mixed = philox(manual, 0, 0);  // so that two equal seeds do not cancel
  return loader ^ (static_cast<uint64_t>(mixed.word[0]) << 32 | mixed.word[1]);
}

std::vector<size_t> detail::places_of(const std::vector<std::string>& fields, const std::vector<std::string>& names) {
  std::vector<size_t> places(fields.size());
  std::iota(places.begin(), places.end(), size_t{0});
  if (names.empty()) return places;
  std::vector<std::string> sorted = fields, wanted = names;
  std::sort(sorted.begin(), sorted.end());
  std::sort(wanted.begin(), wanted.end());
  WEFT_CHECK(sorted == wanted && std::adjacent_find(wanted.begin(), wanted.end()) == wanted.end(),
             "loader: expected a batch with the fields of its samples, ", joined(names), ", each once, got ",
             joined(fields));
  for (size_t i = 0; i < fields.size(); ++i)
    places[i] = static_cast<size_t>(std::find(names.begin(), names.end(), fields[i]) - names.begin());
  return places;
}

Collation rows_of(std::vector<Tensor> tensors) {
  Collation collation;
  WEFT_CHECK(!tensors.empty() && tensors[0].dim() > 0, "loader: expected tensors of rows, got ",
             tensors.empty() ? "none" : str(tensors[0]));
  collation.size = tensors[0].size(0);
  for (const Tensor& tensor : tensors)
    WEFT_CHECK(tensor.dim() > 0 && tensor.size(0) == collation.size, "loader: expected ", collation.size,
               " rows in each tensor, got ", tensor);
  collation.parts = {{DType::i64, {}}};
  collation.write = [](int64_t index, Draw&, const Row& row) { *row.part<int64_t>(0) = index; };
  collation.on_device = [tensors = std::move(tensors)](const std::vector<Tensor>& rows) {
    std::vector<Tensor> batch;
    for (const Tensor& tensor : tensors) batch.push_back(index_select(tensor, 0, rows[0]));
    return batch;
  };
  return collation;
}

/// The threads and buffers of a loader.
class BatchQueue::Workers {
 public:
  Workers(Collation collation, Sampler sampler, LoaderOptions options)
      : options_(options), collation_(std::move(collation)), sampler_(sampler) {
    WEFT_CHECK(collation_.size < 0 || sampler_.set_size() == collation_.size,
               "loader: expected a sampler of the set's ", collation_.size, " samples, got one of ",
               sampler_.set_size(), collation_.description.empty() ? "" : " for " + collation_.description);
    if (sampler_.batch_size() > 0) options_.batch_size = sampler_.batch_size();
    WEFT_CHECK(options_.batch_size > 0, "loader: expected a batch size of at least 1, got ", options_.batch_size);
    const int64_t most = is_joined() ? sampler_.most() : sampler_.size();
    const bool fits =
        options_.drop_last ? steps_per_epoch() > 0 : options_.batch_size <= most || !collation_.whole_batch;
    WEFT_CHECK(fits, "loader: expected a batch size of at most ", most, ", the number of ", collation_.unit,
               " of this rank, got ", options_.batch_size, " (", collation_.description,
               collation_.description.empty() ? "" : ", ", sampler_.options().world, " ranks)");
    WEFT_CHECK(options_.workers >= 0 && options_.prefetch >= 1,
               "loader: expected at least 0 workers and 1 batch of prefetch, got ", options_.workers, " and ",
               options_.prefetch);
    WEFT_CHECK(options_.workers <= kMostWorkers, "loader: expected at most ", kMostWorkers, " workers, got ",
               options_.workers);
    copy_stream_ = std::make_unique<Stream>(options_.device);
    slots_.resize(static_cast<size_t>(options_.workers == 0 ? 2 : options_.prefetch + 2));
    int64_t bytes = 1;  // bytes of a sample
    for (const Part& part : collation_.parts) {
      const auto row = static_cast<int64_t>(size_of(part.dtype)) * part.sizes.numel();
      bytes += row;
      if (on_cpu()) continue;
      for (Slot& one : slots_)
        one.staging.emplace_back(options_.device.kind, static_cast<size_t>(options_.batch_size * row), "loader");
    }
    chunk_ = std::clamp<int64_t>(kChunkBytes / bytes, 1, kMostSamples);
    for (Slot& one : slots_) one.copied = std::make_unique<Event>(options_.device);
    for (int w = 0; w < options_.workers; ++w)
      workers_.emplace_back([this, w] {
        profile::name_thread(str("loader ", w));
        work();
      });
  }

  ~Workers() {
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

  int64_t samples() const { return sampler_.size(); }
  int64_t steps_per_epoch() const {
    const int64_t b = is_joined() ? step_of_all() : options_.batch_size;
    const int64_t n = is_joined() ? sampler_.size_of_all() : samples();
    return options_.drop_last ? n / b : (n + b - 1) / b;
  }
  double mean_count(int64_t step) const {
    const int64_t before = step * step_of_all(), all = std::min(step_of_all(), sampler_.size_of_all() - before);
    return static_cast<double>(all) / sampler_.options().world;
  }

  void start(int64_t epoch, int64_t step) {
    WEFT_CHECK(epoch >= 0, "loader: expected an epoch of at least 0, got ", epoch);
    WEFT_CHECK(step >= 0 && step <= steps_per_epoch(), "loader: expected a step from 0 to ", steps_per_epoch(),
               ", got epoch ", epoch, " step ", step);
    const uint64_t seed = sample_seed(options_.seed, generator({}).seed);
    if (started_ && untouched_ && epoch == epoch_ && step == next_step_ && seed == seed_) return;
    stop_claims();
    ahead_.reset();
    seed_ = seed;
    epoch_ = epoch;
    next_step_ = step;
    started_ = untouched_ = true;
    ended_ = false;
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

  std::optional<Stacked> next() {
    const TraceScope scope("next batch");
    WEFT_CHECK(started_, "loader: expected start(epoch) before next()",
               ended_ ? str(": epoch ", epoch_, " ended") : "");
    untouched_ = false;
    const int64_t step = next_step_, steps = steps_per_epoch();
    if (step >= steps) {
      started_ = false;
      ended_ = true;
      return std::nullopt;
    }
    if (!ahead_) {
      wait_for(step);
      ahead_ = send(step);
    }
    Stacked batch{*std::exchange(ahead_, std::nullopt), slot(step).count, epoch_, step};
    hand_over(*slot(step).copied, batch.tensors);
    if (collation_.on_device) {
      started_ = false;  // unless it throws
      batch.tensors = collation_.on_device(std::move(batch.tensors));
      started_ = true;
    }
    next_step_ = step + 1;
    ++statistics_.batches;
    statistics_.samples += batch.count;

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
    if (!on_cpu() && next_step_ < steps && is_whole(next_step_)) ahead_ = send(next_step_);
    return batch;
  }

  std::string origin(int64_t epoch, int64_t step, size_t number, const Shape& place) const {
    // A dummy batch comes after the last sample.
    const int64_t at = std::min(step * options_.batch_size + place[0], sampler_.size());
    const int64_t index = sampler_.index(epoch, at);
    const Shape in_row = std::span(place.begin() + 1, place.end());
    if (!collation_.origin)
      return str("sample ", index, collation_.description.empty() ? "" : " of " + collation_.description,
                 in_row.rank() > 0 ? str(" at ", in_row) : "");
    const std::string from = collation_.origin(index, number, in_row);
    return str("sample ", index, from.empty() ? "" : " (" + from + ")");
  }
  const std::vector<std::string>& names() const { return collation_.names; }

  LoaderOptions options_;
  LoaderStatistics statistics_;

 private:
  bool is_joined() const { return sampler_.options().tail == Tail::joined; }
  int64_t step_of_all() const {
    return sampler_.batch_size() > 0 ? sampler_.options().step : options_.batch_size * sampler_.options().world;
  }
  Slot& slot(int64_t step) { return slots_[static_cast<size_t>(step) % slots_.size()]; }
  bool on_cpu() const { return options_.device.kind == DeviceKind::cpu; }

  int64_t place_of(const Slot& to, int64_t step, int64_t position) const {
    return to.count > 0 ? step * options_.batch_size + position : sampler_.size();
  }

  /// Brings one sample into the slot.
  void assemble(Slot& to, int64_t index, int64_t drawn, int64_t position) const {
    seed_sample(seed_, epoch_, drawn);
    Draw draw = Draw::of_sample(options_.seed, epoch_, drawn);
    if (collation_.collate)
      to.samples[static_cast<size_t>(position)] = collation_.get(index, draw);
    else
      collation_.write(index, draw, Row(to.host, position));
  }

  /// Makes the batch of the slot's samples, all of which are there.
  void collate(Slot& to) const {
    to.host = collation_.collate(to.samples);
    to.samples.clear();
    if (on_cpu()) return;
    while (to.staging.size() < to.host.size()) to.staging.emplace_back(options_.device.kind);
    for (size_t i = 0; i < to.host.size(); ++i) {
      const Tensor made = to.host[i].contiguous();
      std::byte* const staged = to.staging[i].at_least(made.nbytes(), "loader");
      std::memcpy(staged, made.raw_data(), made.nbytes());
      to.host[i] = Tensor::wrap(staged, made.sizes(), made.dtype(), {});
    }
  }

  /// Takes the next chunk, which must be there, and makes it without holding the lock.
  void assemble_chunk(std::unique_lock<std::mutex>& lock) {
    const int64_t step = claim_step_, first = claim_position_;
    Slot& to = slot(step);
    const int64_t end = std::min(to.rows(), first + chunk_);
    claim_position_ = end;
    if (end == to.rows()) ++claim_step_, claim_position_ = 0;
    ++in_flight_;
    lock.unlock();
    int64_t position = first, index = -1;
    std::exception_ptr failure;
    try {
      const TraceScope scope(collation_.assemble_scope);
      for (; position < end; ++position) {
        const int64_t place = place_of(to, step, position);
        index = -1;  // the order may fail
        index = sampler_.index(epoch_, place);
        assemble(to, index, sampler_.draw_of(epoch_, place), position);
      }
    } catch (...) {
      failure = index < 0 ? std::current_exception() : at(str("sample ", index), std::current_exception());
    }
    lock.lock();
    if (failure) to.fail_at(position, failure);
    if (collation_.collate && to.left == end - first && !to.failure) {  // nobody else is at work on this batch
      lock.unlock();
      try {
        constexpr int64_t kCollate = int64_t{1} << 39;  // no sample's
        seed_sample(seed_, epoch_, kCollate | sampler_.draw_of(epoch_, place_of(to, step, 0)));
        collate(to);
      } catch (...) {
        failure = at(str("collate of batch ", step, " of epoch ", epoch_), std::current_exception());
      }
      lock.lock();
      if (failure) to.fail_at(end, failure);
    }
    --in_flight_;
    to.left -= end - first;
    work_done_.notify_all();
  }

  void work() {
    const SampleGenerators own;
    std::unique_lock lock(mutex_);
    while (true) {
      work_there_.wait(lock, [this] { return closing_ || claim_step_ < open_until_; });
      if (closing_) return;
      assemble_chunk(lock);
    }
  }

  /// Makes the slot of `step` ready to be filled; the caller then raises open_until_.
  void prepare(int64_t step) {
    Slot& one = slot(step);
    one.copied->synchronize();
    one.count = std::max<int64_t>(std::min(options_.batch_size, sampler_.size() - step * options_.batch_size), 0);
    one.left = one.rows();
    one.failure = nullptr;
    one.failed_at = -1;
    one.host.clear();
    for (const Part& part : collation_.parts) {
      const Shape sizes = sizes_of(part, one.rows());
      one.host.push_back(on_cpu() ? Tensor::empty(sizes, part.dtype)
                                  : Tensor::wrap(one.staging[one.host.size()].as<void>(), sizes, part.dtype, Device{}));
    }
    if (collation_.collate) one.samples.resize(static_cast<size_t>(one.rows()));
  }

  void stop_claims() {
    std::unique_lock lock(mutex_);
    open_until_ = claim_step_ = 0;
    claim_position_ = 0;
    work_done_.wait(lock, [this] { return in_flight_ == 0; });
  }

  /// Until the batch is whole; without workers, by making it here. Throws what its assembly threw.
  void wait_for(int64_t step) {
    const TraceScope scope("wait for batch");
    const auto since = std::chrono::steady_clock::now();
    Slot& wanted = slot(step);
    std::exception_ptr failure;
    {
      std::unique_lock lock(mutex_);
      if (workers_.empty()) {
        const SampleGenerators own;
        while (wanted.left > 0) assemble_chunk(lock);
      } else {
        work_done_.wait(lock, [&] { return wanted.left == 0; });
      }
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
  std::vector<Tensor> send(int64_t step) {
    const TraceScope scope(collation_.upload_scope);
    Slot& from = slot(step);
    if (on_cpu()) return std::exchange(from.host, {});
    std::vector<Tensor> sent;
    for (const Tensor& part : from.host) sent.push_back(upload(part, *copy_stream_));
    from.copied->record(copy_stream_->handle());
    return sent;
  }

  bool is_whole(int64_t step) {
    const std::lock_guard lock(mutex_);
    return slot(step).left == 0 && !slot(step).failure;
  }

  Collation collation_;
  Sampler sampler_;
  int64_t chunk_ = kMostSamples;
  std::unique_ptr<Stream> copy_stream_;
  std::vector<Slot> slots_;

  // The consumer's position.
  bool started_ = false, ended_ = false;
  uint64_t seed_ = 0;       ///< seeds the samples' own generators
  bool untouched_ = false;  ///< no batch was asked for since the start
  int64_t epoch_ = 0;
  int64_t next_step_ = 0;
  std::optional<std::vector<Tensor>> ahead_;  ///< the next batch, on its way before it was asked for

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

BatchQueue::BatchQueue(Collation collation, Sampler sampler, LoaderOptions options)
    : workers_(std::make_unique<Workers>(std::move(collation), sampler, options)) {}
BatchQueue::~BatchQueue() = default;
BatchQueue::BatchQueue(BatchQueue&&) noexcept = default;

std::string BatchQueue::origin(int64_t epoch, int64_t step, size_t number, const Shape& place) const {
  return workers_->origin(epoch, step, number, place);
}
const std::vector<std::string>& BatchQueue::names() const { return workers_->names(); }
int64_t BatchQueue::samples_per_epoch() const { return workers_->samples(); }
int64_t BatchQueue::steps_per_epoch() const { return workers_->steps_per_epoch(); }
double BatchQueue::mean_count(int64_t step) const { return workers_->mean_count(step); }
void BatchQueue::start(int64_t epoch, int64_t step) { workers_->start(epoch, step); }
std::optional<Stacked> BatchQueue::next() { return workers_->next(); }
const LoaderOptions& BatchQueue::options() const { return workers_->options_; }
LoaderStatistics BatchQueue::statistics() const { return workers_->statistics_; }

}  // namespace weft::data
