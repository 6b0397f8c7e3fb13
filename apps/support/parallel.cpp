// SPDX-License-Identifier: Apache-2.0
#include "apps/support/parallel.h"

#include "apps/support/checkpoint.h"
#include "dist/ddp.h"
#include "dist/sync_batch_norm.h"

namespace weft::support {
namespace {

void load_whole(const std::string& what, nn::Module& model, const StateDict& state) {
  require_match(what, model.state_dict(), state);
  model.load_state_dict(state);
}

/// One rank, or several that know nothing of each other.
class Single final : public Parallel {
 public:
  explicit Single(std::shared_ptr<nn::Module> model) : model_(std::move(model)) {}

  Tensor forward(const Tensor& x) override { return (*model_)(x); }
  std::vector<NamedTensor> parameters() override { return model_->parameters(); }
  Tensor clip_grad_norm(double max_norm) override { return weft::clip_grad_norm(model_->parameters(), max_norm); }
  StateDict model_state() override { return model_->state_dict(); }
  void load_model(const std::string& what, const StateDict& model) override { load_whole(what, *model_, model); }
  std::string describe() const override { return "none"; }

 private:
  std::shared_ptr<nn::Module> model_;
};

/// Every rank holds the whole model.
class Replicated final : public Parallel {
 public:
  Replicated(const ParallelOptions& options, std::shared_ptr<nn::Module> model, const Ranks& ranks)
      : norms_(synchronise_norms(options, *model, ranks)),
        flat_(options.order.empty() ? nullptr : FlatParameters::of(options.order)),
        ddp_(std::move(model), ranks.group(),
             {.bucket_mb = options.bucket_mb, .compress_bf16 = options.compress_bf16}) {}

  Tensor forward(const Tensor& x) override { return ddp_(x); }
  std::vector<NamedTensor> parameters() override { return ddp_.parameters(); }
  Tensor clip_grad_norm(double max_norm) override { return weft::clip_grad_norm(ddp_.parameters(), max_norm); }
  std::shared_ptr<void> no_sync() override {
    return std::shared_ptr<dist::DDP::NoSync>(new dist::DDP::NoSync(ddp_.no_sync()));
  }
  StateDict model_state() override { return ddp_.module().state_dict(); }
  void load_model(const std::string& what, const StateDict& model) override { load_whole(what, ddp_.module(), model); }
  std::string describe() const override {
    return str("ddp, ", ddp_.buckets().size(), ddp_.buckets().size() == 1 ? " bucket" : " buckets",
               norms_ > 0 ? str(", ", norms_, " batch norms over all ranks") : "");
  }

 private:
  int norms_;
  std::shared_ptr<FlatParameters> flat_;  // made ahead of ddp_, which finds it
  dist::DDP ddp_;
};

}  // namespace

int synchronise_norms(const ParallelOptions& options, nn::Module& model, const Ranks& ranks) {
  if (!options.sync_batch_norm || ranks.size() == 1) return 0;
  // Beside the gradients where a group is a queue of the host; on GPUs one communicator keeps all ranks in one order.
  const dist::ProcessGroupPtr& group = ranks.group();
  const bool host = group->backend() != "nccl";
  return dist::convert_sync_batch_norm(model, host ? group->split(0, group->rank(), "batch_norm") : group);
}

std::unique_ptr<Parallel> make_parallel(const ParallelOptions& options, std::shared_ptr<nn::Module> model,
                                        const Ranks& ranks) {
  const bool single = options.kind == "none" || (options.kind == "auto" && ranks.size() == 1);
  if (single) return std::make_unique<Single>(std::move(model));
  if (options.kind == "fsdp") return make_sharded(options, std::move(model), ranks);
  return std::make_unique<Replicated>(options, std::move(model), ranks);
}

}  // namespace weft::support
