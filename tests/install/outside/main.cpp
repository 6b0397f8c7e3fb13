// SPDX-License-Identifier: Apache-2.0
// A user's training program: fits y = 2a - b + 1 and saves its weights.
#include "core/tensor.h"

#include <weft/weft.h>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

int main(int argc, char** argv) {
  return weft::train::guarded_main("outside", [&] {
    WEFT_CHECK(argc == 2, "expected a folder");
    const weft::train::RunFolder run(std::string(argv[1]) + "/run");
    std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> inputs, targets;
    for (int i = 0; i < 64; ++i) {
      const float a = uniform(random), b = uniform(random);
      inputs.insert(inputs.end(), {a, b});
      targets.push_back(2 * a - b + 1);
    }
    const auto x = weft::Tensor::from(inputs, weft::Shape{64, 2});
    const auto y = weft::Tensor::from(targets, weft::Shape{64, 1});

    weft::nn::Linear model(2, 1);
    weft::optim::SGD sgd(model.parameters(), {.lr = 0.2, .momentum = 0.9});
    weft::train::Metrics metrics(run.metrics());
    double loss = 0;
    for (int step = 1; step <= 200; ++step) {
      const weft::Tensor error = weft::mse_loss(model.forward(x), y);
      sgd.zero_grad();
      error.backward();
      sgd.step();
      loss = error.item();
      metrics.append({.step = step, .loss = loss, .lr = sgd.lr()});
    }
    WEFT_CHECK(loss < 1e-4, "expected a loss near 0, got ", loss);

    weft::write_safetensors(run.file("model.safetensors"), model.state_dict());
    const auto weight = weft::read_safetensors(run.file("model.safetensors")).state.tensor("weight").to_vector<float>();
    WEFT_CHECK(std::abs(weight[0] - 2) < 0.02 && std::abs(weight[1] + 1) < 0.02, "expected 2 and -1, got ", weight[0],
               " and ", weight[1]);
    weft::save_checkpoint(run.last_checkpoint(), {.parts = {{"model", model.state_dict()}}});
    model.load_state_dict(weft::load_checkpoint(run.last_checkpoint()).part("model"));
    std::printf("the outside program trained: loss %.2g\n", loss);
    return weft::train::kExitOk;
  });
}
