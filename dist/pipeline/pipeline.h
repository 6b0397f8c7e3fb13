// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "dist/pipeline/schedule.h"
#include "dist/tensor/tensor_parallel.h"
#include "nn/staged.h"

namespace weft::dist {

struct PipelineOptions {
  int chunks = 1;  ///< stretches of the model on each stage; above 1: the interleaved schedule
  DdpOptions ddp = {};
  std::optional<FsdpOptions> fsdp = {};  ///< in place of `ddp`: the data ranks shard each stage
  std::optional<Device> device = {};     ///< device of this rank's part of the model; left out: unchanged
};

/// A step's samples in micro-batches, the same on all ranks of a row. Sharded stages need as many on all data ranks.
struct MicroBatches {
  std::vector<Tensor> inputs = {};
  int64_t samples = 0;           ///< number in all micro-batches; 0: a dummy batch, as in DDP::set_samples()
  DType precision = DType::f32;  ///< dtype of the stages' products (Autocast); `loss` chooses its own
  /// Called on the last stage, once for each micro-batch: the scalar that backward begins from. `pipeline(inputs[i])`
  /// inside is the model's output; of other inputs: an error. The scalars of all micro-batches add up to the step's
  /// loss.
  std::function<Tensor(size_t micro)> loss = {};
};

/// A model whose layers lie in stages on the ranks of a pipeline (Huang et al. 2019, Narayanan et al. 2021), each stage
/// divided over the model ranks of its grid where its layers are, and replicated over the data ranks:
///   Grid grid(world.group(), 1, 4);                       // 4 stages
///   Pipeline pipeline(model, grid, {.chunks = 2});        // the whole model, from one seed: each rank keeps its part
///   Adam adam(pipeline.parameters(), …);
///   adam.zero_grad();
///   pipeline.run({inputs, samples, DType::f32, [&](size_t i) { return … pipeline(inputs[i]) …; }});
///   clip_grad_norm(pipeline.parameters(), 1);             // of the whole model
///   adam.step();
/// Activations and their gradients travel in groups of two neighbours, one for each direction, in the schedule's order;
/// each receive is posted one message ahead. Where a GPU has few hardware queues they travel between the steps, in
/// batches of one group. Gradients are averaged over the data ranks beside the step's last
/// backwards; FSDP gathers a unit for each micro-batch, forward and backward. Tied parameters (nn::Staged::uses) are
/// summed over their stages. See docs/pipeline_parallel.md.
class Pipeline final : public Strategy {
 public:
  /// `model` is an nn::Staged. Collective. Errors: another model; models or chunks that differ between the stages;
  /// fewer layers than stages * chunks; those of TensorParallel.
  Pipeline(std::shared_ptr<nn::Module> model, Grid grid, PipelineOptions options = {});
  ~Pipeline() override;
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  /// Forward and backward of all micro-batches; gradients are there when it returns. They add to the gradients of
  /// earlier runs since zero_grad(). All ranks call it. Errors: NoGrad, no loss, other numbers of micro-batches in a
  /// row. An error of one rank, of `loss` say, ends the stages' groups: the other ranks get its text.
  void run(const MicroBatches& step);
  /// The model's output, on all ranks, without gradients: x goes through the stages in `stages` micro-batches. Inside
  /// of MicroBatches::loss: the output of the micro-batch under way. Errors: gradients are on elsewhere.
  Tensor operator()(const Tensor& x);
  /// x of the last stage, in place, on all ranks of the row.
  void broadcast_from_last(const Tensor& x, const std::string& name);

  /// Parameters of this rank's stretches, for the optimizer.
  std::vector<NamedTensor> parameters() const override { return tensor_->parameters(); }
  /// The 2-norm of the whole model's gradient, a device scalar. Collective.
  Tensor grad_norm() const override { return tensor_->grad_norm(); }

  TensorParallel& tensor() { return *tensor_; }
  const TensorParallel& tensor() const { return *tensor_; }
  const Grid& grid() const { return tensor_->grid(); }
  int chunks() const { return options_.chunks; }
  /// Layers of chunk `chunk` of stage `stage`.
  nn::LayerRange range(int stage, int chunk) const;
  /// Parameters and buffers of the whole model in its order; whether this rank has the one.
  const std::vector<std::string>& names() const { return names_; }
  bool has(const std::string& name) const { return is_used_by(grid().pipe()->rank(), name); }
  /// The first stage that uses it; the number of stages: none does.
  int first_stage(const std::string& name) const;

  /// The last run(): its steps on this stage, and how many activations (of a micro-batch in a chunk) it held at most.
  const std::vector<PipelineStep>& steps() const { return steps_; }
  size_t most_in_flight() const { return most_in_flight_; }
  /// Bytes of activations and gradients that this rank has sent to the neighbouring stages.
  uint64_t bytes_sent() const;

  Tensor forward(const Tensor& x) override { return operator()(x); }
  Pipeline* pipeline() override { return this; }
  bool is_sharded() const override { return tensor_->is_sharded(); }
  bool has_pieces() const override { return true; }
  void synchronise() override { tensor_->synchronise(); }
  StateDict model_state() override;
  StateDict gathered(const StateDict& part) override;
  StateDict part_of(const StateDict& whole) override;
  void load_model(const std::string& what, const StateDict& model) override;
  ShardedState sharded_model() override;
  ShardedState sharded(const StateDict& part) override;
  int row_size() const override { return grid().row_size(); }
  std::string describe() const override;

 private:
  class Channel;
  /// A micro-batch between its forward and its backward through a chunk.
  struct Flight {
    Tensor x, y;
  };
  using Key = std::pair<int, int64_t>;  // chunk, micro-batch
  /// Messages in batches between steps, where a device cannot compute beside a message that waits.
  struct Batches {
    ProcessGroupPtr group = {};
    std::map<std::string, std::pair<Shape, DType>> forms = {};  ///< forms of activations, by their keys
    /// The run under way: messages by the step after them; tensors to send, and received ones, by PipelineMessage.
    std::vector<std::vector<PipelineMessage>> plan = {};
    std::map<std::tuple<bool, int, int64_t>, Tensor> tensors = {};
    bool knows_forms = false;
  };

  bool is_used_by(int stage, const std::string& parameter) const;
  void drop_other_stages();
  FsdpOptions sharding() const;
  void begin_step(const MicroBatches& batch);
  void run_steps(const MicroBatches& batch);
  Tensor evaluated(const Tensor& x);
  void or_abort(const std::function<void()>& function);
  std::string message(int64_t micro, int stretch) const;
  void make_channels();
  void make_batches();
  void find_tied();
  void set_norm() const;
  int stretch(int chunk) const;  ///< number in the model of this stage's chunk
  bool is_last(int chunk) const;
  Tensor input(const std::vector<PipelineStep>& steps, size_t i, const MicroBatches& batch);
  void forward(const std::vector<PipelineStep>& steps, size_t i, const MicroBatches& batch);
  void backward(size_t i);
  void finish_messages();
  void plan_batches(const MicroBatches& batch, bool trains);
  void exchange(size_t step, const MicroBatches& batch);
  void exchange_form(const PipelineMessage& message, const std::string& key);
  int other_side(const PipelineMessage& message) const;
  size_t place(bool backward, int stretch, int64_t micro) const;

  std::shared_ptr<nn::Module> model_;
  nn::Staged* staged_;
  PipelineOptions options_;
  std::vector<std::string> names_;
  ProcessGroupPtr pipe_;
  std::unique_ptr<TensorParallel> tensor_;
  std::unique_ptr<Channel> activations_in_, activations_out_, gradients_in_, gradients_out_;  // none with batches
  std::optional<Batches> batches_;
  std::vector<std::pair<ProcessGroupPtr, NamedTensor>> tied_;  // this rank's, and the stages that use it
  std::map<std::string, std::pair<Shape, DType>> outputs_;     // the model's outputs, by the input's form

  // State of the run under way.
  std::vector<PipelineStep> steps_;
  std::map<std::pair<int, PipelineStep>, size_t> places_;  // places of both neighbours' steps in their schedules
  std::map<Key, Flight> flights_;
  size_t micro_batches_ = 0, most_in_flight_ = 0;
  Tensor last_input_, sample_;  // the last stretch's input, and the model's, while a loss is computed
};

}  // namespace weft::dist
