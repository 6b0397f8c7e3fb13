// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/cases/training.h"
#include "kernels/allocator.h"

// Whole networks on a GPU: ResNet-18 on CIFAR's 32x32, ResNet-18 and ResNet-50 on 224x224; and the device memory that a
// training holds at most.

namespace weft::benchmarks {

namespace {

double peak_device_memory_mib(const NetworkSize& size, Device device) {
  kernels::CachingAllocator& allocator = kernels::CachingAllocator::of(device);
  allocator.empty_cache();
  allocator.reset_peak();
  Training training(size, device);
  for (int i = 0; i < 2; ++i) training.step();
  synchronize(device);
  return static_cast<double>(allocator.stats().peak_live) / (1 << 20);
}

}  // namespace

void add_gpu_network_cases(Cases& cases, const Target& target) {
  const auto add_train = [&](const std::string& name, const NetworkSize& size) {
    cases.push_back(
        {name + "_train_" + std::string(weft::name(size.precision)), "images/s", [=] { return train(size, target); }});
  };
  for (const DType precision : {DType::bf16, DType::f32}) {
    add_train("resnet50_b64", resnet50_size(target, 64, precision));
    add_train("resnet18_b64", resnet18_imagenet_size(target, 64, precision));
    add_train("resnet18_cifar_b64", resnet18_size(target, 64, precision));
    add_train("resnet18_cifar_b256", resnet18_size(target, 256, precision));
    const NetworkSize large = resnet50_size(target, 64, precision);
    const std::string ending(name(precision));
    cases.push_back({"resnet50_b64_infer_" + ending, "images/s", [=] { return infer(large, target); }});
    cases.push_back({.name = "resnet50_b64_train_memory_" + ending, .unit = "MiB", .value = [=] {
                       return peak_device_memory_mib(large, target.device);
                     }});
  }
}

}  // namespace weft::benchmarks
