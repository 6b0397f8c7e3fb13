// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/random.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/contracts/random_math.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/philox_loops.h"
#include "kernels/cpu/processor.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/runtime/wrong_index.h"

namespace weft::kernels::cpu {
namespace {

constexpr int64_t kBlocks = kPhiloxBlocks, kWords = 4 * kBlocks;

const PhiloxLoops& philox_loops() {
  static const PhiloxLoops& best = has_avx512() ? philox_avx512() : philox_avx2();
  return best;
}

/// The source of one call; draw() gives the words of kBlocks blocks from `block` on, in order: each block is philox()
/// of the state and its number.
struct Source {
  uint64_t seed, base;
  Source(const View& state, const RandomArguments& random) {
    const int64_t* words = state.as<int64_t>();
    seed = static_cast<uint64_t>(words[0]);
    base = static_cast<uint64_t>(words[1]) + random.offset;
  }
  void draw(uint32_t (&words)[kWords], int64_t block) const {
    philox_loops().draw(words, seed, base + static_cast<uint64_t>(block));
  }
};
/// Calls body(first, words, count) for all n words of a call, kWords or less at a time.
template <class Body>
void for_words(int64_t n, const Source& source, const Body& body) {
  parallel_for((n + kWords - 1) / kWords, 2 * kWords, [&](int64_t begin, int64_t end) {
    uint32_t words[kWords];
    for (int64_t i = begin; i < end; ++i) {
      source.draw(words, i * kBlocks);
      body(i * kWords, words, std::min(kWords, n - i * kWords));
    }
  });
}

void check_dense(const char* op, const View& y) {
  WEFT_CHECK(y.is_contiguous(), op, ": expected a dense tensor, got ", y, " with gaps");
}

/// The cosine and sine of u turns, 0 <= u <= 1, for loops that vectorise: Taylor's series of a quarter turn to each
/// side.
struct OnCircle {
  float cos, sin;
  explicit OnCircle(float u) {
    const float shifted = 4 * u + 12582912.0f;  // 1.5 * 2^23: the adder rounds to an integer
    const float f = 4 * u - (shifted - 12582912.0f), z = f * f;
    const float c = (((-2.5202042e-05f * z + 9.1926027e-04f) * z - 2.0863480e-02f) * z + 2.5366951e-01f) * z * z -
                    1.2337005f * z + 1;
    const float s = f + f * ((((1.6044118e-04f * z - 4.6817541e-03f) * z + 7.9692626e-02f) * z - 6.4596410e-01f) * z +
                             5.7079633e-01f);
    const uint32_t quarter = std::bit_cast<uint32_t>(shifted);
    const float x = quarter & 1 ? s : c, y = quarter & 1 ? c : s;
    cos = (quarter + 1) & 2 ? -x : x;
    sin = quarter & 2 ? -y : y;
  }
};

/// The elements from `begin` to `end`, side by side: a lane whose walk is over takes the next index.
void permute(const Permutation& order, int64_t begin, int64_t end, int64_t* out) {
  uint64_t values[kWalks] = {};
  int64_t indices[kWalks];
  for (int lanes = 0;;) {
    for (; lanes < kWalks && begin < end; ++lanes, ++begin)
      values[lanes] = static_cast<uint64_t>(indices[lanes] = begin);
    if (lanes == 0) return;
    philox_loops().walk(values, order);
    int walking = 0;
    for (int l = 0; l < lanes; ++l) {  // without branches: a walk writes each value, the last one stays
      const uint64_t value = values[l];
      out[indices[l]] = static_cast<int64_t>(value);
      values[walking] = value;
      indices[walking] = indices[l];
      walking += value >= static_cast<uint64_t>(order.n) ? 1 : 0;
    }
    lanes = walking;
  }
}

}  // namespace

void random_uniform(const Queue&, const View& y, const View& state, RandomArguments random, UniformRange range) {
  check_dense("random_uniform", y);
  const Source source(state, random);
  with_dtype<float, double, bf16, f16>(y.dtype, "random_uniform", [&]<class T>() {
    T* const all = y.as<T>();
    if constexpr (std::is_same_v<T, double>) {
      for_words(2 * y.numel(), source, [=](int64_t first, const uint32_t* words, int64_t count) {
        for (int64_t i = 0; i < count; i += 2)
          all[(first + i) / 2] = std::clamp(range.low + (range.high - range.low) * uniform01(words[i], words[i + 1]),
                                            range.least, range.most);
      });
    } else {
      const float from = static_cast<float>(range.low), width = static_cast<float>(range.high - range.low);
      const float least = static_cast<float>(range.least), most = static_cast<float>(range.most);
      for_words(y.numel(), source, [=](int64_t first, const uint32_t* words, int64_t count) {
        T* const out = all + first;
        for (int64_t i = 0; i < count; ++i)
          out[i] = static_cast<T>(std::clamp(from + width * uniform01(words[i]), least, most));
      });
    }
  });
}

void random_integers(const Queue&, const View& y, const View& state, RandomArguments random, int64_t low,
                     int64_t count) {
  check_dense("random_integers", y);
  for_words(2 * y.numel(), Source(state, random),
            [=, all = y.as<int64_t>()](int64_t first, const uint32_t* words, int64_t n) {
              for (int64_t i = 0; i < n; i += 2)
                all[(first + i) / 2] = low + integer_below(count, uniform01(words[i], words[i + 1]));
            });
}

// Box and Muller 1958: two numbers of two.
void random_normal(const Queue&, const View& y, const View& state, RandomArguments random, double mean, double std) {
  check_dense("random_normal", y);
  const Source source(state, random);
  with_dtype<float, double, bf16, f16>(y.dtype, "random_normal", [&]<class T>() {
    T* const all = y.as<T>();
    if constexpr (std::is_same_v<T, double>) {
      for_words(2 * y.numel(), source, [=](int64_t first, const uint32_t* words, int64_t count) {
        for (int64_t i = 0; i < count; i += 4) {
          const double radius = std * std::sqrt(-2 * std::log(1 - uniform01(words[i], words[i + 1])));
          const double angle = 6.283185307179586476925 * uniform01(words[i + 2], words[i + 3]);
          all[(first + i) / 2] = mean + radius * std::cos(angle);
          if (i + 2 < count) all[(first + i) / 2 + 1] = mean + radius * std::sin(angle);
        }
      });
    } else {
      const float center = static_cast<float>(mean), scale = static_cast<float>(std);
      for_words(y.numel(), source, [=](int64_t first, const uint32_t* words, int64_t count) {
        T values[kWords];
#pragma omp simd
        for (int64_t pair = 0; pair < kWords / 2; ++pair) {
          const float radius = scale * std::sqrt(-2.0f * VectorMath::log(1.0f - uniform01(words[2 * pair])));
          const OnCircle at(uniform01(words[2 * pair + 1]));
          values[2 * pair] = static_cast<T>(center + radius * at.cos);
          values[2 * pair + 1] = static_cast<T>(center + radius * at.sin);
        }
        std::copy_n(values, count, all + first);
      });
    }
  });
}

void random_bernoulli(const Queue&, const View& y, const View& state, RandomArguments random, double p) {
  check_dense("random_bernoulli", y);
  const Source source(state, random);
  with_dtype<float, double, bf16, f16, int64_t, int32_t, uint8_t, bool>(y.dtype, "random_bernoulli", [&]<class T>() {
    const float threshold = static_cast<float>(p);
    for_words(y.numel(), source, [=, all = y.as<T>()](int64_t first, const uint32_t* words, int64_t count) {
      T* const out = all + first;
      for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(uniform01(words[i]) < threshold ? 1.0f : 0.0f);
    });
  });
}

void check_weights(const Queue& queue, const View& fine, int64_t positive) {
  const bool* const rows = fine.as<bool>();
  const bool* const wrong = std::find(rows, rows + fine.numel(), false);
  if (wrong == rows + fine.numel()) return;
  throw Error(text_of({.text = WrongIndex::Text::weights, .op = "multinomial", .at = wrong - rows, .limit = positive},
                      queue.device));
}

void random_permutation(const Queue&, const View& y, const View& state, RandomArguments random) {
  check_dense("random_permutation", y);
  const Source source(state, random);
  const Permutation order = permutation_of(source.seed, source.base, y.numel());
  parallel_for(order.n, 16, [&](int64_t begin, int64_t end) { permute(order, begin, end, y.as<int64_t>()); });
}

void dropout(const Queue&, const View& y, const View& x, const View& state, RandomArguments random, double p) {
  check_dense("dropout", y);
  check_dense("dropout", x);
  const Source source(state, random);
  with_dtype<float, double, bf16, f16>(x.dtype, "dropout", [&]<class T>() {
    using S = Accumulate<T>;
    const float threshold = static_cast<float>(p);
    const S scale = p < 1 ? static_cast<S>(1 / (1 - p)) : S(0);
    const auto drop = [=](T* out, const T* in, const uint32_t* words, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        const S kept = static_cast<S>(in[i]) * scale;  // for all elements: so the loop vectorises
        out[i] = static_cast<T>(uniform01(words[i]) >= threshold ? kept : S(0));
      }
    };
    for_words(x.numel(), source,
              [=, y = y.as<T>(), x = x.as<T>()](int64_t first, const uint32_t* words, int64_t count) {
                drop(y + first, x + first, words, count);
              });
  });
}

}  // namespace weft::kernels::cpu
