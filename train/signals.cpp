// SPDX-License-Identifier: Apache-2.0
#include "train/signals.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "dist/group/watchdog.h"
#include "dist/rendezvous/session.h"
#include "kernels/error.h"
#include "train/training_main.h"

namespace weft::train {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
constexpr int kCount = std::size(kSignals);

// A handler may touch lock-free atomics only.
std::atomic<int> stop_number{0};
std::atomic<bool> save{false};
std::atomic<bool> installed{false};
std::atomic<bool> in_training_main{false}, kept_for_loop{false};  // kept: SIGTERM
struct sigaction previous[kCount], previous_pipe;

void write_line(const char* text) {
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) return;  // nobody left to tell
}

/// SIGTERM that no loop keeps. Where a rank has failed, Slurm's srun sends it to the others (--kill-on-bad-exit) and
/// reports the largest code of all.
void end_at_once() {
  using dist::JobState;
  const JobState job = dist::job_state();
  if (job == JobState::meeting || job == JobState::failed) {
    ::signal(SIGTERM, SIG_DFL);
    ::raise(SIGTERM);  // comes when the handler returns
    return;
  }
  if (job == JobState::complete) ::poll(nullptr, 0, 500);  // the others get theirs before they hear of this end
  write_line("SIGTERM outside of the training loop: nothing is lost, the next attempt does the rest\n");
  ::_exit(kExitRequeue);
}

void handle(int number) {
  if (number == SIGUSR1) {
    save = true;
    return;
  }
  if (number == SIGTERM && in_training_main && !kept_for_loop && stop_number == 0) return end_at_once();
  const int earlier = stop_number.exchange(number);
  if (earlier == SIGINT && number == SIGINT) {
    write_line("\nsecond Ctrl-C: exit without saving\n");
    ::_exit(130);
  }
  if (earlier == 0 && number == SIGINT) write_line("\nCtrl-C: finishing the step (again: exit at once)\n");
}

extern "C" void weft_on_signal(int number) {
  const int before = errno;  // errno of the interrupted call
  handle(number);
  errno = before;
}

struct sigaction kept_signals() {
  struct sigaction action {};
  action.sa_handler = weft_on_signal;
  action.sa_flags = SA_RESTART;  // reads and writes under way go on
  sigemptyset(&action.sa_mask);
  return action;
}

}  // namespace

Signals::Signals() {
  WEFT_CHECK(!installed.exchange(true), "signals: expected one Signals object at a time, got a second");
  stop_number = 0;
  if (!in_training_main) save = false;
  training_begins();
  struct sigaction action = kept_signals();
  for (int i = 0; i < kCount; ++i) {
    sigaction(kSignals[i], nullptr, &previous[i]);
    const bool by_nohup = kSignals[i] == SIGHUP && previous[i].sa_handler == SIG_IGN;
    if (!by_nohup) sigaction(kSignals[i], &action, nullptr);
  }
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, &previous_pipe);
  dist::take_print_signal();  // a run whose groups do not exist yet, or of one rank, goes on
}

Signals::~Signals() {
  for (int i = 0; i < kCount; ++i) sigaction(kSignals[i], &previous[i], nullptr);
  sigaction(SIGPIPE, &previous_pipe, nullptr);
  installed = false;
}

bool Signals::stop_requested() const { return stop_number != 0; }

const char* Signals::stop_signal() const {
  const int number = stop_number;
  return number == SIGINT ? "SIGINT" : number == SIGTERM ? "SIGTERM" : number == SIGHUP ? "SIGHUP" : "";
}

bool Signals::take_save_request() { return save.exchange(false); }

int training_main(const std::string& program, const std::function<int()>& body) {
  in_training_main = true;
  const struct sigaction action = kept_signals();
  for (const int number : {SIGTERM, SIGUSR1}) sigaction(number, &action, nullptr);  // until the process ends
  return guarded_main(program, body);
}

void training_begins() { kept_for_loop = true; }
void training_pauses() { kept_for_loop = false; }

}  // namespace weft::train
