// SPDX-License-Identifier: Apache-2.0
#include "dist/ddp/reducer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "core/autograd.h"
#include "core/capture.h"
#include "core/ops/binary.h"
#include "core/trace.h"
#include "kernels/contracts/binary.h"

namespace weft::dist {
namespace {

constexpr size_t kNamed = 5;             // parameters in an error
constexpr int64_t kHugeBytes = 1 << 20;  // a larger parameter may be a bucket alone

std::string_view module_of(const FlatSlice& slice) {
  return std::string_view(slice.name).substr(0, std::min(slice.name.rfind('.'), slice.name.size()));
}

/// Slices by the time at which the gradients of their module were all there (a weight and its bias come in any order);
/// at equal times from the end.
std::vector<size_t> order_of(const FlatParameters& flat, std::vector<int64_t> came) {
  const std::vector<FlatSlice>& slices = flat.slices();
  std::vector<size_t> order;
  for (size_t end = slices.size(); end > 0;) {
    size_t begin = end - 1;
    while (begin > 0 && module_of(slices[begin - 1]) == module_of(slices[end - 1])) --begin;
    const int64_t last =
        *std::max_element(came.begin() + static_cast<ptrdiff_t>(begin), came.begin() + static_cast<ptrdiff_t>(end));
    for (; end > begin; --end) {
      order.push_back(end - 1);
      came[end - 1] = last;
    }
  }
  std::ranges::stable_sort(order, {}, [&](size_t i) { return came[i]; });
  return order;
}

}  // namespace

BucketOptions bucket_options(double first_bucket_mb, double bucket_mb, const char* who) {
  const auto bytes = [who](const char* option, double mb) {
    WEFT_CHECK(mb > 0 && mb < 1e6, who, ": expected ", option, " above 0 and below 1e6, got ", mb);
    return std::max<int64_t>(1, std::llround(mb * (1 << 20)));
  };
  return {bytes("first_bucket_mb", first_bucket_mb), bytes("bucket_mb", bucket_mb)};
}

std::vector<Bucket> make_buckets(const FlatParameters& flat, const BucketOptions& options, std::vector<size_t> order) {
  WEFT_CHECK(options.first_bytes > 0 && options.bytes > 0, "buckets: expected sizes above 0, got ", options.first_bytes,
             " and ", options.bytes, " bytes");
  const std::vector<FlatSlice>& slices = flat.slices();
  const auto element = static_cast<int64_t>(size_of(flat.dtype()));
  const auto end_of = [&](size_t i) { return i + 1 < slices.size() ? slices[i + 1].offset : flat.numel(); };
  const int64_t most = std::max(options.bytes, kHugeBytes) / element;
  for (size_t i = slices.size(); order.size() < slices.size();) order.push_back(--i);

  std::vector<Bucket> buckets;
  std::vector<size_t> members;
  int64_t numel = 0;
  const auto close = [&] {
    std::sort(members.rbegin(), members.rend());
    for (size_t k = 0; k < members.size();) {
      const size_t last = members[k] + 1;
      size_t first = members[k++];
      while (k < members.size() && members[k] + 1 == first) first = members[k++];
      const std::string &from = slices[first].name, &to = slices[last - 1].name;
      const int64_t begin = slices[first].offset;
      buckets.push_back({first, last, {begin, end_of(last - 1) - begin}, first + 1 == last ? from : from + "…" + to});
    }
    members.clear();
    numel = 0;
  };
  for (const size_t i : order) {
    const int64_t begin = slices[i].offset, end = end_of(i);
    if (end - begin > most) {
      close();
      buckets.push_back({i, i + 1, {begin, end - begin}, slices[i].name});
      continue;
    }
    // Before a parameter as large as a bucket the size of a first one is enough.
    if ((end - begin) * element >= options.bytes && numel * element >= options.first_bytes) close();
    members.push_back(i);
    numel += end - begin;
    if (numel * element >= (buckets.empty() ? options.first_bytes : options.bytes)) close();
  }
  close();
  return buckets;
}

Reducer::Reducer(std::shared_ptr<FlatParameters> flat, ProcessGroupPtr group, const ReducerOptions& options,
                 Callbacks callbacks)
    : flat_(std::move(flat)), group_(std::move(group)), options_(options), callbacks_(std::move(callbacks)) {
  WEFT_CHECK(!options.compress_bf16 || flat_->dtype() == DType::f32, options.who, ": gradients of dtype ",
             flat_->dtype(), " cannot travel as bf16, expected f32");
  if (const int number = group_->next_model(); number > 1) of_model_ = str("of model ", number, ": ");
}

void Reducer::take_in_changes() {
  trained_.clear();
  for (const FlatSlice& slice : flat_->slices()) trained_.push_back(slice.parameter.requires_grad());
  gradient_ = flat_->gradient();
  expected_.clear();
  order_ = used_ = {};
  set_buckets(make_buckets(*flat_, options_.buckets));
  listens_.resize(trained_.size());
  for (size_t i = 0; i < trained_.size(); ++i) {
    if (!trained_[i] || listens_[i]) continue;
    flat_->slices()[i].parameter.register_accumulated_hook([weak = weak_from_this(), i](const Tensor&) {
      if (const auto alive = weak.lock()) alive->arrived(i);
    });
    listens_[i] = true;
  }
}

void Reducer::set_buckets(std::vector<Bucket> buckets) {
  buckets_ = std::move(buckets);
  bucket_of_.assign(trained_.size(), 0);
  for (size_t b = 0; b < buckets_.size(); ++b)
    for (size_t i = buckets_[b].first; i < buckets_[b].last; ++i) bucket_of_[i] = b;
  low_.clear();
  if (options_.compress_bf16)
    for (const Bucket& bucket : buckets_)
      low_.push_back(Tensor::empty({bucket.range.numel}, DType::bf16, flat_->device()));
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
  for (const Begun& begun : works_) begun.work->wait();  // begun reductions write where the next backward will
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
  came_[slice] = coming_++;
  if (!trained_[slice] || expected_.empty() || arrivals_[slice] != expected_[slice] * backwards_) return;
  if (--incomplete_[bucket] == 0) launch_full_buckets();
}

void Reducer::reduce_kept() {
  open_pass(1);
  learns_ = false;
  finish();
}

void Reducer::open_pass(int64_t backwards) {
  running_ = true;
  started_ = false;
  backwards_ = backwards;
  launched_ = 0;
  learns_ = expected_.empty();
  arrivals_.assign(bucket_of_.size(), 0);
  came_.assign(bucket_of_.size(), std::numeric_limits<int64_t>::max());
  coming_ = 0;
  incomplete_.assign(buckets_.size(), 0);
  for (size_t i = 0; i < trained_.size(); ++i) incomplete_[bucket_of_[i]] += trained_[i];
  sent_.assign(buckets_.size(), false);
  works_.clear();
}

void Reducer::start_pass() {
  started_ = true;
  Start start = callbacks_.begin();
  weight_ = std::move(start.weight);
  for (WorkPtr& work : start.works) works_.push_back({std::move(work)});
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
  const std::string name = "gradients " + of_model_ + bucket.name;
  if (options_.compress_bf16) {
    low_[index].copy_(weight_.defined() ? mul(range, weight_) : range);
    works_.push_back({group_->all_reduce(low_[index], ReduceOp::sum, {.name = name, .scale = {}}), &bucket});
  } else {
    works_.push_back({group_->all_reduce(range, ReduceOp::sum, {.name = name, .scale = weight_})});
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
  // A gradient of the first pass may come again: an unused parameter counts as used later.
  if (learns_) {
    for (const int64_t count : arrivals_)
      expected_.push_back(std::max<int64_t>((count + backwards_ - 1) / backwards_, 1));
    if (group_->size() > 1 && !is_capturing(flat_->device())) share_order();
  }
  if (!options_.wait_later) wait();
}

void Reducer::wait() {
  {
    const TraceScope waiting("wait for gradients");
    for (const auto& [work, low] : works_) {
      work->wait();
      if (low)
        gradient_.slice(0, low->range.offset, low->range.numel).copy_(low_[static_cast<size_t>(low - buckets_.data())]);
    }
  }
  works_.clear();
  gradient_.storage()->bump_version();
  if (used_.defined()) {
    const Tensor shared = std::exchange(used_, {});
    if (!uses_all_) {
      const std::vector<float> used = shared.to_vector<float>();
      for (size_t i = 0; i < used.size(); ++i)
        if (used[i] > 0) flat_->slices()[i].parameter.impl()->autograd->grad_is_none = false;
    }
  }
  if (order_.defined()) {
    const std::vector<int64_t> came = std::exchange(order_, {}).to_vector<int64_t>();
    std::exchange(order_work_, {})->wait();  // on a GPU only now an error shows
    set_buckets(make_buckets(*flat_, options_.buckets, order_of(*flat_, came)));
  }
  callbacks_.end();
}

void Reducer::share_order() {
  order_ = Tensor::from(came_, flat_->device());
  order_work_ = group_->broadcast(order_, 0, {.name = "order of gradients", .scale = {}});
  works_.push_back({order_work_});
}

void Reducer::share_use() {
  std::vector<float> own;
  for (size_t i = 0; i < bucket_of_.size(); ++i) own.push_back(flat_->slices()[i].parameter.has_gradient() ? 1 : 0);
  // Other ranks may need this one's word. A rank that uses all needs nobody's, and does not wait for its device.
  uses_all_ = std::find(own.begin(), own.end(), 0.0f) == own.end();
  used_ = uses_all_ ? Tensor::ones({static_cast<int64_t>(own.size())}, DType::f32, flat_->device())
                    : Tensor::from(own, flat_->device());
  works_.push_back({group_->all_reduce(used_, ReduceOp::max, {.name = "used parameters", .scale = {}})});
}

}  // namespace weft::dist
