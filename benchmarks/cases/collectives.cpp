// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "benchmarks/cases/cases.h"
#include "kernels/error.h"

namespace weft::benchmarks {
namespace {

/// Seconds per call, Weft's and the library's own, by `all_reduce_1048576`.
using Times = std::map<std::string, std::pair<double, double>>;

/// Two ranks measure all collectives of one backend (benchmarks/dist/main.cpp).
Times measure(const std::string& backend, bool tiny) {
  const std::string launcher = WEFT_MPIEXEC;
  if (launcher.empty()) throw std::runtime_error("the suite dist needs mpirun and a build with MPI and Gloo");
  std::string pattern = (std::filesystem::temp_directory_path() / "weft-bench-XXXXXX").string();
  if (!mkdtemp(pattern.data())) throw std::runtime_error("cannot make the folder " + pattern);
  const std::filesystem::path folder = pattern;
  for (const char* one : {"weft", "raw"}) std::filesystem::create_directory(folder / one);
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  // A rank of Gloo has a thread of its own for the network, which must not share a core with waiting threads.
  const std::string start = backend == "threads"
                                ? std::string()
                                : str(launcher, " --allow-run-as-root --oversubscribe ",
                                      backend == "gloo" ? "--bind-to none " : "", "-np 2 -x OMP_NUM_THREADS=1 ");
  const std::string command = str(start, '\'', (self.parent_path() / "bench_dist").string(), "' '", folder.string(),
                                  "' 0.03 ", tiny ? "tiny " : "full ", backend, " 2>&1");
  const auto close = [](FILE* pipe) { pclose(pipe); };
  Times times;
  std::string output;
  {
    const std::unique_ptr<FILE, decltype(close)> pipe(popen(command.c_str(), "r"), close);
    char line[512];
    while (pipe && std::fgets(line, sizeof line, pipe.get())) {
      output += line;
      std::istringstream words(line);
      std::string collective, of;
      long long bytes = 0;
      double ours = 0, theirs = 0;
      if (words >> collective >> of >> bytes >> ours >> theirs) times[str(collective, '_', bytes)] = {ours, theirs};
    }
  }
  std::filesystem::remove_all(folder);
  if (times.empty()) throw std::runtime_error("its ranks printed: " + output);
  return times;
}

const Times& times_of(const std::string& backend, bool tiny) {
  static std::map<std::string, Times> known;
  const auto found = known.find(backend);
  return found != known.end() ? found->second : known.emplace(backend, measure(backend, tiny)).first->second;
}

}  // namespace

void add_collective_cases(Cases& cases, const Target& target) {
  const std::pair<const char*, long long> sizes[] = {
      {"4k", 4 << 10}, {"64k", 64 << 10}, {"1m", 1 << 20}, {"16m", 16 << 20}, {"64m", 64 << 20}};
  for (const std::string backend : {"mpi", "gloo", "threads"})
    for (const char* collective : {"all_reduce", "all_gather", "reduce_scatter"})
      for (const auto& [name, bytes] : sizes) {
        if (target.tiny && bytes > 4096) continue;
        const auto rate = [=, tiny = target.tiny, count = bytes](bool raw) {
          const auto& [ours, theirs] = times_of(backend, tiny).at(str(collective, '_', count));
          return static_cast<double>(count) / (raw ? theirs : ours) / 1e9;
        };
        const std::string full = str(collective, '_', backend, '_', name);
        cases.push_back({.name = full, .unit = "GB/s", .value = [=] { return rate(false); }});
        if (backend != "threads")
          cases.push_back({.name = full + "_raw", .unit = "GB/s", .value = [=] { return rate(true); }});
      }
}

}  // namespace weft::benchmarks
