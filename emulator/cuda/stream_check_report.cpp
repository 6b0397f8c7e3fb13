// SPDX-License-Identifier: Apache-2.0
// Texts about operations and missing orders.
#include "emulator/cuda/stream_check_report.h"

#include "emulator/cuda/kernels.h"
#include "emulator/cuda/work.h"
#include "emulator/machine/findings.h"

namespace emulator::cuda {
namespace {

const char* memory_text(const void* memory) {
  Allocation owner;
  if (!find_allocation(reinterpret_cast<uintptr_t>(memory), owner)) return "pageable host memory";
  return owner.kind == MemoryKind::device ? "device memory" : kind_text(owner.kind);
}

std::string stream_text(const Trace& trace) {
  return trace.stream == 0 ? cat("the default stream", trace.device == 0 ? "" : cat(" of device ", trace.device))
                           : cat("stream ", trace.stream);
}

}  // namespace

std::string Trace::text() const {
  std::string text = kernel.empty() ? what : cat("kernel ", function_name(kernel.c_str()), what);
  if (before_wait) text += ", before its griddepcontrol.wait";
  if (number != 0) text += cat(", ", stream_text(*this));
  if (added && !added->empty()) text += cat(", a node of a graph that was added at ", added->text());
  return cat(text, number == 0 ? ", called at " : added ? ", launched at " : ", issued at ", site.text());
}

namespace stream_check {
namespace {

const char* verb(Use use) {
  switch (use) {
    case Use::read:
      return "reads";
    case Use::write:
      return "writes";
    case Use::atomic:
      return "updates";
    case Use::free:
      return "frees";
  }
  return "uses";
}

std::string bytes_text(uintptr_t begin, uintptr_t end) {
  Allocation owner;
  if (!find_allocation(begin, owner)) return cat(end - begin, " bytes");
  const char* const kind = owner.kind == MemoryKind::device    ? "the device allocation"
                           : owner.kind == MemoryKind::pinned  ? "the pinned host memory"
                           : owner.kind == MemoryKind::managed ? "the managed memory"
                                                               : "the variable";
  return cat("bytes ", begin - owner.begin, "..", std::min(end, owner.end) - owner.begin - 1, " of ", kind, " of ",
             owner.end - owner.begin, " bytes");
}

std::string missing(const Trace& first, const Trace& second) {
  if (second.before_wait)
    return "missing: griddepcontrol.wait (cudaGridDependencySynchronize) before the latter's access";
  if (first.number == 0 || second.number == 0) {
    const Trace& device = first.number == 0 ? second : first;
    return cat("the host must wait for ", stream_text(device), " before");
  }
  if (first.device == second.device && first.stream == second.stream)
    return first.added && second.added ? "missing: an edge from one node of the graph to the other"
                                       : "missing: a dependency between the two";
  return cat("missing: an event of ", stream_text(first), " after the former that ", stream_text(second),
             " waits for before the latter");
}

}  // namespace

void describe(Trace& trace, const Work& work) {
  struct Describe {
    Trace& trace;
    void operator()(const KernelWork& kernel) const {
      trace.kernel = kernel.function->kernel->name;
      const ptx::Launch& l = kernel.launch;
      trace.what = cat(" <<<(", l.grid.x, ',', l.grid.y, ',', l.grid.z, "), (", l.block.x, ',', l.block.y, ',',
                       l.block.z, ")>>>");
    }
    void operator()(const CopyWork& copy) const {
      trace.what = cat("a copy of ", copy.width * copy.height * copy.depth, " bytes from ", memory_text(copy.from),
                       " to ", memory_text(copy.to));
    }
    void operator()(const FillWork& fill) const {
      trace.what = cat("a fill of ", fill.width * fill.height * fill.depth * fill.element, " bytes");
    }
    void operator()(const HostWork&) const { trace.what = "a host function"; }
    void operator()(const AllocWork& alloc) const {
      trace.allocates = true;
      trace.what = cat("an allocation of ", alloc.said.bytesize, " bytes");
    }
    void operator()(const FreeWork&) const { trace.what = "a free"; }
    void operator()(const CallWork&) const { trace.what = "cudaFreeAsync"; }
    void operator()(const LibraryWork& library) const { trace.what = library.what; }
    void operator()(const ConditionalWork&) const { trace.what = "a conditional node"; }
    void operator()(const EmptyWork&) const {}
    void operator()(const RecordWork&) const {}
    void operator()(const WaitWork&) const {}
    void operator()(const ChildWork&) const {}
  };
  std::visit(Describe{trace}, work.what);
}

void report(const Conflict& conflict) {
  // In the order of the calls in the program.
  const bool swapped = conflict.earlier->number > conflict.later->number && conflict.later->number != 0;
  const Trace &first = swapped ? *conflict.later : *conflict.earlier,
              &second = swapped ? *conflict.earlier : *conflict.later;
  const Use first_use = swapped ? conflict.later_use : conflict.earlier_use,
            second_use = swapped ? conflict.earlier_use : conflict.later_use;
  const std::string key = cat(first.kernel, '|', first.site.text(), '|', second.kernel, '|', second.site.text(), '|',
                              int(first_use), int(second_use));
  const std::string bytes = bytes_text(conflict.begin, conflict.end);
  if (conflict.after_free) {
    report_finding(
        "use after free in stream order",
        cat("\n  ", second.text(), "\n    ", verb(second_use), ' ', bytes, ",\n    which was freed by ", first.text()),
        key);
    return;
  }
  report_finding("no order between streams",
                 cat("\n  ", first.text(), "\n    ", verb(first_use), ",\n  ", second.text(), "\n    ",
                     verb(second_use), ' ', bytes, ";\n  ", missing(first, second)),
                 key);
}

void report_written_source(const Trace& copy) {
  report_finding(
      "the host wrote the source of a copy that had not run",
      cat("\n  ", copy.text(), "\n  missing: the host must wait for ", stream_text(copy), " before it writes there"),
      copy.site.text());
}

}  // namespace stream_check
}  // namespace emulator::cuda
