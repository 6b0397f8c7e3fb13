// SPDX-License-Identifier: Apache-2.0
#include "tests/dist/ranks.h"

#include <exception>
#include <mutex>
#include <thread>

#include "tests/dist/memory_store.h"

namespace weft::dist::testing {

std::vector<std::string> backends() {
  std::vector<std::string> names = connected_backends();
  names.insert(names.begin(), "threads");
  return names;
}

std::vector<std::string> connected_backends() {
  if (WEFT_HAVE_GLOO) return {"gloo"};
  return {};
}

namespace {

/// Threads, each with connections of its own.
void run_connected(const std::string& backend, int size, const std::function<void(const ProcessGroupPtr&)>& function,
                   const GroupOptions& options, const std::shared_ptr<FakeJob>& job) {
  const auto store = std::make_shared<MemoryStore>();
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      ProcessGroupPtr group;
      try {
        std::shared_ptr<Membership> membership;
        if (job) membership = std::make_shared<FakeMembership>(job, rank);
        group = make_process_group(backend, rank, size, store, membership, options);
        function(group);
      } catch (const std::exception& error) {
        {
          const std::lock_guard lock(mutex);
          if (!first) first = std::current_exception();
        }
        if (group) group->abort(str("rank ", rank, " ended with: ", error.what()));
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace

void run_on(const std::string& backend, int size, const std::function<void(const ProcessGroupPtr&)>& function,
            const GroupOptions& options) {
  if (backend == "threads") return run_ranks(size, function, options);
  run_connected(backend, size, function, options, nullptr);
}

void run_on(const std::string& backend, int size, const std::function<void(const ProcessGroupPtr&)>& function,
            const GroupOptions& options, const std::shared_ptr<FakeJob>& job) {
  if (backend == "threads") return run_ranks(size, function, options);
  run_connected(backend, size, function, options, job);
}

std::vector<std::string> errors_on(const std::string& backend, int size,
                                   const std::function<void(const ProcessGroupPtr&)>& function,
                                   const GroupOptions& options, const std::shared_ptr<FakeJob>& job) {
  std::vector<std::string> errors(static_cast<size_t>(size));
  run_on(
      backend, size,
      [&](const ProcessGroupPtr& group) {
        try {
          function(group);
        } catch (const std::exception& error) {
          errors[static_cast<size_t>(group->rank())] = error.what();
        }
      },
      options, job);
  return errors;
}

}  // namespace weft::dist::testing
