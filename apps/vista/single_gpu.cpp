// SPDX-License-Identifier: Apache-2.0
// One process on one device; see docs/workflows/vista.md.
#include <filesystem>
#include <iostream>
#include <optional>

#include "apps/support/device.h"
#include "apps/support/exit.h"
#include "apps/support/run_folder.h"
#include "apps/support/stopwatch.h"
#include "apps/support/weights/weights_file.h"
#include "apps/vista/regression.h"

namespace weft::vista {
namespace {

constexpr const char* kCheckpoint = "checkpoint.pt";

int run(int argc, char** argv) {
  Options options;
  if (!parse_options("single_gpu", argc, argv, options)) return support::kExitOk;
  const Device device = support::choose_device(options.device);
  const Pairs pairs(options, device);
  const auto model = make_model(options, device);
  if (options.dry_run) {
    std::cerr << "single_gpu: would train " << describe(options, pairs, device) << "; " << kCheckpoint << " every "
              << options.save_every << " epochs\n";
    return support::kExitOk;
  }
  const support::RunFolder folder(std::filesystem::current_path());
  optim::SGD sgd(model->parameters(), {.lr = options.lr});
  std::optional<LossLog> log;
  if (!options.log_dir.empty()) log.emplace(options, 1, -1);
  for (int64_t epoch = 0; epoch < options.total_epochs; ++epoch) {
    print_epoch(device.index, epoch, pairs);
    const support::Stopwatch watch;
    const double loss = train_epoch(
        options, pairs, epoch, [&](const Tensor& x) { return (*model)(x); }, sgd);
    if (log) log->log(epoch + 1, loss, watch.seconds());
    if (epoch == 0 || epoch + 1 == options.total_epochs)
      std::cerr << "mean loss of epoch " << epoch << ": " << loss << '\n';
    if (epoch % options.save_every != 0) continue;
    support::write_torch(kCheckpoint, model->state_dict());
    std::cout << "Epoch " << epoch << " | Training checkpoint saved at " << kCheckpoint << std::endl;
  }
  if (log) log->end();
  return support::kExitOk;
}

}  // namespace
}  // namespace weft::vista

int main(int argc, char** argv) {
  return weft::support::guarded_main("single_gpu", [&] { return weft::vista::run(argc, argv); });
}
