// SPDX-License-Identifier: Apache-2.0
#include "dist/ddp/ddp.h"

#include <utility>

#include "core/autograd.h"
#include "core/capture.h"
#include "core/ops/binary.h"
#include "core/random.h"
#include "dist/ddp/agreement.h"
#include "dist/ddp/sync_batch_norm.h"
#include "io/checkpoint.h"

namespace weft::dist {
DDP::DDP(std::shared_ptr<nn::Module> model, const World& world, DdpOptions options)
    : DDP(std::move(model), world.group(), options) {}

DDP::DDP(std::shared_ptr<nn::Module> model, ProcessGroupPtr group, DdpOptions options)
    : model_(std::move(model)), group_(std::move(group)), options_(options) {
  WEFT_CHECK(model_ && group_, "ddp: expected a model and a group, got none");
  const ReducerOptions reducing{.buckets = bucket_options(options.first_bucket_mb, options.bucket_mb, "ddp"),
                                .unused = options.unused,
                                .compress_bf16 = options.compress_bf16};
  check_replicas(*group_, *model_, "ddp");
  check_same_model(*group_, *model_, "ddp");
  broadcast_model(*group_, *model_);
  parameters_ = model_->parameters();
  std::vector<NamedTensor> trained;
  for (const NamedTensor& parameter : parameters_) {
    trained_.push_back(parameter.tensor.requires_grad());
    if (trained_.back()) trained.push_back(parameter);
  }
  WEFT_CHECK(!trained.empty(), "ddp: expected at least one parameter that requires a gradient, got none of ",
             parameters_.size());
  flat_ = FlatParameters::of(trained);
  WEFT_CHECK(flat_->slices().size() == trained.size(), "ddp: the parameters lie in flat buffers together with ",
             flat_->slices().size() - trained.size(), " others. Make DDP before the optimizer");
  if (options_.broadcast_buffers) buffers_ = std::make_unique<FlatBuffers>(*model_);
  reducer_ = make_reducer(flat_, group_, reducing,
                          {.begin = [this] { return begin_backward(); }, .end = [this] { end_backward(); }});
  set_dropout_rank(options_.same_dropout ? 0 : group_->rank());
}

DDP::~DDP() = default;  // the parameters' hooks find the reducer gone

void DDP::take_in_changes() {
  flat_->check_bound("ddp");
  if (buffers_) buffers_->check_bound("ddp");
  std::vector<bool> now;
  for (const NamedTensor& parameter : parameters_) now.push_back(parameter.tensor.requires_grad());
  if (now == trained_) return;
  refuse_while_capturing("ddp: a parameter that was frozen or thawed", flat_->device());
  check_same_trained(*group_, parameters_, now, "ddp");
  reducer_->abandon_pass();  // one that ended with an exception
  std::vector<NamedTensor> thawed;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!now[i]) continue;
    const auto flat = parameters_[i].tensor.impl()->autograd->flat.lock();
    WEFT_CHECK(
        !flat || flat == flat_, "ddp: parameter '", parameters_[i].name,
        "' was thawed, and lies in the flat buffers of another optimizer by now. Thaw it before the first of the "
        "two is made");
    if (!flat) thawed.push_back(parameters_[i]);
  }
  if (!thawed.empty()) flat_->add(thawed);
  reducer_->take_in_changes();
  trained_ = std::move(now);
}

void DDP::set_samples(int64_t samples) {
  WEFT_CHECK(samples >= 0, "ddp: expected a number of samples, got ", samples);
  next_samples_ = samples;
}

Tensor DDP::forward(const Tensor& x) { return operator()(x); }

void DDP::before_forward(int64_t samples) {
  take_in_changes();
  const auto given = std::exchange(next_samples_, std::nullopt);
  if (!grad_enabled()) return;
  if (group_->backend() != "nccl" && group_->size() > 1)
    refuse_while_capturing("ddp over a host backend", flat_->device());
  WEFT_CHECK(samples > 0, "ddp: expected a batch of at least one sample on rank ", group_->rank(), ", got none");
  samples = given.value_or(samples);
  if (stands_in_ != (samples == 0)) set_stand_in(*model_, stands_in_ = samples == 0);
  reducer_->abandon_pass();  // one that ended with an exception
  in_backward_ = nullptr;
  if (weight_) weight_->wait();  // after a forward without backward
  const auto weight = std::make_shared<SampleWeight>(group_);
  weight->begin(samples, flat_->device());
  weigh_by(weight);
  names_weight_ = weighed_ = false;
}

void DDP::weigh_by(const std::shared_ptr<SampleWeight>& weight) {
  const auto before = std::exchange(weight_, weight);
  if (!before || before == weight || !reducer_->keeps_gradients()) return;
  const Tensor kept = before->get(flat_->dtype());
  if (!kept.defined()) return;
  if (weight->samples() == 0) {
    weight->keep(kept);  // nothing is to come
    return;
  }
  // Gradients of earlier backwards have another weight than those to come: after scaling by kept / weight, a single
  // factor fits both.
  const NoGrad no_grad;
  reducer_->scale_gradients(div(kept, weight->get(flat_->dtype())));
}

void DDP::after_forward(const Tensor& y) {
  if (!grad_enabled() || !y.requires_grad()) return;
  names_weight_ = true;
  // Another forward may run before this one's backward.
  y.register_hook([this, alive = std::weak_ptr<Reducer>(reducer_), weight = weight_](const Tensor&) {
    WEFT_CHECK(!alive.expired(), "ddp: backward of a forward whose DDP has gone. Keep it until after backward");
    WEFT_CHECK(!in_backward_ || in_backward_->samples() == weight->samples(), "ddp: one backward reaches a forward of ",
               weight->samples(), " samples and one of ", in_backward_ ? in_backward_->samples() : 0, " on rank ",
               group_->rank(),
               ", whose gradients weigh differently. Run a backward for each, all but the last under no_sync()");
    if (!in_backward_)
      after_backward([this, alive] {
        if (!alive.expired()) in_backward_ = nullptr;
      });
    in_backward_ = weight;
    weigh_by(weight);
    return Tensor();
  });
}

Reducer::Start DDP::begin_backward() {
  const bool forgotten = names_weight_ && weighed_ && !in_backward_;
  WEFT_CHECK(weight_ && !forgotten, "ddp: backward without a forward through this DDP. Call the model by it: ddp(x)");
  weighed_ = true;
  Reducer::Start start{.weight = weight_->get(flat_->dtype())};
  // After the forward the buffers are what this step makes of them, and backward does not change them.
  if (buffers_ && !buffers_->empty() && model_->is_training()) start.works = buffers_->broadcast(*group_, 0);
  return start;
}

void DDP::end_backward() {
  if (buffers_) buffers_->finish(*group_);
}

std::shared_ptr<void> DDP::no_sync() {
  const bool previous = reducer_->enabled();
  reducer_->enable(false);
  return {nullptr, [reducer = std::weak_ptr(reducer_), previous](void*) {
            if (const auto alive = reducer.lock()) alive->enable(previous);
          }};
}

void DDP::load_model(const std::string& what, const StateDict& model) {
  require_match(what, model_->state_dict(), model);
  model_->load_state_dict(model);
}

std::string DDP::describe() const {
  return str("ddp, ", buckets().size(), buckets().size() == 1 ? " bucket" : " buckets", describe_norms(*model_));
}

}  // namespace weft::dist
