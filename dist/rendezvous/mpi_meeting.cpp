// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/mpi_meeting.h"

#include <mpi.h>

#include <thread>

#include "dist/rendezvous/mpi_library.h"
#include "kernels/error.h"

namespace weft::dist {

std::vector<std::string> mpi_all_gather_text(const std::string& text, int rank, int size, TimePoint deadline) {
  const MpiWorld world = begin_mpi();
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
