// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "core/autograd.h"
#include "core/trace.h"
#include "dist/ddp/ddp.h"
#include "dist/fsdp/fsdp.h"
#include "kernels/runtime/kernel_trace.h"
#include "nn/models/cifar_resnet.h"
#include "nn/models/resnet.h"
#include "nn/sequential.h"
#include "tests/dist/fsdp/sharded_training.h"
#include "tests/support/devices.h"

// Sharding changes where weights lie, not what is computed: FSDP launches the kernels of DDP.

namespace weft::dist::testing {
namespace {

using Launches = std::vector<std::string>;

/// The kernels that the ops of a model launch, by thread (a rank): not those of the wrappers, which move weights and
/// gradients.
class Recorder : public kernels::KernelObserver {
 public:
  Recorder() { kernels::set_kernel_observer(this); }
  ~Recorder() override { kernels::set_kernel_observer(nullptr); }
  void before(const kernels::KernelCall& call) override {
    // Wrappers run in scopes of their own, but for the copies of a gather that a hook awaits.
    static const std::set<std::string> ops{"conv2d", "conv2d_norm", "batch_norm", "relu",
                                           "add",    "pad",         "linear",     "adaptive_avg_pool2d"};
    const std::string op = current_op(), kernel = call.name;
    if (!ops.contains(op) || kernel.starts_with("copy")) return;
    const std::lock_guard lock(mutex_);
    launches_[std::this_thread::get_id()].push_back(op + (in_backward() ? " backward: " : ": ") + kernel);
  }
  void after(const kernels::KernelCall&) override {}
  Launches take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(launches_[std::this_thread::get_id()], {});
  }

 private:
  std::mutex mutex_;
  std::map<std::thread::id, Launches> launches_;
};

struct Seen {
  Launches training, evaluation;
  std::vector<double> losses;  ///< losses of the step and of the evaluation after it
};

/// A training step without the optimizer's, and an evaluation, as rank 0 of two sees them.
Seen one_step(const ShardedTraining& t) {
  const std::vector<std::shared_ptr<nn::Module>> models{make_model(t), make_model(t)};
  Recorder recorder;
  Seen seen;
  run_ranks(2, [&](const ProcessGroupPtr& group) {
    const auto rank = static_cast<size_t>(group->rank());
    std::unique_ptr<DDP> ddp;
    std::unique_ptr<FSDP> fsdp;
    if (t.replicas)
      ddp = std::make_unique<DDP>(models[rank], group);
    else
      fsdp = std::make_unique<FSDP>(models[rank], group, t.options);
    const auto [x, target] = data_of(t, 0);
    const auto own = [&](const Tensor& of_all) { return of_all.slice(0, 2 * group->rank(), 2).clone(); };
    const auto loss = [&] { return loss_of(ddp ? (*ddp)(own(x)) : (*fsdp)(own(x)), own(target)); };
    Seen of_rank;
    recorder.take();
    const Tensor trained = loss();
    trained.backward();
    of_rank.training = recorder.take();
    models[rank]->eval();
    const NoGrad no_grad;
    const Tensor evaluated = loss();
    of_rank.evaluation = recorder.take();
    of_rank.losses = {trained.item(), evaluated.item()};
    if (rank == 0) seen = std::move(of_rank);
  });
  return seen;
}

int count_of(const Launches& launches, const std::string& end) {
  return static_cast<int>(
      std::count_if(launches.begin(), launches.end(), [&](const std::string& one) { return one.ends_with(end); }));
}

struct Net {
  const char* name;
  std::function<std::shared_ptr<nn::Module>()> make;
  std::string block;
  int convolutions;
};

TEST(FsdpKernels, AResNetLaunchesThoseOfDdp) {
  const std::vector<Net> nets{
      {"resnet8", [] { return nn::resnet8({.classes = 4}); }, "CifarBlock", 7},
      {"resnet18", [] { return nn::resnet18({.classes = 4, .stem = nn::Stem::cifar}); }, "BasicBlock", 20},
      {"bottlenecks",
       [] {
         return nn::sequential(std::make_shared<nn::Bottleneck>(3, 4, 2), nn::resnet8({.classes = 4, .channels = 16}));
       },
       "Bottleneck", 11}};
  for (const DeviceKind kind : tests::test_devices())
    for (const Net& net : nets) {
      if (kind != DeviceKind::cpu && net.convolutions > 11) continue;
      ShardedTraining t{.make = net.make, .parts = equal_parts(1, 2, 2), .sample = {8, 8, 3}};
      t.dtype = DType::f32;
      t.device = {kind, 0};
      t.replicas = true;
      const Seen want = one_step(t);
      EXPECT_EQ(count_of(want.training, "conv2d_statistics"), net.convolutions);
      EXPECT_EQ(count_of(want.evaluation, "conv2d_norm"), net.convolutions);
      t.replicas = false;
      for (const std::vector<std::string>& kinds :
           {std::vector<std::string>{}, {net.block}, {"Conv2d", "BatchNorm2d", "Linear"}})
        for (const Sharding strategy : {Sharding::full_shard, Sharding::shard_grad_op}) {
          SCOPED_TRACE(str(net.name, " on ", t.device, ", ", name(strategy),
                           ", units: ", kinds.empty() ? "the model" : kinds.front()));
          t.options = {.strategy = strategy, .policy = {.kinds = kinds}};
          const Seen got = one_step(t);
          EXPECT_EQ(got.training, want.training);
          EXPECT_EQ(got.evaluation, want.evaluation);
          EXPECT_EQ(got.losses, want.losses);
        }
    }
}

}  // namespace
}  // namespace weft::dist::testing
