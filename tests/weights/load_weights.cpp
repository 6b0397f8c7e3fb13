// SPDX-License-Identifier: Apache-2.0
#include "train/load_weights.h"

#include "io/safetensors.h"
#include "nn/models/make_model.h"
#include "tests/weights/fixture.h"

namespace weft {
namespace {

using test::error_of;
using test::TemporaryFolder;
using train::load_weights;
using train::LoadedWeights;

class LoadWeights : public testing::Test {
 protected:
  StateDict copy() const {
    StateDict state = model_->state_dict();
    for (NamedTensor& entry : state.tensors) entry.tensor = entry.tensor.clone();
    return state;
  }
  std::filesystem::path saved(const StateDict& state) const {
    write_safetensors(folder_ / "w.safetensors", state);
    return folder_ / "w.safetensors";
  }

  TemporaryFolder folder_;
  std::shared_ptr<nn::Module> model_ = nn::make_model("resnet8", 10);
};

TEST_F(LoadWeights, AllOfThem) {
  const StateDict before = copy();
  const auto path = saved(before);
  for (const NamedTensor& parameter : model_->parameters()) parameter.tensor.detach().fill_(7);
  const LoadedWeights loaded = load_weights(*model_, path);
  EXPECT_TRUE(loaded.is_whole());
  EXPECT_EQ(loaded.loaded, before.tensors.size());
  EXPECT_EQ(loaded.text(), str(before.tensors.size(), " tensors loaded"));
  test::expect_same_tensors(before, copy());
}

TEST_F(LoadWeights, FromPyTorchWithAPrefix) {
  if (!have_zip()) GTEST_SKIP() << "this build has no libzip";
  const StateDict before = copy();
  StateDict wrapped;
  for (const NamedTensor& entry : before.tensors) wrapped.tensors.push_back({"module.net." + entry.name, entry.tensor});
  write_torch(folder_ / "w.pt", wrapped);
  for (const NamedTensor& parameter : model_->parameters()) parameter.tensor.detach().fill_(7);
  EXPECT_TRUE(load_weights(*model_, folder_ / "w.pt", {.strict = true, .rename = {.prefix = "net."}}).is_whole());
  test::expect_same_tensors(before, copy());
}

TEST_F(LoadWeights, WholeNumbersAreNoWeights) {  // a quantised file has its factors elsewhere
  StateDict state = copy();
  for (NamedTensor& entry : state.tensors)
    if (entry.name == "linear.weight") entry.tensor = Tensor::full(entry.tensor.sizes(), 3).to(DType::i32);
  EXPECT_THAT(error_of([&] { load_weights(*model_, saved(state)); }),
              testing::HasSubstr("wrong shape: linear.weight (expected floating point numbers, got I32[10,64])"));
}

TEST_F(LoadWeights, WhatDoesNotFitIsNamedAndNothingChanges) {
  StateDict state = copy();
  state.tensors.back() = {"linear.bias", Tensor::zeros({7})};
  state.tensors.front().name = "conv0.weight";
  const auto path = saved(state);
  const Tensor weight = model_->state_dict().tensors[3].tensor;
  weight.fill_(5);
  EXPECT_EQ(error_of([&] { load_weights(*model_, path); }),
            "load_state_dict: the weights do not fit CifarResNet; wrong shape: linear.bias (expected [10], got [7]); "
            "missing: conv1.weight; unexpected: conv0.weight");
  EXPECT_EQ(weight.to_vector<float>()[0], 5);

  const LoadedWeights loaded = load_weights(*model_, path, {.strict = false});
  EXPECT_EQ(loaded.missing, std::vector<std::string>{"conv1.weight"});
  EXPECT_EQ(loaded.unexpected, std::vector<std::string>{"conv0.weight"});
  EXPECT_EQ(loaded.misshapen, std::vector<std::string>{"linear.bias (expected [10], got [7])"});
  EXPECT_EQ(loaded.loaded, state.tensors.size() - 2);
  EXPECT_EQ(loaded.text(),
            str(state.tensors.size() - 2,
                " tensors loaded; wrong shape: linear.bias (expected [10], got [7]); missing: conv1.weight; "
                "unexpected: conv0.weight"));
  EXPECT_EQ(weight.to_vector<float>(), state.tensors[3].tensor.to_vector<float>());
}

TEST_F(LoadWeights, AFileWithoutTensorsIsAnError) {
  const auto path = saved({});
  EXPECT_EQ(error_of([&] { load_weights(*model_, path, {.strict = false}); }),
            "load_state_dict: expected the weights of CifarResNet, got a file without tensors");
}

TEST_F(LoadWeights, CountersMayBeMissing) {
  StateDict state;
  for (const NamedTensor& entry : copy().tensors)
    if (!entry.name.ends_with("num_batches_tracked")) state.tensors.push_back(entry);
  EXPECT_TRUE(load_weights(*model_, saved(state)).is_whole());
}

TEST_F(LoadWeights, NothingInCommonIsAnErrorAlways) {
  StateDict state;
  state.tensors = {{"w", Tensor::zeros({1})}};
  EXPECT_THAT(error_of([&] { load_weights(*model_, saved(state), {.strict = false}); }),
              testing::StartsWith("load_state_dict: the weights do not fit CifarResNet; missing: conv1.weight, "));
}

TEST_F(LoadWeights, OtherDTypesAreConverted) {
  StateDict state = copy();
  for (NamedTensor& entry : state.tensors)
    if (entry.tensor.is_floating()) entry.tensor = entry.tensor.to(DType::bf16);
  load_weights(*model_, saved(state));
  const StateDict after = copy();
  EXPECT_EQ(after.tensors[0].tensor.dtype(), DType::f32);
  EXPECT_EQ(after.tensors[0].tensor.to_vector<float>(), state.tensors[0].tensor.to_vector<float>());
}

}  // namespace
}  // namespace weft
