// SPDX-License-Identifier: Apache-2.0
#include <ATen/Parallel.h>

#include <cstdlib>
#include <thread>

#include "benchmarks/harness/program.h"
#include "benchmarks/peers/libtorch/cases.h"

namespace peer {

Tensor in_layout(const Tensor& x, Layout layout) {
  return layout == Layout::channels_last ? x.contiguous(at::MemoryFormat::ChannelsLast) : x;
}

std::string in_layout(const std::string& name, Layout layout) {
  return layout == Layout::channels_last ? name + "@channels_last" : name;
}

namespace {

Cases make_cases(const bench::Setting& setting) {
  const char* threads = std::getenv("OMP_NUM_THREADS");
  at::set_num_threads(threads ? std::atoi(threads) : static_cast<int>(std::thread::hardware_concurrency()));
  const Target target{setting.tiny};
  Cases cases;
  add_network_cases(cases, target);
  add_convolution_cases(cases, target);
  add_matmul_cases(cases, target);
  add_norm_cases(cases, target);
  add_elementwise_cases(cases, target);
  add_optimizer_cases(cases, target);
  add_tiny_op_cases(cases, target);
  add_loader_cases(cases, target);
  add_process_cases(cases, target);
  return cases;
}

}  // namespace
}  // namespace peer

int main(int argc, char** argv) {
  return bench::run_program(argc, argv, "Measures libtorch: one line per case, its name, value and unit.", {"cpu"},
                            peer::make_cases);
}
