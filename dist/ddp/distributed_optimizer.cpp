// SPDX-License-Identifier: Apache-2.0
#include "dist/ddp/distributed_optimizer.h"

#include "core/autograd.h"
#include "core/random.h"
#include "dist/ddp/agreement.h"

namespace weft::dist {
namespace {

constexpr const char* kWho = "distributed optimizer";

}  // namespace

DistributedOptimizer::DistributedOptimizer(optim::Optimizer& optimizer, ProcessGroupPtr group,
                                           DistributedOptimizerOptions options)
    : optimizer_(optimizer), options_(options), alive_(std::make_shared<int>()) {
  WEFT_CHECK(group, kWho, ": expected a group, got none");
  WEFT_CHECK(options.op == ReduceOp::avg || options.op == ReduceOp::sum, kWho, ": expected the op avg or sum, got ",
             name(options.op));
  WEFT_CHECK(options.backward_passes_per_step >= 1, kWho, ": expected at least one backward pass per step, got ",
             options.backward_passes_per_step);
  check_replicas(*group, *optimizer.flat(), kWho);
  set_dropout_rank(options.same_dropout ? 0 : group->rank());
  const std::shared_ptr<FlatParameters>& flat = optimizer.flat();
  // Ahead of the reducer's hooks: a pass too many must not begin to reduce.
  const std::weak_ptr<int> alive = alive_;
  for (const FlatSlice& slice : flat->slices())
    slice.parameter.register_accumulated_hook([this, alive](const Tensor&) {
      if (!alive.expired() && !in_backward_) begin_backward();
    });
  const double factor = options.op == ReduceOp::avg ? 1.0 / group->size() : 1;
  const Tensor weight = Tensor::full({1}, factor, flat->dtype(), flat->device());
  reducer_ = make_reducer(flat, group,
                          {.buckets = bucket_options(options.first_bucket_mb, options.bucket_mb, kWho),
                           .unused = Unused::zero,
                           .compress_bf16 = options.compress_bf16,
                           .wait_later = true,
                           .who = kWho},
                          {.begin = [weight] { return Reducer::Start{.weight = weight}; }, .end = [] {}});
  reducer_->enable(options.backward_passes_per_step == 1);
}

void DistributedOptimizer::begin_backward() {
  WEFT_CHECK(passes_ < options_.backward_passes_per_step && !synchronized_, kWho, ": backward pass ", passes_ + 1,
             " since the last step(), expected ", options_.backward_passes_per_step,
             ". Set backward_passes_per_step to what is accumulated");
  after_backward([this, alive = std::weak_ptr<int>(alive_)] {
    if (!alive.expired()) end_backward();
  });
  in_backward_ = true;
}

void DistributedOptimizer::end_backward() {
  in_backward_ = false;
  ++passes_;
  reducer_->enable(passes_ + 1 == options_.backward_passes_per_step);
}

void DistributedOptimizer::synchronize() {
  if (synchronized_) return;
  if (passes_ < options_.backward_passes_per_step) reducer_->reduce_kept();
  reducer_->wait();
  synchronized_ = true;
}

void DistributedOptimizer::step() {
  for (int group = 0; group < optimizer_.groups(); ++group)
    for (const NamedTensor& parameter : optimizer_.frozen(group))
      WEFT_CHECK(!parameter.tensor.requires_grad(), kWho, ": parameter '", parameter.name,
                 "' was thawed after the distributed optimizer had been made. Do it before");
  synchronize();
  optimizer_.step();
  synchronized_ = false;
  passes_ = 0;
  reducer_->enable(options_.backward_passes_per_step == 1);
}

void DistributedOptimizer::zero_grad() {
  WEFT_CHECK(passes_ == 0, kWho, ": zero_grad() between backward() and step() would lose gradients that are being ",
             "reduced. Call it ahead of backward()");
  in_backward_ = false;  // after a pass that ended with an exception
  reducer_->abandon_pass();
  optimizer_.zero_grad();
}

void broadcast_parameters(ProcessGroup& group, nn::Module& model, int root) {
  check_replicas(group, model, "broadcast_parameters");
  check_same_model(group, model, "broadcast_parameters");
  broadcast_model(group, model, root);
}

void broadcast_optimizer_state(ProcessGroup& group, optim::Optimizer& optimizer, int root) {
  if (group.size() == 1) return;
  check_replicas(group, *optimizer.flat(), "broadcast_optimizer_state");
  const NoGrad no_grad;
  StateDict state = optimizer.state_dict(/*all_counts=*/true);
  std::vector<WorkPtr> works;
  for (NamedTensor& entry : state.tensors) {
    entry.tensor = entry.tensor.clone();
    works.push_back(group.broadcast(entry.tensor, root, {.name = entry.name, .scale = {}}));
  }
  std::vector<double> numbers;
  for (const NamedScalar& entry : state.scalars) numbers.push_back(entry.value);
  const Tensor scalars = Tensor::from(numbers, optimizer.flat()->device());
  works.push_back(group.broadcast(scalars, root, {.name = "steps and learning rates", .scale = {}}));
  for (const WorkPtr& work : works) work->wait();
  numbers = scalars.to_vector<double>();
  works.back()->wait();  // on a GPU only now an error shows
  for (size_t i = 0; i < numbers.size(); ++i) state.scalars[i].value = numbers[i];
  optimizer.load_state_dict(state);
}

}  // namespace weft::dist
