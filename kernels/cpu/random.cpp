// SPDX-License-Identifier: Apache-2.0
#include "kernels/random.h"

#include <cmath>

#include "kernels/cpu/elements.h"
#include "kernels/philox.h"

namespace weft::kernels::cpu {
namespace {

/// Philox blocks of one call: block(k) is a pure function of the state and k.
struct Source {
  uint64_t seed, base;
  Source(const View& state, const RandomArguments& random) {
    const int64_t* words = state.as<int64_t>();
    seed = static_cast<uint64_t>(words[0]);
    base = static_cast<uint64_t>(words[1]) + random.offset;
  }
  Philox4 block(int64_t k) const { return philox(seed, base + static_cast<uint64_t>(k)); }
};

/// Calls put(i, block, word index) for each element; four (f64: two) elements share a block.
template <int kPerBlock, class Put>
void for_draws(int64_t n, const Source& source, const Put& put) {
  parallel_for((n + kPerBlock - 1) / kPerBlock, 4 * kPerBlock, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const Philox4 block = source.block(k);
      const int64_t count = std::min<int64_t>(kPerBlock, n - k * kPerBlock);
      for (int64_t j = 0; j < count; ++j) put(k * kPerBlock + j, block, static_cast<int>(j));
    }
  });
}

void check_dense(const char* op, const View& y) {
  WEFT_CHECK(y.is_contiguous(), op, ": expected a dense tensor, got ", y, " with gaps");
}

double uniform_double(const Philox4& block, int64_t j) { return uniform01(block.word[2 * j], block.word[2 * j + 1]); }

constexpr double kTwoPi = 6.283185307179586476925;

}  // namespace

void random_uniform(const Queue&, const View& y, const View& state, RandomArguments random, double low, double high) {
  check_dense("random_uniform", y);
  const Source source(state, random);
  with_dtype<float, double, bf16, f16>(y.dtype, "random_uniform", [&]<class T>() {
    T* out = y.as<T>();
    if constexpr (std::is_same_v<T, double>) {
      for_draws<2>(y.numel(), source, [&](int64_t i, const Philox4& block, int j) {
        out[i] = low + (high - low) * uniform_double(block, j);
      });
    } else {
      const float from = static_cast<float>(low), width = static_cast<float>(high - low);
      for_draws<4>(y.numel(), source, [&](int64_t i, const Philox4& block, int j) {
        out[i] = static_cast<T>(from + width * uniform01(block.word[j]));
      });
    }
  });
}

void random_normal(const Queue&, const View& y, const View& state, RandomArguments random, double mean, double std) {
  check_dense("random_normal", y);
  const Source source(state, random);
  with_dtype<float, double, bf16, f16>(y.dtype, "random_normal", [&]<class T>() {
    T* out = y.as<T>();
    if constexpr (std::is_same_v<T, double>) {
      for_draws<2>(y.numel(), source, [&](int64_t i, const Philox4& block, int j) {
        const double radius = std::sqrt(-2 * std::log(1 - uniform_double(block, 0)));
        const double angle = kTwoPi * uniform_double(block, 1);
        out[i] = mean + std * radius * (j == 0 ? std::cos(angle) : std::sin(angle));
      });
    } else {
      for_draws<4>(y.numel(), source, [&](int64_t i, const Philox4& block, int j) {
        const int pair = j / 2 * 2;
        const float radius = std::sqrt(-2.0f * std::log(1.0f - uniform01(block.word[pair])));
        const float angle = static_cast<float>(kTwoPi) * uniform01(block.word[pair + 1]);
        const float value = radius * (j % 2 == 0 ? std::cos(angle) : std::sin(angle));
        out[i] = static_cast<T>(static_cast<float>(mean) + static_cast<float>(std) * value);
      });
    }
  });
}

void random_bernoulli(const Queue&, const View& y, const View& state, RandomArguments random, double p) {
  check_dense("random_bernoulli", y);
  const Source source(state, random);
  with_dtype<float, double, bf16, f16, int64_t, int32_t, uint8_t, bool>(y.dtype, "random_bernoulli", [&]<class T>() {
    T* out = y.as<T>();
    const float threshold = static_cast<float>(p);
    for_draws<4>(y.numel(), source, [&](int64_t i, const Philox4& block, int j) {
      out[i] = static_cast<T>(uniform01(block.word[j]) < threshold ? 1.0f : 0.0f);
    });
  });
}

void random_permutation(const Queue&, const View& y, const View& state, RandomArguments random) {
  check_dense("random_permutation", y);
  const Source source(state, random);
  int64_t* out = y.as<int64_t>();
  const int64_t n = y.numel();
  parallel_for(n, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = permuted(source.seed, source.base, n, i);
  });
}

void dropout(const Queue&, const View& y, const View& x, const View& state, RandomArguments random, double p) {
  check_dense("dropout", y);
  check_dense("dropout", x);
  const Source source(state, random);
  with_dtype<float, double, bf16, f16>(x.dtype, "dropout", [&]<class T>() {
    using S = Accumulate<T>;
    T* out = y.as<T>();
    const T* in = x.as<T>();
    const float threshold = static_cast<float>(p);
    const S scale = p < 1 ? static_cast<S>(1 / (1 - p)) : S(0);
    for_draws<4>(x.numel(), source, [&](int64_t i, const Philox4& block, int j) {
      const bool keep = uniform01(block.word[j]) >= threshold;
      out[i] = static_cast<T>(keep ? static_cast<S>(in[i]) * scale : S(0));
    });
  });
}

}  // namespace weft::kernels::cpu
