// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "benchmarks/dist/raw.h"
#include "benchmarks/harness/measure.h"
#include "dist/group/process_group.h"
#include "dist/rendezvous/file_store.h"

// A rank of the suite dist (started by benchmarks/cases/collectives.cpp): Weft's collectives and the library's own
// alternate on the same memory. Rank 0 prints `collective<TAB>backend<TAB>bytes<TAB>weft<TAB>raw`,
// seconds per call.
//   bench_dist FOLDER SECONDS tiny|full mpi|gloo|threads

namespace weft::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;
using dist::ProcessGroup;
using dist::ProcessGroupPtr;

constexpr int kRounds = 9;

struct Rank {
  ProcessGroup& control;  // for barriers, and for agreeing on counts
  double seconds;         // time of a block of calls
  bool tiny;
};

double seconds_of(const std::function<void()>& call, int64_t calls, ProcessGroup& control) {
  control.barrier();
  const auto start = Clock::now();
  for (int64_t i = 0; i < calls; ++i) call();
  return std::chrono::duration<double>(Clock::now() - start).count() / static_cast<double>(calls);
}

/// The number of calls in a block, decided by rank 0.
int64_t calls_for(const Rank& rank, const std::function<void()>& call) {
  call();
  const double one = seconds_of(call, 3, rank.control);
  const Tensor calls = Tensor::from<int64_t>({std::clamp<int64_t>(static_cast<int64_t>(rank.seconds / one), 1, 2000)});
  rank.control.broadcast(calls, 0)->wait();
  return static_cast<int64_t>(calls.item());
}

void compare(const Rank& rank, const char* collective, const char* backend, int64_t bytes,
             const std::function<void()>& weft, const std::function<void()>& raw) {
  const int64_t our_calls = rank.tiny ? 1 : calls_for(rank, weft);
  const int64_t their_calls = rank.tiny || !raw ? 1 : calls_for(rank, raw);
  std::vector<double> ours, theirs;
  for (int round = 0; round < (rank.tiny ? 1 : kRounds); ++round) {
    ours.push_back(seconds_of(weft, our_calls, rank.control));
    if (raw) theirs.push_back(seconds_of(raw, their_calls, rank.control));
  }
  if (rank.control.rank() == 0)
    std::printf("%s\t%s\t%lld\t%.9g\t%.9g\n", collective, backend, static_cast<long long>(bytes), bench::median(ours),
                raw ? bench::median(theirs) : 0.0);
}

std::vector<int64_t> sizes(bool tiny) {
  if (tiny) return {4096};
  return {4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20};
}

/// Nothing where the library has no such call.
template <class Raw>
std::function<void()> call_of(const Raw& raw, std::function<void()> call) {
  return raw ? std::move(call) : nullptr;
}

void compare_all(const Rank& rank, const char* backend, ProcessGroup& group, const RawCollectives& raw) {
  // Both are blocking calls: the library's own run on the caller's thread too.
  const dist::CollectiveOptions at_once{.name = {}, .scale = {}, .at_once = true};
  const int64_t most = sizes(rank.tiny).back() / 4;
  const Tensor x = Tensor::zeros({most}), y = Tensor::zeros({most / group.size()});
  for (const int64_t bytes : sizes(rank.tiny)) {
    const int64_t count = bytes / 4;
    const Tensor whole = x.slice(0, 0, count), part = y.slice(0, 0, count / group.size());
    float* const px = whole.data<float>();
    float* const py = part.data<float>();
    const auto n = static_cast<size_t>(count);
    compare(
        rank, "all_reduce", backend, bytes, [&] { group.all_reduce(whole, dist::ReduceOp::sum, at_once)->wait(); },
        call_of(raw.all_reduce, [&] { raw.all_reduce(px, n); }));
    compare(
        rank, "all_gather", backend, bytes, [&] { group.all_gather(whole, part, at_once)->wait(); },
        call_of(raw.all_gather, [&] { raw.all_gather(px, py, n); }));
    compare(
        rank, "reduce_scatter", backend, bytes,
        [&] { group.reduce_scatter(part, whole, dist::ReduceOp::sum, at_once)->wait(); },
        call_of(raw.reduce_scatter, [&] { raw.reduce_scatter(py, px, n); }));
  }
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) {
  using namespace weft;
  using namespace weft::benchmarks;
  if (argc < 5) return 2;
  const std::string backend = argv[4];
  const double seconds = std::atof(argv[2]);
  const bool tiny = argv[3] == std::string("tiny");
  if (backend == "threads") {
    dist::run_ranks(2, [&](const ProcessGroupPtr& group) {
      compare_all({*group, seconds, tiny}, "threads", *group, {});
    });
    return 0;
  }
  const int rank = std::atoi(std::getenv("OMPI_COMM_WORLD_RANK")),
            size = std::atoi(std::getenv("OMPI_COMM_WORLD_SIZE"));
  const std::filesystem::path folder = argv[1];
  const auto store = std::make_shared<dist::FileStore>(folder / "weft");
  const ProcessGroupPtr group = dist::make_process_group(backend, rank, size, store, nullptr);
  const RawCollectives raw = backend == "mpi" ? raw_mpi() : raw_gloo(rank, size, (folder / "raw").string());
  compare_all({*group, seconds, tiny}, backend.c_str(), *group, raw);
}
