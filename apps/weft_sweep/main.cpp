// SPDX-License-Identifier: Apache-2.0
// Runs a program with many values of its flags and ranks the runs; see docs/sweeps.md.
#include <fmt/format.h>

#include <csignal>
#include <iostream>
#include <sstream>

#include "apps/weft_sweep/options.h"
#include "apps/weft_sweep/pool.h"
#include "apps/weft_sweep/ranking.h"
#include "apps/weft_sweep/slurm_script.h"
#include "core/text.h"
#include "io/atomic_file.h"
#include "train/exit.h"
#include "train/progress.h"
#include "train/shell_word.h"

namespace weft::weft_sweep {
namespace {

using State = PointResult::State;

/// The sweep of the command line, or that of the folder.
Sweep make_sweep(const Options& o) {
  if (o.command.empty()) {
    Sweep sweep = Sweep::load(o.out);
    if (!o.metric.empty()) {
      sweep.metric = o.metric;
      sweep.smaller_wins = o.goal == "min";
      sweep.by_best = o.by == "best";
    }
    return sweep;
  }
  Sweep sweep{.folder = o.out,
              .command = o.command,
              .points = o.method == "grid" ? grid(o.parameters)
                                           : random_points(o.parameters, o.trials, static_cast<uint64_t>(o.seed)),
              .metric = o.metric,
              .smaller_wins = o.goal == "min",
              .by_best = o.by == "best"};
  if (Sweep::exists(o.out)) {
    const Sweep old = Sweep::load(o.out);
    WEFT_CHECK(old.command == sweep.command, o.out, " holds a sweep of another command (",
               printable(joined(old.command)), "). Choose another --out");
  }
  return sweep;
}

void print_commands(const Sweep& sweep) {
  for (const Point& point : sweep.points) {
    std::string line;
    for (const std::string& word : sweep.command_of(point)) line += (line.empty() ? "" : " ") + train::shell_word(word);
    std::cout << printable(line, line.size()) << '\n';
  }
}

/// The points to run.
std::vector<size_t> open_points(const Sweep& sweep, const Options& o) {
  std::vector<size_t> out;
  for (size_t i = 0; i < sweep.points.size(); ++i) {
    if (o.point >= 0 && static_cast<int64_t>(i) != o.point) continue;
    if (load_result(sweep.folder_of(sweep.points[i])).state != State::done) out.push_back(i);
  }
  return out;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) out.push_back(word);
  return out;
}

/// Runs the open points; returns the signal that stopped it, or 0.
int run_points(const Sweep& sweep, const Options& o) {
  const std::vector<size_t> open = open_points(sweep, o);
  const size_t asked = o.point >= 0 ? 1 : sweep.points.size();
  if (open.size() < asked)
    std::cout << asked - open.size() << " of " << asked << " points are done already\n" << std::flush;
  size_t ended = 0;
  const auto tell = [&](size_t index, const PointResult& result) {
    const char* words = result.state == State::done ? "done" : result.state == State::stopped ? "stopped" : "FAILED";
    std::cout << '[' << ++ended << '/' << open.size() << "] " << name_of(sweep.points[index]) << ": " << words;
    if (result.state == State::failed)
      std::cout << " (exit code " << result.exit_code << ", see "
                << (sweep.folder_of(sweep.points[index]) / "log.txt").string() << ")";
    std::cout << ", " << train::clock_text(result.seconds) << std::endl;
  };
  const auto busy = [&](size_t index) {
    std::cout << name_of(sweep.points[index]) << ": another weft-sweep is running it" << std::endl;
  };
  Pool pool(sweep, {.at_a_time = o.jobs, .gpus = words_of(o.gpus)});
  pool.run(open, tell, busy);
  return pool.stopped_by();
}

/// Prints and saves the ranking; returns the exit code.
int rank(const Sweep& sweep) {
  const Ranking ranking(sweep);
  ranking.save(sweep);
  std::cout << ranking.text(sweep) << std::flush;
  const size_t failed = ranking.count(State::failed), unknown = sweep.metric.empty() ? 0 : ranking.without_value();
  WEFT_CHECK(failed == 0, failed, " of ", sweep.points.size(), " points failed; their logs are in ",
             sweep.folder.string());
  WEFT_CHECK(unknown == 0, unknown, " of ", sweep.points.size(), " points have no value of '", printable(sweep.metric),
             "'");
  return train::kExitOk;
}

int run(const Options& o) {
  const Sweep sweep = make_sweep(o);
  if (o.point >= static_cast<int64_t>(sweep.points.size()))
    throw train::UsageError(str("--point: expected a number below ", sweep.points.size(), ", got ", o.point));
  for (const Point& point : sweep.points) static_cast<void>(sweep.command_of(point));  // reports errors before any run
  if (o.dry_run) {
    print_commands(sweep);
    return train::kExitOk;
  }
  std::error_code error;
  std::filesystem::create_directories(sweep.folder, error);
  WEFT_CHECK(!error, "expected to create ", sweep.folder.string(), ", got '", error.message(), "'");
  if (o.point < 0 && !o.rank) sweep.save();
  if (o.slurm) {
    const std::string script = (sweep.folder / "sweep.sbatch").string();
    write_atomically(script, slurm_script(sweep, o), "sweep");
    std::cout << "wrote " << script << ": " << sweep.points.size() << " points. Then\n  sbatch "
              << train::shell_word(script) << "\n  weft-sweep --out " << train::shell_word(sweep.folder.string())
              << " --rank\n";
    return train::kExitOk;
  }
  if (!o.rank) {
    const int signal = run_points(sweep, o);
    if (signal == SIGINT) return 130;
    if (signal != 0) return train::kExitRequeue;
    if (o.point >= 0) {
      const PointResult result = load_result(sweep.folder_of(sweep.points[static_cast<size_t>(o.point)]));
      return result.state == State::stopped ? train::kExitRequeue
             : result.state == State::done  ? train::kExitOk
                                            : train::kExitError;
    }
  }
  return rank(sweep);
}

}  // namespace
}  // namespace weft::weft_sweep

int main(int argc, char** argv) {
  using namespace weft::weft_sweep;
  return weft::train::guarded_main("weft-sweep", [&] {
    const auto options = parse_options({argv + 1, argv + argc});
    return options ? run(*options) : weft::train::kExitOk;
  });
}
