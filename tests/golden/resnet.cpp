// SPDX-License-Identifier: Apache-2.0
#include "nn/models/resnet.h"

#include "core/ops/cross_entropy.h"
#include "nn/models/cifar_resnet.h"
#include "tests/golden/training.h"

namespace weft::golden {
namespace {

struct Case {
  const char* name;
  std::function<std::shared_ptr<nn::Module>()> make;
  int64_t count, size, classes;
};

const Case kCases[] = {
    {"resnet8", [] { return nn::resnet8(); }, 5, 16, 10},
    {"resnet18", [] { return nn::resnet18({.classes = 10, .stem = nn::Stem::cifar}); }, 4, 32, 10},
    {"resnet18_imagenet", [] { return nn::resnet18({.classes = 7}); }, 3, 64, 7},
    {"resnet50", [] { return nn::resnet50({.classes = 6, .stem = nn::Stem::cifar}); }, 3, 16, 6},
};

Task make_task(const Case& test) {
  Task task{test.make(), test.count, test.size, test.classes};
  fill_parameters(*task.model);
  return task;
}

/// The 10 numbers against PyTorch's: each to the tolerance of the tensor's norm.
void expect_digest(const Tensor& got, const Tensor& expected, uint32_t seed, const std::string& what) {
  const std::vector<double> mine = digest(as_pytorch(got), seed), theirs = expected.to_vector<double>();
  const double norm = theirs[0];
  const double largest = std::sqrt(static_cast<double>(got.numel()));  // bounds the norm of the hashed factor
  EXPECT_NEAR(mine[0], norm, kTolerance * norm + 1e-6) << what << ": norm";
  EXPECT_NEAR(mine[1], theirs[1], kTolerance * norm * std::min(largest, 10.0) + 1e-6) << what << ": product";
  for (size_t i = 2; i < theirs.size(); ++i)
    EXPECT_NEAR(mine[i], theirs[i], kTolerance * norm + 1e-6) << what << ": element " << i - 2;
}

class ResNets : public testing::TestWithParam<Case> {};

TEST_P(ResNets, GradientsEqualPyTorch) {
  const File file(GetParam().name);
  const Task task = make_task(GetParam());
  const auto [pictures, labels] = batch(task, 0);
  const Tensor logits = (*task.model)(pictures);
  const Tensor loss = cross_entropy(logits, labels);
  loss.backward();
  expect_close(logits, file["logits"], "logits");
  expect_close(loss, file["loss"], "loss");
  uint32_t seed = 0;
  for (const auto& [name, parameter] : task.model->parameters()) {
    expect_digest(parameter.grad(), file["gradient_digest." + name], seed++, name);
    if (file.has("gradient." + name)) expect_close(as_pytorch(parameter.grad()), file["gradient." + name], name);
  }
  task.model->eval();
  expect_close((*task.model)(pictures), file["logits_eval"], "logits in evaluation");
}

TEST_P(ResNets, ThreeStepsEqualPyTorch) {
  const File file(GetParam().name);
  for (const std::string optimizer_name : {"sgd_nesterov", "adamw"}) {
    if (!file.has(optimizer_name + ".losses")) continue;
    const Task task = make_task(GetParam());
    const auto optimizer = make_optimizer(optimizer_name, task.model->parameters());
    expect_close(train(task, *optimizer), file[optimizer_name + ".losses"].to_vector<double>(), "losses");
    uint32_t seed = 0;
    for (const auto& [name, parameter] : task.model->parameters())
      expect_digest(parameter.detach(), file[optimizer_name + "_digest." + name], seed++, optimizer_name + ' ' + name);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ResNets, testing::ValuesIn(kCases), [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace weft::golden
