// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/losses.h"
#include "core/ops/layers/pool2d.h"
#include "core/ops/unary.h"
#include "nn/batch_norm.h"
#include "nn/conv.h"
#include "nn/layer_norm.h"
#include "nn/linear.h"
#include "nn/sequential.h"
#include "tests/golden/training.h"

namespace weft::golden {
namespace {

/// SmallNet of models.py.
struct SmallNet : nn::Module {
  nn::Conv2d conv1{3, 8, {3, 3}, {.padding = {1, 1}}, {.bias = false}};
  nn::BatchNorm2d bn1{8};
  nn::Conv2d conv2{8, 12, {3, 3}, {.stride = {2, 2}, .padding = {1, 1}}};
  nn::Flatten flatten;
  nn::Linear fc1{12 * 2 * 2, 10};
  nn::LayerNorm norm{10};
  nn::Linear fc2{10, 5};

  Tensor forward(const Tensor& x) const override {
    Tensor y = max_pool2d(bn1(conv1(x), {.relu = true}), {.kernel = {2, 2}});
    y = relu(conv2(y));
    return fc2(gelu(norm(fc1(flatten(y)))));
  }
  void fields(nn::Visitor& v) override {
    v("conv1", conv1);
    v("bn1", bn1);
    v("conv2", conv2);
    v("fc1", fc1);
    v("norm", norm);
    v("fc2", fc2);
  }
};

Task small_net(const File& file) {
  Task task{std::make_shared<SmallNet>(), 6, 8, 5, file["seeds"].to_vector<int64_t>()};
  fill_parameters(*task.model);
  return task;
}

TEST(SmallNet, EveryGradientEqualsPyTorch) {
  const File file("small_net");
  const Task task = small_net(file);
  const auto [images, labels] = batch(task, 0);
  const Tensor logits = (*task.model)(images);
  const Tensor loss = cross_entropy(logits, labels);
  loss.backward();
  expect_close(logits, file["logits"], "logits");
  expect_close(loss, file["loss"], "loss");
  for (const auto& [name, parameter] : task.model->parameters())
    expect_close(as_pytorch(parameter.grad()), file["gradient." + name], name);
  task.model->eval();
  expect_close((*task.model)(images), file["logits_eval"], "logits in evaluation");
}

class Optimizers : public testing::TestWithParam<std::string> {};

TEST_P(Optimizers, ThreeStepsEqualPyTorch) {
  const std::string& name = GetParam();
  const File file("small_net");
  const Task task = small_net(file);
  const auto optimizer = make_optimizer(name, task.model->parameters());
  expect_close(train(task, *optimizer), file[name + ".losses"].to_vector<double>(), "losses");
  for (const auto& [path, tensor] : task.model->state_dict().tensors)
    if (file.has(name + '.' + path)) expect_close(tensor, file[name + '.' + path], path);
  EXPECT_EQ(optimizer->steps(), 3);
}

INSTANTIATE_TEST_SUITE_P(All, Optimizers,
                         testing::Values("sgd", "sgd_momentum", "sgd_dampening", "sgd_nesterov", "adam", "adamw",
                                         "adadelta"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace weft::golden
