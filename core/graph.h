// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace weft {

/// A sequence of device work that is recorded once and launched as a whole: a CUDA graph. A step of
/// many small kernels then costs the host one launch.
///   Graph graph;
///   graph.capture(device, [&] { optimizer.zero_grad(); loss = …; loss.backward(); optimizer.step(); });
///   for (…) { input.copy_(batch); graph.replay(); }
/// capture() runs nothing: kernels are recorded with the addresses of their tensors and the values of their arguments.
/// So tensors that `step` reads must keep their addresses (copy new data into them). Numbers that change must lie in
/// device memory, as an optimizer's learning rate and step count do. Random numbers go on: each replay draws what the
/// same step, run eagerly in its place, would draw. Tensors made inside `step` live in memory of the graph's own, and
/// each replay overwrites them. See docs/cuda_graphs.md.
class Graph {
 public:
  Graph();
  /// Waits for the device.
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Records `step` on this thread. Waits for the device and gives its cached memory back first. Run the step once or
  /// twice before, so that what happens once (lazy set-up) has happened. Errors: the device is the CPU; captured
  /// already; WEFT_SYNC or WEFT_CHECK_NAN is on; a call inside `step` that needs the host (item(), to(cpu), …: it is
  /// named). After an error the Graph is empty again.
  void capture(Device device, const std::function<void()>& step);

  /// Enqueues the recorded work on this thread's current stream. Errors: nothing is captured.
  void replay();

  /// Between capture() and clear().
  bool is_captured() const { return static_cast<bool>(state_); }
  /// Waits for the device and forgets what was captured.
  void clear();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct GraphedFunctionOptions {
  int warm_up = 2;               ///< eager runs before the capture
  bool may_run_eagerly = false;  ///< after a capture that fails; else its error is thrown
  int most = 1;                  ///< graphs, each for inputs of other sizes; above 1 there must be one rank
  size_t most_bytes = SIZE_MAX;  ///< limit of all graphs' device memory; beyond it no further graph is captured
  /// Where several ranks call the function together: true when all of them say so (a collective). A collective that
  /// some ranks replay and others run eagerly waits for ever, so the ranks agree on the capture, and before each
  /// replay. Empty: there is one rank.
  std::function<bool(bool own)> all_agree = {};
};

/// A function of tensors that runs eagerly at first, then as a graph: `f` gets tensors of its own, into which each call
/// copies its inputs. Calls whose sizes or dtypes differ from the capture's (the last batch of an epoch) on any rank
/// run eagerly on all ranks. With `most` above 1 inputs of other sizes or dtypes warm up and become graphs of their
/// own, as long as there are fewer.
class GraphedFunction {
 public:
  using Function = std::function<void(const std::vector<Tensor>& inputs)>;
  /// Errors: the device is the CPU.
  GraphedFunction(Device device, Function f, GraphedFunctionOptions options = {});

  /// Errors: those of `f` and of Graph::capture.
  void operator()(const std::vector<Tensor>& inputs);

  /// Calls that fit a capture replay; false: all calls run eagerly, so far or for good.
  bool is_captured() const { return graphs_ > 0; }
  /// How many graphs are captured.
  int graphs() const { return graphs_; }
  /// Calls that replayed.
  int64_t replays() const { return replays_; }
  /// Why a capture failed, after which there are no others; empty as long as none has.
  const std::string& failure() const { return failure_; }

 private:
  bool agreed(bool own) const { return options_.all_agree ? options_.all_agree(own) : own; }
  /// Inputs of the same sizes and dtypes.
  struct Kind {
    int runs = 0;
    std::vector<Tensor> inputs;
    Graph graph;  // goes before the inputs that it reads
  };
  Kind* kind_of(const std::vector<Tensor>& inputs);
  bool may_capture();
  void capture(Kind& kind);

  Device device_;
  Function function_;
  GraphedFunctionOptions options_;
  std::vector<std::unique_ptr<Kind>> kinds_;
  int graphs_ = 0;
  int64_t replays_ = 0;
  std::string failure_;
};

}  // namespace weft
