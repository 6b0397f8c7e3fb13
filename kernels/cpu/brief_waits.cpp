// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/brief_waits.h"

#include <omp.h>
#include <unistd.h>

#include <cstdlib>
#include <future>
#include <thread>

namespace weft::kernels::cpu {

// GCC's libgomp reads how to wait from the environment before main() and has no call for it. It spins 300,000 rounds
// only while the process has at most as many OpenMP threads as processors, later 1,000. So an extra team with one more
// thread, without work, sleeps for the life of the process.
void make_waits_brief() {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT") || omp_get_max_threads() == 1) return;
  std::promise<void> parked;
  std::future<void> wait = parked.get_future();
  std::thread([&parked] {
#pragma omp parallel num_threads(omp_get_num_procs() + 1)
    { asm volatile(""); }  // GCC drops a region that is empty
    parked.set_value();
    for (;;) pause();  // its team lives as long as it does
  }).detach();
  wait.wait();
}

}  // namespace weft::kernels::cpu
