// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/mpi_library.h"

#include <mpi.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "kernels/error.h"

namespace weft::dist {
namespace {

std::atomic<bool> abandoned{false};

// After a failure, wait at most so long for ranks that may never finish; for two seconds they try to (kLastMessages).
constexpr std::chrono::seconds kLast{5};

bool all_ranks_end() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Request request;
  if (MPI_Ibarrier(MPI_COMM_WORLD, &request) != MPI_SUCCESS) return false;
  const auto end = std::chrono::steady_clock::now() + kLast;
  while (std::chrono::steady_clock::now() < end) {
    int done = 0;
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (done) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

void end_mpi() {
  int ended = 0;
  MPI_Finalized(&ended);
  if (!ended && (!abandoned || all_ranks_end())) MPI_Finalize();
}

/// MPI_Init waits without end for a rank that is stopped, or that its launcher does not miss.
void init_mpi(int& threads, TimePoint deadline, Membership* membership) {
  std::mutex mutex;
  std::condition_variable changed;
  bool begun = false;
  std::string failure;
  const int callback = membership ? membership->on_failure([&](const Failure& first) {
    const std::lock_guard lock(mutex);
    failure = first.reason;
    changed.notify_all();
  })
                                  : 0;
  std::thread watch([&] {
    std::unique_lock lock(mutex);
    changed.wait_until(lock, deadline, [&] { return begun || !failure.empty(); });
    if (begun) return;
    std::string why = failure;
    lock.unlock();
    if (why.empty() && membership) why = silence_in(membership->states(kQuietSeconds), kQuietSeconds);
    std::fputs(
        str("error: init: in MPI_Init: ", why.empty() ? "the other ranks did not come in time" : why, '\n').c_str(),
        stderr);
    std::_Exit(1);
  });
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &threads);
  {
    const std::lock_guard lock(mutex);
    begun = true;
  }
  changed.notify_all();
  watch.join();
  if (membership) membership->remove(callback);
}

}  // namespace

MpiWorld begin_mpi(TimePoint deadline, Membership* membership) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  int begun = 0, ended = 0, threads = MPI_THREAD_SINGLE;
  MPI_Finalized(&ended);
  WEFT_CHECK(!ended, "process group mpi: the program has ended MPI already");
  MPI_Initialized(&begun);
  if (begun) {
    MPI_Query_thread(&threads);
  } else {
    init_mpi(threads, deadline, membership);
    std::atexit(end_mpi);
  }
  WEFT_CHECK(threads == MPI_THREAD_MULTIPLE, "process group mpi: MPI was begun ",
             begun ? "by the program without MPI_THREAD_MULTIPLE. Ask for it in MPI_Init_thread"
                   : "but is built without MPI_THREAD_MULTIPLE. Use another MPI, or gloo");
  MpiWorld world;
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.size);
  return world;
}

void abandon_mpi() { abandoned = true; }

std::string mpi_error(int code) {
  if (code == MPI_SUCCESS) return {};
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return {text, static_cast<size_t>(length)};
}

std::vector<std::string> mpi_all_gather_text(const std::string& text, int rank, int size, TimePoint deadline) {
  const MpiWorld world = begin_mpi(deadline);
  if (world.rank != rank || world.size != size) return {};
  constexpr size_t kPlace = kMaxMpiText + 1;
  std::string own = text.substr(0, kMaxMpiText), all(kPlace * static_cast<size_t>(size), '\0');
  own.resize(kPlace, '\0');
  MPI_Request request;
  const auto check = [](int code) {
    WEFT_CHECK(code == MPI_SUCCESS, "init: MPI cannot bring the ranks together: ", mpi_error(code));
  };
  check(MPI_Iallgather(own.data(), static_cast<int>(kPlace), MPI_CHAR, all.data(), static_cast<int>(kPlace), MPI_CHAR,
                       MPI_COMM_WORLD, &request));
  for (int done = 0; !done;) {
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done) break;
    if (Clock::now() >= deadline) {
      abandon_mpi();
      fail("init: rank ", rank, ": the other ranks did not reach MPI in time");
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  std::vector<std::string> texts;
  for (size_t r = 0; r < static_cast<size_t>(size); ++r) texts.emplace_back(all.data() + r * kPlace);
  return texts;
}

}  // namespace weft::dist
