// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/host_threads.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace emulator {
namespace {

struct Worker {
  std::condition_variable wake;
  std::function<void()> work;
};

struct Workers {
  std::mutex mutex;
  std::vector<Worker*> idle;
};

Workers& workers() {
  static Workers* const all = new Workers;
  return *all;
}

void loop(Worker& own) {
  std::unique_lock lock(workers().mutex);
  for (;;) {
    own.wake.wait(lock, [&] { return bool(own.work); });
    lock.unlock();
    own.work();
    own.work = nullptr;
    lock.lock();
    workers().idle.push_back(&own);
  }
}

}  // namespace

void run_on_host_thread(std::function<void()> work) {
  const std::lock_guard lock(workers().mutex);
  Worker* worker = nullptr;
  if (workers().idle.empty()) {
    worker = new Worker;  // its thread is never ended
    std::thread([worker] { loop(*worker); }).detach();
  } else {
    worker = workers().idle.back();
    workers().idle.pop_back();
  }
  worker->work = std::move(work);
  worker->wake.notify_one();
}

}  // namespace emulator
