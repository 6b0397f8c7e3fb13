// SPDX-License-Identifier: Apache-2.0
#include "tests/dist/replicas.h"

#include <gtest/gtest.h>

#include <mutex>
#include <numeric>
#include <random>

#include "core/ops/binary.h"
#include "core/ops/layers/losses.h"
#include "core/ops/unary.h"
#include "core/random.h"
#include "nn/batch_norm.h"
#include "nn/linear.h"
#include "optim/optimizers.h"
#include "tests/dist/ranks.h"

namespace weft::dist::testing {
namespace {

constexpr uint64_t kSeed = 100;
constexpr int64_t kClasses = 4;

struct SmallNet : nn::Module {
  nn::Conv2d conv1{3, 8, {3, 3}, {.padding = {1, 1}}}, conv2{8, 8, {3, 3}, {.stride = {2, 2}}};
  std::shared_ptr<nn::BatchNorm2d> bn1, bn2;
  nn::Linear fc{3 * 3 * 8, kClasses};

  explicit SmallNet(bool normed) {
    if (!normed) return;
    bn1 = std::make_shared<nn::BatchNorm2d>(8);
    bn2 = std::make_shared<nn::BatchNorm2d>(8);
  }
  Tensor forward(const Tensor& x) const override {
    Tensor y = bn1 ? nn::conv_bn(conv1, *bn1, x, {.relu = true}) : relu(conv1(x));
    y = bn2 ? nn::conv_bn(conv2, *bn2, y, {.relu = true}) : relu(conv2(y));
    return fc(y.flatten(1));
  }
  void fields(nn::Visitor& v) override {
    v("conv1", conv1);
    v("bn1", bn1);
    v("conv2", conv2);
    v("bn2", bn2);
    v("fc", fc);
  }
};

struct Counters : nn::Visitor {
  std::vector<int64_t> found;
  void counter_at(const std::string&, int64_t& value) override { found.push_back(value); }
};

void append(std::vector<double>& all, const Tensor& tensor) {
  const auto values = tensor.to_vector<double>();
  all.insert(all.end(), values.begin(), values.end());
}

Trained result_of(nn::Module& model, std::vector<double> losses) {
  Counters counters;
  model.fields(counters);
  return {std::move(losses), weights_of(model), buffers_of(model), counters.found};
}

/// Replicas are equal bit for bit.
void expect_same_as_first(ProcessGroup& group, const std::vector<double>& own, const char* what) {
  if (own.empty()) return;
  const Tensor first = Tensor::from(own);
  group.broadcast(first, 0, {.name = what, .scale = {}})->wait();
  EXPECT_EQ(own, first.to_vector<double>()) << what << " of rank " << group.rank();
}

optim::SGD optimizer_of(const std::vector<NamedTensor>& parameters, const Training& training) {
  return optim::SGD(parameters, {.lr = training.lr, .momentum = training.momentum, .nesterov = training.momentum > 0});
}

}  // namespace

std::shared_ptr<nn::Module> small_net() { return std::make_shared<SmallNet>(false); }
std::shared_ptr<nn::Module> normed_net() { return std::make_shared<SmallNet>(true); }

std::shared_ptr<nn::Module> build(const ModelMaker& make, uint64_t seed, DeviceKind device) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  manual_seed(seed);
  auto model = make();
  model->to(Device{device, 0});
  return model;
}

Tensor samples(int step, int64_t first, int64_t count, const Shape& image, DeviceKind device) {
  std::vector<float> values;
  for (int64_t i = first; i < first + count; ++i) {
    std::mt19937_64 random(static_cast<uint64_t>(step * 1000 + i));
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (int64_t k = 0; k < image.numel(); ++k) values.push_back(uniform(random));
  }
  std::vector<int64_t> sizes{count};
  for (int d = 0; d < image.rank(); ++d) sizes.push_back(image[d]);
  return Tensor::from(values, Shape(sizes), Device{device, 0});
}

Tensor labels(int step, int64_t first, int64_t count, DeviceKind device) {
  std::vector<int64_t> values;
  for (int64_t i = first; i < first + count; ++i) values.push_back((step * 7 + i * 3 + i / 4) % kClasses);
  return Tensor::from(values, Device{device, 0});
}

Trained train_alone(const Training& t) {
  const auto model = build(t.make, kSeed, t.device);
  if (t.prepare) t.prepare(*model, make_process_group_alone());
  auto optimizer = optimizer_of(model->parameters(), t);
  std::vector<double> losses;
  for (size_t step = 0; step < t.parts.size(); ++step) {
    int64_t all = 0;
    for (const int64_t part : t.parts[step]) all += part;
    const Tensor loss = cross_entropy((*model)(samples(static_cast<int>(step), 0, all, t.image, t.device)),
                                      labels(static_cast<int>(step), 0, all, t.device));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    losses.push_back(loss.item());
  }
  return result_of(*model, losses);
}

Trained train_ranks(const Training& t, const std::string& backend) {
  const auto size = static_cast<int>(t.parts.front().size());
  std::vector<Trained> results(static_cast<size_t>(size));
  run_on(backend, size, [&](const ProcessGroupPtr& group) {
    const auto rank = static_cast<size_t>(group->rank());
    const auto model = build(t.make, kSeed + rank, t.device);  // rank 0's weights count
    if (t.prepare) t.prepare(*model, group);
    DDP ddp(model, group, t.ddp);
    std::vector<double> losses;
    auto optimizer = optimizer_of(ddp.parameters(), t);
    for (size_t step = 0; step < t.parts.size(); ++step) {
      int64_t first = 0;
      for (size_t r = 0; r < rank; ++r) first += t.parts[step][r];
      const int64_t count = t.parts[step][rank];
      optimizer.zero_grad();
      losses.push_back(0);
      // Micro-batches of a rank are as unequal as can be: one sample each, and the rest. Their losses weigh by the
      // samples of all ranks.
      const int64_t all = std::accumulate(t.parts[step].begin(), t.parts[step].end(), int64_t{0});
      int64_t done = 0;
      for (int micro = 0; micro < t.micro_batches; ++micro) {
        const bool last = micro + 1 == t.micro_batches;
        const int64_t some = last ? count - done : 1;
        const int64_t of_all = last ? all - micro * size : size, shown = std::max<int64_t>(some, 1);
        const auto pass = [&] {
          if (some == 0) ddp.set_samples(0);
          const Tensor x = samples(static_cast<int>(step), first + done, shown, t.image, t.device);
          const Tensor loss = cross_entropy(ddp(x), labels(static_cast<int>(step), first + done, shown, t.device)) *
                              (some == 0 ? 0 : static_cast<double>(of_all) / static_cast<double>(all));
          loss.backward();
          losses.back() += loss.item() * static_cast<double>(some * all) / static_cast<double>(of_all);
        };
        if (last || t.reduce_each) {
          pass();
        } else {
          const auto guard = ddp.no_sync();
          pass();
        }
        done += some;
      }
      optimizer.step();
    }
    const Tensor sums = Tensor::from(losses);
    group->all_reduce(sums, ReduceOp::sum, {.name = "losses", .scale = {}})->wait();
    losses = sums.to_vector<double>();
    for (size_t step = 0; step < losses.size(); ++step)
      losses[step] /= static_cast<double>(std::accumulate(t.parts[step].begin(), t.parts[step].end(), int64_t{0}));
    results[rank] = result_of(*model, losses);
    expect_same_as_first(*group, results[rank].weights, "weights");
    if (t.ddp.broadcast_buffers) expect_same_as_first(*group, results[rank].buffers, "buffers");
  });
  // With processes as ranks, this one has its own result, or none where fewer ranks train.
  for (Trained& one : results)
    if (!one.weights.empty()) return one;
  return {};
}

std::vector<std::vector<int64_t>> even_parts(int steps, int ranks, int64_t each) {
  return std::vector<std::vector<int64_t>>(static_cast<size_t>(steps),
                                           std::vector<int64_t>(static_cast<size_t>(ranks), each));
}

std::vector<double> weights_of(nn::Module& model) {
  std::vector<double> all;
  for (const NamedTensor& entry : model.parameters()) append(all, entry.tensor);
  return all;
}
std::vector<double> buffers_of(nn::Module& model) {
  std::vector<double> all;
  for (const NamedTensor& entry : model.buffers()) append(all, entry.tensor);
  return all;
}
std::vector<double> gradients_of(nn::Module& model) {
  std::vector<double> all;
  for (const NamedTensor& entry : model.parameters())
    if (entry.tensor.grad().defined()) append(all, entry.tensor.grad());
  return all;
}

std::vector<double> values_of(const StateDict& dict) {
  std::vector<double> all;
  for (const NamedTensor& entry : dict.tensors) {
    const auto values = entry.tensor.to_vector<double>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

std::vector<std::string> names_and_sizes(const StateDict& dict) {
  std::vector<std::string> names;
  for (const NamedTensor& entry : dict.tensors) names.push_back(str(entry.name, ' ', entry.tensor.sizes()));
  return names;
}

}  // namespace weft::dist::testing
