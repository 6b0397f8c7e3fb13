// SPDX-License-Identifier: Apache-2.0
#include "apps/vista/options.h"

#include "apps/support/flags.h"

namespace weft::vista {

bool parse_options(const std::string& program, int argc, char** argv, Options& o) {
  const bool ranks = program == "multinode";
  support::Flags flags(program, ranks
                                    ? "Trains a small linear model on all ranks that a launcher has started, and goes "
                                      "on from snapshot.pt where this folder has one."
                                    : "Trains a small linear model on one GPU, or on the CPU where there is none.");
  flags.add_positional("total_epochs", o.total_epochs, "epochs to train", {.min = 0, .max = 1e9});
  flags.add_positional("save_every", o.save_every,
                       ranks ? "write snapshot.pt in every epoch that this divides"
                             : "write checkpoint.pt after every epoch that this divides",
                       {.min = 1, .max = 1e9});
  flags.add("batch-size", o.batch_size, ranks ? "pairs per step of each rank" : "pairs per step",
            {.min = 1, .max = 1e9});
  flags.add("lr", o.lr, "learning rate of SGD", {.min = 0});
  flags.add_choice("loss", o.loss, {"mse", "cross_entropy"},
                   "cross_entropy, over the model's only class, is the original's: it is always 0 and trains nothing");
  flags.add("seed", o.seed, "of the pairs, the first weights and the order", {.min = 0});
  flags.add("device", o.device, "auto | cpu | cuda | cuda:N | simt; auto: a GPU where there is one");
  if (ranks)
    flags.add_choice("backend", o.backend, {"auto", "nccl", "mpi", "gloo"},
                     "how ranks communicate; auto: nccl on GPUs, else mpi under mpirun, else gloo");
  flags.add("log-dir", o.log_dir,
            "folder for metrics.jsonl, TensorBoard files and config.yaml, as weft-watch draws them; none: not kept");
  flags.add("dry-run", o.dry_run, "say what would run, train nothing, write nothing");
  if (ranks) {
    flags.example("multinode 50 10");
    flags.example("mpirun -np 2 --map-by ppr:1:node multinode 50 10 --log-dir logs");
  } else {
    flags.example("single_gpu 50 10 --batch_size 64");
  }
  return flags.parse(argc, argv);
}

}  // namespace weft::vista
