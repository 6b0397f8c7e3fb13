// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "core/autograd.h"
#include "core/capture.h"
#include "core/trace.h"
#include "dist/group/backends.h"
#include "dist/group/nccl_communicator.h"
#include "dist/group/nccl_log.h"
#include "dist/group/transport.h"
#include "dist/group/watchdog.h"
#include "kernels/contracts/binary.h"

namespace weft::dist {
namespace {

using Deadline = NcclCommunicator::Deadline;

/// The collective as texts name it: forms of tensors, and none of their memory.
CollectivePtr without_memory(Collective c) {
  for (Tensor* tensor : {&c.output, &c.input})
    if (tensor->defined()) *tensor = Tensor::wrap(nullptr, tensor->sizes(), tensor->dtype(), tensor->device());
  c.scale = {};
  c.after = {};
  return std::make_shared<const Collective>(std::move(c));
}

// NCCL knows that a connection broke; of the rank that has gone or given up the membership tells soon.
constexpr Milliseconds kNcclExplained{3000};

/// A group's record and its communicator, which end together.
struct Core {
  const GroupRecordPtr record;
  const std::shared_ptr<NcclCommunicator> communicator;

  Deadline deadline() const { return Clock::now() + record->options.timeout; }
  void fail_with(const std::string& reason) const {
    if (record->fail(reason, GroupRecord::Cause::here)) record->publish(reason, /*announce=*/true);
    communicator->abort();
  }
  bool fail_by_nccl() const {
    const std::string error = communicator->asynchronous_error();
    if (error.empty()) return false;
    record->wait_for_explanation(kNcclExplained);
    fail_with(str("NCCL on rank ", record->rank, ": ", error));
    return true;
  }
  /// A call has failed; throws as all later calls of the group do.
  void fail_at(const Collective& c, const Error& error) const {
    if (!fail_by_nccl()) fail_with(str(record->describe(c), " on rank ", record->rank, ": ", error.what()));
    record->check_alive(c);
  }
};

/// Calls that NCCL gets at once. Its thread enqueues them on the group's stream while the caller goes on; an event
/// follows.
class Launch {
 public:
  Launch(const Core& core, CollectivePtr first, Device device, void* stream)
      : core_(core),
        first_(std::move(first)),
        stream_(stream),
        begun_(device, core.record->options.times),
        done_(device, core.record->options.times) {}

  void start(const std::vector<NcclCommunicator::Call>& calls) {
    const std::lock_guard lock(mutex_);
    state_ = State::started;
    deadline_ = core_.deadline();
    if (core_.record->options.times) begun_.record(stream_);
    try {
      core_.communicator->start(calls, stream_, deadline_);
    } catch (const Error& error) {
      state_ = State::on_stream;  // as far as it will come
      core_.fail_at(*first_, error);
    }
  }
  /// Waits until all of it is on the stream.
  void settle() {
    const std::lock_guard lock(mutex_);
    WEFT_CHECK(state_ != State::held, core_.record->describe(*first_), " on rank ", core_.record->rank,
               ": waited for before together() has ended");
    if (state_ == State::started) finish();
  }
  /// As settle(), but it never waits; false: the calls are not on the stream yet.
  bool try_settle() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || state_ == State::held) return false;
    if (state_ == State::started) {
      if (!core_.communicator->is_ready()) return false;
      finish();
    }
    return true;
  }
  const Event& done() const { return done_; }
  /// The time on the device, if the options ask for times; the first collective counts for all. After done().
  Clock::duration took(const CollectivePtr& collective) const {
    if (!core_.record->options.times || collective != first_) return {};
    return std::chrono::nanoseconds(std::llround(1e6 * static_cast<double>(begun_.elapsed_ms(done_))));
  }

 private:
  enum class State : uint8_t { held, started, on_stream };

  void finish() {
    state_ = State::on_stream;
    try {
      core_.communicator->finish(deadline_);
    } catch (const Error& error) {
      core_.fail_at(*first_, error);
    }
    done_.record(stream_);
  }

  const Core core_;
  const CollectivePtr first_;
  void* const stream_;  // the group's
  std::mutex mutex_;
  State state_ = State::held;
  Deadline deadline_;
  Event begun_, done_;
};

/// A collective on the group's stream, or a replay of a graph, until the host sees that the device has done it.
struct Flight {
  CollectivePtr collective;
  std::shared_ptr<Launch> launch{};
  std::unique_ptr<Event> replayed{};
  bool begun = false;

  bool has_ended() const { return launch ? launch->try_settle() && launch->done().done() : replayed->done(); }
};

/// It holds the collective's tensors until wait() has ordered a stream after the collective. Only then may their memory
/// be reused, and at once: record_stream() would keep it until the host sees the event, and the host is far ahead.
class NcclWork final : public Work {
 public:
  NcclWork(const Core& core, CollectivePtr collective, std::shared_ptr<Launch> launch, std::array<Tensor, 3> tensors,
           void* stream, Device device, bool captured)
      : core_(core),
        collective_(std::move(collective)),
        launch_(std::move(launch)),
        tensors_(std::move(tensors)),
        stream_(stream),
        device_(device),
        captured_(captured) {}
  ~NcclWork() override {
    try {
      launch_->settle();
    } catch (const Error&) {  // the group has failed, and says so
    }
    let_go(stream_);
  }
  NcclWork(const NcclWork&) = delete;
  NcclWork& operator=(const NcclWork&) = delete;

  /// Again after the host has read the result: a collective that a failure ends leaves anything in its tensors.
  void wait() override {
    check(std::exchange(waited_, true));
    block(current_stream(device_));
    let_go(current_stream(device_));  // a stream other than the memory's own counts as its user
    if (!collective_->is_barrier() || captured_) return;
    while (!launch_->done().done()) {
      core_.record->check_alive(*collective_);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    check(/*has_ended=*/true);  // a failure ends a barrier's kernel too
  }
  bool done() override { return true; }  // wait() waits on the host for a barrier, and else some time of a launch
  bool has_ended() override { return !captured_ && launch_->try_settle() && launch_->done().done(); }
  void block(void* stream) const {
    launch_->settle();
    launch_->done().block(stream);
  }

 private:
  void check(bool has_ended) const {
    const GroupRecord& record = *core_.record;
    const std::string error = has_ended ? core_.communicator->asynchronous_error() : std::string();
    if (!error.empty()) core_.record->wait_for_explanation(kNcclExplained);
    record.check_alive(*collective_);
    WEFT_CHECK(error.empty(), record.describe(*collective_), " on rank ", record.rank, ": ", error);
  }
  void let_go(void* user) {
    for (Tensor& tensor : tensors_) {
      if (tensor.defined() && !captured_) tensor.storage()->record_stream(user);
      tensor = {};
    }
  }

  const Core core_;
  const CollectivePtr collective_;
  const std::shared_ptr<Launch> launch_;
  std::array<Tensor, 3> tensors_;
  void* const stream_;  // the group's stream
  const Device device_;
  const bool captured_;
  bool waited_ = false;
};

/// Collectives start before the kernels of the backward pass that wait as they do: other ranks wait for them too.
constexpr int kFirst = -5;
/// A wait for another rank's signature, between looks at the group's own state.
constexpr Milliseconds kBetweenLooks{200};
/// Overdue looks until a group fails. The device may have ended the collective while the thread that asks it slept.
constexpr int kLooksOverdue = 10;

class NcclGroup final : public ProcessGroup, private Watched {
 public:
  /// `key`: a place in the store for what this group's ranks tell each other.
  NcclGroup(GroupRecordPtr record, std::shared_ptr<NcclCommunicator> communicator, Device device,
            std::shared_ptr<Store> store, std::string key)
      : ProcessGroup(std::move(record)),
        store_(std::move(store)),
        key_(std::move(key)),
        core_{record_, std::move(communicator)},
        device_(device),
        stream_(device, kFirst),
        word_(Tensor::zeros({1}, DType::u8, device)) {
    weft::synchronize(device);
    if (record_->membership)
      callback_ = record_->membership->on_failure(
          [alive = std::weak_ptr(record_), comm = std::weak_ptr(core_.communicator)](const Failure& failure) {
            if (const auto r = alive.lock()) r->fail_told(failure);
            if (const auto c = comm.lock()) c->abort();
          });
    watch(*this);
    watch(device_look_, WatchThread::devices);
  }

  ~NcclGroup() override {
    unwatch(*this);
    unwatch(device_look_, WatchThread::devices);
    try {
      settle_last();
    } catch (const Error&) {  // the group has failed, and says so
    }
    if (record_->membership) record_->membership->remove(callback_);
    const Clock::time_point end = Clock::now() + record_->options.timeout;
    while (!record_->has_failed() && !flights_.empty() && Clock::now() < end) {
      device_look_.look();
      std::this_thread::sleep_for(Milliseconds(1));
    }
    if (!flights_.empty()) core_.communicator->abort();
  }

  /// Collective, before all others: makes the communicator. It has a deadline and reports of who is missing, as a
  /// collective has.
  void connect() {
    const auto start = std::make_shared<Collective>();
    start->name = "start of NCCL";
    start->timeout = std::min(record_->options.start_timeout, record_->options.timeout);
    start->entry = record_->log.add(dist::describe(*start));
    record_->begin(start);
    const Deadline end = Clock::now() + *start->timeout;
    try {
      core_.communicator->connect(rank(), size(), *store_, key_ + "/id", end, record_->options.nccl_ranks_per_root);
      if (size() > 1) say_transport(end);
    } catch (const Error&) {
      if (Clock::now() >= end) {
        if (!record_->claims("start", *start, kLook)) record_->wait_for_failure(kLook);
        core_.fail_with(record_->has_failed() ? record_->failure() : record_->past_deadline(*start, {}));
      }
      throw;
    }
    record_->finish(*start, true);
  }

  std::string_view backend() const override { return "nccl"; }

  void abort(const std::string& reason) override {
    if (record_->fail(reason, GroupRecord::Cause::abort)) record_->publish(record_->failure(), /*announce=*/false);
    core_.communicator->abort();
  }

  ProcessGroupPtr split(int color, int key, const std::string& group) override {
    const std::vector<int> members = members_of_split(color, key, group);
    std::vector<int> job_ranks;
    int place = 0;
    for (const int r : members) {
      if (r == rank()) place = static_cast<int>(job_ranks.size());
      job_ranks.push_back(record_->members[static_cast<size_t>(r)]);
    }
    settle_last();
    const std::string place_of_part = str(key_, '/', ++splits_, '/', color);  // no other part or split has it
    std::shared_ptr<NcclCommunicator> part = core_.communicator->split(color, place, core_.deadline());
    if (!part) return nullptr;
    auto record = std::make_shared<GroupRecord>(group, place, static_cast<int>(members.size()), record_->options,
                                                record_->membership, std::move(job_ranks));
    record->nanoseconds = record_->nanoseconds;
    const auto made = std::make_shared<NcclGroup>(std::move(record), std::move(part), device_, store_, place_of_part);
    made->nvls_ = nvls_;
    return made;
  }

 protected:
  Device text_device() const override { return device_; }

  WorkPtr enqueue(CollectivePtr c) override {
    const bool barrier = c->is_barrier();
    WEFT_CHECK(barrier || c->tensor().device() == device_, record_->describe(*c), " on rank ", rank(),
               ": backend nccl: expected a tensor on ", device_, ", got ", c->tensor());
    if (record_->options.check && size() > 1) compare(*c);
    if (calls_.empty()) settle_last();
    Tensor factor;
    if (c->scale.defined()) {
      const NoGrad guard;
      factor = c->scale.to(c->output.dtype());
    }
    // Switches add what is multiplied by nothing. NCCL's factor would take that from them (nccl, device.h and
    // enqueue.cc: NVLS knows no PreMulSum); a pass over the tensor costs less.
    if (factor.defined() && c->kind == CollectiveKind::all_reduce && nvls_ && size_of(factor.dtype()) >= 4) {
      const OpScope scope("weigh");
      const Tensor& x = c->output;
      kernels::binary_forward(x.queue(), kernels::Binary::mul, x, x, std::exchange(factor, {}).expand(x.sizes()), 1);
    }
    Event ready(device_);
    ready.record(current_stream(device_));
    ready.block(stream_.handle());
    if (const auto after = std::dynamic_pointer_cast<NcclWork>(c->after))
      after->block(stream_.handle());
    else if (c->after)
      c->after->wait();
    const CollectivePtr named = without_memory(*c);
    if (calls_.empty()) last_ = std::make_shared<Launch>(core_, named, device_, stream_.handle());
    NcclCommunicator::Call call{*c, factor};
    if (barrier) {
      call.collective.kind = CollectiveKind::all_reduce;
      call.collective.output = word_;
    }
    calls_.push_back(std::move(call));
    named_.push_back(named);
    works_.push_back(std::make_shared<NcclWork>(core_, named, last_, std::array{c->output, c->input, factor},
                                                stream_.handle(), device_, is_capturing(device_)));
    const WorkPtr work = works_.back();
    if (!holds_) launch();
    return work;
  }

  bool hold() override { return holds_ = true; }
  void release() override {
    holds_ = false;
    if (!calls_.empty()) launch();
  }

 private:
  void launch() {
    const auto calls = std::exchange(calls_, {});
    const auto named = std::exchange(named_, {});
    const auto works = std::exchange(works_, {});  // a dropped one's tensors stay until NCCL has been handed them
    last_->start(calls);
    if (blocks_device(*this)) last_->settle();  // all ranks hand their devices the calls of all groups in one order
    if (is_capturing(device_)) return launched_into_capture(named);
    const std::lock_guard lock(mutex_);
    for (const CollectivePtr& collective : named) flights_.push_back({.collective = collective, .launch = last_});
    reap();
  }

  /// The capture must not end before NCCL's thread has come to it.
  void launched_into_capture(const std::vector<CollectivePtr>& named) {
    settle_last();
    for (const CollectivePtr& c : named) {
      record_->log.change(c->entry, FlightLog::State::done);
      on_each_run([record = record_, bytes = bytes_to_send(*c, rank(), size())] { record->bytes_sent += bytes; });
    }
    if (watched_capture_ != capture_number())
      on_each_run([group = weak_from_this(), first = dist::describe(*named.front())] {
        if (const auto alive = group.lock()) static_cast<NcclGroup&>(*alive).watch_replay(first);
      });
    watched_capture_ = capture_number();
  }

  /// The first sum makes NCCL connect, within the deadline of the start. Then rank 0 says in one line how.
  void say_transport(Deadline end) {
    Transport transport = read_transport(NcclLog::instance().text());
    const std::string sockets = key_ + "/sockets";
    store_->add(sockets, transport.network == "Socket");
    Collective word;
    word.kind = CollectiveKind::all_reduce;
    word.output = word_;
    core_.communicator->start({{word, {}}}, stream_.handle(), end);
    core_.communicator->finish(end);
    Event done(device_);
    done.record(stream_.handle());
    while (!done.done()) {
      WEFT_CHECK(!record_->has_failed(), record_->failure());
      WEFT_CHECK(Clock::now() < end, "process group nccl: the first sum did not end in time");
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    NcclLog::instance().end();
    transport = read_transport(NcclLog::instance().text());
    nvls_ = transport.nvls;
    if (rank() > 0) return;
    const std::string text =
        dist::describe(transport, nccl_version(), size(), static_cast<int>(store_->add(sockets, 0)));
    if (!text.empty()) std::fputs(("weft: " + text + '\n').c_str(), stderr);
  }

  /// Different calls would wait for each other for ever. Rank 0 of the group, or the sender of a message, describes its
  /// call in the store, and the others compare.
  void compare(const Collective& c) {
    Signature own = signature_of(c, rank());
    const bool says = c.is_message() ? c.kind == CollectiveKind::send : rank() == 0;
    const std::string key =
        c.is_message() ? str(key_, "/message/", says ? rank() : c.peer, '/', says ? c.peer : rank(), '/', c.number)
                       : str(key_, "/call/", c.number);
    if (says) return store_->set(key, std::string(reinterpret_cast<const char*>(&own), sizeof own));
    const Clock::time_point begin = Clock::now();
    std::optional<std::string> text;
    for (bool said = false; !(text = store_->find(key, kBetweenLooks));) {
      record_->check_alive(c);
      const auto waited = Clock::now() - begin;
      const std::string missing =
          str("waits for rank ", record_->members[c.is_message() ? static_cast<size_t>(c.peer) : 0],
              " of the job, which has not called it (WEFT_CHECK=1)");
      if (waited > record_->options.stall_report && !std::exchange(said, true))
        std::fputs(str("weft: ", record_->describe(c), " on rank ", rank(), ' ', missing, '\n').c_str(), stderr);
      if (waited > record_->timeout_of(c))
        core_.fail_with(str(record_->describe(c), " passed its deadline of ", seconds(record_->timeout_of(c)),
                            " on rank ", rank(), ": it ", missing));
    }
    Signature other;
    WEFT_CHECK(text->size() == sizeof other, "process group nccl: a signature of ", text->size(), " bytes");
    std::memcpy(&other, text->data(), sizeof other);
    const int readers = c.is_message() ? 1 : size() - 1;
    if (readers == 1 || store_->add(key + "/read", 1) == readers) {
      store_->remove(key);
      store_->remove(key + "/read");
    }
    if (own.agrees(other)) return;
    core_.fail_with(describe_difference(own, other, name()));
    record_->check_alive(c);
  }

  /// Before anything else reaches the stream or the communicator.
  void settle_last() {
    if (const auto last = std::exchange(last_, nullptr)) last->settle();
  }

  /// A captured event can never be asked (cudaErrorCapturedEvent). So each replay of a graph with collectives of this
  /// group counts as a collective, with an event after the replay: a hanging replay misses its deadline as any other.
  void watch_replay(const std::string& first) {
    Collective replay{
        .kind = CollectiveKind::barrier, .number = next_number(), .name = "replay of a graph from " + first};
    record_->check_alive(replay);
    replay.entry = record_->log.add(dist::describe(replay));
    Flight flight{.collective = std::make_shared<const Collective>(std::move(replay)),
                  .replayed = std::make_unique<Event>(device_)};
    flight.replayed->record(current_stream(device_));
    const std::lock_guard lock(mutex_);
    flights_.push_back(std::move(flight));
    reap();
  }

  /// Takes note of what the device has done; the first that is left is the one under way. Under the lock.
  void reap() {
    while (!flights_.empty()) {
      Flight& first = flights_.front();
      if (!first.begun) record_->begin(first.collective);
      first.begun = true;
      if (!first.has_ended()) return;
      record_->finish(*first.collective, true, first.launch ? first.launch->took(first.collective) : Clock::duration{});
      flights_.pop_front();
    }
  }

  /// Asks nothing of the device, whose driver may not answer.
  void look() override {
    if (record_->has_failed()) return;
    try {
      if (const CollectivePtr stalled = record_->take_stalled())
        std::fputs(str("weft: ", record_->describe(*stalled), " waits ", seconds(record_->options.stall_report),
                       " on rank ", rank(), ": ", record_->missing(*stalled, {}), '\n')
                       .c_str(),
                   stderr);
      const CollectivePtr late = record_->overdue();
      looks_overdue_ = late ? looks_overdue_ + 1 : 0;
      if (looks_overdue_ > kLooksOverdue && record_->extended_deadline() < Clock::now())
        core_.fail_with(record_->past_deadline(*late, {}));
    } catch (const std::exception& error) {
      core_.fail_with(str("rank ", rank(), ": ", error.what()));
    }
  }
  void print() override { record_->print_report(); }

  struct DeviceLook final : Watched {
    explicit DeviceLook(NcclGroup& group_) : group(group_) {}
    void look() override {
      if (group.record_->has_failed()) return;
      try {
        if (group.core_.fail_by_nccl()) return;
        const std::lock_guard lock(group.mutex_);
        group.reap();
      } catch (const std::exception& error) {  // the device has failed
        group.core_.fail_with(str("rank ", group.rank(), ": ", error.what()));
      }
    }
    NcclGroup& group;
  };

  const std::shared_ptr<Store> store_;
  const std::string key_;
  const Core core_;
  const Device device_;
  const Stream stream_;
  const Tensor word_;  // operand of a barrier
  bool nvls_ = false;
  int splits_ = 0;
  DeviceLook device_look_{*this};
  int callback_ = 0;
  int looks_overdue_ = 0;
  uint64_t watched_capture_ = 0;

  // The thread that enqueues has these to itself.
  bool holds_ = false;
  std::vector<NcclCommunicator::Call> calls_;  // that together() holds back, and their names and works
  std::vector<CollectivePtr> named_;
  std::vector<WorkPtr> works_;
  std::shared_ptr<Launch> last_;  // until it is on the stream

  std::mutex mutex_;
  std::deque<Flight> flights_;
};

}  // namespace

ProcessGroupPtr make_nccl_group(GroupRecordPtr record, std::shared_ptr<Store> store) {
  WEFT_CHECK(store, "process group nccl: expected a store, got none");
  const int ranks_per_root = record->options.nccl_ranks_per_root;
  WEFT_CHECK(ranks_per_root > 0, "process group nccl: expected nccl_ranks_per_root of at least 1, got ",
             ranks_per_root);
  const Device device{DeviceKind::cuda, record->options.gpu};
  const int64_t number = store->add(str("nccl/made/", record->rank), 1);
  record->explain_in(store, str("nccl/", number, "/failure"));
  if (record->size > 1) NcclLog::instance().begin();
  const auto communicator = std::make_shared<NcclCommunicator>(device);
  // First, so that a rank that dies while they connect ends the others' wait for it.
  auto group = std::make_shared<NcclGroup>(record, communicator, device, store, str("nccl/", number));
  try {
    group->connect();
  } catch (const Error&) {
    WEFT_CHECK(!record->has_failed(), "process group nccl: ", record->failure());
    throw;
  }
  return group;
}

}  // namespace weft::dist
