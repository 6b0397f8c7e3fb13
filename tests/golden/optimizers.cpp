// SPDX-License-Identifier: Apache-2.0
#include "optim/optimizers.h"
#include "core/autograd.h"
#include "core/ops/reduce.h"
#include "tests/golden/golden.h"
#include "tests/golden/hashed.h"
#include "tests/support/devices.h"

namespace weft::golden {
namespace {

using namespace optim;

constexpr int kUpdates = 5;

/// SHAPES of optimizers.py, with its first values.
std::vector<NamedTensor> parameters(const std::string& optimizer, Device device) {
  std::vector<std::pair<std::string, Shape>> shapes{
      {"a.weight", {7, 5}}, {"a.bias", {5}}, {"b.weight", {130, 259}}, {"b.zero", {6, 6}}};
  if (optimizer.starts_with("adafactor")) shapes.push_back({"c.weight", {3, 4, 2, 5}});
  std::vector<NamedTensor> all;
  for (uint32_t seed = 0; seed < shapes.size(); ++seed) {
    const auto& [name, sizes] = shapes[seed];
    const float scale = name == "b.zero" ? 0.0f : static_cast<float>(1 + seed);
    const Tensor w = Tensor::from(hashed_values(seed, sizes.numel(), scale), sizes, device);
    all.push_back({name, w.requires_grad_()});
  }
  return all;
}

std::unique_ptr<Optimizer> make(const std::string& name, const std::vector<NamedTensor>& p) {
  if (name == "adam_amsgrad")
    return std::make_unique<Adam>(
        p, AdamOptions{.lr = 0.02, .beta1 = 0.8, .beta2 = 0.6, .eps = 1e-6, .weight_decay = 0.1, .amsgrad = true});
  if (name == "adamw_amsgrad")
    return std::make_unique<AdamW>(
        p,
        AdamWOptions{.lr = 0.02, .beta1 = 0.7, .beta2 = 0.5, .weight_decay = 0.2, .maximize = true, .amsgrad = true});
  if (name == "rmsprop")
    return std::make_unique<RMSprop>(p, RMSpropOptions{.lr = 0.01, .alpha = 0.9, .eps = 1e-4, .weight_decay = 0.05});
  if (name == "rmsprop_momentum")
    return std::make_unique<RMSprop>(p, RMSpropOptions{.lr = 0.01, .alpha = 0.7, .momentum = 0.8});
  if (name == "rmsprop_centered")
    return std::make_unique<RMSprop>(p, RMSpropOptions{.lr = 0.01, .alpha = 0.6, .eps = 1e-3, .centered = true});
  if (name == "rmsprop_all")
    return std::make_unique<RMSprop>(
        p, RMSpropOptions{.lr = 0.01, .alpha = 0.8, .eps = 1e-3, .momentum = 0.5, .centered = true, .maximize = true});
  if (name == "adagrad")
    return std::make_unique<Adagrad>(
        p, AdagradOptions{.lr = 0.1, .lr_decay = 0.3, .weight_decay = 0.02, .initial_accumulator_value = 0.5});
  if (name == "lion")
    return std::make_unique<Lion>(p, LionOptions{.lr = 0.01, .beta1 = 0.8, .beta2 = 0.6, .weight_decay = 0.1});
  if (name == "lars")
    return std::make_unique<LARS>(without_decay_on_vectors(p),
                                  LarsOptions{.lr = 2, .weight_decay = 0.01, .trust = 0.02, .eps = 0.1});
  if (name == "lars_nesterov")
    return std::make_unique<LARS>(
        p, LarsOptions{
               .lr = 2, .momentum = 0.7, .nesterov = true, .weight_decay = 0, .trust = 0.05, .always_adapt = true});
  if (name == "lamb")
    return std::make_unique<LAMB>(
        without_decay_on_vectors(p),
        LambOptions{.lr = 0.05, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-3, .weight_decay = 0.1});
  if (name == "lamb_clipped")
    return std::make_unique<LAMB>(
        p, LambOptions{
               .lr = 0.05, .beta1 = 0.8, .beta2 = 0.9, .weight_decay = 0.5, .clip_trust = true, .always_adapt = true});
  if (name == "adafactor")
    return std::make_unique<Adafactor>(without_decay_on_vectors(p), AdafactorOptions{.lr = 0.02, .weight_decay = 0.1});
  if (name == "adafactor_all")
    return std::make_unique<Adafactor>(p, AdafactorOptions{.lr = 0.6,
                                                           .beta2_decay = -0.5,
                                                           .eps1 = 0.3,
                                                           .eps2 = 0.02,
                                                           .d = 1.1,
                                                           .weight_decay = 0.05,
                                                           .maximize = true});
  fail("no optimizer '", name, "'");
}

/// Steps `first` to before `last`, with the gradients of optimizers.py.
void train(Optimizer& optimizer, const std::vector<NamedTensor>& all, int first, int last) {
  for (int step = first; step < last; ++step) {
    optimizer.zero_grad();
    for (uint32_t i = 0; i < all.size(); ++i) {
      const Tensor& w = all[i].tensor;
      const auto seed = static_cast<uint32_t>(100 * step + 10) + i;
      const auto g = hashed_values(seed, w.numel(), 1.0f / static_cast<float>(step + 1));
      w.grad().copy_(Tensor::from(g, w.sizes(), w.device()));
    }
    optimizer.step();
  }
}

class MoreOptimizers : public testing::TestWithParam<std::string> {};

TEST_P(MoreOptimizers, WeightsAndStatesEqualPyTorch) {
  const NoGrad no_grad;
  const std::string& name = GetParam();
  const File file("optimizers");
  for (const DeviceKind kind : tests::test_devices()) {
    SCOPED_TRACE(weft::name(kind));
    const auto all = parameters(name, {kind, 0});
    const auto optimizer = make(name, all);
    train(*optimizer, all, 0, 2);
    // A new optimizer goes on from the saved state.
    const auto resumed = make(name, all);
    resumed->load_state_dict(optimizer->state_dict());
    train(*resumed, all, 2, kUpdates);
    std::vector<NamedTensor> got = all;
    for (const NamedTensor& state : resumed->state_dict().tensors) got.push_back(state);
    size_t compared = 0;
    for (const auto& [path, tensor] : got) {
      const Tensor value = tensor.dim() == 2 && path.starts_with("b.weight")
                               ? norm(tensor.detach().to(DType::f64), {1}, false)
                               : tensor.detach();
      expect_close(value, file[name + '.' + path], path);
      ++compared;
    }
    for (const auto& [key, tensor] : file.tensors()) compared -= key.starts_with(name + '.');
    EXPECT_EQ(compared, 0u) << "PyTorch keeps other states";
  }
}

INSTANTIATE_TEST_SUITE_P(All, MoreOptimizers,
                         testing::Values("adam_amsgrad", "adamw_amsgrad", "rmsprop", "rmsprop_momentum",
                                         "rmsprop_centered", "rmsprop_all", "adagrad", "lion", "lars", "lars_nesterov",
                                         "lamb", "lamb_clipped", "adafactor", "adafactor_all"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace weft::golden
