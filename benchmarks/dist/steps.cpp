// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "benchmarks/harness/measure.h"
#include "core/autograd.h"
#include "core/ops/layers/losses.h"
#include "core/ops/random.h"
#include "dist/ddp/ddp.h"
#include "dist/fsdp/fsdp.h"
#include "kernels/error.h"
#include "nn/models/bert.h"
#include "nn/models/resnet.h"
#include "optim/optimizers.h"

// One rank of a data-parallel training; benchmarks/dist/beside_pytorch alternates it with
// benchmarks/peers/pytorch_parallel.py. Rank 0 prints the median time of a step in milliseconds.
//   weft-run --nproc_per_node 2 bench_steps ddp|fsdp resnet18|bert_base STEPS

namespace weft::benchmarks {
namespace {

struct Net {
  std::shared_ptr<nn::Module> model;
  Tensor x, labels;
};

Net make(std::string_view name, Device device) {
  if (name == "resnet18") {
    const auto model = nn::resnet18({.classes = 10, .stem = nn::Stem::cifar});
    model->to(device);
    std::vector<int64_t> labels(32);
    for (size_t n = 0; n < labels.size(); ++n) labels[n] = static_cast<int64_t>(n) % 10;
    return {model, normal({32, 32, 32, 3}, 0, 1, DType::f32, device), Tensor::from(labels, device)};
  }
  WEFT_CHECK(name == "bert_base", "expected resnet18 or bert_base, got ", name);
  nn::BertOptions options = nn::bert_options("bert_base");
  options.dropout = 0;
  const auto model = std::make_shared<nn::Bert>(options);
  model->to(device);
  return {model, Tensor::arange(4 * 128, DType::i64, device, 1000).reshape({4, 128}),
          Tensor::from<int64_t>({0, 1, 0, 1}, device)};
}

void run(std::string_view kind, std::string_view name, int steps) {
  WEFT_CHECK(kind == "ddp" || kind == "fsdp", "expected ddp or fsdp, got ", kind);
  const dist::World world = dist::init();
  const Net net = make(name, world.device());
  std::optional<dist::DDP> ddp;
  std::optional<dist::FSDP> fsdp;
  if (kind == "ddp")
    ddp.emplace(net.model, world);
  else
    fsdp.emplace(net.model, world, dist::FsdpOptions{.policy = {.min_num_params = 500'000}});
  optim::AdamW adam(ddp ? ddp->parameters() : fsdp->parameters(), {.lr = 1e-4});
  const auto step = [&] {
    const Tensor loss = cross_entropy(ddp ? (*ddp)(net.x) : (*fsdp)(net.x), net.labels);
    adam.zero_grad();
    loss.backward();
    adam.step();
  };
  std::vector<double> seconds;
  for (int i = -2; i < steps; ++i) {
    const auto start = std::chrono::steady_clock::now();
    step();
    if (i >= 0) seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  if (world.rank() == 0) std::printf("%.6g\n", 1e3 * bench::median(seconds));
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) {
  try {
    WEFT_CHECK(argc == 4 && std::atoi(argv[3]) > 0, "usage: bench_steps ddp|fsdp resnet18|bert_base STEPS");
    weft::benchmarks::run(argv[1], argv[2], std::atoi(argv[3]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_steps: %s\n", error.what());
    return 1;
  }
}
