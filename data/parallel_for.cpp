// SPDX-License-Identifier: Apache-2.0
#include "data/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace weft::data {

void parallel_for(int64_t count, int threads, const std::function<void(int64_t)>& body) {
  if (threads <= 0) threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr first;
  const auto work = [&] {
    for (int64_t i = next++; i < count; i = next++) {
      try {
        body(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
        next = count;
      }
    }
  };
  std::vector<std::jthread> others;
  for (int t = 1; t < std::min<int64_t>(threads, count); ++t) others.emplace_back(work);
  work();
  others.clear();
  if (first) std::rethrow_exception(first);
}

}  // namespace weft::data
