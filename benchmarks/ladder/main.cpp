// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "benchmarks/ladder/climb.h"
#include "core/choose_device.h"
#include "kernels/error.h"
#include "kernels/runtime/runtime.h"

// build/bin/ladder matmul_f32: the table of a ladder, timed on a GPU or counted by weft-emulate.

int main(int argc, char** argv) {
  using namespace weft;
  CLI::App app{
      "Climbs a ladder of kernels, from the naive one to Weft's own: times each step on a GPU; without one, "
      "counts on the emulated GPU the requests of each step to memory."};
  std::string name, device;
  benchmarks::Climb climb;
  app.add_option("LADDER", name, "which one; without it, a list");
  app.add_option("--device", device,
                 "cuda, cuda:N or emulated[:GPU] (default: cuda where there is a GPU, else emulated)");
  app.add_option("--sizes", climb.sizes, "the problem's sizes, in the order that the list gives");
  app.add_option("--seconds", climb.timing.seconds, "timed seconds of a step")->check(CLI::PositiveNumber);
  app.add_option("--repetitions", climb.timing.repetitions, "the time is the median of these")
      ->check(CLI::Range(1, 99));
  CLI11_PARSE(app, argc, argv);
  try {
    if (name.empty()) {
      benchmarks::print_list(std::cout);
      return 0;
    }
    if (device.empty()) device = kernels::runtime(DeviceKind::cuda).device_count() > 0 ? "cuda" : "emulated";
    climb.device = choose_device(device);
    benchmarks::print_table(std::cout, kernels::ladder::find(name), climb);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
