// SPDX-License-Identifier: Apache-2.0
#include "emulator/source/fault.h"

#include <ucontext.h>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "emulator/machine/fault.h"
#include "emulator/source/memory.h"
#include "emulator/source/report.h"
#include "emulator/source/switch_fiber.h"
#include "emulator/source/worker.h"

namespace emulator::source {

namespace {

constexpr size_t kSignalStackBytes = 64 << 10;
constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE};
struct sigaction previous[std::size(kSignals)];

struct Signal {
  int signal;
  int code;
  uintptr_t address;
  const void* instruction;
};
thread_local Signal fault;

std::string text_of(const Worker& worker) {
  // +1: source_line() expects the address after the instruction.
  const std::string at = source_line(static_cast<const char*>(fault.instruction) + 1);
  if (fault.signal == SIGFPE) return cat("integer division by zero at ", at);
  if (worker.stacks().in_guard(fault.address))
    return cat("stack overflow at ", at, ": a thread has ", Stacks::kBytes >> 10,
               " KiB of stack. Is there a large local array or a recursion?");
  if (fault.signal == SIGSEGV && fault.code == SI_KERNEL) return cat("misaligned or invalid access at ", at);
  if (const std::string found = worker.describe_cluster_memory(fault.address); !found.empty())
    return cat("invalid access at ", at, ": ", found);
  return cat("invalid access at ", at, ": ", describe_address(fault.address));
}

/// Runs on the worker's fault stack as ordinary code, after the signal handler has returned.
void landing() {
  Worker& worker = Worker::running()->report();
  entered_stack(worker.fault_stack() - Worker::fault_stack_bytes(), Worker::fault_stack_bytes());
  worker.fail([&] { return text_of(worker); });
}

void handler(int signal, siginfo_t* info, void* context) {
  Worker* worker = Worker::running();
  if (!worker) {
    for (size_t i = 0; i < std::size(kSignals); ++i)
      if (kSignals[i] == signal) sigaction(signal, &previous[i], nullptr);
    return;  // the instruction faults again, and the previous handler gets it
  }
  fault.signal = signal;
  fault.code = info->si_code;
  fault.address = reinterpret_cast<uintptr_t>(info->si_addr);
  // The faulting fiber is abandoned: continue in landing(), on a stack of its own, outside of the signal handler.
  mcontext_t& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  fault.instruction = reinterpret_cast<void*>(machine.gregs[REG_RIP]);
  machine.gregs[REG_RIP] = reinterpret_cast<greg_t>(&landing);
  machine.gregs[REG_RSP] = reinterpret_cast<greg_t>(worker->fault_stack() - 64 - 8);
#elif defined(__aarch64__)
  fault.instruction = reinterpret_cast<void*>(machine.pc);
  machine.pc = reinterpret_cast<uintptr_t>(&landing);
  machine.sp = reinterpret_cast<uintptr_t>(worker->fault_stack() - 64);
#else
#error "simt: the fault handler knows x86-64 and aarch64"
#endif
}

}  // namespace

char* install_fault_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = &handler;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &action, &previous[i]);
  });
  stack_t current{};
  sigaltstack(nullptr, &current);
  if (!(current.ss_flags & SS_DISABLE)) return nullptr;
  char* stack = static_cast<char*>(std::malloc(kSignalStackBytes));
  stack_t wanted{};
  wanted.ss_sp = stack;
  wanted.ss_size = kSignalStackBytes;
  sigaltstack(&wanted, nullptr);
  return stack;
}

void remove_signal_stack(char* stack) {
  if (!stack) return;
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
  std::free(stack);
}

}  // namespace emulator::source
