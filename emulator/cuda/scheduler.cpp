// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/scheduler.h"

#include <algorithm>
#include <optional>
#include <thread>

#include "emulator/cuda/device.h"
#include "emulator/cuda/host_threads.h"
#include "emulator/cuda/stream_check.h"

namespace emulator::cuda {
namespace {

std::mutex& state_mutex() {
  static std::mutex* const mutex = new std::mutex;  // never destroyed: threads outlive main
  return *mutex;
}

// How long an order may hold work back while somebody waits. Only a program in which the awaited work itself waits for
// work that nobody awaits (a host function for another stream's, a kernel for the host) gets there.
constexpr auto kPatienceWithHosts = std::chrono::milliseconds(30);
constexpr auto kPatienceWithKernels = std::chrono::milliseconds(1500);
// A program may watch memory instead of calling CUDA; then nobody ever waits.
constexpr auto kPatienceWithSilence = std::chrono::seconds(3);
constexpr int kPollsAreWaiting = 6;

}  // namespace

Lock lock_state() { return Lock(state_mutex()); }

Scheduler& Scheduler::get() {
  static Scheduler* const scheduler = new Scheduler;
  return *scheduler;
}

uint32_t Scheduler::draw(uint32_t bound) {
  if (random_ == 0) random_ = options().seed * 0x9e3779b97f4a7c15u + 0x1234567;
  uint64_t z = (random_ += 0x9e3779b97f4a7c15u);  // splitmix64
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return uint32_t((z ^ (z >> 31)) % bound);
}

Scheduler::Executor& Scheduler::executor(int device) {
  std::unique_ptr<Executor>& e = executors_[options().streams == StreamOrder::random ? 0 : device];
  if (!e) e = std::make_unique<Executor>();
  if (!e->started) {
    e->started = true;
    std::thread([this, &one = *e] { loop(one); }).detach();
  }
  return *e;
}

Op Scheduler::issue(Lock&, int device, uint64_t stream, Operation::Kind kind, std::function<void()> work,
                    const std::vector<Op>& after) {
  Op op = std::make_shared<Operation>();
  op->number = next_number_++;
  op->device = device;
  op->stream = stream;
  op->kind = kind;
  op->work = std::move(work);
  for (const Op& before : after) {
    if (!before || before->done || std::ranges::find(op->dependencies, before.get()) != op->dependencies.end())
      continue;
    op->dependencies.push_back(before.get());
    before->dependents.push_back(op);
  }
  if (stream_check::on()) stream_check::issued(*op, after);
  if (op->dependencies.empty()) make_ready(op);
  return op;
}

bool Scheduler::may_run(const Operation& op) const {
  switch (options().streams) {
    case StreamOrder::inorder:
      return true;
    case StreamOrder::lazy:
      return op.wanted;
    case StreamOrder::starve:
      return op.wanted || op.stream != uint64_t(options().starved);
    case StreamOrder::random:
      return budget_ > 0 || op.wanted ||
             std::ranges::any_of(awaited_, [](const Operation* awaited) { return !awaited->done; });
  }
  return true;
}

void Scheduler::make_ready(const Op& op) {
  // Nobody can see the difference between a marker that runs at once and one that waits for its turn, if turns come at
  // once.
  if (op->kind == Operation::Kind::marker && !op->work && options().streams == StreamOrder::inorder) {
    complete(*op);
    return;
  }
  Executor& e = executor(op->device);
  e.ready.emplace(op->number, op);
  e.wake.notify_one();
}

void Scheduler::complete(Operation& op) {
  // By a list, not by recursion: thousands of markers may follow each other.
  std::vector<Op> freed;
  const auto end = [&](Operation& one) {
    one.done = true;
    one.ended = std::chrono::steady_clock::now();
    one.work = nullptr;
    ++completed_;
    if (stream_check::on()) stream_check::ended(one);
    for (Op& next : one.dependents) {
      std::erase(next->dependencies, &one);
      if (next->dependencies.empty()) freed.push_back(std::move(next));
    }
    one.dependents.clear();
  };
  end(op);
  const bool inline_markers = options().streams == StreamOrder::inorder;
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
  if (options().streams == StreamOrder::random) {
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
  if (op.work && !Device::get(op.device).faulted()) {
    const bool checked = stream_check::on();
    if (checked && op.kind == Operation::Kind::host) stream_check::host_function_begins(op);
    lock.unlock();
    try {
      std::optional<stream_check::Running> running;
      if (checked) running.emplace(op);
      op.work();
      if (running) running->finish();
    } catch (const Fault& fault) {
      Device::get(op.device).die(fault);
    } catch (const std::exception& other) {
      Device::get(op.device).die(Fault(FaultCode::launch_failure, other.what()));
    } catch (...) {
      Device::get(op.device).die(Fault(FaultCode::launch_failure, "a stream's work failed"));
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
    if (op->kind == Operation::Kind::host) {
      start_host(op);
      // A host function that does not block has ended before the next choice is made: so a seed reproduces.
      if (options().streams == StreamOrder::random) {
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

/// Somebody waits and nothing has ended for a while: the oldest work that was held back may run.
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
  if (op->done) {
    if (stream_check::on()) stream_check::known_to_host(*op);
    return;
  }
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
  if (stream_check::on()) stream_check::known_to_host(*op);
}

void Scheduler::wait(Lock& lock, const std::vector<Op>& ops) {
  for (const Op& op : ops) wait(lock, op);
}

bool Scheduler::query(Lock& lock, const Op& op) {
  if (!op) return true;
  if (!op->done) step(lock);
  if (op->done) {
    if (stream_check::on()) stream_check::known_to_host(*op);
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
        if (op->kind == Operation::Kind::host) continue;
        op->wanted = busy = true;
      }
    }
    if (!busy) return;
    wake_all();
    const uint64_t seen = completed_;
    if (!changed_.wait_for(lock, kPatience, [&] { return seen != completed_; })) return;
  }
}

void Scheduler::step(Lock& lock) {
  if (options().streams != StreamOrder::random) return;
  // Mostly nothing, sometimes a run of several.
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

}  // namespace emulator::cuda
