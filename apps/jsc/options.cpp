// SPDX-License-Identifier: Apache-2.0
#include "apps/jsc/options.h"

#include "apps/support/flags.h"

namespace weft::jsc {

bool parse_options(const std::string& program, const std::string& purpose, int argc, char** argv, Options& o) {
  support::Flags flags(program, purpose);
  flags.add("data", o.data,
            "folder with train/CLASS/*.jpg and val/CLASS/*.jpg (and test/…), or hdf5:FILE, packed:FILE, as `pack` "
            "writes them; `tools/fetch_data hymenoptera data` brings the ants and bees to data/hymenoptera");
  flags.add_choice("backbone", o.backbone, {"resnet18", "resnet50"},
                   "resnet50: the later course's, which begins at random weights here");
  flags.add("epochs", o.epochs, "passes over the training images", {.min = 1, .max = 1e6});
  flags.add("batch-size", o.batch_size, "images per step of each rank", {.min = 1, .max = 1e6});
  flags.add("seed", o.seed, "of weights, order and flips", {.min = 0});
  flags.add("device", o.device, "auto | cpu | cuda | cuda:N | simt; auto: a GPU where there is one");
  flags.add("workers", o.workers, "threads that load images; 0: the training thread itself", {.min = 0, .max = 1024});
  flags.add("dry-run", o.dry_run, "look at the data, build the model, say what would run, and stop");
  flags.example(program + " --data data/hymenoptera --epochs 10 --batch-size 8");
  if (program == "ddp") flags.example("srun -n 4 ddp");
  return flags.parse(argc, argv);
}

}  // namespace weft::jsc
