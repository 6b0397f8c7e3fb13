// SPDX-License-Identifier: Apache-2.0
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "benchmarks/dist/raw.h"

namespace weft::benchmarks {

RawCollectives raw_gloo(int rank, int size, const std::string& folder) {
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  gloo::rendezvous::FileStore store(folder);
  auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr("127.0.0.1"));
  context->connectFullMesh(store, device);
  const auto ranks = static_cast<size_t>(size);
  return {
      [context](float* x, size_t count) {
        gloo::AllreduceOptions options(context);
        options.setOutput(x, count);
        options.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
        gloo::allreduce(options);
      },
      [context, ranks](float* x, const float* y, size_t count) {
        gloo::AllgatherOptions options(context);
        options.setInput(const_cast<float*>(y), count / ranks);
        options.setOutput(x, count);
        gloo::allgather(options);
      },
      [context, ranks](float* y, float* x, size_t count) {
        // Gloo reduces in place and leaves each rank's part at the front. Its buffers are bound when the algorithm
        // is made, which its users do once per tensor.
        static std::unique_ptr<gloo::ReduceScatterHalvingDoubling<float>> algorithm;
        static float* bound = nullptr;
        static size_t bound_count = 0;
        if (bound != x || bound_count != count) {
          algorithm = std::make_unique<gloo::ReduceScatterHalvingDoubling<float>>(
              context, std::vector<float*>{x}, static_cast<int>(count),
              std::vector<int>(ranks, static_cast<int>(count / ranks)));
          bound = x;
          bound_count = count;
        }
        algorithm->run();
        (void)y;
      }};
}

}  // namespace weft::benchmarks
