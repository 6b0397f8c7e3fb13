// SPDX-License-Identifier: Apache-2.0
// Starts the ranks of a job on this node, with torchrun's flags and variables; see docs/launching.md.
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "apps/weft_run/nodes.h"
#include "apps/weft_run/options.h"
#include "apps/weft_run/workers.h"
#include "dist/group/flight_record.h"
#include "dist/rendezvous/crypto.h"
#include "dist/rendezvous/handshake.h"
#include "kernels/runtime/runtime.h"
#include "train/exit.h"

namespace weft::weft_run {
namespace {

void say(const std::string& text) { std::fprintf(stderr, "weft-run: %s\n", text.c_str()); }

/// Cores that this process may use.
int count_cores() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/// Blocks SIGCHLD and the forwarded signals, to read them one at a time. Later threads inherit this.
sigset_t block_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP}) sigaddset(&set, number);
  sigset_t blocked = set;
  sigaddset(&blocked, SIGPIPE);  // ranks do not end with the program that shows this one's lines
  ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
  return set;
}

bool asks_to_end(int number) { return number == SIGTERM || number == SIGINT || number == SIGHUP; }

/// The exit code for a signal while no rank runs: requeue for SIGTERM, which ends a job early.
int code_without_ranks(int number) { return number == SIGTERM ? train::kExitRequeue : 128 + number; }

/// While it lives, a signal that asks to end ends this process: launchers may wait for each other for minutes, and they
/// have no ranks yet.
class EndBySignal {
 public:
  explicit EndBySignal(const sigset_t& signals) : signals_(signals), thread_([this] { watch(); }) {}
  ~EndBySignal() {
    done_ = true;
    thread_.join();
  }
  EndBySignal(const EndBySignal&) = delete;
  EndBySignal& operator=(const EndBySignal&) = delete;

 private:
  void watch() const {
    const timespec wait{0, 50'000'000};
    while (!done_) {
      const int number = ::sigtimedwait(&signals_, nullptr, &wait);
      if (!asks_to_end(number)) continue;
      say(str("ended by signal ", number, " (", ::strsignal(number), ") before the launchers had met"));
      std::_Exit(code_without_ranks(number));
    }
  }

  const sigset_t signals_;
  std::atomic<bool> done_{false};
  std::thread thread_;
};

/// The number of GPUs, if the number of ranks depends on it.
int count_gpus(const std::string& ranks_per_node) {
  const bool matters = ranks_per_node == "gpu" || ranks_per_node == "auto";
  return matters ? kernels::runtime(DeviceKind::cuda).device_count() : 0;
}

/// Runs the ranks of this node until all have ended, and restarts them after failures as often as the options allow.
class Launcher {
 public:
  explicit Launcher(const Options& options)
      : options_(options),
        signals_(block_signals()),
        variables_(dist::environment_variables()),
        cores_(count_cores()),
        local_ranks_(count_ranks(options.ranks_per_node, count_gpus(options.ranks_per_node), cores_)) {
    if (local_ranks_ * options.nodes > 1) make_secrets();
    std::error_code problem;
    if (!options.log_folder.empty()) std::filesystem::create_directories(options.log_folder, problem);
    WEFT_CHECK(!problem, "--log-dir: expected to create the folder ", options.log_folder, ", got '", problem.message(),
               "'");
    if (options.threads > 0) variables_["OMP_NUM_THREADS"] = std::to_string(options.threads);
    if (!variables_.contains("OMP_NUM_THREADS")) {
      const int threads = std::max(1, cores_ / local_ranks_);
      variables_["OMP_NUM_THREADS"] = std::to_string(threads);
      if (local_ranks_ > 1)
        say(str("OMP_NUM_THREADS is not set: ", threads, " for each of ", local_ranks_, " ranks on ", cores_,
                " cores"));
    }
  }

  /// Returns 0, or the exit code of the rank that failed first, on any node (128 + the number of the signal that ended
  /// it).
  int run() {
    Nodes nodes = meet();
    for (int round = 0;; ++round) {
      const std::optional<RoundFailure> failure = run_round(nodes, round);
      if (!failure) {
        nodes.leave();
        return 0;
      }
      say(failure->text);
      const bool would_restart = failure->may_restart && stop_signal_ == 0 && round < options_.max_restarts;
      int asked = would_restart ? pending_end() : 0;  // it came while ranks were being stopped
      const auto is_asked = [&] {
        const int number = pending_end();
        if (number != 0) asked = number;
        return number != 0;
      };
      // The others read the reason from the store, which this node may own.
      if (!nodes.wait_until_stopped(round, would_restart && asked == 0, is_asked)) {
        nodes.leave();
        if (!would_restart || asked == 0) return failure->code;
        say(before_start(asked));
        return code_without_ranks(asked);
      }
      if (asked != 0) nodes.fail(round + 1, {code_without_ranks(asked), false, before_start(asked)});
      say(str("restarting all ranks, restart ", round + 1, " of ", options_.max_restarts));
    }
  }

 private:
  Nodes meet() const {
    std::optional<EndBySignal> ends;
    if (options_.nodes > 1) ends.emplace(signals_);
    return Nodes(options_, local_ranks_, meeting_secret_);
  }

  void make_secrets() {
    // One node needs no cookie: its ranks get a random secret.
    meeting_secret_ = options_.nodes > 1
                          ? dist::hexadecimal(dist::keyed_hash(dist::job_secret(variables_, "run " + options_.run),
                                                               str("launchers at port ", options_.meeting->port)))
                          : dist::hexadecimal(dist::random_bytes(32));
    variables_["WEFT_JOB_SECRET"] = dist::hexadecimal(dist::keyed_hash(meeting_secret_, "ranks"));
  }

  std::vector<Worker> workers_of(Nodes& nodes, int round) const {
    const dist::Address master = nodes.master_of(round);
    std::vector<Worker> workers;
    for (int local = 0; local < local_ranks_; ++local) {
      Worker worker{nodes.first_rank() + local, "", variables_};
      if (!options_.log_folder.empty())
        worker.log =
            options_.log_folder + str("/rank_", worker.rank, round == 0 ? "" : str(".restart_", round), ".log");
      const std::map<std::string, std::string> more{
          {"RANK", std::to_string(worker.rank)},
          {"WORLD_SIZE", std::to_string(nodes.ranks())},
          {"LOCAL_RANK", std::to_string(local)},
          {"LOCAL_WORLD_SIZE", std::to_string(local_ranks_)},
          {"GROUP_RANK", std::to_string(nodes.node())},
          {"GROUP_WORLD_SIZE", std::to_string(options_.nodes)},
          {"MASTER_ADDR", master.host},
          {"MASTER_PORT", std::to_string(master.port)},
          {"TORCHELASTIC_RESTART_COUNT", std::to_string(round)},
          {"TORCHELASTIC_MAX_RESTARTS", std::to_string(options_.max_restarts)},
          {"TORCHELASTIC_RUN_ID", options_.run},
          {"TORCHELASTIC_USE_AGENT_STORE", "False"},  // PyTorch's ranks open a store of their own
          {"ROLE_NAME", options_.role},
          {"ROLE_RANK", std::to_string(worker.rank)},
          {"ROLE_WORLD_SIZE", std::to_string(nodes.ranks())}};
      for (const auto& [name, value] : more) worker.variables[name] = value;
      if (!options_.mixed_precision.empty()) worker.variables["ACCELERATE_MIXED_PRECISION"] = options_.mixed_precision;
      workers.push_back(std::move(worker));
    }
    return workers;
  }

  /// Nothing if all ranks of all nodes ended with 0.
  std::optional<RoundFailure> run_round(Nodes& nodes, int round) {
    const std::vector<Worker> ranks = workers_of(nodes, round);
    if (const int number = pending_end(); number != 0)
      nodes.fail(round, {code_without_ranks(number), false, before_start(number)});
    if (std::optional<RoundFailure> failure = nodes.failure(round)) return failure;
    Workers workers(options_.command, ranks, keeper_);
    bool failed = false, some_ended = false;
    std::optional<int> stopped;
    dist::TimePoint stopped_since;
    dist::TimePoint fine = dist::Clock::now();  // since then a rank is stopped for which another one no longer waits
    while (true) {
      while (std::optional<Ending> ending = workers.take_ended()) {
        some_ended = true;
        if (ending->code() != 0) {
          // A rank that a signal ended is why others fail, but takes longer to be gone than they to hear of it.
          if (!std::exchange(failed, true) && ending->code() < 128)
            if (const std::optional<Ending> cause = workers.take_killed(std::chrono::milliseconds(300))) ending = cause;
          // A rank that asks to submit its job again is not restarted here.
          const bool may_restart = stop_signal_ == 0 && ending->code() != train::kExitRequeue;
          nodes.fail(round, {ending->code(), may_restart, ending->text()});
        }
      }
      if (const std::optional<int> now = workers.stopped_rank(); now != std::exchange(stopped, now))
        stopped_since = dist::Clock::now();
      if (!stopped || !(some_ended || nodes.some_finished(round)))
        fine = dist::Clock::now();
      else if (dist::Clock::now() - fine > patience())
        nodes.fail(round, {1, stop_signal_ == 0,
                           str("rank ", *stopped, " is stopped, and others have ended ", patience().count(),
                               " s ago or more")});
      if (std::optional<RoundFailure> failure = nodes.failure(round)) {
        // Others have given it up; it cannot say so itself.
        if (stopped && !failure->text.starts_with(str("rank ", *stopped, " ")))
          failure->text +=
              str("; rank ", *stopped, " has been stopped for ",
                  std::lround(std::chrono::duration<double>(dist::Clock::now() - stopped_since).count()), " s");
        // Ranks that got a signal to end do so by themselves, perhaps after a checkpoint.
        while (stop_signal_ != 0 && !workers.empty()) {
          take_signal(workers);
          workers.take_ended();
        }
        workers.stop(options_.grace);
        return failure;
      }
      if (workers.empty() && nodes.finished(round)) return std::nullopt;
      if (!take_signal(workers)) nodes.fail(round, {128 + SIGINT, false, "ended by a second Ctrl-C"});
    }
  }

  /// The ranks' patience with a silent rank (dist::init reads the variable, too, and reports its errors).
  std::chrono::seconds patience() const {
    const auto found = variables_.find("WEFT_TIMEOUT");
    const long seconds = found == variables_.end() ? 0 : std::strtol(found->second.c_str(), nullptr, 10);
    return std::chrono::seconds(seconds > 0 && seconds <= 7L * 24 * 3600 ? seconds : 600);
  }

  static std::string before_start(int number) {
    return str("ended by signal ", number, " (", ::strsignal(number), ") before the ranks were started");
  }

  /// A signal that asks to end and came while there were no ranks, or while they were being stopped; 0: none.
  int pending_end() const {
    const timespec now{};
    for (int number = 0; (number = ::sigtimedwait(&signals_, nullptr, &now)) > 0;)
      if (asks_to_end(number)) return number;
    return 0;
  }

  /// Waits a little for a signal and forwards it. False: it was a second Ctrl-C, which has ended all ranks.
  bool take_signal(Workers& workers) {
    const timespec wait{0, 100'000'000};
    const int number = ::sigtimedwait(&signals_, nullptr, &wait);
    if (number <= 0 || number == SIGCHLD) return true;
    const bool ends = asks_to_end(number);
    if (ends && number == SIGINT && stop_signal_ == SIGINT) {
      say("second Ctrl-C: ending all ranks");
      workers.stop(0);
      return false;
    }
    if (ends) stop_signal_ = number;
    workers.signal(number);
    return true;
  }

  const Options options_;
  Keeper keeper_;  // first member: it forks before this process has other threads
  const sigset_t signals_;
  dist::EnvironmentVariables variables_;
  int cores_, local_ranks_;
  std::string meeting_secret_;
  int stop_signal_ = 0;
};

}  // namespace
}  // namespace weft::weft_run

int main(int argc, char** argv) {
  return weft::train::guarded_main("weft-run", [&] {
    const auto options = weft::weft_run::parse_options({argv + 1, argv + argc}, weft::dist::environment_variables());
    if (!options) return weft::train::kExitOk;
    if (!options->explain.empty()) {
      std::fputs(weft::dist::explain_flight_records(options->explain).c_str(), stdout);
      return weft::train::kExitOk;
    }
    for (const std::string& note : options->notes) weft::weft_run::say(note);
    if (options->gpus) ::setenv("CUDA_VISIBLE_DEVICES", options->gpus->c_str(), 1);
    return weft::weft_run::Launcher(*options).run();
  });
}
