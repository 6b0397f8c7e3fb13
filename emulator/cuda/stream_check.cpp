// SPDX-License-Identifier: Apache-2.0
// Clocks: which operation comes before which, and what the host knows.
#include "emulator/cuda/stream_check.h"

#include <algorithm>
#include <map>
#include <set>

#include "emulator/cuda/graph.h"
#include "emulator/cuda/stream_check_history.h"
#include "emulator/cuda/stream_check_host.h"
#include "emulator/cuda/stream_check_report.h"
#include "emulator/cuda/work.h"
#include "emulator/machine/findings.h"

namespace emulator::cuda::stream_check {
namespace {

/// Under the state's lock.
struct Clocks {
  std::vector<uint32_t> last;  ///< per timeline: the time of its last operation
  std::vector<uint32_t> host;  ///< operations that the host knows as ended; all its threads share the list
  std::map<uint64_t, std::shared_ptr<Trace>> unfinished;
  struct Release {
    std::shared_ptr<const Trace> free;
    uint64_t number;  ///< index of the last operation that was issued before it ran
    std::function<void()> release;
  };
  std::vector<Release> releases;
};
Clocks& clocks() {
  static Clocks* const all = [] {
    before_the_end = [] {
      Lock lock = lock_state();
      scheduler().drain(lock);
    };
    return new Clocks;
  }();
  return *all;
}

thread_local const std::shared_ptr<const Work>* issued_work = nullptr;
thread_local const Node* issued_node = nullptr;
thread_local std::shared_ptr<Trace> running;
thread_local Touched *running_touched = nullptr, *running_early = nullptr;

void join(std::vector<uint32_t>& into, const std::vector<uint32_t>& other) {
  if (into.size() < other.size()) into.resize(other.size());
  for (size_t k = 0; k < other.size(); ++k) into[k] = std::max(into[k], other[k]);
}

/// A line of ordered operations: a line of `after` (its own stream's first), or any other whose last operation is
/// before `op`. So the lines of streams that are gone are used again.
uint32_t choose_timeline(const Operation& op, const std::vector<uint32_t>& clock, const std::vector<Op>& after) {
  std::vector<uint32_t>& last = clocks().last;
  for (const bool own : {true, false})
    for (const Op& before : after) {
      if (!before || !before->trace || (own && (before->stream != op.stream || before->device != op.device))) continue;
      const Trace& trace = *before->trace;
      if (trace.time == last[trace.timeline]) return trace.timeline;
    }
  for (uint32_t k = 0; k < last.size(); ++k)
    if (last[k] <= (k < clock.size() ? clock[k] : 0)) return k;
  last.push_back(0);
  return static_cast<uint32_t>(last.size() - 1);
}

/// The previous kernel, before whose end the issued one may begin; nullptr: there is none. A stream's last operation,
/// or a node's only dependency, is a kernel.
const Trace* overlapped(const Operation& op, const std::vector<Op>& after) {
  const auto* const kernel = issued_work ? std::get_if<KernelWork>(&(*issued_work)->what) : nullptr;
  if (!kernel || !kernel->launch.programmatic || (issued_node && issued_node->dependencies.size() != 1)) return nullptr;
  for (const Op& before : after)
    if (before && before->trace && !before->trace->kernel.empty() && before->stream == op.stream &&
        before->device == op.device)
      return before->trace.get();
  return nullptr;
}

/// The clock of the issued kernel up to its griddepcontrol.wait. A predecessor that began early itself may let this
/// kernel begin before its own wait, so nothing before that counts as ended either.
std::vector<uint32_t> early_clock(std::vector<uint32_t> known, const Trace& predecessor, const std::vector<Op>& after) {
  for (const Op& before : after)
    if (before && before->trace && before->trace.get() != &predecessor) join(known, before->trace->clock);
  std::vector<uint32_t> begun = predecessor.early ? *predecessor.early : predecessor.clock;
  if (!predecessor.early) --begun[predecessor.timeline];
  join(known, begun);
  return known;
}

/// More may join the operations that the host has not waited for.
void release_some() {
  Clocks& c = clocks();
  const uint64_t oldest = c.unfinished.empty() ? ~uint64_t{0} : c.unfinished.begin()->first;
  std::erase_if(c.releases, [&](const Clocks::Release& one) {
    if (one.number >= oldest || !one.free->before(c.host)) return false;
    one.release();
    return true;
  });
}

void report_all(const std::vector<Conflict>& conflicts) {
  for (const Conflict& conflict : conflicts) report(conflict);
}

}  // namespace

Issuing::Issuing(const std::shared_ptr<const Work>* work, const Node* node)
    : work_before_(std::exchange(issued_work, work)), node_before_(std::exchange(issued_node, node)) {}
Issuing::~Issuing() {
  issued_work = work_before_;
  issued_node = node_before_;
}

void issued(Operation& op, const std::vector<Op>& after) {
  Clocks& c = clocks();
  auto trace = std::make_shared<Trace>();
  // An operation that a device issues for a conditional node knows its launch's predecessors, not the host's present
  // ones.
  trace->clock = running ? running->clock : c.host;
  if (const Trace* const previous = overlapped(op, after)) trace->early = early_clock(trace->clock, *previous, after);
  for (const Op& before : after)
    if (before && before->trace) join(trace->clock, before->trace->clock);
  trace->timeline = choose_timeline(op, trace->clock, after);
  trace->time = ++c.last[trace->timeline];
  if (trace->clock.size() <= trace->timeline) trace->clock.resize(trace->timeline + 1);
  trace->clock[trace->timeline] = trace->time;
  trace->number = op.number;
  trace->device = op.device;
  trace->stream = op.stream;
  op.trace = trace;
  if (op.kind == Operation::Kind::marker) return;
  trace->site = running ? running->site : CallSite::here();
  if (issued_node) trace->added = issued_node->site;
  if (issued_work) describe(*trace, **issued_work);
  c.unfinished[op.number] = trace;
  guard_host_memory(trace, issued_work ? *issued_work : nullptr);
}

void postponed(Operation& op, const Operation& before) {
  if (!before.trace) return;
  std::vector<Operation*> open{&op};
  std::set<const Operation*> seen{&op};
  while (!open.empty()) {
    Operation& one = *open.back();
    open.pop_back();
    if (one.trace) join(one.trace->clock, before.trace->clock);
    for (const Op& next : one.dependents)
      if (seen.insert(next.get()).second) open.push_back(next.get());
  }
}

void known_to_host(const Operation& op) {
  if (!op.trace) return;
  if (op.trace->before(clocks().host)) return;
  join(clocks().host, op.trace->clock);
  look_at_sources(clocks().host);
  release_some();
}

bool host_knows(const Operation& op) { return !op.trace || op.trace->before(clocks().host); }

void host_function_begins(const Operation& op) {
  if (op.trace) look_at_sources(op.trace->clock);
}

void ended(const Operation& op) {
  if (!op.trace || op.kind == Operation::Kind::marker) return;
  Clocks& c = clocks();
  c.unfinished.erase(op.number);
  forget_guards(op.number);
  // A host function can notify any thread of the host in ways that we do not see.
  if (op.kind == Operation::Kind::host) known_to_host(op);
  release_some();
}

std::vector<uint32_t> host_clock() { return clocks().host; }

void host_frees(const char* call, void* memory, size_t bytes, const std::vector<uint32_t>& knew) {
  auto host = std::make_shared<Trace>();
  host->clock = knew;
  host->timeline = ~uint32_t{0};
  host->time = 1;
  host->what = call;
  host->site = CallSite::here();
  const uintptr_t begin = reinterpret_cast<uintptr_t>(memory);
  report_all(History::get().use(host, begin, begin + bytes, Use::free));
}

void allocated(const Operation& op, void* memory, size_t bytes) {
  if (!op.trace) return;
  op.trace->allocates = true;
  op.trace->what = cat("cudaMallocAsync of ", bytes, " bytes");
  op.trace->site = CallSite::here();
  const uintptr_t begin = reinterpret_cast<uintptr_t>(memory);
  report_all(History::get().use(op.trace, begin, begin + bytes, Use::write));
}

Running::Running(const Operation& op) : trace_(op.trace) {
  running = trace_;
  running_touched = trace_ ? &touched_ : nullptr;
  running_early = trace_ && trace_->early ? &early_ : nullptr;
}
Running::~Running() {
  running.reset();
  running_touched = running_early = nullptr;
}
void Running::finish() {
  if (!early_.empty()) {
    const auto before_wait = std::make_shared<Trace>(*trace_);
    before_wait->clock = *trace_->early;
    before_wait->before_wait = true;
    report_all(History::get().merge(before_wait, early_));
  }
  if (trace_ && !touched_.empty()) report_all(History::get().merge(trace_, touched_));
}

Touched* touched() { return running_touched; }
Touched* early() { return running_early; }

void copy_runs(const void* from) {
  if (!running) return;
  const Lock lock = lock_state();
  look_at_source(running->number, from);
}

void freed(void* memory, size_t bytes) {
  if (!running) return;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(memory);
  report_all(History::get().use(running, begin, begin + bytes, Use::free));
}

void release_later(std::function<void()> release) {
  const Lock lock = lock_state();
  Clocks& c = clocks();
  const uint64_t last = c.unfinished.empty() ? 0 : c.unfinished.rbegin()->first;
  c.releases.push_back({running, last, std::move(release)});
}

}  // namespace emulator::cuda::stream_check
