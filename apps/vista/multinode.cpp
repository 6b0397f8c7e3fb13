// SPDX-License-Identifier: Apache-2.0
// All ranks that a launcher has started; see docs/workflows/vista.md.
#include <filesystem>
#include <iostream>

#include "apps/vista/regression.h"
#include "dist/group/world.h"
#include "io/torch/torch_object.h"
#include "train/training_main.h"

namespace weft::vista {
namespace {

constexpr const char* kSnapshot = "snapshot.pt";

/// The state at the beginning of epoch EPOCHS_RUN, so that a resumed run repeats nothing.
void save_snapshot(nn::Module& model, int64_t epoch) {
  write_torch(kSnapshot,
              {TorchObject::Dict{{"MODEL_STATE", TorchObject::of(model.state_dict())}, {"EPOCHS_RUN", {epoch}}}});
  std::cout << str("Epoch ", epoch, " | Training snapshot saved at ", kSnapshot, '\n') << std::flush;
}

/// Rank 0 looks for a snapshot in its folder and reads it; the epoch to begin with is the same on all ranks. DDP shares
/// the weights. -1: there is none.
int64_t resume(nn::Module& model, const dist::World& ranks) {
  int64_t epoch = -1;
  if (ranks.is_first() && std::filesystem::exists(kSnapshot)) {
    const TorchObject snapshot = read_torch(kSnapshot);
    model.load_state_dict(snapshot.at("MODEL_STATE", kSnapshot).state(str(kSnapshot, ": MODEL_STATE")));
    epoch = snapshot.at("EPOCHS_RUN", kSnapshot).integer(str(kSnapshot, ": EPOCHS_RUN"));
    WEFT_CHECK(epoch >= 0, kSnapshot, ": EPOCHS_RUN: expected a number of epochs, got ", epoch);
  }
  epoch = ranks.max(epoch, "epoch of the snapshot");
  if (epoch < 0) return epoch;
  std::cout << "Loading snapshot\n" << str("Resuming training from snapshot at Epoch ", epoch, '\n') << std::flush;
  return epoch;
}

class Job final : public Regression {
 public:
  using Regression::Regression;

 private:
  void epoch_begins() override {
    print_epoch(world_.rank());
    if (world_.is_first() && epoch() % options_.save_every == 0) save_snapshot(*model_, epoch());
  }
};

int run(int argc, char** argv) {
  Options options;
  if (!parse_options("multinode", argc, argv, options)) return train::kExitOk;
  const dist::World ranks = train::join_ranks(options);
  const auto pairs = make_pairs(options, ranks);
  const auto model = make_model(options, ranks.device());
  if (options.dry_run) {
    if (ranks.is_first())
      std::cerr << str("multinode: would train ", describe(options, *pairs, ranks.device()), ", ranks ",
                       ranks.describe(), "; ", kSnapshot, " every ", options.save_every, " epochs\n");
    return train::kExitOk;
  }
  const auto folder = train::open_run_folder(std::filesystem::current_path(), ranks);
  const int64_t resumed = resume(*model, ranks);
  const auto ddp = train::make_strategy({.kind = "ddp"}, model, ranks);
  return train::exit_code(Job(options, ranks, pairs, model, *ddp, resumed).run());
}

}  // namespace
}  // namespace weft::vista

int main(int argc, char** argv) {
  return weft::train::training_main("multinode", [&] { return weft::vista::run(argc, argv); });
}
