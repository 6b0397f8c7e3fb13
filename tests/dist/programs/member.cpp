// SPDX-License-Identifier: Apache-2.0
// Usage: dist_member PORT RANK SIZE [serve]
// A rank of a job on this host: joins, waits for all, then for a failure or for the end of its stdin. `serve`: this is
// rank 0, which runs the server. Prints its messages. Exit code 3 after a failure, 1 after an error.
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <iostream>

#include "dist/rendezvous/store_server.h"
#include "dist/rendezvous/tcp_membership.h"
#include "kernels/error.h"
#include "tests/dist/secret.h"

using namespace weft;
using namespace weft::dist;

namespace {

int run(const Address& address, int rank, int size, bool serve) {
  std::unique_ptr<StoreServer> server;
  if (serve) server = std::make_unique<StoreServer>(address, StoreServerOptions{.size = size, .secret = kSecret});
  TcpMembership membership(
      find_store(serve ? server->address() : address, kSecret, str("rank ", rank), Milliseconds(10'000), 1),
      {.rank = rank, .size = size, .heartbeat = Milliseconds(50)});
  std::atomic<bool> failed{false};
  membership.on_failure([&](const Failure& failure) {
    std::cout << "failure: " << failure.reason << std::endl;
    failed = true;
  });
  if (serve) std::cout << "port " << server->address().port << std::endl;
  membership.wait_for_all(Milliseconds(10'000));
  std::cout << "all here" << std::endl;
  pollfd input{STDIN_FILENO, POLLIN, 0};
  while (!failed && ::poll(&input, 1, 10) == 0) continue;
  if (failed) return 3;
  membership.leave();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  ::alarm(60);  // whatever happens to the test, this process ends
  try {
    if (argc < 4) fail("usage: dist_member PORT RANK SIZE [serve]");
    return run({"127.0.0.1", static_cast<uint16_t>(std::stoi(argv[1]))}, std::stoi(argv[2]), std::stoi(argv[3]),
               argc > 4);
  } catch (const std::exception& error) {
    std::cout << "error: " << error.what() << std::endl;
    return 1;
  }
}
