// SPDX-License-Identifier: Apache-2.0
#include "emulator/curand/sequence.h"

#include <cmath>
#include <numbers>
#include <vector>

namespace emulator::rand {
namespace {

// A number of 32 bits is the middle of its interval in (0, 1); one of 53 bits comes from two numbers.
constexpr float kInterval = 0x1p-32f;
constexpr double kFineInterval = 0x1p-53;

float uniform(uint32_t x) { return static_cast<float>(x) * kInterval + kInterval / 2; }
uint64_t joined(uint32_t x, uint32_t y) { return x ^ static_cast<uint64_t>(y) << 21; }
double uniform(uint32_t x, uint32_t y) { return static_cast<double>(joined(x, y)) * kFineInterval + kFineInterval / 2; }

/// G. Box, M. Muller, A note on the generation of random normal deviates, 1958.
std::array<float, 2> normal(uint32_t x, uint32_t y) {
  constexpr float kTurn = kInterval * 6.2831855f;
  const float radius = std::sqrt(-2 * std::log(uniform(x))), angle = static_cast<float>(y) * kTurn + kTurn / 2;
  return {std::sin(angle) * radius, std::cos(angle) * radius};
}
std::array<double, 2> normal(const std::array<uint32_t, 4>& x) {
  const double radius = std::sqrt(-2 * std::log(uniform(x[0], x[1])));
  const double angle =
      (static_cast<double>(joined(x[2], x[3])) * (2 * kFineInterval) + kFineInterval) * std::numbers::pi;
  return {std::sin(angle) * radius, std::cos(angle) * radius};
}

class Xorwow : public Sequence {
 public:
  void seed(uint64_t seed) override {
    const uint32_t low = static_cast<uint32_t>(seed) ^ 0xaad26b49u,
                   high = static_cast<uint32_t>(seed >> 32) ^ 0xf7dcefddu;
    const uint32_t t0 = 1099087573u * low, t1 = 2591861531u * high;
    first_ = {{123456789u + t0, 362436069u ^ t0, 521288629u + t1, 88675123u ^ t1, 5783321u + t0}, 6615241u + t1 + t0};
    move(0);
  }

  void move(uint64_t offset) override {
    static const Jump between = repeated(one_step(), 67);
    State state = first_;
    Jump jump = one_step();
    for (uint64_t steps = offset / kThreads; steps != 0; steps >>= 1, jump = repeated(jump, 1))
      if (steps & 1) apply(jump, state.v);
    state.d += static_cast<uint32_t>(offset / kThreads) * kWeyl;
    threads_.clear();
    for (size_t i = 0; i < kThreads; ++i, apply(between, state.v)) threads_.push_back(state);
    next_ = offset % kThreads;
    for (size_t i = 0; i < next_; ++i) threads_[i].next();
  }

  void fill(Draw, std::span<uint32_t> to) override {
    for (uint32_t& x : to) x = thread().next();
  }
  void fill(Draw draw, std::span<float> to) override {
    if (draw == Draw::uniform)
      for (float& x : to) x = uniform(thread().next());
    else
      for (size_t i = 0; i < to.size(); i += 2) {
        State& from = thread();
        const uint32_t x = from.next(), y = from.next();
        put(normal(x, y), to, i);
      }
  }
  void fill(Draw draw, std::span<double> to) override {
    const auto pair = [&](State& from) {
      const uint32_t x = from.next();
      return std::array{x, from.next()};
    };
    if (draw == Draw::uniform_double)
      for (double& value : to) {
        const auto x = pair(thread());
        value = uniform(x[0], x[1]);
      }
    else
      for (size_t i = 0; i < to.size(); i += 2) {
        State& from = thread();
        const auto x = pair(from), y = pair(from);
        put(normal({x[0], x[1], y[0], y[1]}), to, i);
      }
  }
  bool wants_pairs() const override { return true; }

 private:
  static constexpr size_t kThreads = 4096;
  static constexpr uint32_t kWeyl = 362437;
  using Bits = std::array<uint32_t, 5>;
  using Jump = std::vector<Bits>;  ///< a linear map: the image of each of the 160 bits

  struct State {
    Bits v{};
    uint32_t d = 0;
    uint32_t next() {
      const uint32_t t = v[0] ^ v[0] >> 2;
      v = {v[1], v[2], v[3], v[4], v[4] ^ v[4] << 4 ^ t ^ t << 1};
      d += kWeyl;
      return v[4] + d;
    }
  };

  static void apply(const Jump& jump, Bits& v) {
    Bits sum{};
    for (size_t bit = 0; bit < jump.size(); ++bit)
      if (v[bit / 32] >> bit % 32 & 1)
        for (size_t i = 0; i < sum.size(); ++i) sum[i] ^= jump[bit][i];
    v = sum;
  }
  static Jump one_step() {
    Jump jump(160);
    for (size_t bit = 0; bit < jump.size(); ++bit) {
      State state;
      state.v[bit / 32] = 1u << bit % 32;
      state.next();
      jump[bit] = state.v;
    }
    return jump;
  }
  /// The map 2^doublings times.
  static Jump repeated(Jump jump, int doublings) {
    for (int i = 0; i < doublings; ++i) {
      Jump twice = jump;
      for (Bits& image : twice) apply(jump, image);
      jump = std::move(twice);
    }
    return jump;
  }

  State& thread() {
    State& one = threads_[next_];
    next_ = (next_ + 1) % kThreads;
    return one;
  }
  template <class T>
  static void put(const std::array<T, 2>& pair, std::span<T> to, size_t i) {
    to[i] = pair[0];
    if (i + 1 < to.size()) to[i + 1] = pair[1];
  }

  State first_;
  std::vector<State> threads_;
  size_t next_ = 0;
};

class Philox : public Sequence {
 public:
  void seed(uint64_t seed) override { key_ = seed; }
  void move(uint64_t offset) override { next_ = offset, begin_ = offset / 4; }

  void fill(Draw, std::span<uint32_t> to) override {
    each(to, [&](uint64_t thread, uint64_t turn) { return four(thread, turn); });
  }
  void fill(Draw draw, std::span<float> to) override {
    each(to, [&](uint64_t thread, uint64_t turn) {
      const Four x = four(thread, turn);
      if (draw == Draw::uniform) return std::array{uniform(x[0]), uniform(x[1]), uniform(x[2]), uniform(x[3])};
      const auto a = normal(x[0], x[1]), b = normal(x[2], x[3]);
      return std::array{a[0], a[1], b[0], b[1]};
    });
  }
  void fill(Draw draw, std::span<double> to) override {
    // From the block of the offset on, a thread takes two blocks in each turn.
    each(to, [&](uint64_t thread, uint64_t turn) {
      const uint64_t first = begin_ / kThreads + (thread < begin_ % kThreads ? 1 : 0),
                     block = first + 2 * (turn - first);
      const Four x = four(thread, block), y = four(thread, block + 1);
      if (draw == Draw::uniform_double)
        return std::array{uniform(x[0], x[1]), uniform(x[2], x[3]), uniform(y[0], y[1]), uniform(y[2], y[3])};
      const auto a = normal(x), b = normal(y);
      return std::array{a[0], a[1], b[0], b[1]};
    });
  }
  bool wants_pairs() const override { return false; }

 private:
  static constexpr uint64_t kThreads = 65536;
  using Four = std::array<uint32_t, 4>;

  /// `from` makes the four values of a thread's turn.
  template <class T, class F>
  void each(std::span<T> to, F&& from) {
    for (size_t i = 0; i < to.size();) {
      const std::array<T, 4> values = from(next_ / 4 % kThreads, next_ / 4 / kThreads);
      for (size_t k = next_ % 4; k < 4 && i < to.size(); ++k, ++next_) to[i++] = values[k];
    }
  }

  Four four(uint64_t thread, uint64_t block) const {
    Four c{static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), static_cast<uint32_t>(thread), 0};
    uint32_t k0 = static_cast<uint32_t>(key_), k1 = static_cast<uint32_t>(key_ >> 32);
    for (int round = 0; round < 10; ++round, k0 += 0x9e3779b9u, k1 += 0xbb67ae85u) {
      const uint64_t a = uint64_t{0xd2511f53u} * c[0], b = uint64_t{0xcd9e8d57u} * c[2];
      c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(b),
           static_cast<uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(a)};
    }
    return c;
  }

  uint64_t key_ = 0, next_ = 0, begin_ = 0;
};

}  // namespace

std::unique_ptr<Sequence> make_xorwow() { return std::make_unique<Xorwow>(); }
std::unique_ptr<Sequence> make_philox() { return std::make_unique<Philox>(); }

}  // namespace emulator::rand
