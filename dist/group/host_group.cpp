// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <exception>
#include <list>
#include <mutex>
#include <sstream>
#include <thread>
#include <utility>

#include "core/capture.h"
#include "core/profile/recorder.h"
#include "dist/group/backends.h"
#include "dist/group/host_collectives.h"
#include "dist/group/stage.h"
#include "dist/group/watchdog.h"

namespace weft::dist {
namespace {

// How long a broken connection may take to be explained by the membership.
constexpr Milliseconds kExplanationWait{3000 + kLastMessages.count()};  // which another group may wait for
constexpr Milliseconds kPeerReportWait{1500};  // another rank's report arrives with a look(), within a second
constexpr int kLooksPerSecond = 20;

/// A collective that a communication thread runs: when it is done, so are its copies to the device.
class HostWork final : public Work {
 public:
  /// The owner of the queue, which may run the work on the waiting thread.
  class Helper {
   public:
    virtual ~Helper() = default;
    virtual void help(HostWork& work) = 0;
  };

  explicit HostWork(Device device, std::weak_ptr<Helper> helper = {}) : device_(device), helper_(std::move(helper)) {}

  void wait() override {
    refuse_while_capturing("wait for a collective", device_);
    if (const auto helper = helper_.lock()) helper->help(*this);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_; });
    if (error_.empty()) return;
    if (aborted_) throw GroupAborted(error_);
    throw Error(error_);
  }

  bool done() override {
    const std::lock_guard lock(mutex_);
    return done_;
  }

  /// Once; an empty text: it went well. `aborted`: by another rank's error.
  void finish(std::string error, bool aborted) {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
      aborted_ = aborted;
      error_ = std::move(error);
    }
    changed_.notify_all();
  }

 private:
  const Device device_;
  const std::weak_ptr<Helper> helper_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false, aborted_ = false;
  std::string error_;
};

struct Job {
  CollectivePtr collective;
  std::shared_ptr<HostWork> work;
  std::unique_ptr<Event> ready;  // on the caller's stream
};

class HostGroup final : public ProcessGroup, private Watched, private HostWork::Helper {
 public:
  HostGroup(GroupRecordPtr record, std::unique_ptr<Link> link, std::string_view backend)
      : ProcessGroup(std::move(record)),
        backend_(backend),
        collectives_(std::make_shared<HostCollectives>(std::move(link), record_->name, record_->options.algorithms)) {
    collectives_->link().next_deadline = [record = record_] { return record->extended_deadline(); };
    if (record_->membership)
      callback_ = record_->membership->on_failure(
          [record = std::weak_ptr(record_), weak = std::weak_ptr(collectives_)](const Failure& failure) {
            const auto alive = record.lock();
            if (alive) alive->fail_after_running(failure);
            if (const auto running = weak.lock()) running->abort(failure.reason);
          });
    watch(*this);
    thread_ = std::thread([this] { run(); });
  }

  ~HostGroup() override {
    // Work that others wait for is finished; but a rank that throws does not wait for the others.
    if (std::uncaught_exceptions() > 0) HostGroup::abort(str("rank ", rank(), " left the group with an error"));
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wake_.notify_all();
    thread_.join();
    unwatch(*this);
    if (record_->membership) record_->membership->remove(callback_);
  }

  std::string_view backend() const override { return backend_; }

  void abort(const std::string& reason) override {
    if (record_->fail(reason, GroupRecord::Cause::abort)) record_->publish(record_->failure(), /*announce=*/false);
    collectives_->abort(record_->failure());
  }

  ProcessGroupPtr split(int color, int key, const std::string& group) override {
    const std::vector<int> members = members_of_split(color, key, group);
    const uint64_t number = ++splits_;
    if (members.empty()) {
      collectives_->link().split_nothing(number);
      return nullptr;
    }
    std::vector<int> job_ranks;
    for (const int r : members) job_ranks.push_back(record_->members[static_cast<size_t>(r)]);
    const auto place = static_cast<int>(std::ranges::find(members, rank()) - members.begin());
    auto link = collectives_->link().split(number, color, members, group, Clock::now() + record_->options.timeout);
    auto record = std::make_shared<GroupRecord>(group, place, static_cast<int>(members.size()), record_->options,
                                                record_->membership, std::move(job_ranks));
    record->nanoseconds = record_->nanoseconds;
    return make_host_group(std::move(record), std::move(link), backend_);
  }

 protected:
  WorkPtr enqueue(CollectivePtr collective) override {
    const Device device = collective->tensor().defined() ? collective->tensor().device() : Device{};
    refuse_while_capturing(dist::name(collective->kind), device);
    std::shared_ptr<Helper> helper;
    if (device.kind == DeviceKind::cpu) helper = {shared_from_this(), this};
    Job job{collective, std::make_shared<HostWork>(device, helper), nullptr};
    if (device.kind != DeviceKind::cpu) {
      job.ready = std::make_unique<Event>(device);
      job.ready->record(current_stream(device));
    }
    const bool at_once = helper && collective->at_once;
    WorkPtr work = job.work;
    {
      const std::lock_guard lock(mutex_);
      jobs_.push_back(std::move(job));
    }
    if (!at_once) wake_.notify_all();
    return work;
  }

 private:
  void run() {
    profile::name_thread(str("collectives of ", name(), " on rank ", rank()));
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return !running_ && (ending_ || !jobs_.empty()); });
      if (jobs_.empty()) return;
      run_first(lock);
    }
  }

  /// A thread that waits for a collective not yet begun runs all collectives up to this one itself. That saves two
  /// changes of threads, which cost more than a small collective. Profiles show collectives on the group's own row.
  void help(HostWork& work) override {
    if (profile::is_recording()) return wake_.notify_all();
    std::unique_lock lock(mutex_);
    while (!running_ && !jobs_.empty() && !work.done()) run_first(lock);
    if (ending_ || !jobs_.empty()) wake_.notify_all();
  }

  /// Under the lock, which is open meanwhile. One thread at a time.
  void run_first(std::unique_lock<std::mutex>& lock) {
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    running_ = true;
    lock.unlock();
    std::string error = run(job);
    const auto work = std::move(job.work);
    job = {};  // whoever waited may free its tensors at once
    const bool aborted = !error.empty() && record_->was_aborted();
    work->finish(std::move(error), aborted);
    lock.lock();
    running_ = false;
  }

  /// Runs one collective; returns the text of its error.
  std::string run(const Job& job) {
    const Collective& c = *job.collective;
    record_->begin(job.collective);
    std::string reason = record_->failure();
    const int64_t span = profile::begin_span();
    if (reason.empty()) {
      try {
        const HostCollective host = stage_in(c, job.ready.get(), stagings_, scratch_, size());
        collectives_->run(host, signature_of(c, rank()), Clock::now() + record_->timeout_of(c));
        stage_out(c, host, stagings_);
      } catch (const LinkError& error) {
        reason = end(c, error);
      } catch (const std::exception& error) {
        reason = end(c, LinkError(LinkError::Kind::lost, error.what()), /*explained=*/true);
      }
    }
    if (span >= 0) profile::end_span(profile::Category::collective, dist::name(c.kind), false, span);
    record_->finish(c, reason.empty());
    if (reason.empty()) return {};
    if (record_->options.algorithms == Algorithms::library) keep_memory(job.collective);
    const std::string what = record_->describe(c);
    return reason.starts_with(what) ? reason : str(what, " on rank ", rank(), ": ", reason);
  }

  /// The first failure ends the group, here and on the other ranks; returns its text.
  std::string end(const Collective& c, const LinkError& error, bool explained = false) {
    using Kind = LinkError::Kind;
    record_->give_up();
    std::string reason = error.what();
    if (error.kind == Kind::deadline) {
      const std::vector<int> waits_for = error.missing.empty() ? collectives_->waits_for() : error.missing;
      // A rank that cannot tell who is missing lets one speak first that can.
      if (waits_for.empty() && !record_->membership) record_->wait_for_failure(kPeerReportWait);
      reason = record_->past_deadline(c, waits_for);
    }
    if (error.kind == Kind::lost && !explained) {
      record_->wait_for_explanation(kExplanationWait);
      // Another rank that has given up a rank 0 that is stopped: nobody could explain it.
      if (!record_->has_failed())
        if (const std::string silence = record_->silence(); !silence.empty()) reason = str(silence, "; ", reason);
    }
    record_->log.change(c.entry, FlightLog::State::failed);
    using Cause = GroupRecord::Cause;
    const bool first = record_->fail(reason, error.kind == Kind::aborted ? Cause::abort : Cause::here);
    reason = record_->failure();
    if (first && error.kind != Kind::aborted) record_->publish(reason, /*announce=*/true);
    collectives_->abort(reason);
    return reason;
  }

  /// A library's collective cannot be taken back: when peers arrive later, MPI still writes to this memory.
  void keep_memory(const CollectivePtr& collective) {
    struct Memory {
      CollectivePtr collective;
      std::list<Staging> stagings;
      std::vector<std::byte> scratch;
    };
    static auto* const kept = new std::list<Memory>;
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    kept->push_back({collective, std::exchange(stagings_, {}), std::exchange(scratch_, {})});
  }

  void look() override {
    // A membership tells it at once; without one, the link may know.
    if (++looks_ % kLooksPerSecond == 0 && !record_->membership)
      if (const std::string reason = collectives_->link().failure_elsewhere(); !reason.empty())
        HostGroup::abort(reason);
    const CollectivePtr stalled = record_->take_stalled();
    if (!stalled) return;
    const std::string missing = record_->missing(*stalled, collectives_->waits_for());
    if (record_->has_failed()) return;  // while a silent rank 0 was waited for
    std::fputs(str("weft: ", record_->describe(*stalled), " waits ", seconds(record_->options.stall_report),
                   " on rank ", rank(), ": ", missing, '\n')
                   .c_str(),
               stderr);
  }
  void print() override { record_->print_report(); }

  const std::string_view backend_;
  const std::shared_ptr<HostCollectives> collectives_;
  int callback_ = 0;
  uint64_t splits_ = 0;
  int looks_ = 0;  // number of the watchdog's looks

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  bool ending_ = false;
  bool running_ = false;  // a job, on the communication thread or one that waits

  // Staging for the thread that runs a job.
  std::list<Staging> stagings_;
  std::vector<std::byte> scratch_;
  std::thread thread_;
};

}  // namespace

ProcessGroupPtr make_host_group(GroupRecordPtr record, std::unique_ptr<Link> link, std::string_view backend) {
  return std::make_shared<HostGroup>(std::move(record), std::move(link), backend);
}

}  // namespace weft::dist
