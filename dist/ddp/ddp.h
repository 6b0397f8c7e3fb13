// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>

#include "dist/ddp/flat_buffers.h"
#include "dist/ddp/reducer.h"
#include "dist/ddp/sample_weight.h"
#include "dist/ddp/strategy.h"
#include "dist/group/world.h"
#include "nn/module_of.h"

namespace weft::dist {

struct DdpOptions {
  double bucket_mb = 25;       ///< MiB of gradients that are reduced at once
  double first_bucket_mb = 1;  ///< size of the bucket that fills first
  Unused unused = Unused::error;
  /// After each reduced backward all ranks have the buffers of rank 0 (running statistics), in one broadcast that
  /// overlaps backward.
  bool broadcast_buffers = true;
  /// Gradients travel as bf16: half the bytes. Sums are kept in f32 from addend to addend (nccl: in bf16), weights stay
  /// f32. Error of an element of the mean over n ranks: at most 2^-8 (sum_r |w_r g_r| + |mean|), up to terms of 2^-16;
  /// nccl: at most n 2^-8 sum_r |w_r g_r|.
  bool compress_bf16 = false;
  /// With equal seeds all ranks drop the same elements. Else each rank drops its own, from here on for whatever this
  /// process computes (set_dropout_rank()): ranks have other samples, so equal masks would be a waste.
  bool same_dropout = false;
};

/// A model that every rank holds whole (distributed data parallelism; Li et al. 2020): each rank runs its own part of
/// the batch, gradients are averaged while backward runs, so all replicas make the same step.
///   DDP ddp(model, world);
///   SGD sgd(ddp.parameters(), …);
///   loss = cross_entropy(ddp(images), labels); sgd.zero_grad(); loss.backward(); sgd.step();
/// The average counts samples: with n_r samples on rank r and N on all, a rank's gradients weigh n_r / N. A mean over
/// the rank's samples so becomes the mean over all, uneven batches included. Each backward of an accumulation weighs by
/// its own samples, so n ranks add up the same sum as one process. Trained parameters become
/// slices of flat buffers (core/flat_parameters.h).
/// All ranks call the constructor, forward and backward. See docs/data_parallel.md.
class DDP final : public Strategy {
 public:
  /// Gives all ranks the parameters, buffers and counters of rank 0. Errors: models that differ between the ranks (the
  /// first difference and the ranks); no parameter to train; option values below 0.
  DDP(std::shared_ptr<nn::Module> model, ProcessGroupPtr group, DdpOptions options = {});
  DDP(std::shared_ptr<nn::Module> model, const World& world, DdpOptions options = {});
  template <class Other, class... More>
  requires(!std::is_convertible_v<Other, std::shared_ptr<nn::Module>> &&
           !std::is_base_of_v<DDP, Other>) explicit DDP(const Other&, const More&...) {
    static_assert(
        sizeof(Other) == 0,
        "DDP takes the model in a std::shared_ptr: DDP ddp(model, group); the optimizer takes ddp.parameters()");
  }
  ~DDP() override;
  DDP(const DDP&) = delete;
  DDP& operator=(const DDP&) = delete;

  /// The model's forward; with more inputs that of a ModuleOf them. While gradients are on, counts x.size(0) samples,
  /// which the ranks add up meanwhile. Parameters that were frozen or thawed (requires_grad_()) on all ranks are left
  /// out, or join, from this forward on. Errors: an empty batch, a parameter that was moved since the constructor, or
  /// frozen on some ranks only.
  template <class... More>
  Tensor operator()(const Tensor& x, const More&... more) {
    WEFT_CHECK(x.defined() && x.dim() > 0, "ddp: expected a batch of at least one dimension, got ", x);
    before_forward(x.size(0));
    const Tensor y = nn::call(*model_, x, more...);
    after_forward(y);
    return y;
  }
  /// For models whose forward takes something else than tensors first: call this before the forward. Then backward
  /// weighs by the samples of the last forward.
  void before_forward(int64_t samples);
  /// Samples of the next forward, where that is not the first size of its input (words of a text, say). 0: the input is
  /// a dummy batch, for a rank that has no sample left in a step of all ranks; the caller takes 0 times its loss, and
  /// batch norms over all ranks leave it out.
  void set_samples(int64_t samples);

  /// While the result lives, backward leaves gradients to each rank; they add up, each weighed by its own samples, and
  /// the next backward outside reduces their sum. Forward of such steps belongs inside too; it adds the sample counts
  /// up.
  [[nodiscard]] std::shared_ptr<void> no_sync() override;
  /// Until end_pass(), all backwards count as one pass with `backwards` gradients per parameter (a pipeline's
  /// micro-batches). A bucket is reduced, overlapped with later work, when the last gradient has arrived.
  void begin_pass(int64_t backwards) { reducer_->begin_pass(backwards); }
  void end_pass() { reducer_->end_pass(); }

  nn::Module& module() { return *model_; }
  /// The parameters, each once; what an optimizer takes.
  std::vector<NamedTensor> parameters() const override { return parameters_; }
  const ProcessGroupPtr& group() const { return group_; }
  const std::vector<Bucket>& buckets() const { return reducer_->buckets(); }

  Tensor forward(const Tensor& x) override;
  void stand_in() override { set_samples(0); }
  StateDict model_state() override { return model_->state_dict(); }
  void load_model(const std::string& what, const StateDict& model) override;
  std::string describe() const override;

 private:
  void take_in_changes();
  void after_forward(const Tensor& y);
  void weigh_by(const std::shared_ptr<SampleWeight>& weight);
  Reducer::Start begin_backward();
  void end_backward();

  std::shared_ptr<nn::Module> model_;
  ProcessGroupPtr group_;
  DdpOptions options_;
  std::vector<NamedTensor> parameters_;
  std::vector<bool> trained_;  // per parameter
  std::shared_ptr<FlatParameters> flat_;
  std::unique_ptr<FlatBuffers> buffers_;
  std::shared_ptr<Reducer> reducer_;

  std::optional<int64_t> next_samples_;        // from set_samples()
  bool names_weight_ = false;                  // an output of the last forward will name its weight in backward
  bool weighed_ = false;                       // a backward has taken the last forward's weight
  bool stands_in_ = false;                     // the last forward was of a dummy batch
  std::shared_ptr<SampleWeight> weight_;       // gradients kept by no_sync are yet to be multiplied by it
  std::shared_ptr<SampleWeight> in_backward_;  // weight of the running backward, if a model's output has named one
};

}  // namespace weft::dist
