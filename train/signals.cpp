// SPDX-License-Identifier: Apache-2.0
#include "train/signals.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "kernels/error.h"

namespace weft::train {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGUSR1};

// A handler may touch lock-free atomics only.
std::atomic<int> stop_number{0};
std::atomic<bool> save{false};
std::atomic<bool> installed{false};
struct sigaction previous[3], previous_pipe;

void write_line(const char* text) {
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) return;  // nobody left to tell
}

extern "C" void weft_on_signal(int number) {
  if (number == SIGUSR1) {
    save = true;
    return;
  }
  const int earlier = stop_number.exchange(number);
  if (earlier == SIGINT && number == SIGINT) {
    write_line("\nsecond Ctrl-C: exit without saving\n");
    ::_exit(130);
  }
  if (earlier == 0 && number == SIGINT) write_line("\nCtrl-C: finishing the step (again: exit at once)\n");
}

}  // namespace

Signals::Signals() {
  WEFT_CHECK(!installed.exchange(true), "signals: expected one Signals object at a time, got a second");
  stop_number = 0;
  save = false;
  struct sigaction action {};
  action.sa_handler = weft_on_signal;
  action.sa_flags = SA_RESTART;  // reads and writes under way go on
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < 3; ++i) sigaction(kSignals[i], &action, &previous[i]);
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, &previous_pipe);
}

Signals::~Signals() {
  for (int i = 0; i < 3; ++i) sigaction(kSignals[i], &previous[i], nullptr);
  sigaction(SIGPIPE, &previous_pipe, nullptr);
  installed = false;
}

bool Signals::stop_requested() const { return stop_number != 0; }

const char* Signals::stop_signal() const {
  const int number = stop_number;
  return number == SIGINT ? "SIGINT" : number == SIGTERM ? "SIGTERM" : "";
}

bool Signals::take_save_request() { return save.exchange(false); }

}  // namespace weft::train
