// SPDX-License-Identifier: Apache-2.0
#include "dist/ddp/reducer.h"

#include <algorithm>
#include <cmath>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/trace.h"
#include "kernels/binary.h"

namespace weft::dist {
namespace {

constexpr size_t kNamed = 5;  // parameters in an error

}  // namespace

BucketOptions bucket_options(double first_bucket_mb, double bucket_mb, const char* who) {
  const auto bytes = [who](const char* option, double mb) {
    WEFT_CHECK(mb > 0 && mb < 1e6, who, ": expected ", option, " above 0 and below 1e6, got ", mb);
    return std::max<int64_t>(1, std::llround(mb * (1 << 20)));
  };
  return {bytes("first_bucket_mb", first_bucket_mb), bytes("bucket_mb", bucket_mb)};
}

std::vector<Bucket> make_buckets(const FlatParameters& flat, const BucketOptions& options) {
  WEFT_CHECK(options.first_bytes > 0 && options.bytes > 0, "buckets: expected sizes above 0, got ", options.first_bytes,
             " and ", options.bytes, " bytes");
  const std::vector<FlatSlice>& slices = flat.slices();
  const auto element = static_cast<int64_t>(size_of(flat.dtype()));
  std::vector<Bucket> buckets;
  size_t last = slices.size();
  int64_t end = flat.numel();
  for (size_t i = slices.size(); i-- > 0;) {
    const int64_t numel = end - slices[i].offset;
    const int64_t wanted = buckets.empty() ? options.first_bytes : options.bytes;
    if (i > 0 && numel * element < wanted) continue;
    const std::string &from = slices[i].name, &to = slices[last - 1].name;
    buckets.push_back({i, last, {slices[i].offset, numel}, i + 1 == last ? from : from + "…" + to});
    last = i;
    end = slices[i].offset;
  }
  return buckets;
}

Reducer::Reducer(std::shared_ptr<FlatParameters> flat, ProcessGroupPtr group, const ReducerOptions& options,
                 Callbacks callbacks)
    : flat_(std::move(flat)), group_(std::move(group)), options_(options), callbacks_(std::move(callbacks)) {
  WEFT_CHECK(!options.compress_bf16 || flat_->dtype() == DType::f32, options.who, ": gradients of dtype ",
             flat_->dtype(), " cannot travel as bf16, expected f32");
}

void Reducer::take_in_changes() {
  buckets_ = make_buckets(*flat_, options_.buckets);
  bucket_of_.clear();
  trained_.clear();
  low_.clear();
  expected_.clear();
  gradient_ = flat_->gradient();
  for (size_t b = buckets_.size(); b-- > 0;)
    bucket_of_.insert(bucket_of_.end(), buckets_[b].last - buckets_[b].first, b);
  for (const FlatSlice& slice : flat_->slices()) trained_.push_back(slice.parameter.requires_grad());
  if (options_.compress_bf16)
    for (const Bucket& bucket : buckets_)
      low_.push_back(Tensor::empty({bucket.range.numel}, DType::bf16, flat_->device()));
  listens_.resize(trained_.size());
  for (size_t i = 0; i < trained_.size(); ++i) {
    if (!trained_[i] || listens_[i]) continue;
    flat_->slices()[i].parameter.register_accumulated_hook([weak = weak_from_this(), i](const Tensor&) {
      if (const auto alive = weak.lock()) alive->arrived(i);
    });
    listens_[i] = true;
  }
}

std::shared_ptr<Reducer> make_reducer(std::shared_ptr<FlatParameters> flat, ProcessGroupPtr group,
                                      const ReducerOptions& options, Reducer::Callbacks callbacks) {
  const auto reducer = std::make_shared<Reducer>(flat, std::move(group), options, std::move(callbacks));
  reducer->take_in_changes();
  flat->zero_grad();
  return reducer;
}

void Reducer::abandon_pass() {
  running_ = false;
  for (const WorkPtr& work : works_) work->wait();  // what it has begun writes where the next backward will
  works_.clear();
}

void Reducer::scale_gradients(const Tensor& factor) {
  if (factor.device().kind == DeviceKind::cpu && factor.to_vector<double>().front() == 1) return;
  const NoGrad no_grad;
  // Also what counts as zero: nobody reads that before it is overwritten.
  kernels::binary_forward(gradient_.queue(), kernels::Binary::mul, gradient_, gradient_,
                          factor.expand(gradient_.sizes()), 1);
}

void Reducer::arrived(size_t slice) {
  if (!enabled_) {
    keeps_ = true;
    return;
  }
  if (!running_) {
    after_backward([self = shared_from_this()] { self->finish(); });
    open_pass(1);
    start_pass();
  }
  const size_t bucket = bucket_of_[slice];
  WEFT_CHECK(bucket >= launched_, options_.who, ": parameter '", flat_->slices()[slice].name, "' got gradient ",
             arrivals_[slice] + 1, " of this backward after its bucket had been reduced; the first backward had ",
             expected_.empty() ? 0 : expected_[slice] * backwards_,
             ". Backward must give each parameter the same number of gradients in each step");
  ++arrivals_[slice];
  if (!trained_[slice] || expected_.empty() || arrivals_[slice] != expected_[slice] * backwards_) return;
  if (--incomplete_[bucket] == 0) launch_full_buckets();
}

void Reducer::reduce_kept() {
  const std::vector<int64_t> expected = expected_;  // this is no pass to learn from
  open_pass(1);
  finish();
  expected_ = expected;
}

void Reducer::open_pass(int64_t backwards) {
  running_ = true;
  started_ = false;
  backwards_ = backwards;
  launched_ = 0;
  arrivals_.assign(bucket_of_.size(), 0);
  incomplete_.assign(buckets_.size(), 0);
  for (size_t i = 0; i < trained_.size(); ++i) incomplete_[bucket_of_[i]] += trained_[i];
  sent_.assign(buckets_.size(), false);
  works_.clear();
}

void Reducer::start_pass() {
  started_ = true;
  Start start = callbacks_.begin();
  weight_ = std::move(start.weight);
  works_ = std::move(start.works);
}

void Reducer::launch_full_buckets() {
  while (launched_ < buckets_.size() && incomplete_[launched_] == 0) launch(launched_++);
}

void Reducer::launch(size_t index) {
  const NoGrad no_grad;
  const Bucket& bucket = buckets_[index];
  for (size_t i = bucket.first; i < bucket.last; ++i)
    sent_[index] = sent_[index] || trained_[i] || flat_->slices()[i].parameter.has_gradient();
  if (!sent_[index]) return;
  if (!started_) start_pass();
  const Tensor range = gradient_.slice(0, bucket.range.offset, bucket.range.numel);
  const std::string name = "gradients " + bucket.name;
  if (options_.compress_bf16) {
    low_[index].copy_(weight_.defined() ? mul(range, weight_) : range);
    works_.push_back(group_->all_reduce(low_[index], ReduceOp::sum, {.name = name, .scale = {}}));
  } else {
    works_.push_back(group_->all_reduce(range, ReduceOp::sum, {.name = name, .scale = weight_}));
  }
}

void Reducer::check_unused() const {
  std::string names;
  size_t count = 0;
  for (size_t i = 0; i < arrivals_.size(); ++i) {
    if (arrivals_[i] > 0 || !trained_[i]) continue;
    if (count++ < kNamed) names += (names.empty() ? "'" : ", '") + flat_->slices()[i].name + "'";
  }
  if (count == 0) return;
  fail(options_.who, ": backward gave no gradient to ", names,
       count > kNamed ? str(" and ", count - kNamed, " more") : "", " on rank ", group_->rank(),
       ". Freeze what the loss does not depend on (requires_grad_(false)), or choose Unused::zero");
}

void Reducer::finish() {
  const TraceScope scope("finish gradients");
  running_ = keeps_ = false;
  if (options_.unused == Unused::error) check_unused();
  // A slice that nothing reached holds what the last step left there: zero it, unless gradients are being accumulated.
  for (size_t i = 0; i < arrivals_.size(); ++i)
    if (arrivals_[i] == 0) flat_->slices()[i].parameter.grad();
  while (launched_ < buckets_.size()) launch(launched_++);
  if (options_.unused == Unused::zero && group_->size() > 1) share_use();
  // What came once in the first pass may come again: a parameter that was not used counts as one that will be.
  if (expected_.empty())
    for (const int64_t count : arrivals_)
      expected_.push_back(std::max<int64_t>((count + backwards_ - 1) / backwards_, 1));
  if (!options_.wait_later) wait();
}

void Reducer::wait() {
  {
    const TraceScope waiting("wait for gradients");
    for (const WorkPtr& work : works_) work->wait();
  }
  works_.clear();
  if (options_.compress_bf16)
    for (size_t b = 0; b < buckets_.size(); ++b)
      if (sent_[b]) gradient_.slice(0, buckets_[b].range.offset, buckets_[b].range.numel).copy_(low_[b]);
  gradient_.storage()->bump_version();
  if (used_.defined()) {
    const Tensor shared = std::exchange(used_, {});
    if (!uses_all_) {
      const std::vector<float> used = shared.to_vector<float>();
      for (size_t i = 0; i < used.size(); ++i)
        if (used[i] > 0) flat_->slices()[i].parameter.impl()->autograd->grad_is_none = false;
    }
  }
  callbacks_.end();
}

void Reducer::share_use() {
  std::vector<float> own;
  for (size_t i = 0; i < bucket_of_.size(); ++i) own.push_back(flat_->slices()[i].parameter.has_gradient() ? 1 : 0);
  // Other ranks may need this one's word. A rank that uses all needs nobody's, and does not wait for its device.
  uses_all_ = std::find(own.begin(), own.end(), 0.0f) == own.end();
  used_ = uses_all_ ? Tensor::ones({static_cast<int64_t>(own.size())}, DType::f32, flat_->device())
                    : Tensor::from(own, flat_->device());
  works_.push_back(group_->all_reduce(used_, ReduceOp::max, {.name = "used parameters", .scale = {}}));
}

}  // namespace weft::dist
