// SPDX-License-Identifier: Apache-2.0
#include "nn/init.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/random.h"
#include "core/random.h"
#include "io/weights/weights_file.h"

namespace weft::nn {
namespace {

thread_local bool skipping = false;
thread_local DeferredInit* deferring = nullptr;

/// gain / sqrt(fan); a weight without inputs or outputs gets 0 elements, whatever the scale.
double kaiming_std(const Tensor& weight, KaimingOptions options) {
  const Fans fans = fans_of(weight);
  const double fan = static_cast<double>(std::max<int64_t>(options.fan == Fan::in ? fans.in : fans.out, 1));
  return std::sqrt(2 / (1 + options.slope * options.slope) / fan);
}

/// The weight is to be left alone; a deferred one may still get the values of a file.
bool skips(const Tensor& weight) {
  if (skipping && deferring != nullptr) deferring->note(weight, [] {});
  return skipping;
}

/// Draws x now, or notes the draw and takes its Philox blocks from the generator (kernels/contracts/random.h).
void draw_or_note(const Tensor& x, const std::function<void(const Tensor&)>& draw) {
  if (deferring == nullptr) return draw(x);
  RandomGenerator& random = generator(x.device());
  const RandomGenerator then = random;
  const int64_t per_block = x.dtype() == DType::f64 ? 2 : 4;
  random.take(static_cast<uint64_t>((x.numel() + per_block - 1) / per_block));
  deferring->note(x, [x = x.detach(), then, draw] {
    RandomGenerator& used = generator(x.device());
    const RandomGenerator now = std::exchange(used, then);
    draw(x);
    used = now;
  });
}

void draw_weight(const Tensor& weight, Init init) {
  if (init == Init::kaiming_uniform)
    kaiming_uniform_(weight, {.slope = std::sqrt(5.0)});
  else
    kaiming_normal_(weight, {.fan = init == Init::kaiming_normal ? Fan::in : Fan::out});
}

}  // namespace

DeferredInit::Scope::Scope(DeferredInit* notes) : outer_(std::exchange(deferring, notes)) {}
DeferredInit::Scope::~Scope() { deferring = outer_; }
DeferredInit* DeferredInit::current() { return deferring; }

struct DeferredInit::Notes {
  struct Note {
    std::function<void()> write;
    ReadBlock read;
    uint32_t version;  ///< the storage's
  };
  std::unordered_map<const Storage*, Note> of;

  /// The note, which is kept no longer. Errors: the weight was written after it.
  Note take(const Tensor& weight) {
    Note note = std::move(of.extract(weight.storage().get()).mapped());
    WEFT_CHECK(weight.storage()->version() == note.version, "DeferredInit: a weight ", weight,
               " was written after its first values were noted, which would replace them. Make it within "
               "DeferredInit::Scope(nullptr)");
    return note;
  }
};

DeferredInit::DeferredInit() : notes_(std::make_unique<Notes>()) {}
DeferredInit::~DeferredInit() = default;
bool DeferredInit::has(const Tensor& weight) const { return notes_->of.contains(weight.storage().get()); }
size_t DeferredInit::pending() const { return notes_->of.size(); }

void DeferredInit::note(const Tensor& weight, std::function<void()> write, ReadBlock read) {
  notes_->of[weight.storage().get()] = {std::move(write), std::move(read), weight.storage()->version()};
}

void DeferredInit::write(const Tensor& weight) {
  const NoGrad no_grad;
  if (has(weight)) notes_->take(weight).write();
}

DeferredInit::ReadBlock DeferredInit::reader(const Tensor& weight) const {
  const auto found = notes_->of.find(weight.storage().get());
  return found == notes_->of.end() || weight.dim() == 0 ? ReadBlock() : found->second.read;
}

void DeferredInit::read(const Tensor& weight, int64_t first, const Tensor& part) {
  const NoGrad no_grad;
  const Notes::Note note = notes_->take(weight);
  read_elements(weight.sizes(), first, part, note.read);
}

void DeferredInit::add_source(const std::string& line, std::function<void()> check) {
  sources_ += line + '\n';
  checks_.push_back(std::move(check));
}

void DeferredInit::check_sources() const {
  for (const auto& check : checks_) check();
}

Fans fans_of(const Tensor& weight) {
  WEFT_CHECK(weight.dim() >= 2, "fans_of: expected a weight of at least 2 dimensions, got ", weight);
  int64_t receptive = 1;
  for (int d = 1; d < weight.dim() - 1; ++d) receptive *= weight.size(d);
  return {weight.size(-1) * receptive, weight.size(0) * receptive};
}

SkipInit::SkipInit() : outer_(std::exchange(skipping, true)) {}
SkipInit::~SkipInit() { skipping = outer_; }

void kaiming_uniform_(const Tensor& weight, KaimingOptions options) {
  const NoGrad no_grad;
  const double bound = std::sqrt(3.0) * kaiming_std(weight, options);
  uniform_(weight, -bound, bound);
}

void kaiming_normal_(const Tensor& weight, KaimingOptions options) {
  const NoGrad no_grad;
  normal_(weight, 0, kaiming_std(weight, options));
}

void xavier_uniform_(const Tensor& weight, double gain) {
  const NoGrad no_grad;
  const Fans fans = fans_of(weight);
  const double bound = gain * std::sqrt(6 / static_cast<double>(std::max<int64_t>(fans.in + fans.out, 1)));
  uniform_(weight, -bound, bound);
}

void xavier_normal_(const Tensor& weight, double gain) {
  const NoGrad no_grad;
  const Fans fans = fans_of(weight);
  normal_(weight, 0, gain * std::sqrt(2 / static_cast<double>(std::max<int64_t>(fans.in + fans.out, 1))));
}

void trunc_normal_(const Tensor& x, double mean, double std, double low, double high) {
  const auto below = [&](double bound) { return 0.5 * std::erfc((mean - bound) / (std * std::numbers::sqrt2)); };
  WEFT_CHECK(std > 0 && below(high) - below(low) > 0.01,
             "trunc_normal_: expected a positive std and bounds that keep 1% of the draws, got mean ", mean, ", std ",
             std, " and [", low, ", ", high, "]");
  const NoGrad no_grad;
  const auto outside = [&](const Tensor& values) {  // 16 bits would round the bounds
    const Tensor exact = size_of(values.dtype()) == 2 ? values.to(DType::f32) : values;
    return (exact < low) | (exact > high);
  };
  normal_(x, mean, std);
  for (Tensor again = outside(x); any(again); again = outside(x))
    x.copy_(where(again, normal(x.sizes(), mean, std, x.dtype(), x.device()), x));
}

void orthogonal_(const Tensor& weight, double gain) {
  WEFT_CHECK(weight.defined() && weight.dim() >= 2, "orthogonal_: expected a weight of at least 2 dimensions, got ",
             weight);
  const NoGrad no_grad;
  const int64_t rows = weight.size(0), columns = rows == 0 ? 0 : weight.numel() / rows;
  const int64_t count = std::min(rows, columns), length = std::max(rows, columns);
  std::vector<double> q = normal({count, length}, 0, 1, DType::f64, weight.device()).to_vector<double>();
  // Gram and Schmidt, twice: the second pass takes what rounding left.
  for (int64_t i = 0; i < count; ++i) {
    double* own = q.data() + i * length;
    for (int64_t pass = 0; pass < 2; ++pass)
      for (int64_t j = 0; j < i; ++j) {
        const double* other = q.data() + j * length;
        const double along = std::inner_product(own, own + length, other, 0.0);
        for (int64_t k = 0; k < length; ++k) own[k] -= along * other[k];
      }
    const double size = std::sqrt(std::inner_product(own, own + length, own, 0.0));
    for (int64_t k = 0; k < length; ++k) own[k] /= size;
  }
  const Tensor matrix = Tensor::from(q, {count, length});
  weight.copy_(((rows <= columns ? matrix : matrix.t()) * gain).reshape(weight.sizes()));
}

void init_weight_(const Tensor& weight, Init init) {
  if (skips(weight)) return;
  if (init == Init::transformer)
    init_normal_(weight, 0.02);
  else
    draw_or_note(weight, [init](const Tensor& x) { draw_weight(x, init); });
}

void bias_uniform_(const Tensor& bias, const Tensor& weight) {
  const NoGrad no_grad;
  const double bound = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(fans_of(weight).in, 1)));
  uniform_(bias, -bound, bound);
}

void init_bias_(const Tensor& bias, const Tensor& weight, Init init) {
  if (skipping) return;
  const NoGrad no_grad;
  if (init == Init::transformer)
    bias.zero_();
  else
    bias_uniform_(bias, weight);
}

void init_normal_(const Tensor& x, double std) {
  if (skipping) return;
  draw_or_note(x, [std](const Tensor& values) {
    const NoGrad no_grad;
    normal_(values, 0, std);
  });
}

}  // namespace weft::nn
