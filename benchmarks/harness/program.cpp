// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/harness/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>
#include <stdexcept>

#include "benchmarks/harness/measure.h"

namespace bench {
namespace {

struct Outcome {
  double seconds = 0;  ///< from the start of the process to its end
  std::string output;  ///< its standard output
};

constexpr const char* kSelf = "/proc/self/exe";

std::string read_all(int file) {
  std::string text;
  std::array<char, 4096> buffer;
  ssize_t got = 0;
  while ((got = read(file, buffer.data(), buffer.size())) > 0) text.append(buffer.data(), static_cast<size_t>(got));
  return text;
}

/// Runs this program once more with these arguments. Errors: it cannot be started, or ends with another status than 0.
Outcome run_again(const std::vector<std::string>& arguments) {
  std::vector<char*> argv{const_cast<char*>("bench")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error(std::string("bench: pipe: ") + std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t child = 0;
  const auto start = std::chrono::steady_clock::now();
  const int problem = posix_spawn(&child, kSelf, &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  Outcome outcome;
  int status = 0;
  if (problem == 0) {
    outcome.output = read_all(ends[0]);
    waitpid(child, &status, 0);
  }
  close(ends[0]);
  if (problem != 0) throw std::runtime_error(std::string("bench: cannot start a process: ") + std::strerror(problem));
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw std::runtime_error("its process " + (WIFEXITED(status)
                                                   ? "ended with status " + std::to_string(WEXITSTATUS(status))
                                                   : "was ended by signal " + std::to_string(WTERMSIG(status))));
  return outcome;
}

/// The most memory that this process has had resident so far, in MiB: VmHWM of /proc/self/status. (getrusage would
/// count what the process was before exec.)
double peak_memory_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0) return std::stod(line.substr(6)) / 1024;  // `VmHWM:   123 kB`
  throw std::runtime_error("bench: /proc/self/status has no VmHWM");
}

using Clock = std::chrono::steady_clock;

struct Options {
  Setting setting;
  Timing timing;
  std::string filter = "";
  std::string process = "";  ///< the case whose process this one is
  double seconds_total = 0;  ///< 0: no limit
  std::vector<std::string> variants = {};
  std::string kernels = "";  ///< a folder, or empty
  bool list = false;
};

/// Returns -1 to go on, else the status to end with.
int parse(Options& options, int argc, char** argv, const std::string& purpose, const std::vector<std::string>& suites,
          bool has_tables, const Extras& extras) {
  CLI::App app(purpose);
  app.add_option("--suite", options.setting.suite, "which cases")->check(CLI::IsMember(suites))->capture_default_str();
  app.add_option("--device", options.setting.device, "where they run (default: the suite's own device)");
  app.add_option("--filter", options.filter, "only cases whose names match this regular expression");
  app.add_option("--seconds", options.timing.seconds, "timed seconds of each case; 0: its first step alone")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--repetitions", options.timing.repetitions, "each value is the median of so many")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--seconds-total", options.seconds_total, "all cases together, preparations included; 0: no limit")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_flag("--list", options.list, "print the names and units of the cases");
  app.add_flag("--tiny", options.setting.tiny, "tiny sizes: whether all cases run, not how fast");
  if (has_tables) app.add_option("--json", options.setting.json, "suite roofline: write the table to this file too");
  if (extras.choose)
    app.add_option("--variants", options.variants,
                   "measure each case alternately as it is and as each of these variants")
        ->delimiter(',');
  if (extras.table_of)
    app.add_option("--kernels", options.kernels, "a folder for CASE.txt, the kernels of ten steps of each case");
  app.add_option("--process", options.process, "")->group("");  // for run_again()
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::cerr << "bench: " << error.what() << '\n';
    return 2;
  }
  return -1;
}

/// Writes the kernels of ten steps, all done at the end.
void write_kernels(const Case& one, const Work& work, const Options& options, const Extras& extras) {
  const auto steps = [&] {
    for (int i = 0; i < 10; ++i) {
      if (work.before) work.before();
      work.step();
    }
    if (work.wait) work.wait();
  };
  std::filesystem::create_directories(options.kernels);
  std::ofstream file(std::filesystem::path(options.kernels) / (one.name + ".txt"));
  file << extras.table_of(steps) << std::flush;
  if (!file) throw std::runtime_error("--kernels: cannot write into " + options.kernels);
}

double measure(const Case& one, const Options& options, const Extras& extras) {
  if (one.value) return one.value();
  if (one.prepare) {
    const Work work = one.prepare();
    const double seconds = seconds_per_step(work, options.timing);
    if (!options.kernels.empty()) write_kernels(one, work, options, extras);
    return in_unit(one.unit, seconds, work.amount);
  }
  std::vector<std::string> arguments{"--suite", options.setting.suite, "--process", one.name};
  if (!options.setting.device.empty()) arguments.insert(arguments.end(), {"--device", options.setting.device});
  if (options.setting.tiny) arguments.emplace_back("--tiny");
  // Memory hardly varies and its process is long.
  if (one.unit == "MiB") return std::stod(run_again(arguments).output);
  std::vector<double> values;
  run_again(arguments);  // the program's pages come into memory
  for (int i = 0; i < options.timing.repetitions; ++i)
    values.push_back(in_unit(one.unit, run_again(arguments).seconds, 1));
  return median(std::move(values));
}

/// The case as it is and as each variant, A B A B ..., on the same data.
std::vector<double> measure_variants(const Case& one, const Options& options, const Extras& extras) {
  if (!one.prepare) throw std::runtime_error("--variants: it has no steps");
  constexpr int kRounds = 4;
  const Work work = one.prepare();
  Timing timing = options.timing;
  timing.seconds /= kRounds;
  std::vector<std::vector<double>> values(1 + options.variants.size());
  for (int round = 0; round < kRounds; ++round)
    for (size_t i = 0; i < values.size(); ++i) {
      extras.choose(i == 0 ? "" : options.variants[i - 1]);
      values[i].push_back(in_unit(one.unit, seconds_per_step(work, timing), work.amount));
    }
  extras.choose("");
  std::vector<double> medians;
  for (std::vector<double>& of_one : values) medians.push_back(median(std::move(of_one)));
  return medians;
}

int be_process(const Cases& cases, const std::string& name) {
  for (const Case& one : cases) {
    if (one.name != name || !one.process) continue;
    one.process();
    if (one.unit == "MiB") std::cout << peak_memory_mib() << '\n';
    return 0;
  }
  std::cerr << "bench: no case '" << name << "' has a process of its own\n";
  return 2;
}

/// Timed seconds for the next case, from `left` seconds in all.
double share(double seconds, double left, size_t cases_left) {
  // Preparing and warming take about as long again.
  return std::min(seconds, left / static_cast<double>(cases_left) / 2);
}

int measure_all(const Cases& cases, Options options, Clock::time_point start, const Extras& extras) {
  const double seconds = options.timing.seconds;
  int status = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& one = cases[i];
    if (options.seconds_total > 0) {
      const double left = options.seconds_total - std::chrono::duration<double>(Clock::now() - start).count();
      if (left <= 0) {
        std::cerr << "bench: " << one.name << ": not measured, --seconds-total is used up\n";
        continue;
      }
      options.timing.seconds = share(seconds, left, cases.size() - i);
    }
    try {
      const auto values = options.variants.empty() ? std::vector{measure(one, options, extras)}
                                                   : measure_variants(one, options, extras);
      for (size_t v = 0; v < values.size(); ++v)
        std::printf("%s%s\t%.6g\t%s\n", one.name.c_str(), v == 0 ? "" : ('@' + options.variants[v - 1]).c_str(),
                    values[v], one.unit.c_str());
      std::fflush(stdout);
    } catch (const std::exception& error) {
      std::cerr << "bench: " << one.name << ": " << error.what() << '\n';
      status = 1;
    }
  }
  return status;
}

}  // namespace

int run_program(int argc, char** argv, const std::string& purpose, const std::vector<std::string>& suites,
                const MakeCases& make_cases, const std::map<std::string, PrintTable>& tables, const Extras& extras) {
  const auto start = Clock::now();
  Options options;
  if (const int status = parse(options, argc, argv, purpose, suites, !tables.empty(), extras); status >= 0)
    return status;
  try {
    for (const std::string& variant : options.variants) extras.choose(variant);  // an unknown name is told at once
    if (!options.variants.empty()) extras.choose("");
    if (const auto table = tables.find(options.setting.suite); table != tables.end())
      return table->second(options.setting, std::regex(options.filter), options.list);
    Cases cases = make_cases(options.setting);
    if (!options.process.empty()) return be_process(cases, options.process);
    const std::regex wanted(options.filter);
    std::erase_if(cases, [&](const Case& one) { return !std::regex_search(one.name, wanted); });
    if (cases.empty()) {
      std::cerr << "bench: no case of the suite " << options.setting.suite << " matches '" << options.filter
                << "'. --list prints them all\n";
      return 1;
    }
    if (!options.list) return measure_all(cases, options, start, extras);
    for (const Case& one : cases) std::cout << one.name << '\t' << one.unit << '\n';
  } catch (const std::regex_error& error) {
    std::cerr << "bench: --filter: '" << options.filter << "' is no regular expression: " << error.what() << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "bench: " << error.what() << '\n';
    return 1;
  }
  return 0;
}

}  // namespace bench
