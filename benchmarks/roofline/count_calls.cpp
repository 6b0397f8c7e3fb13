// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <sstream>

#include "benchmarks/roofline/step.h"
#include "kernels/kernel_trace.h"

namespace weft::benchmarks {
namespace {

using kernels::View;

std::string shapes_of(std::span<const View* const> views) {
  int rank = 0;
  for (const View* view : views)
    if (*view) rank = std::max(rank, view->rank);
  std::ostringstream text;
  for (const View* view : views)
    if (*view && view->rank >= std::min(rank, 2)) text << (text.tellp() > 0 ? " " : "") << *view;
  return text.str();
}

class Counter : public kernels::KernelObserver {
 public:
  std::vector<CountedCall> calls;

  void before(const kernels::KernelCall& call) override {
    const kernels::KernelCost cost = kernels::cost_of(call);
    const std::string shapes = shapes_of(call.views);
    for (CountedCall& known : calls) {
      // The bytes tell apart what the shapes do not: views that are not given or lie in steps.
      if (known.kernel != call.name || known.shapes != shapes || known.cost.bytes != cost.bytes) continue;
      ++known.count;
      return;
    }
    calls.push_back({call.name, shapes, 1, cost});
  }
  void after(const kernels::KernelCall&) override {}
  bool runs() const override { return false; }
};

struct Observing {
  explicit Observing(Counter& counter) { kernels::set_kernel_observer(&counter); }
  ~Observing() { kernels::set_kernel_observer(nullptr); }
};

}  // namespace

std::vector<CountedCall> count_calls(const CountedStep& step) {
  Counter counter;
  const Observing observing(counter);
  const std::function<void()> run = step.make();
  run();
  counter.calls.clear();
  run();
  return std::move(counter.calls);
}

}  // namespace weft::benchmarks
