// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <deque>
#include <functional>

#include "kernels/batch_norm.h"
#include "kernels/binary.h"
#include "kernels/copy.h"
#include "kernels/cross_entropy.h"
#include "kernels/fill.h"
#include "kernels/image.h"
#include "kernels/index.h"
#include "kernels/layer_norm.h"
#include "kernels/optimizer.h"
#include "kernels/pool2d.h"
#include "kernels/random.h"
#include "kernels/reduce.h"
#include "kernels/rms_norm.h"
#include "kernels/simt/simt.h"
#include "kernels/softmax.h"
#include "kernels/unary.h"
#include "tests/support/compare.h"
#include "tests/support/device_array.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

// Every bandwidth-bound kernel of the GPU against the CPU's, which the tests named after each kernel hold against an
// f64 reference: the same call with the same fresh numbers on each device. Sizes are chosen for the GPU's ways: whole
// 16-byte units and remainders, unaligned starts, strided and broadcast operands, long and short sums, several blocks.

namespace weft::tests {
namespace {

using kernels::Queue;
using kernels::View;

/// One call on one device; remembers what it wrote.
class Call {
 public:
  Call(DeviceKind kind, uint64_t seed) : queue{{kind, 0}, nullptr}, numbers_(seed) {}

  const Queue queue;

  View random(DType dtype, const Sizes& sizes, double low = -2, double high = 2) {
    std::uniform_real_distribution<double> distribution(low, high);
    std::vector<double> values(static_cast<size_t>(count_of(sizes)));
    for (double& value : values) value = rounded(distribution(numbers_), dtype);
    return given(dtype, sizes, values);
  }
  View integers(DType dtype, const Sizes& sizes, int64_t low, int64_t high) {
    std::uniform_int_distribution<int64_t> distribution(low, high);
    std::vector<double> values(static_cast<size_t>(count_of(sizes)));
    for (double& value : values) value = static_cast<double>(distribution(numbers_));
    return given(dtype, sizes, values);
  }
  View given(DType dtype, const Sizes& sizes, const std::vector<double>& values) {
    arrays_.emplace_back(queue.device.kind, dtype, sizes, values);
    return arrays_.back();
  }
  /// A poisoned result, compared after the call with sums over K terms.
  View output(DType dtype, const Sizes& sizes, int64_t K = 1) {
    arrays_.emplace_back(queue.device.kind, dtype, sizes);
    return watch(arrays_.back(), K);
  }
  /// An argument that the call changes.
  View inout(const View& view, int64_t K = 1) {
    for (const DeviceArray& array : arrays_)
      if (array.view().data == view.data) watch(array, K);
    return view;
  }

  struct Result {
    std::vector<double> values;
    Tolerance allowed;
  };
  std::vector<Result> results() const {
    std::vector<Result> all;
    for (const auto& [array, K] : watched_) {
      const DType dtype = array->view().dtype;
      all.push_back({array->host(), tolerance(dtype, K, 16).times(2)});
    }
    return all;
  }

 private:
  View watch(const DeviceArray& array, int64_t K) {
    watched_.push_back({&array, K});
    return array;
  }

  std::mt19937_64 numbers_;
  std::deque<DeviceArray> arrays_;
  std::vector<std::pair<const DeviceArray*, int64_t>> watched_;
};

std::vector<Call::Result> results_on(DeviceKind kind, uint64_t seed, const std::function<void(Call&)>& body) {
  Call call(kind, seed);
  body(call);
  return call.results();
}

/// Runs `body` on the CPU and on every GPU, real and emulated (once with a random schedule), and compares its outputs.
void expect_agreement(const std::string& what, const std::function<void(Call&)>& body) {
  SCOPED_TRACE(what);
  const uint64_t seed = generator()();
  const auto want = results_on(DeviceKind::cpu, seed, body);
  const auto compare = [&](DeviceKind kind, const char* how) {
    const auto got = results_on(kind, seed, body);
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_TRUE(near(got[i].values, want[i].values, want[i].allowed)) << name(kind) << how << ", output " << i;
    return got;
  };
  if (runs_on(DeviceKind::simt)) {
    const auto fixed = compare(DeviceKind::simt, "");
    emulator::set_schedule_seed(random_schedule());
    const auto shuffled = compare(DeviceKind::simt, " with a random schedule");
    emulator::set_schedule_seed(0);
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_TRUE(near(shuffled[i].values, fixed[i].values, {})) << "depends on the schedule: output " << i;
  }
  if (runs_on(DeviceKind::cuda)) compare(DeviceKind::cuda, "");
}

constexpr DType kFloating[] = {DType::f32, DType::bf16, DType::f16, DType::f64};
constexpr DType kAll[] = {DType::f32, DType::f64, DType::bf16, DType::f16,
                          DType::i64, DType::i32, DType::u8,   DType::boolean};

/// Views of parts of an array.
View permuted(View view, std::initializer_list<int> order) {
  const View from = view;
  int d = 0;
  for (const int k : order) {
    view.sizes[d] = from.sizes[k];
    view.strides[d++] = from.strides[k];
  }
  return view;
}
View slice(View view, int dim, int64_t begin, int64_t size, int64_t step = 1) {
  view.data = static_cast<char*>(view.data) + begin * view.strides[dim] * static_cast<int64_t>(size_of(view.dtype));
  view.sizes[dim] = size;
  view.strides[dim] *= step;
  return view;
}
View broadcast(View view, int dim, int64_t size) {
  view.sizes[dim] = size;
  view.strides[dim] = 0;
  return view;
}

TEST(DevicesAgree, FillAndArange) {
  for (const DType dtype : kAll) {
    for (const int64_t n : {0, 1, 7, 1025})
      expect_agreement(str("fill ", dtype, " ", n),
                       [&](Call& c) { kernels::fill(c.queue, c.output(dtype, {n}), 3.75); });
    expect_agreement("fill of a column", [&](Call& c) {
      const View y = c.inout(c.integers(dtype, {9, 6}, 0, 1));
      kernels::fill(c.queue, slice(y, 1, 2, 3), 2);
    });
    if (dtype != DType::boolean)
      expect_agreement("arange", [&](Call& c) {
        kernels::arange(c.queue, c.output(dtype, {300}), 3, dtype == DType::u8 ? 0.5 : -1.5);
      });
  }
}

TEST(DevicesAgree, CopyConvertsEveryPair) {
  for (const DType to : kAll)
    for (const DType from : kAll)
      expect_agreement(str(from, " to ", to), [&](Call& c) {
        const View x = is_floating(from) ? c.random(from, {5, 37}, 0, 100) : c.integers(from, {5, 37}, 0, 1);
        kernels::copy(c.queue, c.output(to, {5, 37}), x);
        kernels::copy(c.queue, c.output(to, {37, 5}), permuted(x, {1, 0}));
      });
}

TEST(DevicesAgree, CopyOfStridedViews) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::u8, DType::i64}) {
    expect_agreement(str("transpose ", dtype), [&](Call& c) {
      const View x = c.integers(dtype, {3, 70, 45, 4}, 0, 100);
      kernels::copy(c.queue, c.output(dtype, {3, 4, 70, 45}), permuted(x, {0, 3, 1, 2}));
      kernels::copy(c.queue, c.output(dtype, {45, 70, 4, 3}), permuted(x, {2, 1, 3, 0}));
      const View flat = c.integers(dtype, {50, 33}, 0, 100);
      kernels::copy(c.queue, c.output(dtype, {33, 50}), permuted(flat, {1, 0}));
      kernels::copy(c.queue, permuted(c.output(dtype, {50, 33}), {1, 0}), c.integers(dtype, {33, 50}, 0, 100));
    });
    expect_agreement(str("slices ", dtype), [&](Call& c) {
      const View x = c.integers(dtype, {12, 40}, 0, 100);
      kernels::copy(c.queue, c.output(dtype, {12, 16}), slice(x, 1, 8, 16));
      kernels::copy(c.queue, c.output(dtype, {12, 13}), slice(x, 1, 3, 13));
      kernels::copy(c.queue, c.output(dtype, {6, 20}), slice(slice(x, 0, 1, 6, 2), 1, 0, 20, 2));
      kernels::copy(c.queue, slice(c.inout(c.integers(dtype, {12, 40}, 0, 100)), 1, 5, 7), slice(x, 1, 0, 7));
      kernels::copy(c.queue, c.output(dtype, {6, 40}), broadcast(slice(x, 0, 3, 1), 0, 6));
      kernels::copy(c.queue, c.output(dtype, {12, 8}), broadcast(slice(x, 1, 3, 1), 1, 8));
    });
  }
}

TEST(DevicesAgree, Unary) {
  for (int f = 0; f < kernels::kUnaryCount; ++f)
    for (const DType dtype : kFloating)
      expect_agreement(str("unary ", f, " ", dtype), [&](Call& c) {
        const auto which = static_cast<kernels::Unary>(f);
        const bool positive = which == kernels::Unary::log || which == kernels::Unary::sqrt ||
                              which == kernels::Unary::rsqrt || which == kernels::Unary::pow ||
                              which == kernels::Unary::reciprocal;
        const double low = positive ? 0.25 : -3;
        const kernels::UnaryArguments arguments{0.5, 0.75};
        for (const int64_t n : {67, 256}) {
          const View x = c.random(dtype, {n}, low, 3), y = c.output(dtype, {n});
          kernels::unary_forward(c.queue, which, y, x, arguments);
          // The derivative of the CPU's own output would be computed from other roundings: take a fresh one.
          const View saved = c.random(dtype, {n}, low, 3);
          kernels::unary_backward(c.queue, which, c.output(dtype, {n}), c.random(dtype, {n}), saved, arguments);
        }
        const View x = c.random(dtype, {6, 11}, low, 3);
        kernels::unary_forward(c.queue, which, c.output(dtype, {11, 6}), permuted(x, {1, 0}), arguments);
        kernels::unary_backward(c.queue, which, c.output(dtype, {11, 6}), c.random(dtype, {11, 6}), permuted(x, {1, 0}),
                                arguments);
      });
  for (const DType dtype : {DType::i64, DType::i32})
    for (const auto f : {kernels::Unary::affine, kernels::Unary::neg, kernels::Unary::abs, kernels::Unary::sign,
                         kernels::Unary::square, kernels::Unary::clamp})
      expect_agreement(str("unary of ", dtype), [&](Call& c) {
        kernels::unary_forward(c.queue, f, c.output(dtype, {65}), c.integers(dtype, {65}, -50, 50), {3, 7});
      });
}

TEST(DevicesAgree, Binary) {
  for (int f = 0; f < kernels::kBinaryCount; ++f)
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i64, DType::i32})
      expect_agreement(str("binary ", f, " ", dtype), [&](Call& c) {
        const auto which = static_cast<kernels::Binary>(f);
        const auto input = [&](const Sizes& sizes) {
          return is_floating(dtype) ? c.random(dtype, sizes, 0.25, 3) : c.integers(dtype, sizes, 1, 6);
        };
        const View a = input({24, 32}), row = input({1, 32}), column = input({24, 1}), odd = input({24, 33});
        kernels::binary_forward(c.queue, which, c.output(dtype, {24, 32}), a, input({24, 32}), 2);
        kernels::binary_forward(c.queue, which, c.output(dtype, {24, 32}), a, broadcast(row, 0, 24), 2);
        kernels::binary_forward(c.queue, which, c.output(dtype, {24, 32}), broadcast(column, 1, 32), a, 2);
        kernels::binary_forward(c.queue, which, c.output(dtype, {24, 32}), slice(odd, 1, 1, 32), a, 2);
        const View b = c.inout(input({24, 33}));
        kernels::binary_forward(c.queue, which, b, b, odd, 1);
      });
  expect_agreement("nothing", [&](Call& c) {
    kernels::binary_forward(c.queue, kernels::Binary::add, c.output(DType::f32, {0, 4}), c.random(DType::f32, {0, 4}),
                            c.random(DType::f32, {0, 4}), 1);
  });
}

TEST(DevicesAgree, CompareAndWhere) {
  for (const DType dtype : kAll)
    for (int f = 0; f < 8; ++f)
      expect_agreement(str("compare ", f, " ", dtype), [&](Call& c) {
        const View a = c.integers(dtype, {9, 20}, 0, 1), b = c.integers(dtype, {9, 20}, 0, 1);
        kernels::compare(c.queue, static_cast<kernels::Compare>(f), c.output(DType::boolean, {9, 20}), a, b);
        const View condition = c.integers(DType::boolean, {9, 20}, 0, 1);
        kernels::where(c.queue, c.output(dtype, {9, 20}), condition, a, b);
        kernels::where(c.queue, c.output(dtype, {9, 20}), broadcast(slice(condition, 1, 0, 1), 1, 20), a, b);
      });
}

TEST(DevicesAgree, Reduce) {
  using kernels::Reduce;
  struct Shape {
    Sizes x, y;
  };
  const Shape shapes[] = {{{1}, {1}},
                          {{300}, {1}},
                          {{9000}, {1}},
                          {{40, 6}, {1, 6}},
                          {{700, 40}, {1, 40}},
                          {{40, 6}, {40, 1}},
                          {{5, 96}, {5, 1}},
                          {{3, 2500}, {3, 1}},
                          {{2, 9, 3, 8}, {1, 1, 1, 8}},
                          {{4, 5, 6, 8}, {4, 1, 1, 8}},
                          {{4, 5, 6}, {1, 5, 1}},
                          {{4, 5, 6}, {4, 1, 6}},
                          {{0, 3}, {0, 1}}};
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i64, DType::i32})
    for (const Reduce f : {Reduce::sum, Reduce::mean, Reduce::max, Reduce::min, Reduce::sum_squares, Reduce::norm}) {
      if (!is_floating(dtype) && (f == Reduce::mean || f == Reduce::norm)) continue;
      for (const Shape& s : shapes)
        expect_agreement(str("reduce ", static_cast<int>(f), " ", dtype, " of ", count_of(s.x)), [&](Call& c) {
          const View x = is_floating(dtype) ? c.random(dtype, s.x, 0, 2) : c.integers(dtype, s.x, -9, 9);
          const int64_t K = count_of(s.x) / std::max<int64_t>(count_of(s.y), 1);
          kernels::reduce(c.queue, f, c.output(dtype, s.y, K), x);
          if (is_floating(dtype) && dtype != DType::f64) kernels::reduce(c.queue, f, c.output(DType::f32, s.y, K), x);
        });
      expect_agreement("a permuted input", [&](Call& c) {
        const View x = is_floating(dtype) ? c.random(dtype, {7, 6, 20}, 0, 2) : c.integers(dtype, {7, 6, 20}, -9, 9);
        kernels::reduce(c.queue, f, c.output(dtype, {20, 1, 6}, 7), permuted(x, {2, 0, 1}));
        kernels::reduce(c.queue, f, c.output(dtype, {1, 7, 6}, 20), permuted(x, {2, 0, 1}));
        kernels::reduce(c.queue, f, c.output(dtype, {7, 6, 1}, 11), slice(x, 2, 3, 11));
      });
    }
}

TEST(DevicesAgree, ReduceOfNothingAndOfNaN) {
  for (const auto f : {kernels::Reduce::sum, kernels::Reduce::mean})
    expect_agreement("an empty sum", [&](Call& c) {
      kernels::reduce(c.queue, f, c.output(DType::f32, {1, 3}), c.random(DType::f32, {0, 3}));
    });
  for (const auto f : {kernels::Reduce::max, kernels::Reduce::min})
    expect_agreement("NaN wins", [&](Call& c) {
      std::vector<double> values(400, 1);
      values[57] = NAN;
      values[399] = -5;
      kernels::reduce(c.queue, f, c.output(DType::f32, {2, 1}), c.given(DType::f32, {2, 200}, values));
      kernels::argmax(c.queue, c.output(DType::i64, {2, 1}), c.given(DType::f32, {2, 200}, values), 1);
    });
}

TEST(DevicesAgree, Argmax) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64, DType::i64, DType::i32})
    expect_agreement(str("argmax ", dtype), [&](Call& c) {
      const View x = c.integers(dtype, {13, 10, 41}, -4, 4);  // with ties
      kernels::argmax(c.queue, c.output(DType::i64, {13, 10, 1}), x, 2);
      kernels::argmax(c.queue, c.output(DType::i64, {13, 1, 41}), x, 1);
      kernels::argmax(c.queue, c.output(DType::i64, {1, 10, 41}), x, 0);
    });
}

TEST(DevicesAgree, Softmax) {
  for (const DType dtype : kFloating)
    for (const Sizes& sizes :
         {Sizes{3, 10}, Sizes{9, 64}, Sizes{2, 333}, Sizes{2, 4, 128}, Sizes{2, 5000}, Sizes{1, 4099}})
      for (const bool log : {false, true})
        expect_agreement(str("softmax ", dtype, " of ", sizes.back()), [&](Call& c) {
          const int64_t C = sizes.back();
          const View x = c.random(dtype, sizes, -9, 9);
          kernels::softmax_forward(c.queue, c.output(dtype, sizes, C), x, log);
          const View y = c.random(dtype, sizes, log ? -9 : 0, log ? -6 : 0.01), dy = c.random(dtype, sizes);
          kernels::softmax_backward(c.queue, c.output(dtype, sizes, C), dy, y, log);
        });
}

TEST(DevicesAgree, CrossEntropy) {
  for (const DType dtype : kFloating)
    for (const int64_t C : {10, 64, 4104})
      for (const double smoothing : {0.0, 0.1})
        for (const bool classes : {true, false})
          expect_agreement(str("cross entropy ", dtype, " ", C, " smoothing ", smoothing), [&](Call& c) {
            const int64_t N = C > 1000 ? 2 : 11;
            const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
            const View logits = c.random(dtype, {N, C}, -8, 8);
            const View target = classes ? c.integers(DType::i64, {N}, 0, C - 1) : c.random(dtype, {N, C}, 0, 1);
            const kernels::CrossEntropyArguments arguments{smoothing, classes ? 3 : -100};
            const View loss = c.output(wide, {N}, C), lse = c.output(wide, {N}, C), weight = c.output(wide, {N});
            kernels::cross_entropy_forward(c.queue, loss, lse, weight, logits, target, arguments);
            kernels::cross_entropy_backward(c.queue, c.output(dtype, {N, C}, C), c.random(wide, {N}), logits, lse,
                                            target, arguments);
          });
  expect_agreement("a class out of range", [&](Call& c) {
    const View target = c.given(DType::i64, {3}, {0, 10, -1});
    kernels::cross_entropy_forward(c.queue, c.output(DType::f32, {3}, 10), c.output(DType::f32, {3}, 10), View::none(),
                                   c.random(DType::f32, {3, 10}), target, {});
  });
}

struct Norm {
  int64_t M, C;
  bool relu, residual, affine;
};

TEST(DevicesAgree, BatchNorm) {
  const Norm cases[] = {{1, 3, false, false, true},   {37, 5, true, true, true},   {700, 16, true, false, true},
                        {2100, 4, false, true, true}, {300, 64, true, true, true}, {40, 300, false, false, false},
                        {5000, 1, true, true, true}};
  for (const DType dtype : kFloating)
    for (const Norm& n : cases)
      expect_agreement(str("batch norm ", dtype, " ", n.M, "x", n.C), [&](Call& c) {
        const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
        const Sizes sizes{n.M, n.C};
        kernels::BatchNormArguments arguments;
        arguments.relu = n.relu;
        if (n.M == 1) arguments.eps = 0.5;  // else x / sqrt(eps) magnifies roundings
        const View x = c.random(dtype, sizes, 3, 5);
        const View weight = n.affine ? c.random(wide, {n.C}, 0.5, 2) : View::none();
        const View bias = n.affine ? c.random(wide, {n.C}) : View::none();
        const View residual = n.residual ? c.random(dtype, sizes) : View::none();
        const View mean = c.output(wide, {n.C}, n.M), invstd = c.output(wide, {n.C}, n.M);
        const View running_mean = c.inout(c.random(wide, {n.C}), n.M);
        const View running_var = c.inout(c.random(wide, {n.C}, 0.5, 2), n.M);
        const View y = c.output(dtype, sizes, n.M);
        kernels::batch_norm_forward(c.queue, y, mean, invstd, running_mean, running_var, x, weight, bias, residual,
                                    arguments);
        kernels::batch_norm_inference(c.queue, c.output(dtype, sizes, n.M), x, running_mean, running_var, weight, bias,
                                      residual, arguments);
        // Backward from given statistics and a given mask, so that roundings of the forward do not flip the mask.
        const View save_mean = c.random(wide, {n.C}, 3.9, 4.1), save_invstd = c.random(wide, {n.C}, 1, 2);
        const View mask = n.relu ? c.random(dtype, sizes) : View::none(), dy = c.random(dtype, sizes);
        const View dx = c.output(dtype, sizes, n.M);
        const View dresidual = n.residual ? c.output(dtype, sizes) : View::none();
        const View dweight = n.affine ? c.output(wide, {n.C}, n.M * 16) : View::none();
        const View dbias = n.affine ? c.output(wide, {n.C}, n.M * 16) : View::none();
        kernels::batch_norm_backward(c.queue, dx, dresidual, dweight, dbias, dy, x, mask, weight, View::none(),
                                     save_mean, save_invstd, arguments);
      });
}

TEST(DevicesAgree, BatchNormKeepsSmallDeviationsFarFromZero) {
  expect_agreement("mean 4096, deviation 1", [&](Call& c) {
    const View x = c.random(DType::f32, {900, 8}, 4094.3, 4097.7);
    kernels::batch_norm_forward(c.queue, c.output(DType::f32, {900, 8}, 4096 * 4096), c.output(DType::f32, {8}),
                                c.output(DType::f32, {8}, 900), View::none(), View::none(), x, View::none(),
                                View::none(), View::none(), {});
  });
}

TEST(DevicesAgree, LayerNorm) {
  for (const DType dtype : kFloating)
    for (const Sizes& sizes : {Sizes{5, 7}, Sizes{300, 48}, Sizes{9, 768}, Sizes{3, 2048}, Sizes{2, 5000}})
      for (const bool affine : {true, false})
        expect_agreement(str("layer norm ", dtype, " of ", sizes[1]), [&](Call& c) {
          const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
          const int64_t M = sizes[0], C = sizes[1];
          const View x = c.random(dtype, sizes, 1, 4), dy = c.random(dtype, sizes);
          const View weight = affine ? c.random(wide, {C}, 0.5, 2) : View::none();
          const View bias = affine ? c.random(wide, {C}) : View::none();
          const View residual = affine ? View::none() : c.random(dtype, sizes);
          const View sum = affine ? View::none() : c.output(dtype, sizes);
          kernels::layer_norm_forward(c.queue, c.output(dtype, sizes, C), c.output(wide, {M}, C),
                                      c.output(wide, {M}, C), sum, x, residual, weight, bias, 1e-5);
          const View mean = c.random(wide, {M}, 2, 3), invstd = c.random(wide, {M}, 1, 2);
          const View dweight = affine ? c.output(wide, {C}, M * 16) : View::none();
          const View dbias = affine ? c.output(wide, {C}, M * 16) : View::none();
          kernels::layer_norm_backward(c.queue, c.output(dtype, sizes, C), dweight, dbias, dy, x, weight, mean, invstd,
                                       residual);
          kernels::rms_norm_forward(c.queue, c.output(dtype, sizes, C), c.output(wide, {M}, C), sum, x, residual,
                                    weight, 1e-5);
          kernels::rms_norm_backward(c.queue, c.output(dtype, sizes, C), dweight, dy, x, weight, invstd, residual);
        });
}

TEST(DevicesAgree, Pool2d) {
  struct Pool {
    int64_t N, H, W, C;
    kernels::Pool2dArguments arguments;
  };
  const Pool cases[] = {{2, 8, 8, 16, {}},
                        {3, 9, 7, 5, {{3, 3}, {2, 2}, {1, 1}, true}},
                        {1, 12, 11, 8, {{3, 2}, {1, 3}, {1, 0}, false}},
                        {2, 7, 7, 24, {{7, 7}, {7, 7}, {0, 0}, true}}};
  for (const DType dtype : kFloating)
    for (const Pool& p : cases)
      expect_agreement(str("pool ", dtype, " of ", p.H, "x", p.W, "x", p.C), [&](Call& c) {
        const auto& a = p.arguments;
        const Sizes xs{p.N, p.H, p.W, p.C};
        const Sizes ys{p.N, (p.H + 2 * a.padding.h - a.kernel.h) / a.stride.h + 1,
                       (p.W + 2 * a.padding.w - a.kernel.w) / a.stride.w + 1, p.C};
        const int64_t window = a.kernel.h * a.kernel.w;
        const View x = c.integers(dtype, xs, -9, 9), dy = c.random(dtype, ys);  // with ties
        const View index = c.output(DType::i32, ys);
        kernels::max_pool2d_forward(c.queue, c.output(dtype, ys), index, x, a);
        kernels::max_pool2d_backward(c.queue, c.output(dtype, xs, window), dy, index, a);
        kernels::avg_pool2d_forward(c.queue, c.output(dtype, ys, window), x, a);
        kernels::avg_pool2d_backward(c.queue, c.output(dtype, xs, window), dy, a);
      });
  for (const DType dtype : kFloating)
    for (const Sizes& pq : {Sizes{1, 1}, Sizes{3, 2}, Sizes{11, 13}})
      for (const int64_t C : {3, 16})
        expect_agreement(str("adaptive pool ", dtype, " to ", pq[0], "x", pq[1]), [&](Call& c) {
          const Sizes xs{2, 10, 9, C}, ys{2, pq[0], pq[1], C};
          kernels::adaptive_avg_pool2d_forward(c.queue, c.output(dtype, ys, 90), c.random(dtype, xs, 0, 2));
          kernels::adaptive_avg_pool2d_backward(c.queue, c.output(dtype, xs, 90), c.random(dtype, ys, 0, 2));
        });
}

TEST(DevicesAgree, RandomNumbers) {
  const auto state = [](Call& c) { return c.given(DType::i64, {2}, {123456789, 5000000000.0}); };
  for (const int64_t n : {1, 2, 3, 1030})
    for (const DType dtype : kFloating)
      expect_agreement(str("draws ", dtype, " ", n), [&](Call& c) {
        const View s = state(c);
        kernels::random_uniform(c.queue, c.output(dtype, {n}), s, {7}, -3, 5);
        kernels::random_normal(c.queue, c.output(dtype, {n}), s, {7}, 1, 2);
        kernels::random_bernoulli(c.queue, c.output(dtype, {n}), s, {7}, 0.3);
        kernels::dropout(c.queue, c.output(dtype, {n}), c.random(dtype, {n}), s, {7}, 0.3);
      });
  for (const DType dtype : {DType::i64, DType::i32, DType::u8, DType::boolean})
    expect_agreement("Bernoulli of integers",
                     [&](Call& c) { kernels::random_bernoulli(c.queue, c.output(dtype, {77}), state(c), {0}, 0.5); });
  for (const int64_t n : {0, 1, 2, 17, 1000})
    expect_agreement("permutation",
                     [&](Call& c) { kernels::random_permutation(c.queue, c.output(DType::i64, {n}), state(c), {3}); });
}

TEST(DevicesAgree, Index) {
  for (const DType dtype : kAll)
    expect_agreement(str("index ", dtype), [&](Call& c) {
      const View x = c.integers(dtype, {4, 9, 16}, 0, 1), odd = c.integers(dtype, {9, 5}, 0, 1);
      const View index = c.integers(DType::i64, {13}, 0, 8);
      kernels::index_select(c.queue, c.output(dtype, {4, 13, 16}), x, index, 1);
      kernels::index_select(c.queue, c.output(dtype, {13, 5}), odd, index, 0);
      kernels::gather(c.queue, c.output(dtype, {4, 3, 16}), x, c.integers(DType::i64, {4, 3, 16}, 0, 8), 1);
      kernels::gather(c.queue, c.output(dtype, {9, 2}), odd, c.integers(DType::i64, {9, 2}, 0, 4), 1);
    });
  for (const DType dtype : kFloating)
    expect_agreement(str("index backward ", dtype), [&](Call& c) {
      const View index = c.integers(DType::i64, {40}, 0, 8);
      kernels::index_select_backward(c.queue, c.output(dtype, {4, 9, 6}, 40), c.random(dtype, {4, 40, 6}), index, 1);
      kernels::index_select_backward(c.queue, c.output(dtype, {9, 6}), c.random(dtype, {0, 6}),
                                     c.integers(DType::i64, {0}, 0, 1), 0);
      kernels::gather_backward(c.queue, c.output(dtype, {4, 9, 6}, 7), c.random(dtype, {4, 7, 6}),
                               c.integers(DType::i64, {4, 7, 6}, 0, 8), 1);
    });
}

TEST(DevicesAgree, IndexOutOfRangeReadsNothing) {
  for (const DeviceKind kind : device_runs()) {
    if (kind == DeviceKind::cpu) continue;  // has exceptions
    Call c(kind, 1);
    const View index = c.given(DType::i64, {3}, {-1, 1, 2});
    c.output(DType::f32, {3});
    c.output(DType::i32, {3});
    const View y = c.output(DType::bf16, {3}), i = c.output(DType::i64, {3});
    kernels::index_select(c.queue, y, c.given(DType::bf16, {2}, {5, 6}), index, 0);
    kernels::gather(c.queue, i, c.given(DType::i64, {2}, {5, 6}), index, 0);
    const auto results = c.results();
    EXPECT_TRUE(std::isnan(results[2].values[0]));
    EXPECT_EQ(results[2].values[1], 6);
    EXPECT_TRUE(std::isnan(results[2].values[2]));
    EXPECT_EQ(results[3].values, (std::vector<double>{0, 6, 0}));
  }
}

TEST(DevicesAgree, Optimizers) {
  struct Types {
    DType w, g;
    bool copy;
  };
  for (const Types& t : {Types{DType::f32, DType::f32, false}, Types{DType::f32, DType::bf16, true},
                         Types{DType::f32, DType::f32, true}, Types{DType::f64, DType::f64, false}})
    for (const int64_t n : {0, 3, 1030})
      for (const double step : {1.0, 17.0})
        for (const double scale : {0.5, 0.0, static_cast<double>(INFINITY)})
          expect_agreement(str("optimizers of ", n, " by ", t.g, " scale ", scale), [&](Call& c) {
            const View scalars = c.given(t.w, {3}, {0.1, step, scale}), g = c.random(t.g, {n});
            const auto w = [&] { return c.inout(c.random(t.w, {n})); };
            const auto state = [&] { return c.inout(c.random(t.w, {n}, 0, 1)); };
            const auto copy = [&] { return t.copy ? c.inout(c.random(DType::bf16, {n})) : View::none(); };
            kernels::sgd_step(c.queue, w(), View::none(), copy(), g, scalars, {.weight_decay = 0.01});
            kernels::sgd_step(c.queue, w(), state(), copy(), g, scalars, {.momentum = 0.9, .nesterov = true});
            kernels::sgd_step(c.queue, w(), state(), copy(), g, scalars,
                              {.momentum = 0.9, .dampening = 0.1, .weight_decay = 0.01, .maximize = true});
            kernels::adam_step(c.queue, w(), state(), state(), copy(), g, scalars, {.weight_decay = 0.01});
            kernels::adam_step(c.queue, w(), state(), state(), copy(), g, scalars,
                               {.weight_decay = 0.01, .decoupled = true, .maximize = true});
            kernels::adadelta_step(c.queue, w(), state(), state(), copy(), g, scalars, {.weight_decay = 0.01});
          });
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64})
    for (const double norm : {0.5, 40.0})
      expect_agreement("clipping", [&](Call& c) {
        const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
        kernels::clip_gradient(c.queue, c.inout(c.random(dtype, {101})), c.given(wide, {1}, {norm}), 2);
      });
}

TEST(DevicesAgree, Image) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64})
    for (const int64_t C : {1, 3, 4})
      expect_agreement(str("image ", dtype, " ", C), [&](Call& c) {
        const View x = c.integers(DType::u8, {3, 10, 12, C}, 0, 255);
        kernels::ImageNormalizeArguments a;
        for (int k = 0; k < 4; ++k)
          a.mean[k] = 0.4f + 0.05f * static_cast<float>(k), a.std[k] = 0.2f + 0.01f * static_cast<float>(k);
        kernels::image_normalize(c.queue, c.output(dtype, {3, 8, 8, C}), x, View::none(), a);
        const View place = c.given(DType::i32, {3, 3}, {0, 0, 0, -3, 5, 1, 6, -2, 1});
        kernels::image_normalize(c.queue, c.output(dtype, {3, 9, 8, C}), x, place, a);
      });
}

TEST(DevicesAgree, UnalignedStarts) {
  for (const DType dtype : {DType::f32, DType::bf16})
    expect_agreement(str("an offset of one element, ", dtype), [&](Call& c) {
      const auto tail = [](const View& view, Sizes sizes) {
        View moved = view;
        moved.data = static_cast<char*>(view.data) + size_of(view.dtype);
        moved.rank = static_cast<int>(sizes.size());
        int64_t stride = 1;
        for (int d = moved.rank - 1; d >= 0; --d) {
          moved.sizes[d] = sizes[d];
          moved.strides[d] = stride;
          stride *= sizes[d];
        }
        return moved;
      };
      const auto in = [&](const Sizes& sizes) { return tail(c.random(dtype, {count_of(sizes) + 1}, 0.5, 2), sizes); };
      const auto out = [&](const Sizes& sizes, int64_t K = 1) {
        return tail(c.inout(c.random(dtype, {count_of(sizes) + 1}), K), sizes);
      };
      kernels::unary_forward(c.queue, kernels::Unary::exp, out({64}), in({64}), {});
      kernels::binary_forward(c.queue, kernels::Binary::mul, out({8, 16}), in({8, 16}), in({8, 16}), 1);
      kernels::reduce(c.queue, kernels::Reduce::sum, out({1}, 4096), in({4096}));
      kernels::softmax_forward(c.queue, out({4, 64}, 64), in({4, 64}), false);
      kernels::batch_norm_inference(c.queue, out({40, 16}), in({40, 16}), c.random(DType::f32, {16}),
                                    c.random(DType::f32, {16}, 1, 2), View::none(), View::none(), View::none(), {});
      kernels::adaptive_avg_pool2d_forward(c.queue, out({2, 2, 2, 16}, 16), in({2, 8, 8, 16}));
    });
}

}  // namespace
}  // namespace weft::tests
