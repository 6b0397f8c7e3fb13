// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "emulator/machine/fault.h"
#include "emulator/machine/stream_order.h"

namespace emulator {

namespace cuda {
struct Trace;
}

/// One lock holds the state of streams, events, captures and graphs. Work runs without it.
using Lock = std::unique_lock<std::mutex>;
Lock lock_state();

/// A piece of work in a stream, or in a graph that a stream runs. An operation may start when all its dependencies have
/// ended.
struct Operation : std::enable_shared_from_this<Operation> {
  enum class Kind : uint8_t {
    marker,   ///< no work: events, joins
    device,   ///< a kernel, a copy, a fill: the device's executor runs it
    host,     ///< a host function, which may block, and so has a thread of its own
    waiting,  ///< work of the device that waits for other devices: it has a thread of its own, too
  };
  uint64_t number = 0;  ///< order of issue
  int device = 0;
  uint64_t stream = 0;  ///< Stream::number
  Kind kind = Kind::marker;
  bool wanted = false, running = false, done = false;
  int polls = 0;  ///< queries that were answered with `not ready`
  std::function<void()> work;
  std::vector<Operation*> dependencies;                ///< dependencies that have not ended
  std::vector<std::shared_ptr<Operation>> dependents;  ///< operations that wait for this one
  std::chrono::steady_clock::time_point ended;
  double ends = 0;  ///< seconds of the predicted clock (timeline.h): so far the latest end of a dependency
  std::shared_ptr<cuda::Trace> trace;  ///< only while streams are checked
};
using Op = std::shared_ptr<Operation>;

/// The owner of the streams, as the scheduler calls it. All under the state's lock but run() and die().
class StreamOwner {
 public:
  virtual ~StreamOwner() = default;
  /// Does the device run nothing more, since some of its work has failed?
  virtual bool dead(int device) = 0;
  virtual void die(int device, const Fault& fault) = 0;
  /// Does the operation's work, without the lock.
  virtual void run(Operation& op) { op.work(); }
  virtual void issued(Operation&, const std::vector<Op>& /*after*/) {}
  virtual void begins(const Operation&) {}
  virtual void ended(const Operation&) {}
  virtual void known_to_host(const Operation&) {}
  /// `op` and all after it now also come after `before`.
  virtual void postponed(Operation& /*op*/, const Operation& /*before*/) {}
};

/// Decides what runs next, by its options. Each device has a thread that runs its work; in random order one
/// thread runs the work of all, step by step with the host's calls, so that a seed reproduces. All functions want the
/// state's lock.
class Scheduler {
 public:
  /// `owner` must outlive it. Its threads never end, and neither may it.
  Scheduler(const StreamOptions& options, StreamOwner& owner) : options_(options), owner_(owner) {}

  /// Another order, from here on. Nothing may be under way.
  void set_options(const Lock&, const StreamOptions& options) {
    options_ = options;
    random_ = 0;
  }

  /// Work that starts after `after` (done operations and nullptrs do not matter), and after `unchecked`, an order that
  /// the program did not request.
  Op issue(Lock& lock, int device, uint64_t stream, Operation::Kind kind, std::function<void()> work,
           const std::vector<Op>& after, const std::vector<Op>& unchecked = {});
  /// An operation that waits for the running one now waits for `before`, too.
  void postpone(Lock& lock, Operation& op, const Op& before);
  /// Returns when the operation has ended. nullptr is done.
  void wait(Lock& lock, const Op& op);
  void wait(Lock& lock, const std::vector<Op>& ops);
  bool query(Lock& lock, const Op& op);
  /// The process ends: issued work that nothing waits for may run now, as long as it needs no host function.
  void drain(Lock& lock);
  /// A kernel of the device polls memory that no kernel can change: held-back work runs
  /// now, on this thread, as on a GPU that runs streams side by side. False: there is none, and the host waits, too.
  bool relieve(Lock& lock, int device);
  /// In random order: a moment at which work may run. Called once per operation that a program issues.
  void step(Lock& lock);

 private:
  static bool has_own_thread(const Operation& op) {
    return op.kind == Operation::Kind::host || op.kind == Operation::Kind::waiting;
  }
  bool runs_at_once() const { return options_.order == StreamOrder::inorder || options_.order == StreamOrder::queues; }
  struct Executor {
    std::map<uint64_t, Op> ready;
    std::condition_variable wake;
    bool started = false;
    int running = 0;
    uint64_t completed = 0;
  };
  Executor& executor(int device);
  void make_ready(const Op& op);
  void complete(Operation& op);
  void want(Operation& op);
  Op pick(Executor& e);
  bool may_run(const Operation& op) const;
  void loop(Executor& e);
  void start_host(const Op& op);
  void perform(Lock& lock, Operation& op);
  /// The host has waited for it. A query is no wait: on a GPU it might have answered otherwise.
  void known_to_host(const Operation& op);
  void insist(Lock& lock);
  void wake_all();
  uint32_t draw(uint32_t bound);

  StreamOptions options_;
  StreamOwner& owner_;
  uint64_t next_number_ = 1;
  std::map<int, std::unique_ptr<Executor>> executors_;
  std::condition_variable changed_;  ///< an operation has ended
  std::vector<Operation*> awaited_;
  uint64_t completed_ = 0;
  int host_running_ = 0;
  std::chrono::steady_clock::time_point relieved_;  ///< when relieve() last began or ended an operation
  int budget_ = 0;  ///< random order: operations that may still run in this step
  uint64_t random_ = 0;
};

}  // namespace emulator
