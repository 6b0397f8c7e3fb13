// SPDX-License-Identifier: Apache-2.0
// Runs a program with many values of its flags and ranks the runs; see docs/sweeps.md.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <sstream>

#include "apps/weft_sweep/early_stop.h"
#include "apps/weft_sweep/options.h"
#include "apps/weft_sweep/pool.h"
#include "apps/weft_sweep/ranking.h"
#include "core/text.h"
#include "io/atomic_file.h"
#include "io/file_reader.h"
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
              .points = {},
              .metric = o.metric,
              .smaller_wins = o.goal == "min",
              .by_best = o.by == "best"};
  const auto seed = static_cast<uint64_t>(o.seed);
  if (o.method == "grid") sweep.points = grid(o.parameters);
  if (o.method == "grid" && o.trials > 0)
    sweep.points.resize(std::min(sweep.points.size(), static_cast<size_t>(o.trials)));
  if (o.method == "random") sweep.points = random_points(o.parameters, o.trials, seed);
  if (o.method == "bayes") sweep.bayes = Sweep::Bayes{o.parameters, static_cast<size_t>(o.trials), seed};
  if (o.min_iter > 0) sweep.halving = Sweep::Halving{o.min_iter, o.eta, o.max_iter};
  if (Sweep::exists(o.out)) {
    const Sweep old = Sweep::load(o.out);
    WEFT_CHECK(old.command == sweep.command, o.out, " holds a sweep of another command (",
               printable(joined(old.command)), "). Choose another --out");
    if (sweep.bayes) sweep.points = old.points;
  }
  return sweep;
}

/// The points, or, where they depend on the runs, one whose values are `{NAME}`.
std::vector<Point> points_to_show(const Sweep& sweep) {
  std::vector<Point> out = sweep.points;
  if (sweep.bayes && out.size() < sweep.size()) {
    out.emplace_back();
    for (const Parameter& p : sweep.bayes->parameters) out.back().emplace_back(p.name, '{' + p.name + '}');
  }
  return out;
}

void print_commands(const Sweep& sweep) {
  for (const Point& point : points_to_show(sweep)) {
    std::string line;
    for (const std::string& word : sweep.command_of(point)) line += (line.empty() ? "" : " ") + train::shell_word(word);
    std::cout << printable(line, line.size()) << '\n';
  }
}

/// The points to run, those that are not chosen yet included.
std::vector<size_t> open_points(const Sweep& sweep, const Options& o) {
  std::vector<size_t> out;
  for (size_t i = 0; i < sweep.size(); ++i) {
    if (o.point >= 0 && static_cast<int64_t>(i) != o.point) continue;
    if (i >= sweep.points.size() || !load_result(sweep.folder_of(sweep.points[i])).over()) out.push_back(i);
  }
  return out;
}

/// Held while the points of a Bayesian search change: several weft-sweeps of a folder, such as the tasks of a job
/// array, choose one after the other. Takes over what others have chosen.
Descriptor lock_points(Sweep& sweep) {
  const std::string path = (sweep.folder / ".choose").string();
  Descriptor lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  WEFT_CHECK(lock.fd >= 0, "expected to write ", path, ", got '", std::strerror(errno), "'");
  ::flock(lock.fd, LOCK_EX);
  if (Sweep::exists(sweep.folder)) sweep.points = Sweep::load(sweep.folder).points;
  return lock;
}

/// Chooses points until there is this one; false if there is no new one.
bool choose(Sweep& sweep, size_t index) {
  const Descriptor lock = lock_points(sweep);
  while (sweep.points.size() <= index) {
    const std::optional<Point> point = next_point(sweep);
    if (!point) return false;
    sweep.points.push_back(*point);
    sweep.save();
  }
  return true;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) out.push_back(word);
  return out;
}

/// Runs the open points; returns the signal that stopped it, or 0.
int run_points(Sweep& sweep, const Options& o) {
  const std::vector<size_t> open = open_points(sweep, o);
  const size_t asked = o.point >= 0 ? 1 : sweep.size();
  if (open.size() < asked)
    std::cout << asked - open.size() << " of " << asked << " points are done already\n" << std::flush;
  size_t ended = 0;
  const auto tell = [&](size_t index, const PointResult& result) {
    static constexpr const char* kWords[] = {"not run", "done", "FAILED", "stopped", "stopped early"};
    const char* words = kWords[static_cast<size_t>(result.state)];
    std::cout << '[' << ++ended << '/' << open.size() << "] " << name_of(sweep.points[index]) << ": " << words;
    if (result.state == State::failed)
      std::cout << " (exit code " << result.exit_code << ", see "
                << (sweep.folder_of(sweep.points[index]) / "log.txt").string() << ")";
    std::cout << ", " << train::clock_text(result.seconds) << std::endl;
  };
  const auto busy = [&](size_t index) {
    std::cout << name_of(sweep.points[index]) << ": another weft-sweep is running it" << std::endl;
  };
  size_t started = 0;
  const auto next = [&]() -> std::optional<size_t> {
    if (started == open.size()) return std::nullopt;
    const size_t index = open[started++];
    if (index < sweep.points.size() || choose(sweep, index)) return index;
    std::cout << "there are no more than " << sweep.points.size() << " points" << std::endl;
    return std::nullopt;
  };
  EarlyStop early_stop(sweep);
  Pool::Options options{.at_a_time = o.jobs, .gpus = words_of(o.gpus)};
  if (sweep.halving) options.loses = [&](size_t point) { return early_stop.loses(point); };
  Pool pool(sweep, options);
  pool.run(next, tell, busy);
  return pool.stopped_by();
}

/// Prints and saves the ranking; returns the exit code.
int rank(const Sweep& sweep) {
  const Ranking ranking(sweep);
  ranking.save(sweep);
  std::cout << ranking.text(sweep) << std::flush;
  if (!sweep.metric.empty()) {
    const std::string page = (sweep.folder / "sweep.html").string();
    write_atomically(page, results_page(sweep, ranking), "sweep");
    std::cout << "wrote " << page << std::endl;
  }
  const size_t failed = ranking.count(State::failed), unknown = sweep.metric.empty() ? 0 : ranking.without_value();
  WEFT_CHECK(failed == 0, failed, " of ", sweep.points.size(), " points failed; their logs are in ",
             sweep.folder.string());
  WEFT_CHECK(unknown == 0, unknown, " of ", sweep.points.size(), " points have no value of '", printable(sweep.metric),
             "'");
  return train::kExitOk;
}

int run(const Options& o) {
  Sweep sweep = make_sweep(o);
  if (o.point >= static_cast<int64_t>(sweep.size()))
    throw train::UsageError(str("--point: expected a number below ", sweep.size(), ", got ", o.point));
  for (const Point& point : points_to_show(sweep))
    static_cast<void>(sweep.command_of(point));  // reports errors before any run
  if (o.dry_run) {
    print_commands(sweep);
    return train::kExitOk;
  }
  std::error_code error;
  std::filesystem::create_directories(sweep.folder, error);
  WEFT_CHECK(!error, "expected to create ", sweep.folder.string(), ", got '", error.message(), "'");
  if (o.point < 0 && !o.rank) {
    const Descriptor lock = sweep.bayes ? lock_points(sweep) : Descriptor(-1);
    sweep.save();
  }
  if (o.slurm) {
    const std::string script = (sweep.folder / "sweep.sbatch").string();
    write_atomically(script, slurm_script(sweep, o), "sweep");
    std::cout << "wrote " << script << ": " << sweep.size() << " points. Then\n  sbatch " << train::shell_word(script)
              << "\n  weft-sweep --out " << train::shell_word(sweep.folder.string()) << " --rank\n";
    return train::kExitOk;
  }
  if (!o.rank) {
    const int signal = run_points(sweep, o);
    if (signal == SIGINT) return 130;
    if (signal != 0) return train::kExitRequeue;
    if (o.point >= 0) {
      if (o.point >= static_cast<int64_t>(sweep.points.size())) return train::kExitOk;  // no such point was found
      const PointResult result = load_result(sweep.folder_of(sweep.points[static_cast<size_t>(o.point)]));
      return result.over() ? train::kExitOk : result.state == State::stopped ? train::kExitRequeue : train::kExitError;
    }
  }
  return rank(sweep);
}

}  // namespace
}  // namespace weft::weft_sweep

int main(int argc, char** argv) {
  using namespace weft::weft_sweep;
  return weft::train::guarded_main("weft-sweep", [&] {
    std::signal(SIGPIPE, SIG_IGN);  // a sweep does not end with the program that shows its lines
    const auto options = parse_options({argv + 1, argv + argc});
    if (!options) return weft::train::kExitOk;
    for (const std::string& note : options->notes) std::cerr << "weft-sweep: " << note << '\n';
    return run(*options);
  });
}
