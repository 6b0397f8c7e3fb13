// SPDX-License-Identifier: Apache-2.0
// Trains on a single device; see docs/workflows/vista.md.
#include <filesystem>
#include <iostream>

#include "apps/vista/regression.h"
#include "io/weights/weights_file.h"
#include "train/record/run_folder.h"
#include "train/training_main.h"

namespace weft::vista {
namespace {

constexpr const char* kCheckpoint = "checkpoint.pt";

class Job final : public Regression {
 public:
  using Regression::Regression;

 private:
  void epoch_begins() override { print_epoch(world_.device().index); }
  void epoch_saved(const train::Epoch& epoch, const train::Validation&) override {
    if ((epoch.number - 1) % options_.save_every != 0) return;
    write_torch(kCheckpoint, model_->state_dict());
    std::cout << "Epoch " << epoch.number - 1 << " | Training checkpoint saved at " << kCheckpoint << std::endl;
  }
};

int run(int argc, char** argv) {
  Options options;
  if (!parse_options("single_gpu", argc, argv, options)) return train::kExitOk;
  const dist::World world = dist::init({.alone = true, .device = options.device});
  const Device device = world.device();
  const auto pairs = make_pairs(options, world);
  const auto model = make_model(options, device);
  if (options.dry_run) {
    std::cerr << "single_gpu: would train " << describe(options, *pairs, device) << "; " << kCheckpoint << " every "
              << options.save_every << " epochs\n";
    return train::kExitOk;
  }
  const train::RunFolder folder(std::filesystem::current_path());
  const auto strategy = train::make_strategy({}, model, world);
  return train::exit_code(Job(options, world, pairs, model, *strategy).run());
}

}  // namespace
}  // namespace weft::vista

int main(int argc, char** argv) {
  return weft::train::training_main("single_gpu", [&] { return weft::vista::run(argc, argv); });
}
