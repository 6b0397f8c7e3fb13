// SPDX-License-Identifier: Apache-2.0
#include "apps/support/run_flags.h"

#include <iterator>
#include <set>
#include <sstream>

namespace weft::support {

void add_run_flags(Flags& flags, train::RunOptions& o, const std::string& names) {
  std::istringstream in(names);
  std::set<std::string> wanted{std::istream_iterator<std::string>(in), {}};
  const auto has = [&](const char* name) { return wanted.erase(name) == 1; };
  const auto add = [&](const char* name, auto& variable, const std::string& help, auto... range) {
    if (has(name)) flags.add(name, variable, help, range...);
  };
  const auto choice = [&](const char* name, std::string& variable, const std::vector<std::string>& choices,
                          const std::string& help) {
    if (has(name)) flags.add_choice(name, variable, choices, help);
  };
  constexpr Range kCount{.min = 1, .max = 1e6}, kFromZero{.min = 0};

  flags.group("Training");
  add("epochs", o.epochs, "passes over the training part", kCount);
  add("batch-size", o.batch_size, o.unit + " per step of each rank; on N ranks a step sees N times as many", kCount);
  add("accumulate", o.accumulate, "batches whose gradients add up to one step", kCount);
  add("clip-norm", o.clip_norm, "largest norm of the gradient; 0: any", kFromZero);
  add("recompute", o.recompute, "backward computes each block a second time: memory for time");
  if (has("ema")) {
    flags.add("ema", o.averages.decay,
              "decay of a moving average of the weights (0.999), which is what is validated and written in the end; 0: "
              "none",
              {.min = 0, .max = 0.9999999});
    flags.add("ema-warmup", o.averages.warmup, "the decay of step t is at most (1 + t) / (10 + t)");
  }

  flags.group("Precision and speed");
  choice("precision", o.precision, {"f32", "bf16"}, "bf16: products in bf16, weights in f32");
  if (has("fp8"))
    flags.add_choice("precision", o.precision, {"f32", "bf16", "fp8"},
                     "bf16: products in bf16, weights in f32; fp8: the linear layers of a transformer's blocks in 8 "
                     "bits besides");
  choice("graph", o.graph, {"auto", "on", "off"},
         "launch a step as one CUDA graph; auto: on cuda with one rank, unless --profile wants to see its kernels, and "
         "without graph where the capture fails");
  if (has("device")) flags.add_device(o.device);
  add("workers", o.workers, "threads that load " + o.unit + "; 0: the training thread itself",
      Range{.min = 0, .max = 1024});
  if (has("profile")) {
    flags.add("profile", o.profile,
              "write a Chrome trace (chrome://tracing, ui.perfetto.dev) of a few steps to FILE.json and the table of "
              "ops to FILE.txt");
    flags.add("profile-steps", o.profile_steps, "A:B: the steps of this process from A to B - 1, counted from 0");
  }

  flags.group("Ranks");
  choice("parallel", o.parallel, {"auto", "none", "ddp", "fsdp"},
         "ddp: several ranks (mpirun, srun, weft-run, torchrun's variables) train one model, each on its part of the " +
             o.unit +
             "; fsdp: the same, and weights, gradients and optimizer state are shared out over them; auto: ddp where "
             "there are several ranks; none: ranks do not know each other");
  choice("backend", o.backend, {"auto", "nccl", "mpi", "gloo"},
         "how ranks communicate; auto: nccl on GPUs, else mpi under mpirun, else gloo");
  add("bucket-mb", o.bucket_mb, "MiB of gradients that ddp reduces at once",
      Range{.min = 0, .max = 1e5, .above = true});
  choice("grad-compression", o.grad_compression, {"none", "bf16"}, "gradients travel between ranks as bf16");
  add("sync-batch-norm", o.sync_batch_norm, "batch norm in training takes its statistics over all ranks");
  choice("fsdp-strategy", o.fsdp_strategy, {"full_shard", "shard_grad_op", "hybrid_shard", "no_shard"},
         "what fsdp shares out; --precision bf16 gathers weights as bf16");
  for (const char* name : {"fsdp-min-params", "min-num-params"})
    add(name, o.min_num_params,
        "parameters that make a part of the model a unit of fsdp; 0: each transformer block is one, and parts of a "
        "million parameters without such blocks",
        Range{.min = 0, .max = 1e15});
  add("fsdp-shard-size", o.fsdp_shard_size, "ranks that share one copy under --fsdp-strategy hybrid_shard",
      Range{.min = 0, .max = 1e6});

  choice("fsdp-offload", o.fsdp_offload, {"none", "optimizer", "parameters"},
         "what fsdp keeps in host memory, where the optimizer then runs: its state with gradients and f32 weights, or "
         "the gathered weights' shards besides");
  choice(
      "fsdp-checkpoints", o.fsdp_checkpoints, {"whole", "sharded"},
      "what fsdp saves: one file by rank 0, or a folder into which each rank writes its part while training goes on");

  choice(
      "fsdp-accumulate", o.fsdp_accumulate, {"whole", "sharded"},
      "gradients of --accumulate add up whole on each rank, or in the shards: less memory, a reduction for each batch");

  flags.group("Run");
  add("seed", o.seed, "of all that is drawn: weights, order, augmentation, dropout", kFromZero);
  add("out", o.out, "run folder: metrics, TensorBoard files, checkpoints, summary");
  add("overwrite", o.overwrite, "begin a new run in a folder that holds another one, whose files go");
  add("resume", o.resume, "auto (the run folder's last whole checkpoint, if any), a checkpoint file, or a run folder");
  add("keep", o.keep, "how many of the last checkpoints stay; if the last is damaged, auto takes the one before",
      Range{.min = 1, .max = 1000});
  add("max-steps", o.max_steps, "stop after this many steps of the whole run, as Ctrl-C would; 0: no limit", kFromZero);
  add("log-interval", o.log_interval, "steps between two rows of metrics within an epoch; 0: one an epoch", kFromZero);
  add("save-interval", o.save_interval, "steps between two checkpoints within an epoch; 0: none", kFromZero);
  choice("usr1", o.usr1, {"save", "stop"},
         "what SIGUSR1 (sbatch --signal=USR1@120) does: a checkpoint, or a checkpoint and exit code 75");
  add("dry-run", o.dry_run, "read flags, weights and data, build the model, say what would run, write nothing");
  WEFT_CHECK(wanted.empty(), "flags: expected shared flags, got '", *wanted.begin(), "'");
}

}  // namespace weft::support
