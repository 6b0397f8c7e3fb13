// SPDX-License-Identifier: Apache-2.0
// Sequences of several lengths: each is as it is alone.
#include "nn/recurrent.h"

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "core/random.h"
#include "tests/support/devices.h"
#include "tests/support/error_text.h"

namespace weft::nn {
namespace {

std::vector<double> values(const Tensor& x) { return x.to(Device{}).contiguous().to_vector<double>(); }

void expect_near(const Tensor& got, const Tensor& want, const std::string& what) {
  ASSERT_EQ(got.sizes(), want.sizes()) << what;
  const std::vector<double> a = values(got), b = values(want);
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-12) << what << " " << i;
}

struct Run {
  Tensor y, h, c;
};
Run run(const LSTM& net, const Tensor& x, const Tensor& h, const Tensor& c, const Lengths* lengths) {
  const LstmOutput out = lengths ? net(x, *lengths, h, c) : net(x, h, c);
  return {out.y, out.h, out.c};
}
template <class Net>
Run run(const Net& net, const Tensor& x, const Tensor& h, const Tensor&, const Lengths* lengths) {
  const GruOutput out = lengths ? net(x, *lengths, h) : net(x, h);
  return {out.y, out.h, {}};
}

template <class Net>
void check_net(Net& net, Device device, bool batch_first, bool with_states) {
  constexpr int64_t kSteps = 6, kHidden = 4;
  const std::vector<int64_t> steps{2, 5, 1, 5, 3};  // the longest is shorter than the array
  const auto B = static_cast<int64_t>(steps.size());
  net.to(DType::f64);
  net.to(device);
  const auto drawn = [&](const Shape& sizes) { return normal(sizes, 0, 1, DType::f64).to(device).requires_grad_(); };
  const Tensor x = drawn(batch_first ? Shape{B, kSteps, 3} : Shape{kSteps, B, 3});
  const Shape states{net.options().layers * net.directions(), B, kHidden};
  const Tensor h = with_states ? drawn(states) : Tensor(), c = with_states ? drawn(states) : Tensor();
  const auto part = [](const Tensor& t, int dim, int64_t b) { return t.defined() ? t.slice(dim, b, 1) : t; };
  const Lengths lengths(steps);
  const Run all = run(net, x, h, c, &lengths);
  Tensor alone_sum;
  const auto add_to = [&](const Tensor& t) {
    if (t.defined()) alone_sum = alone_sum.defined() ? alone_sum + sum(t * t * t) : sum(t * t * t);
  };
  const int batch = batch_first ? 0 : 1, time = 1 - batch;
  for (int64_t b = 0; b < B; ++b) {
    const int64_t own = steps[static_cast<size_t>(b)];
    const Run alone = run(net, part(x, batch, b).slice(time, 0, own), part(h, 1, b), part(c, 1, b), nullptr);
    expect_near(part(all.y, batch, b).slice(time, 0, own), alone.y, "y");
    EXPECT_EQ(sum(part(all.y, batch, b).slice(time, own, kSteps - own)).item(), 0);
    expect_near(part(all.h, 1, b), alone.h, "h");
    if (alone.c.defined()) expect_near(part(all.c, 1, b), alone.c, "c");
    for (const Tensor& t : {alone.y, alone.h, alone.c}) add_to(t);
  }
  alone_sum.backward();
  std::vector<Tensor> leaves{x}, wanted;
  for (const Tensor& t : {h, c})
    if (t.defined() && t.has_gradient()) leaves.push_back(t);
  for (const NamedTensor& p : net.parameters()) leaves.push_back(p.tensor);
  for (const Tensor& leaf : leaves) {
    wanted.push_back(leaf.grad().clone());
    leaf.zero_grad();
  }
  Tensor together;
  for (const Tensor& t : {all.y, all.h, all.c})
    if (t.defined()) together = together.defined() ? together + sum(t * t * t) : sum(t * t * t);
  together.backward();
  for (size_t i = 0; i < leaves.size(); ++i) expect_near(leaves[i].grad(), wanted[i], "gradient");
}

TEST(Lengths, SequencesTogetherAreAsAlone) {
  for (const DeviceKind kind : tests::test_devices())
    for (const bool both : {false, true}) {
      manual_seed(3);
      const RecurrentOptions options{.layers = 2, .batch_first = both, .bidirectional = both};
      LSTM lstm(3, 4, options);
      GRU gru(3, 4, options);
      RNN rnn(3, 4, RnnOptions{options, /*relu=*/false});
      check_net(lstm, Device{kind}, both, both);
      check_net(gru, Device{kind}, both, !both);
      check_net(rnn, Device{kind}, both, both);
    }
}

TEST(Lengths, SayWhatIsWrong) {
  EXPECT_EQ(error_text([] { Lengths(std::vector<int64_t>()); }), "Lengths: expected at least one length, got none");
  EXPECT_EQ(error_text([] { Lengths({2, 0}); }), "Lengths: expected lengths of at least 1, got 0");
  const GRU gru(3, 4);
  const Tensor x = Tensor::zeros({5, 2, 3});
  EXPECT_EQ(error_text([&] {
              gru(x, Lengths({1, 2, 3}));
            }),
            "GRU: expected 2 lengths of at most 5, got 3, the longest 3");
  EXPECT_EQ(error_text([&] { gru(x, Lengths({6, 1})); }), "GRU: expected 2 lengths of at most 5, got 2, the longest 6");
}

}  // namespace
}  // namespace weft::nn
