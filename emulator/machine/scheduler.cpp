// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/scheduler.h"

#include <algorithm>
#include <thread>

#include "emulator/machine/host_threads.h"
#include "emulator/machine/timeline.h"

namespace emulator {
namespace {

std::mutex& state_mutex() {
  static std::mutex* const mutex = new std::mutex;  // never destroyed: threads outlive main
  return *mutex;
}

// How long an order may hold work back during a wait. Only a program reaches this limit whose awaited work waits for
// other work (a host function for another stream's, a kernel for the host).
constexpr auto kPatienceWithHosts = std::chrono::milliseconds(30);
constexpr auto kPatienceWithKernels = std::chrono::milliseconds(1500);
// A program may watch memory instead of calling CUDA; then nothing ever waits.
constexpr auto kPatienceWithSilence = std::chrono::seconds(3);
constexpr int kPollsAreWaiting = 6;

}  // namespace

Lock lock_state() { return Lock(state_mutex()); }

uint32_t Scheduler::draw(uint32_t bound) {
  if (random_ == 0) random_ = options_.seed * 0x9e3779b97f4a7c15u + 0x1234567;
  uint64_t z = (random_ += 0x9e3779b97f4a7c15u);  // splitmix64
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return uint32_t((z ^ (z >> 31)) % bound);
}

Scheduler::Executor& Scheduler::executor(int device) {
  std::unique_ptr<Executor>& e = executors_[options_.order == StreamOrder::random ? 0 : device];
  if (!e) e = std::make_unique<Executor>();
  if (!e->started) {
    e->started = true;
    std::thread([this, &one = *e] { loop(one); }).detach();
  }
  return *e;
}

Op Scheduler::issue(Lock&, int device, uint64_t stream, Operation::Kind kind, std::function<void()> work,
                    const std::vector<Op>& after, const std::vector<Op>& unchecked) {
  Op op = std::make_shared<Operation>();
  op->number = next_number_++;
  op->device = device;
  op->stream = stream;
  op->kind = kind;
  op->work = std::move(work);
  op->ends = timeline::host();
  const auto depend = [&op](const Op& before) {
    if (before && before->done) op->ends = std::max(op->ends, before->ends);
    if (!before || before->done || std::ranges::find(op->dependencies, before.get()) != op->dependencies.end()) return;
    op->dependencies.push_back(before.get());
    before->dependents.push_back(op);
  };
  for (const Op& before : after) depend(before);
  for (const Op& before : unchecked) depend(before);
  owner_.issued(*op, after);
  if (op->dependencies.empty()) make_ready(op);
  return op;
}

void Scheduler::postpone(Lock&, Operation& op, const Op& before) {
  if (before->done) {
    op.ends = std::max(op.ends, before->ends);
    return;
  }
  op.dependencies.push_back(before.get());
  before->dependents.push_back(op.shared_from_this());
  owner_.postponed(op, *before);
  if (op.wanted) want(*before);
}

bool Scheduler::may_run(const Operation& op) const {
  switch (options_.order) {
    case StreamOrder::inorder:
    case StreamOrder::queues:
      return true;
    case StreamOrder::lazy:
      return op.wanted;
    case StreamOrder::starve:
      return op.wanted || op.stream != uint64_t(options_.starved);
    case StreamOrder::random:
      return budget_ > 0 || op.wanted ||
             std::ranges::any_of(awaited_, [](const Operation* awaited) { return !awaited->done; });
  }
  return true;
}

void Scheduler::make_ready(const Op& op) {
  // A marker that runs at once and one that waits for its turn are indistinguishable if turns come at
  // once.
  if (op->kind == Operation::Kind::marker && !op->work && runs_at_once()) {
    complete(*op);
    return;
  }
  Executor& e = executor(op->device);
  e.ready.emplace(op->number, op);
  e.wake.notify_one();
}

void Scheduler::complete(Operation& op) {
  // A list, not recursion: thousands of markers may follow each other.
  std::vector<Op> freed;
  const auto end = [&](Operation& one) {
    one.done = true;
    one.ended = std::chrono::steady_clock::now();
    one.work = nullptr;
    ++completed_;
    owner_.ended(one);
    for (Op& next : one.dependents) {
      std::erase(next->dependencies, &one);
      next->ends = std::max(next->ends, one.ends);
      if (next->dependencies.empty()) freed.push_back(std::move(next));
    }
    one.dependents.clear();
  };
  end(op);
  const bool inline_markers = runs_at_once();
  while (!freed.empty()) {
    const Op next = std::move(freed.back());
    freed.pop_back();
    if (inline_markers && next->kind == Operation::Kind::marker && !next->work) {
      end(*next);
    } else {
      make_ready(next);
    }
  }
  changed_.notify_all();
}

void Scheduler::want(Operation& op) {
  std::vector<Operation*> open{&op};
  while (!open.empty()) {
    Operation& one = *open.back();
    open.pop_back();
    if (one.wanted || one.done) continue;
    one.wanted = true;
    open.insert(open.end(), one.dependencies.begin(), one.dependencies.end());
  }
  wake_all();
}

void Scheduler::wake_all() {
  for (auto& [device, e] : executors_) e->wake.notify_all();
}

Op Scheduler::pick(Executor& e) {
  if (e.ready.empty()) return nullptr;
  auto chosen = e.ready.end();
  if (options_.order == StreamOrder::random) {
    if (!may_run(*e.ready.begin()->second)) {
      chosen = std::ranges::find_if(e.ready, [](const auto& entry) { return entry.second->wanted; });
    } else {
      chosen = std::next(e.ready.begin(), draw(uint32_t(e.ready.size())));
    }
  } else {
    chosen = std::ranges::find_if(e.ready, [&](const auto& entry) { return may_run(*entry.second); });
  }
  if (chosen == e.ready.end()) return nullptr;
  Op op = std::move(chosen->second);
  e.ready.erase(chosen);
  return op;
}

void Scheduler::perform(Lock& lock, Operation& op) {
  // A context that has died runs nothing more; what was queued ends without effect.
  if (op.work && !owner_.dead(op.device)) {
    owner_.begins(op);
    lock.unlock();
    try {
      const timeline::Running running(op);
      owner_.run(op);
    } catch (const Fault& fault) {
      owner_.die(op.device, fault);
    } catch (const std::exception& other) {
      owner_.die(op.device, Fault(FaultCode::launch_failure, other.what()));
    } catch (...) {
      owner_.die(op.device, Fault(FaultCode::launch_failure, "a stream's work failed"));
    }
    op.work = nullptr;  // its arguments may be the last owners of something that takes the lock
    lock.lock();
  }
}

void Scheduler::start_host(const Op& op) {
  ++host_running_;
  run_on_host_thread([this, op] {
    Lock lock = lock_state();
    perform(lock, *op);
    --host_running_;
    complete(*op);
  });
}

void Scheduler::loop(Executor& e) {
  Lock lock = lock_state();
  uint64_t seen = completed_;
  for (;;) {
    const Op op = pick(e);
    if (!op) {
      changed_.notify_all();  // step() waits for this, too
      if (e.wake.wait_for(lock, kPatienceWithSilence) == std::cv_status::timeout && seen == completed_ &&
          !e.ready.empty()) {
        want(*e.ready.begin()->second);
      }
      seen = completed_;
      continue;
    }
    if (budget_ > 0) --budget_;
    op->running = true;
    if (has_own_thread(*op)) {
      start_host(op);
      // A host function that does not block has ended before the next choice is made: so a seed reproduces.
      if (options_.order == StreamOrder::random) {
        changed_.wait_for(lock, std::chrono::milliseconds(20), [&] { return op->done; });
      }
      continue;
    }
    ++e.running;
    perform(lock, *op);
    --e.running;
    complete(*op);
  }
}

/// A wait goes on and nothing has ended for a while: the oldest work that was held back may run.
void Scheduler::insist(Lock&) {
  Operation* oldest = nullptr;
  for (auto& [device, e] : executors_) {
    for (auto& [number, op] : e->ready) {
      if (!may_run(*op) && (!oldest || number < oldest->number)) oldest = op.get();
    }
  }
  if (oldest) want(*oldest);
}

void Scheduler::wait(Lock& lock, const Op& op) {
  if (!op) return;
  if (op->done) return known_to_host(*op);
  want(*op);
  awaited_.push_back(op.get());
  wake_all();
  uint64_t seen = completed_;
  auto since = std::chrono::steady_clock::now();
  while (!op->done) {
    changed_.wait_for(lock, kPatienceWithHosts);
    const auto now = std::chrono::steady_clock::now();
    if (seen != completed_) {
      seen = completed_;
      since = now;
      continue;
    }
    const bool kernels = std::ranges::any_of(executors_, [](const auto& entry) { return entry.second->running > 0; });
    if (!op->done && now - since >= (kernels ? std::chrono::milliseconds(kPatienceWithKernels) : kPatienceWithHosts)) {
      insist(lock);
    }
  }
  awaited_.erase(std::ranges::find(awaited_, op.get()));
  known_to_host(*op);
}

void Scheduler::known_to_host(const Operation& op) {
  timeline::host() = std::max(timeline::host(), op.ends);
  owner_.known_to_host(op);
}

void Scheduler::wait(Lock& lock, const std::vector<Op>& ops) {
  for (const Op& op : ops) wait(lock, op);
}

bool Scheduler::query(Lock& lock, const Op& op) {
  if (!op) return true;
  if (!op->done) step(lock);
  if (op->done) {
    owner_.known_to_host(*op);
    return true;
  }
  if (++op->polls == kPollsAreWaiting) want(*op);
  return false;
}

void Scheduler::drain(Lock& lock) {
  constexpr auto kPatience = std::chrono::seconds(5);
  for (;;) {
    bool busy = false;
    for (auto& [device, e] : executors_) {
      busy = busy || e->running > 0;
      for (auto& [number, op] : e->ready) {
        if (has_own_thread(*op)) continue;
        op->wanted = busy = true;
      }
    }
    if (!busy) return;
    wake_all();
    const uint64_t seen = completed_;
    if (!changed_.wait_for(lock, kPatience, [&] { return seen != completed_; })) return;
  }
}

bool Scheduler::relieve(Lock& lock, int device) {
  Executor& e = executor(device);
  // Another thread of the kernel may have asked just now, and its operation has not changed the memory yet.
  const auto has_just_relieved = [&] { return std::chrono::steady_clock::now() - relieved_ < std::chrono::seconds(2); };
  if (e.ready.empty()) return awaited_.empty() || host_running_ > 0 || has_just_relieved();
  const Op op = std::move(e.ready.begin()->second);
  e.ready.erase(e.ready.begin());
  op->running = true;
  if (has_own_thread(*op)) {
    start_host(op);
    return true;
  }
  relieved_ = std::chrono::steady_clock::now();
  perform(lock, *op);
  complete(*op);
  relieved_ = std::chrono::steady_clock::now();
  return true;
}

void Scheduler::step(Lock& lock) {
  if (options_.order != StreamOrder::random) return;
  // Mostly none, sometimes several.
  int count = 0;
  while (count < 8 && draw(5) >= 3) ++count;
  if (count == 0) return;
  Executor& e = executor(0);
  budget_ = count;
  e.wake.notify_all();
  // A kernel that waits for the host to write something would never end if the host waited for it here.
  changed_.wait_for(lock, std::chrono::seconds(2), [&] { return e.running == 0 && (budget_ == 0 || e.ready.empty()); });
  budget_ = 0;
}

}  // namespace emulator
