// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <mutex>
#include <thread>

#include "core/random.h"
#include "dist/host_group.h"
#include "dist/thread_transport.h"

namespace weft::dist {
namespace {

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

}  // namespace

void run_ranks(int size, const std::function<void(const ProcessGroupPtr&)>& function, const GroupOptions& options) {
  WEFT_CHECK(size > 0, "run_ranks: expected a positive number of ranks, got ", size);
  const auto board = std::make_shared<ThreadBoard>(size, "world");
  std::mutex mutex;
  std::exception_ptr first, first_aborted;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const ThreadGenerators generators;
      const ProcessGroupPtr group = make_host_group(std::make_shared<GroupRecord>("world", rank, size, options),
                                                    make_thread_transport(board, rank), "threads");
      try {
        function(group);
      } catch (const GroupAborted&) {  // it follows from another rank's exception, which may be caught later than this
        const std::lock_guard lock(mutex);
        if (!first_aborted) first_aborted = std::current_exception();
      } catch (...) {
        {
          const std::lock_guard lock(mutex);
          if (!first) first = std::current_exception();
        }
        group->abort(str("rank ", rank, " ended with: ", text_of(std::current_exception())));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
  if (first_aborted) std::rethrow_exception(first_aborted);
}

}  // namespace weft::dist
