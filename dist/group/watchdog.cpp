// SPDX-License-Identifier: Apache-2.0
#include "dist/group/watchdog.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>
#include <vector>

namespace weft::dist {
namespace {

constexpr std::chrono::milliseconds kTick{50};

std::atomic<bool> print_asked{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

extern "C" void ask_for_print(int) { print_asked.store(true, std::memory_order_relaxed); }

class Watchdog {
 public:
  static Watchdog& of(WatchThread thread) {
    static auto* const watchdogs = new std::array<Watchdog, 2>;  // groups may outlive statics
    return (*watchdogs)[static_cast<size_t>(thread)];
  }

  void add(Watched& watched) {
    const std::lock_guard change(change_);
    const std::lock_guard lock(mutex_);
    take_print_signal();
    watched_.push_back(&watched);
    if (thread_.joinable()) return;
    stopping_ = print_asked = false;
    thread_ = std::thread([this] { run(); });
  }

  void remove(Watched& watched) {
    const std::lock_guard change(change_);
    {
      const std::lock_guard lock(mutex_);
      std::erase(watched_, &watched);
      if (!watched_.empty() || !thread_.joinable()) return;
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, kTick, [&] { return stopping_; })) {
      const bool print = this == &of(WatchThread::deadlines) && print_asked.exchange(false);
      for (Watched* watched : watched_) {
        if (print) watched->print();
        watched->look();
      }
    }
  }

  std::mutex change_;  // the thread starts and ends under it
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Watched*> watched_;
  std::thread thread_;
  bool stopping_ = false;
};

}  // namespace

void take_print_signal() {
  struct sigaction current {};
  if (sigaction(SIGUSR2, nullptr, &current) != 0 || current.sa_handler != SIG_DFL) return;
  struct sigaction ours {};
  ours.sa_handler = ask_for_print;
  ours.sa_flags = SA_RESTART;
  sigaction(SIGUSR2, &ours, nullptr);
}

void watch(Watched& watched, WatchThread thread) { Watchdog::of(thread).add(watched); }
void unwatch(Watched& watched, WatchThread thread) { Watchdog::of(thread).remove(watched); }

}  // namespace weft::dist
