// SPDX-License-Identifier: Apache-2.0
#include "dist/ddp.h"

#include <cmath>
#include <unordered_set>

#include "core/autograd.h"
#include "core/capture.h"
#include "core/ops/div.h"
#include "dist/agreement.h"

namespace weft::dist {
namespace {

int64_t bytes_of(const char* option, double mb) {
  WEFT_CHECK(mb > 0 && mb < 1e6, "ddp: expected ", option, " above 0 and below 1e6, got ", mb);
  return std::max<int64_t>(1, std::llround(mb * (1 << 20)));
}

/// Each parameter once, under its first name.
std::vector<NamedTensor> distinct_parameters(nn::Module& model) {
  std::vector<NamedTensor> result;
  std::unordered_set<const TensorImpl*> seen;
  for (NamedTensor& entry : model.parameters())
    if (seen.insert(entry.tensor.impl()).second) result.push_back(std::move(entry));
  return result;
}

}  // namespace

DDP::DDP(std::shared_ptr<nn::Module> model, const World& world, DdpOptions options)
    : DDP(std::move(model), world.group(), options) {}

DDP::DDP(std::shared_ptr<nn::Module> model, ProcessGroupPtr group, DdpOptions options)
    : model_(std::move(model)), group_(std::move(group)), options_(options) {
  WEFT_CHECK(model_ && group_, "ddp: expected a model and a group, got none");
  const ReducerOptions reducing{.buckets = {.first_bytes = bytes_of("first_bucket_mb", options.first_bucket_mb),
                                            .bytes = bytes_of("bucket_mb", options.bucket_mb)},
                                .unused = options.unused,
                                .compress_bf16 = options.compress_bf16};
  check_same_model(*group_, *model_, "ddp");
  broadcast_model(*group_, *model_);
  parameters_ = distinct_parameters(*model_);
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
  count_ = Tensor::zeros({1}, flat_->dtype(), flat_->device());
  reducer_ = make_reducer(flat_, group_, reducing,
                          {.begin = [this] { return begin_backward(); }, .end = [this] { end_backward(); }});
}

DDP::~DDP() = default;  // the parameters' hooks find the reducer gone

void DDP::check_unchanged() const {
  flat_->check_bound("ddp");
  if (buffers_) buffers_->check_bound("ddp");
  for (size_t i = 0; i < parameters_.size(); ++i)
    WEFT_CHECK(parameters_[i].tensor.requires_grad() == trained_[i], "ddp: parameter '", parameters_[i].name, "' was ",
               trained_[i] ? "frozen" : "thawed", " after DDP had been made. Do it before");
}

void DDP::set_samples(int64_t samples) {
  WEFT_CHECK(samples > 0, "ddp: expected at least one sample, got ", samples);
  next_samples_ = samples;
}

Tensor DDP::operator()(const Tensor& x) {
  WEFT_CHECK(x.defined() && x.dim() > 0, "ddp: expected a batch of at least one dimension, got ", x);
  before_forward(x.size(0));
  return (*model_)(x);
}

void DDP::before_forward(int64_t samples) {
  check_unchanged();
  if (!grad_enabled()) return;
  if (group_->backend() != "nccl" && group_->size() > 1)
    refuse_while_capturing("ddp over a host backend", flat_->device());
  const int64_t given = std::exchange(next_samples_, 0);
  if (given > 0) samples = given;
  WEFT_CHECK(samples > 0, "ddp: expected a batch of at least one sample on rank ", group_->rank(), ", got none");
  reducer_->abandon_pass();  // one that ended with an exception
  Tensor kept;
  if (reducer_->keeps_gradients()) {
    take_weight();
    kept = weight_;
  }
  samples_ = samples;
  count_samples();
  if (!kept.defined()) return;
  // What earlier backwards have left weighs otherwise than what is to come: times kept / weight_, one factor does for
  // both.
  take_weight();
  const NoGrad no_grad;
  reducer_->scale_gradients(div(kept, weight_));
}

void DDP::count_samples() {
  const NoGrad no_grad;
  if (counting_) counting_->wait();  // of a forward without backward
  count_.fill_(static_cast<double>(samples_));
  counting_ = group_->all_reduce(count_, ReduceOp::sum, {.name = "samples", .scale = {}});
}

void DDP::take_weight() {
  if (!counting_) return;
  const NoGrad no_grad;
  // This waits for ranks that have not begun their forward. It delays nobody: they have farther to go than this rank.
  counting_->wait();
  counting_ = nullptr;
  weight_ = div(Tensor::full({1}, static_cast<double>(samples_), count_.dtype(), flat_->device()), count_);
}

Reducer::Start DDP::begin_backward() {
  const NoGrad no_grad;
  WEFT_CHECK(samples_ > 0, "ddp: backward without a forward. Call the model through DDP: ddp(x)");
  take_weight();
  Reducer::Start start{.weight = weight_};
  // After the forward the buffers are what this step makes of them, and backward does not change them.
  if (buffers_ && !buffers_->empty() && model_->is_training()) start.works = buffers_->broadcast(*group_, 0);
  return start;
}

void DDP::end_backward() {
  if (buffers_) buffers_->bump_versions();
}

int64_t DDP::gradient_bytes_per_step() const {
  int64_t bytes = 0;
  const auto n = static_cast<int64_t>(group_->size());
  const auto element = static_cast<int64_t>(options_.compress_bf16 ? sizeof(bf16) : size_of(flat_->dtype()));
  for (const Bucket& bucket : buckets()) bytes += bucket.range.numel * element * 2 * (n - 1) / n;
  return bytes;
}

}  // namespace weft::dist
