// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/cases/training.h"
#include "kernels/runtime/allocator.h"

namespace weft::benchmarks {

// Whole networks, as in training and in use: ResNet-18 (CIFAR stem, batch 64) and ResNet-50 (224x224, batch 8).
void add_network_cases(Cases& cases, const Target& target) {
  for (const bool large : {false, true}) {
    const std::string name = large ? "resnet50" : "resnet18";
    for (const DType precision : {DType::f32, DType::bf16}) {
      const NetworkSize size = large ? resnet50_size(target, 8, precision) : resnet18_size(target, 64, precision);
      const std::string ending = "_" + std::string(weft::name(precision));
      cases.push_back({name + "_train" + ending, "images/s", [=] { return train(size, target); }});
      cases.push_back({name + "_infer" + ending, "images/s", [=] { return infer(size, target); }});
    }
  }
}

// Cases with a process of their own: the start of a program that makes one tensor, and the peak memory of a training.
void add_process_cases(Cases& cases, const Target& target) {
  cases.push_back(
      {.name = "startup", .unit = "ms", .process = [=] { Tensor::zeros({16}, DType::f32, target.device); }});
  const auto memory = [&](const std::string& name, const NetworkSize& size) {
    cases.push_back({.name = name, .unit = "MiB", .process = [=] {
                       Training training(size, target.device);
                       for (int i = 0; i < 3; ++i) training.step();
                     }});
  };
  memory("resnet18_train_memory", resnet18_size(target, 64, DType::f32));
  memory("resnet50_train_memory", resnet50_size(target, 8, DType::f32));
}

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

// Whole networks on a GPU: ResNet-18 on CIFAR's 32x32, ResNet-18 and ResNet-50 on 224x224; and the device memory that a
// training holds at most.
void add_gpu_network_cases(Cases& cases, const Target& target) {
  const auto add_train = [&](const std::string& name, const NetworkSize& size) {
    cases.push_back(
        {name + "_train_" + std::string(weft::name(size.precision)), "images/s", [=] { return train(size, target); }});
  };
  add_train("resnet50_b256", resnet50_size(target, 256, DType::bf16));  // the step of the suite roofline
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
