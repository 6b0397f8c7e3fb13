// SPDX-License-Identifier: Apache-2.0
// Usage: dist_rank sum | throw | die | loop | stop [backend]
// What init() makes of its environment, and the sum of all ranks + 1. Then rank 1 ends with an error (throw), is killed
// (die), or all go on until the group fails (loop). stop: rank 1 stops when all have met, before it has said its place.
#include <signal.h>
#include <unistd.h>

#include <iostream>

#include "core/tensor.h"
#include "dist/group/world.h"
#include "dist/rendezvous/session.h"
#include "kernels/error.h"

using namespace weft;

namespace {

double sum_of_ranks(const dist::World& world) {
  const Tensor x = Tensor::full({1}, world.rank() + 1.0, DType::f64);
  world.group()->all_reduce(x, dist::ReduceOp::sum, {.name = "ranks"})->wait();
  return x.item();
}

void run(const std::string& action, const std::string& backend) {
  if (action == "stop" && std::getenv("RANK") == std::string("1")) {
    const dist::EnvironmentVariables variables = dist::environment_variables();
    const dist::Session session(dist::read_launch_environment(variables), variables, dist::Milliseconds(30'000));
    ::raise(SIGSTOP);
  }
  dist::World world = dist::init({.backend = backend, .device = "cpu"});
  std::cout << str("rank ", world.rank(), " of ", world.size(), ", local ", world.local_rank(), " of ",
                   world.local_size(), ", ", world.launcher(), ", ", world.group()->backend(), ", sum ",
                   sum_of_ranks(world), "\n")
            << std::flush;
  if (action != "sum") sum_of_ranks(world);  // now all ranks have been identified
  if (action == "throw" && world.rank() == 1) fail("the loss is not finite");
  if (action == "die" && world.rank() == 1) ::raise(SIGKILL);
  while (action != "sum") sum_of_ranks(world);
}

}  // namespace

int main(int argc, char** argv) {
  ::alarm(60);  // whatever happens to the test, this process ends
  try {
    run(argc > 1 ? argv[1] : "sum", argc > 2 ? argv[2] : "auto");
    return 0;
  } catch (const std::exception& error) {
    std::cout << str("error: ", error.what(), "\n") << std::flush;
    return 1;
  }
}
