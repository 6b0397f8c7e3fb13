// SPDX-License-Identifier: Apache-2.0
// All ranks that a launcher has started; see docs/workflows/vista.md.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>

#include "apps/support/exit.h"
#include "apps/support/ranks.h"
#include "apps/support/run_folder.h"
#include "apps/support/stopwatch.h"
#include "apps/support/weights/torch_object.h"
#include "apps/vista/regression.h"
#include "dist/ddp.h"

namespace weft::vista {
namespace {

constexpr const char* kSnapshot = "snapshot.pt";

/// The state at the beginning of epoch EPOCHS_RUN, so that a resumed run repeats nothing.
void save_snapshot(nn::Module& model, int64_t epoch) {
  support::write_torch(kSnapshot,
                       {support::TorchObject::Dict{{"MODEL_STATE", support::TorchObject::of(model.state_dict())},
                                                   {"EPOCHS_RUN", {epoch}}}});
  std::cout << str("Epoch ", epoch, " | Training snapshot saved at ", kSnapshot, '\n') << std::flush;
}

/// Rank 0 looks for a snapshot in its folder and reads it; the epoch to begin with is the same on all ranks. DDP shares
/// the weights. -1: there is none.
int64_t resume(nn::Module& model, const support::Ranks& ranks) {
  int64_t epoch = -1;
  if (ranks.is_first() && std::filesystem::exists(kSnapshot)) {
    const support::TorchObject snapshot = support::read_torch(kSnapshot);
    model.load_state_dict(snapshot.at("MODEL_STATE", kSnapshot).state(str(kSnapshot, ": MODEL_STATE")));
    epoch = snapshot.at("EPOCHS_RUN", kSnapshot).integer(str(kSnapshot, ": EPOCHS_RUN"));
    WEFT_CHECK(epoch >= 0, kSnapshot, ": EPOCHS_RUN: expected a number of epochs, got ", epoch);
  }
  epoch = ranks.max(epoch, "epoch of the snapshot");
  if (epoch < 0) return epoch;
  std::cout << "Loading snapshot\n" << str("Resuming training from snapshot at Epoch ", epoch, '\n') << std::flush;
  return epoch;
}

int run(int argc, char** argv) {
  Options options;
  if (!parse_options("multinode", argc, argv, options)) return support::kExitOk;
  const support::Ranks ranks({.backend = options.backend, .device = options.device});
  const Pairs pairs(options, ranks.device(), ranks.rank(), ranks.size());
  const auto model = make_model(options, ranks.device());
  if (options.dry_run) {
    if (ranks.is_first())
      std::cerr << str("multinode: would train ", describe(options, pairs, ranks.device()), ", ranks ",
                       ranks.describe(), "; ", kSnapshot, " every ", options.save_every, " epochs\n");
    return support::kExitOk;
  }
  const auto folder = support::open_run_folder(std::filesystem::current_path(), ranks);
  const int64_t resumed = resume(*model, ranks), first_epoch = std::max<int64_t>(resumed, 0);
  dist::DDP ddp(model, ranks.group());
  optim::SGD sgd(ddp.parameters(), {.lr = options.lr});
  std::optional<LossLog> log;
  if (ranks.is_first() && !options.log_dir.empty()) log.emplace(options, ranks.size(), resumed);
  for (int64_t epoch = first_epoch; epoch < options.total_epochs; ++epoch) {
    print_epoch(ranks.rank(), epoch, pairs);
    if (ranks.is_first() && epoch % options.save_every == 0) save_snapshot(*model, epoch);
    const support::Stopwatch watch;
    const double loss = train_epoch(
        options, pairs, epoch, [&](const Tensor& x) { return ddp(x); }, sgd);
    const double of_all = ranks.sum({loss}, "loss of the epoch")[0] / ranks.size();
    if (log) log->log(epoch + 1, of_all, watch.seconds());
    if (ranks.is_first() && (epoch == first_epoch || epoch + 1 == options.total_epochs))
      std::cerr << str("mean loss of epoch ", epoch, " on rank 0: ", loss, '\n');  // in one piece
  }
  if (log) log->end();
  ranks.wait_for_all("end of training");
  return support::kExitOk;
}

}  // namespace
}  // namespace weft::vista

int main(int argc, char** argv) {
  return weft::support::guarded_main("multinode", [&] { return weft::vista::run(argc, argv); });
}
