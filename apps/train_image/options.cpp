// SPDX-License-Identifier: Apache-2.0
#include "apps/train_image/options.h"

#include <string_view>

#include "apps/support/flags.h"
#include "core/text.h"
#include "data/pipeline.h"
#include "kernels/error.h"
#include "nn/models/make_model.h"

namespace weft::train_image {
namespace {

void check_pair(std::string_view flag, const std::vector<double>& pair, double most) {
  if (!pair.empty() && !(pair[0] > 0 && pair[0] <= pair[1] && pair[1] <= most))
    throw train::UsageError(str("--", flag, ": expected two numbers above 0 in ascending order, up to ", most, ", got ",
                                pair[0], ",", pair[1]));
}

void check_augmentation(const Options& o) {
  check_pair("crop-scale", o.crop_scale, 1);
  check_pair("crop-ratio", o.crop_ratio, 100);
  std::string chosen;
  try {
    chosen = data::resolve_pipeline(o.augment, o.data);
  } catch (const Error& error) {
    throw train::UsageError(str("--", error.what()));
  }
  if (!chosen.starts_with("imagenet") && (!o.crop_scale.empty() || !o.crop_ratio.empty()))
    throw train::UsageError(
        str("--crop-", o.crop_scale.empty() ? "ratio" : "scale", ": expected --augment imagenet, got ", chosen));
  for (const double share : o.milestones)
    if (!(share >= 0 && share <= 1))
      throw train::UsageError(str("--milestones: expected shares of the run, 0 to 1, got ", share));
  if (o.color_jitter.empty()) return;
  for (const double reach : o.color_jitter)
    if (reach < 0) throw train::UsageError(str("--color-jitter: expected numbers of at least 0, got ", reach));
  if (o.color_jitter[3] > 0.5)
    throw train::UsageError(str("--color-jitter: expected a hue of at most 0.5, got ", o.color_jitter[3]));
}

/// Errors: flags that would count for nothing beside the others.
void check_together(const Options& o) {
  if (o.eval_only && o.weights.empty() && !o.resume.empty())
    throw train::UsageError("--eval-only: evaluates --weights FILE, which may be a checkpoint, got --resume " +
                            o.resume);
  if (o.schedule == "onecycle" && o.warmup > 0)
    throw train::UsageError(str("--warmup: expected another --schedule, onecycle rises by itself, got ", o.warmup));
  for (const auto& [flag, values] : {std::pair("--mean", &o.mean), std::pair("--std", &o.std)})
    for (const double value : *values)
      if (!(value >= 0 && value <= 1))
        throw train::UsageError(str(flag, ": expected numbers from 0 to 1, where white is 1, got ", value,
                                    value > 1 ? ". Divide those of bytes by 255" : ""));
  if (o.averages.warmup && o.averages.decay == 0) throw train::UsageError("--ema-warmup: needs --ema");
}

}  // namespace

bool parse_options(int argc, char** argv, Options& o) {
  support::Flags flags("train_image", "Trains an image classifier, or evaluates one.");
  flags.add("data", o.data,
            "shapes | cifar10:DIR | cifar100:DIR | idx:DIR | folder:DIR | hdf5:FILE | packed:FILE | random:NxHxWxC");
  flags.add("model", o.model, joined(nn::model_names()) + "; auto: resnet20 for images up to 64 pixels, else resnet18");
  flags.add_choice("stem", o.stem, {"auto", "cifar", "imagenet"},
                   "first layers of resnet18 … 152: 3x3 stride 1, or 7x7 stride 2 and max-pool; auto: by image size");
  flags.add("image-size", o.image_size, "side of the model's square input in pixels; 0: of the set (folder: 224)",
            {.min = 0, .max = 4096});
  flags.add("epochs", o.epochs, "passes over the training set", {.min = 1, .max = 1e6});
  flags.add("batch-size", o.batch_size, "images per step of each rank; on N ranks a step sees N times as many",
            {.min = 1, .max = 1e6});
  flags.add("lr", o.lr, "peak learning rate", {.min = 0});
  flags.add_choice("optimizer", o.optimizer,
                   {"sgd", "adam", "adamw", "adadelta", "rmsprop", "adagrad", "lion", "lars", "lamb"},
                   "how weights are updated (sgd: Nesterov momentum; lars, lamb: for large batches, each parameter by "
                   "its norm, those that do not decay as by sgd and adamw)");
  flags.add("momentum", o.momentum, "of sgd, lars and rmsprop", {.min = 0, .max = 1});
  flags.add_choice("schedule", o.schedule, {"constant", "cosine", "step", "polynomial", "onecycle"},
                   "of the learning rate, after the warm-up; cosine and polynomial (see --power) fall to 0, step "
                   "multiplies by 0.1 at "
                   "--milestones");
  flags.add("milestones", o.milestones, 0, "shares of the run at which --schedule step lowers the rate");
  flags.add("power", o.power, "of --schedule polynomial: lr (1 - share of the run)^power", {.min = 0});
  flags.add("warmup", o.warmup, "epochs of linear warm-up", {.min = 0});
  flags.add("weight-decay", o.weight_decay, "L2 (adamw: decoupled)", {.min = 0});
  flags.add("label-smoothing", o.label_smoothing, "share of the target spread over all classes", {.min = 0, .max = 1});
  flags.add("clip-norm", o.clip_norm, "largest norm of the gradient; 0: not clipped", {.min = 0});
  support::add_flags(flags, o.averages);
  flags.add("augment", o.augment,
            "random changes of training images: none | standard | flip | shapes (pad 2, crop, flip) | cifar (pad 4) | "
            "imagenet (random resized crop, flip), and autoaugment[:imagenet|cifar10|svhn] | randaugment[:N,M] | "
            "trivialaugment, alone (with the standard crop and flip) or as flip+trivialaugment; auto, standard: what "
            "suits the set");
  flags.add("crop-scale", o.crop_scale, 2, "smallest and largest share of the area that imagenet crops (0.08,1)");
  flags.add("crop-ratio", o.crop_ratio, 2, "smallest and largest width over height that imagenet crops (0.75,1.3333)");
  flags.add_choice("interpolation", o.interpolation, {"bilinear", "bicubic"},
                   "how images are resized, always with antialiasing");
  flags.add("color-jitter", o.color_jitter, 4, "B,C,S,H: reach of brightness, contrast, saturation, and hue (to 0.5)");
  flags.add("random-erasing", o.random_erasing, "probability that a box of the image is erased", {.min = 0, .max = 1});
  flags.add("mixup", o.mixup, "alpha of mixup; 0: off", {.min = 0});
  flags.add("cutmix", o.cutmix, "alpha of cutmix; 0: off", {.min = 0});
  flags.add_choice(
      "transform-on", o.transform_on, {"auto", "host", "device"},
      "where images are cropped, mirrored and normalised. device: they travel as bytes; host: the workers do it and "
      "four times as much travels; the same bits either way; auto: device, on the CPU host");
  flags.add_choice("decode-on", o.decode_on, {"cpu", "gpu"},
                   "where JPEGs become pixels. cpu: the workers, by libjpeg; gpu: nvJPEG, for each worker, which "
                   "does not interpolate subsampled colours");
  flags.add_choice("precision", o.precision, {"f32", "bf16", "fp8"},
                   "bf16: convolutions and matmuls in bf16, weights in f32; fp8: the linear layers of a transformer's "
                   "blocks in 8 bits besides");
  flags.add_device(o.device);
  flags.add("workers", o.workers, "threads that load images; 0: the training thread itself", {.min = 0, .max = 1024});
  flags.add("seed", o.seed, "of weights, order and augmentation", {.min = 0});
  flags.add("out", o.out, "run folder: metrics, TensorBoard files, checkpoints, summary");
  flags.add("overwrite", o.overwrite, "begin a new run in a folder that holds another one, whose files go");
  flags.add("mean", o.mean, 0,
            "R,G,B per channel, white is 1; none: of the training part (--eval-only: what --weights was trained with)");
  flags.add("std", o.std, 0, "R,G,B per channel; none: likewise");
  flags.add("resume", o.resume, "auto (the run folder's last whole checkpoint, if any) or a checkpoint file");
  flags.add("keep", o.keep, "how many of the last checkpoints stay; if the last is damaged, auto takes the one before",
            {.min = 1, .max = 1000});
  flags.add("weights", o.weights, "start from the weights in FILE: safetensors, a PyTorch file, a checkpoint");
  flags.add_choice("weights-strict", o.weights_strict, {"yes", "no"},
                   "no: what FILE lacks, or has in another shape, keeps its random start, and is listed");
  flags.add("weights-prefix", o.weights_prefix, "take only names that begin so, without it, such as backbone.");
  flags.add("weights-key", o.weights_key, "which dict of a PyTorch file, which part of a checkpoint; '': found");
  flags.add("export", o.export_file, "write the final weights to FILE.safetensors (PyTorch's names and shapes)");
  flags.add("eval-only", o.eval_only, "evaluate on the validation part and stop; needs only that part of the set");
  flags.add("max-steps", o.max_steps, "stop after this many steps of the whole run, as Ctrl-C would; 0: no limit",
            {.min = 0});
  flags.retired("deterministic");  // every run is
  flags.add("log-interval", o.log_interval, "steps between two rows of metrics within an epoch; 0: one an epoch",
            {.min = 0});
  flags.add("save-interval", o.save_interval, "steps between two checkpoints within an epoch; 0: none", {.min = 0});
  flags.add_choice(
      "graph", o.graph, {"auto", "on", "off"},
      "launch a step as one CUDA graph; auto: on cuda with one rank, unless --profile wants to see its kernels, and "
      "without graph where the capture fails");
  flags.add_choice(
      "parallel", o.parallel, {"auto", "none", "ddp", "fsdp"},
      "ddp: several ranks (mpirun, srun, weft-run, torchrun's variables) train one model, each on its part "
      "of the images; fsdp: the same, and weights, gradients and optimizer state are shared out over them; auto: "
      "ddp where there are several ranks; none: ranks do not know each other");
  flags.add_choice("backend", o.backend, {"auto", "nccl", "mpi", "gloo"},
                   "how ranks communicate; auto: nccl on GPUs, else mpi under mpirun, else gloo");
  flags.add("bucket-mb", o.bucket_mb, "MiB of gradients that ddp reduces at once",
            {.min = 0, .max = 1e5, .above = true});
  flags.add_choice("grad-compression", o.grad_compression, {"none", "bf16"}, "gradients travel between ranks as bf16");
  flags.add("sync-batch-norm", o.sync_batch_norm, "batch norm in training takes its statistics over all ranks");
  flags.add_choice("fsdp-strategy", o.fsdp_strategy, {"full_shard", "shard_grad_op", "hybrid_shard", "no_shard"},
                   "what fsdp shares out; --precision bf16 gathers weights as bf16");
  flags.add("fsdp-min-params", o.fsdp_min_params, "parameters that make a part of the model a unit of fsdp",
            {.min = 1, .max = 1e15});
  flags.add("fsdp-shard-size", o.fsdp_shard_size, "ranks that share one copy under --fsdp-strategy hybrid_shard",
            {.min = 0, .max = 1e6});
  flags.add_choice("usr1", o.usr1, {"save", "stop"},
                   "what SIGUSR1 (sbatch --signal=USR1@120) does: a checkpoint, or a checkpoint and exit code 75");
  flags.add("summary", o.summary, "print the table of layers before training");
  flags.add("profile", o.profile,
            "write a Chrome trace (chrome://tracing, ui.perfetto.dev) of a few steps to FILE.json and the table of ops "
            "to FILE.txt");
  flags.add("profile-steps", o.profile_steps, "A:B: the steps of this process from A to B - 1, counted from 0");
  flags.add("dry-run", o.dry_run, "read flags, weights and data, build the model, say what would run, write nothing");
  flags.example("train_image --data shapes --epochs 6");
  flags.example("train_image --data cifar100:DIR --model resnet18 --epochs 60 --lr 0.1 --out runs/cifar100");
  flags.example(
      "weft-run --nproc_per_node 4 train_image --data folder:DIR --model resnet50 --precision bf16 --resume auto");
  if (!flags.parse(argc, argv)) return false;
  check_augmentation(o);
  check_together(o);
  o.toml = flags.toml();
  return true;
}

}  // namespace weft::train_image
