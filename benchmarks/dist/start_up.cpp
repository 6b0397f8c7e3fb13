// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "benchmarks/dist/herd.h"
#include "kernels/error.h"

// The start of a job of N ranks on loopback: a process is rank 0, another one plays the rest.
//   bench_start N...
// Prints a row for each N: time, processor and memory of rank 0, and its traffic. One rank in 128 sets an id for NCCL.

namespace {

using namespace weft;
using namespace weft::benchmarks;
namespace fs = std::filesystem;

Traffic total(const std::vector<Traffic>& ranks) {
  Traffic sum;
  for (const Traffic& one : ranks) sum += one;
  return sum;
}

int64_t most(const std::vector<Traffic>& ranks, int64_t Traffic::*field) {
  int64_t largest = 0;
  for (const Traffic& one : ranks) largest = std::max(largest, one.*field);
  return largest;
}

void measure(int ranks) {
  std::string name = (fs::temp_directory_path() / "weft-start-XXXXXX").string();
  WEFT_CHECK(::mkdtemp(name.data()), "bench_start: cannot make a folder");
  const HerdOptions options{.ranks = ranks, .roots = (ranks + 127) / 128, .folder = name};
  const pid_t first = ::fork();
  if (first == 0) {
    try {
      start_rank_0(options);
      std::_Exit(0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank 0: %s\n", error.what());
      std::_Exit(1);
    }
  }
  int64_t descriptors = 0;
  const HerdResult r = play_herd(options, [&] {
    const fs::path open = fs::path("/proc") / std::to_string(first) / "fd";
    descriptors = std::distance(fs::directory_iterator(open), fs::directory_iterator());
  });
  int status = 0;
  rusage usage{};
  ::wait4(first, &status, 0, &usage);
  fs::remove_all(name);
  WEFT_CHECK(status == 0, "bench_start: rank 0 failed");
  Traffic start = total(r.sent), stall = total(r.stall_sent);
  start += total(r.received);
  stall += total(r.stall_received);
  const double cpu = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                     static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  std::printf("%d\t%.2f\t%.2f\t%lld\t%lld\t%lld\t%lld\t%lld\t%d\t%ld\t%lld\t%d\t%.3f\n", ranks, r.seconds, cpu,
              static_cast<long long>(start.messages), static_cast<long long>(start.bytes),
              static_cast<long long>(most(r.sent, &Traffic::messages)),
              static_cast<long long>(most(r.received, &Traffic::bytes)), static_cast<long long>(descriptors),
              r.lost_handshakes, usage.ru_maxrss / 1024, static_cast<long long>(stall.bytes), r.tellers,
              r.stall_seconds);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::puts(
      "ranks\tseconds\trank 0 CPU s\tmessages\tbytes\tmost messages a rank\tmost bytes a rank\tdescriptors\tlost "
      "handshakes\trank 0 MiB\tstall bytes\tstall tellers\tstall seconds");
  std::fflush(stdout);
  try {
    for (int i = 1; i < argc; ++i) {
      const int ranks = std::atoi(argv[i]);
      WEFT_CHECK(ranks >= 2, "bench_start: expected a number of ranks, 2 or more, got ", argv[i]);
      measure(ranks);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
