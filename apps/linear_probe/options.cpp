// SPDX-License-Identifier: Apache-2.0
#include "apps/linear_probe/options.h"

#include <filesystem>
#include <vector>

#include "apps/support/run_flags.h"

namespace weft::linear_probe {
namespace {

/// The short names of the workflow that this program repeats, as long ones.
std::vector<std::string> spelled_out(int argc, char** argv) {
  constexpr std::pair<const char*, const char*> kShort[] = {
      {"-e", "--epochs"}, {"-b", "--batch-size"}, {"-lr", "--lr"}};
  std::vector<std::string> arguments(argv + 1, argv + argc);
  for (std::string& argument : arguments)
    for (const auto& [brief, full] : kShort)
      if (argument == brief) argument = full;
  return arguments;
}

/// Where the workflow's own script differs.
void take_ouai_demos_defaults(Options& o) {
  o.weights = "hub/checkpoints/dinov2_vitl14_reg4_pretrain.pth";  // where torch.hub keeps it for TORCH_HOME=.
  o.min_num_params = 10'000'000;
  o.workers = 12;
  o.out = "runs/ouai_demo";
}

}  // namespace

bool parse_options(int argc, char** argv, Options& o) {
  if (argc > 0) o.program = std::filesystem::path(argv[0]).filename().string();
  const bool is_demo = o.program == kOuaiDemo;
  if (is_demo) take_ouai_demos_defaults(o);
  support::Flags flags(o.program, is_demo ? "The OUAI demo of OSCER: DINOv2 on CIFAR-100 under FSDP, first a linear "
                                            "classifier on the frozen backbone (-e epochs at -lr), then all of it (as "
                                            "many at an eighth of the rate)."
                                          : "Trains a linear classifier on a frozen backbone, then fine-tunes both "
                                            "together.");
  flags.group("Data and model");
  flags.add("data", o.data, "cifar100:DIR | cifar10:DIR | shapes | idx:DIR | folder:DIR");
  flags.add("model", o.model,
            "dinov2_vit{s|b|l|g}14[_reg], or vit_tiny4 | vit_small16 | vit_base16 | vit_large16 without their heads");
  flags.add("weights", o.weights, "of the backbone: random, or a file, safetensors or PyTorch's");
  flags.add("weights-key", o.weights_key, "which dict of a PyTorch file, which part of a checkpoint; '': found");
  flags.add_choice("phases", o.phases, {"probe,finetune", "probe", "finetune"},
                   "probe: the backbone is frozen; finetune: everything learns at an eighth of the rate, the logits an "
                   "eighth as large");
  flags.add("image-size", o.image_size, "side of the backbone's input in pixels; 0: 224, or that of vit_tiny4",
            {.min = 0, .max = 4096});
  flags.add("resize", o.resize, "pixels of the shortest edge before the centre is cut out; 0: 8/7 of --image-size",
            {.min = 0, .max = 4096});
  flags.add_choice("interpolation", o.interpolation, {"bilinear", "bicubic"},
                   "how images are resized, always with antialiasing");
  flags.add_choice("checkpointing", o.checkpointing, {"none", "block"},
                   "block: backward computes each block a second time, memory for time");
  flags.add("cache-features", o.cache_features,
            "auto | on | off | FILE.safetensors: compute what the frozen backbone says of each image once, not in "
            "every epoch; auto: where all of it fits in 8 GiB; FILE.safetensors: for later runs as well");
  flags.add_choice("eval", o.eval, {"none", "logreg"},
                   "logreg: in the place of the phases a logistic regression on the backbone's features, as the "
                   "DINOv2 paper does for CIFAR-100 (there --resize 224 --interpolation bicubic)");
  flags.add("logreg-values", o.logreg_values, "of C, from 1e-6 to 1e5, to choose from; 1: C = 1",
            {.min = 1, .max = 1000});
  flags.add("logreg-iterations", o.logreg_iterations, "of L-BFGS at most, for each C", {.min = 1});
  flags.add_choice("logreg-precision", o.logreg_precision, {"f64", "f32"}, "of the logistic regression");
  flags.add("explain-sharding", o.explain_sharding, "print the units of fsdp and stop; needs neither data nor weights");
  flags.add("explain-memory", o.explain_memory,
            "print what a step of fine-tuning needs on one device and stop; needs neither data nor weights");
  flags.group("Training");
  flags.add("lr", o.lr, "learning rate of Adam (-lr)", {.min = 0});
  flags.add("weight-decay", o.weight_decay, "of matrices, apart from the gradient (AdamW); biases and norms have none",
            {.min = 0});
  flags.add("layer-decay", o.layer_decay,
            "fine-tuning: the rate of a block by that of the block after it (0.75); 1: one rate",
            {.min = 0, .max = 1, .above = true});
  flags.group("Ranks");
  flags.add_choice("parallel", o.parallel, {"auto", "none", "ddp", "fsdp"},
                   "auto: fsdp where there are several ranks (mpirun, srun, weft-run, torchrun's variables)");
  support::add_run_flags(
      flags, o,
      "epochs batch-size accumulate ema precision graph device workers backend grad-compression fsdp-strategy "
      "fsdp-shard-size fsdp-offload fsdp-checkpoints fsdp-accumulate min-num-params seed out overwrite resume keep "
      "max-steps usr1 dry-run");
  if (is_demo) {
    flags.example("ouai_demo -e 5 -b 256 -lr 1e-3");
    flags.example("weft-run --nproc_per_node 2 ouai_demo -e 5 -b 256 -lr 1e-3");
  } else {
    flags.example(
        "linear_probe -e 5 -b 256 -lr 1e-3 --data cifar100:DIR --weights dinov2_vitl14_reg4_pretrain.pth --precision "
        "bf16");
    flags.example("linear_probe --data shapes --model vit_tiny4 --weights random -e 2 -b 64 --precision f32");
  }
  if (!flags.parse(spelled_out(argc, argv))) return false;
  if (o.cache_features != "auto" && o.cache_features != "on" && o.cache_features != "off" && !o.has_feature_file())
    throw train::UsageError(str("--cache-features: expected auto, on, off or a file that ends in .safetensors, got '",
                                o.cache_features, "'"));
  o.toml = flags.toml();
  return true;
}

}  // namespace weft::linear_probe
