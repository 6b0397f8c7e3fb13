// SPDX-License-Identifier: Apache-2.0
#include "tests/dist/ranks.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>

#include "core/random.h"
#include "tests/dist/memory_store.h"
#include "tests/support/random_values.h"

namespace weft::dist::testing {
namespace {

bool runs_under_mpi() {
  static const bool under = std::getenv("WEFT_TEST_MPI") != nullptr;
  return under;
}

int mpi_variable(const char* name) {
  const char* const text = std::getenv(name);
  WEFT_CHECK(text, "WEFT_TEST_MPI: start with Open MPI's mpirun: ", name, " is not set");
  return std::atoi(text);
}

ProcessGroupPtr make_mpi_world(const GroupOptions& options) {
  return make_process_group("mpi", mpi_variable("OMPI_COMM_WORLD_RANK"), mpi_variable("OMPI_COMM_WORLD_SIZE"), nullptr,
                            nullptr, options);
}

/// All processes, for what tests must tell each other; never fails on purpose.
ProcessGroup& all_processes() {
  static const ProcessGroupPtr group = make_mpi_world({});
  return *group;
}

/// The first `size` processes are the ranks.
void run_under_mpi(int size, const std::function<void(const ProcessGroupPtr&)>& function, const GroupOptions& options) {
  all_processes();
  const ProcessGroupPtr world = make_mpi_world(options);
  WEFT_CHECK(size <= world->size(), "WEFT_TEST_MPI: the test wants ", size, " processes, there are ", world->size());
  std::string error;
  {
    const ProcessGroupPtr group = world->split(world->rank() < size ? 0 : -1, 0, "world");
    try {
      if (group) function(group);
    } catch (const std::exception& e) {
      error = e.what();
      group->abort(error);
    }
  }
  for (const std::string& text : all_processes().all_gather_text(error)) WEFT_CHECK(text.empty(), text);
}

}  // namespace

uint64_t shared_seed() {
  const uint64_t mine = tests::generator()();
  return runs_under_mpi() ? std::stoull(all_processes().all_gather_text(std::to_string(mine)).front()) : mine;
}

std::vector<std::string> backends() {
  if (runs_under_mpi()) return {"mpi"};
  std::vector<std::string> names = connected_backends();
  names.insert(names.begin(), "threads");
  return names;
}

std::vector<std::string> connected_backends() {
  if (runs_under_mpi()) return {};
  if (WEFT_HAVE_GLOO) return {"gloo"};
  return {};
}

std::vector<std::string> with_libraries(std::vector<std::string> names) {
  if (std::ranges::find(names, "mpi") != names.end()) names.push_back("mpi_library");
  return names;
}

namespace {

constexpr std::string_view kLibrary = "_library";

/// Threads, each with connections of its own.
void run_connected(const std::string& backend, int size, const std::function<void(const ProcessGroupPtr&)>& function,
                   const GroupOptions& options, const std::shared_ptr<FakeJob>& job) {
  const auto store = std::make_shared<MemoryStore>();
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      const ThreadGenerators generators;  // as each process has
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
  run_on(backend, size, function, options, nullptr);
}

void run_on(const std::string& backend, int size, const std::function<void(const ProcessGroupPtr&)>& function,
            const GroupOptions& options, const std::shared_ptr<FakeJob>& job) {
  if (backend.ends_with(kLibrary)) {
    GroupOptions others = options;
    others.algorithms = Algorithms::library;
    return run_on(backend.substr(0, backend.size() - kLibrary.size()), size, function, others, job);
  }
  if (backend == "mpi") return run_under_mpi(size, function, options);
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
  if (runs_under_mpi()) {
    const int me = all_processes().rank();
    const auto all = all_processes().all_gather_text(me < size ? errors[static_cast<size_t>(me)] : "");
    errors.assign(all.begin(), all.begin() + size);
  }
  return errors;
}

}  // namespace weft::dist::testing
