// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

// Plain formulas with gradients: a tape of scalars in S. In f64 it gives the truth of a test, in f32 the error that the
// formula makes without care for rounding; sums go in pairs, those of products in order.

namespace weft::test {

template <class S>
class Plain {
 public:
  S value = 0;

  Plain() = default;
  Plain(S constant) : value(constant) {}                    // NOLINT: numbers are constants
  Plain(int constant) : value(static_cast<S>(constant)) {}  // NOLINT
  static Plain leaf(S value) { return made(value, {}, 0, {}, 0); }
  static void clear() { tape().clear(); }
  S gradient() const { return node_ < 0 ? S(0) : tape()[static_cast<size_t>(node_)].gradient; }

  /// f of this number, whose slope there is given.
  Plain then(S y, S slope) const { return made(y, *this, slope, {}, 0); }
  friend Plain operator+(Plain a, Plain b) { return made(a.value + b.value, a, 1, b, 1); }
  friend Plain operator-(Plain a, Plain b) { return made(a.value - b.value, a, 1, b, -1); }
  friend Plain operator*(Plain a, Plain b) { return made(a.value * b.value, a, b.value, b, a.value); }
  friend Plain operator/(Plain a, Plain b) {
    return made(a.value / b.value, a, 1 / b.value, b, -(a.value / b.value) / b.value);
  }

  /// Gradients of the sum of dy y in all leaves.
  static void backward(const std::vector<Plain>& y, const std::vector<double>& dy) {
    for (size_t i = 0; i < y.size(); ++i)
      if (y[i].node_ >= 0) tape()[static_cast<size_t>(y[i].node_)].gradient += static_cast<S>(dy[i]);
    for (size_t i = tape().size(); i-- > 0;) {
      const Node& node = tape()[i];
      if (node.gradient == 0) continue;
      if (node.a >= 0) tape()[static_cast<size_t>(node.a)].gradient += node.gradient * node.da;
      if (node.b >= 0) tape()[static_cast<size_t>(node.b)].gradient += node.gradient * node.db;
    }
  }

 private:
  struct Node {
    int a, b;
    S da, db, gradient = 0;
  };
  static std::vector<Node>& tape() {
    static std::vector<Node> nodes;
    return nodes;
  }
  static Plain made(S value, Plain a, S da, Plain b, S db) {
    tape().push_back({a.node_, b.node_, da, db});
    a.value = value;
    a.node_ = static_cast<int>(tape().size()) - 1;
    return a;
  }
  int node_ = -1;
};

template <class S>
using Plains = std::vector<Plain<S>>;

/// The sum, in pairs.
template <class S>
Plain<S> total(const Plain<S>* x, size_t n) {
  if (n == 0) return S(0);
  return n == 1 ? x[0] : total(x, n / 2) + total(x + n / 2, n - n / 2);
}
template <class S>
Plain<S> total(const Plains<S>& x) {
  return total(x.data(), x.size());
}
template <class S>
Plain<S> in_order(const Plains<S>& x) {
  Plain<S> sum = 0;
  for (const Plain<S>& value : x) sum = sum + value;
  return sum;
}
template <class S>
Plain<S> exp(Plain<S> x) {
  const S y = std::exp(x.value);
  return x.then(y, y);
}
template <class S>
Plain<S> log(Plain<S> x) {
  return x.then(std::log(x.value), 1 / x.value);
}
template <class S>
Plain<S> sqrt(Plain<S> x) {
  const S y = std::sqrt(x.value);
  return x.then(y, S(0.5) / y);
}
template <class S>
S largest(const Plain<S>* x, size_t n) {
  S most = x[0].value;
  for (size_t i = 1; i < n; ++i) most = x[i].value > most || std::isnan(x[i].value) ? x[i].value : most;
  return most;
}

}  // namespace weft::test
