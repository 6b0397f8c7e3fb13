// SPDX-License-Identifier: Apache-2.0
#include "apps/train_image/options.h"

#include <filesystem>
#include <string_view>

#include "apps/support/run_flags.h"
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
  if (!std::is_sorted(o.milestones.begin(), o.milestones.end()))
    throw train::UsageError("--milestones: expected shares that rise, got a smaller one behind a larger one");
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
  const std::string suffix = std::filesystem::path(o.export_file).extension().string();
  if (!suffix.empty() && suffix != ".safetensors")
    throw train::UsageError(str("--export: expected a name that ends in .safetensors, got ", o.export_file,
                                ". weft-weights convert writes files of PyTorch from it"));
  if (o.averages.warmup && o.averages.decay == 0) throw train::UsageError("--ema-warmup: needs --ema");
}

}  // namespace

bool parse_options(int argc, char** argv, Options& o) {
  support::Flags flags(o.program, "Trains an image classifier, or evaluates one.");
  flags.group("Data and model");
  flags.add("data", o.data,
            "shapes | cifar10:DIR | cifar100:DIR | idx:DIR | folder:DIR | hdf5:FILE | packed:FILE | random:NxHxWxC");
  flags.add("model", o.model, joined(nn::model_names()) + "; auto: resnet20 for images up to 64 pixels, else resnet18");
  flags.add_choice("stem", o.stem, {"auto", "cifar", "imagenet"},
                   "first layers of resnet18 … 152: 3x3 stride 1, or 7x7 stride 2 and max-pool; auto: by image size");
  flags.add("image-size", o.image_size, "side of the model's square input in pixels; 0: of the set (folder: 224)",
            {.min = 0, .max = 4096});
  flags.add("mean", o.mean, 0,
            "R,G,B per channel, white is 1; none: of the training part (--eval-only: what --weights was trained with)");
  flags.add("std", o.std, 0, "R,G,B per channel; none: likewise");
  flags.add("weights", o.weights, "start from the weights in FILE: safetensors, a PyTorch file, a checkpoint");
  flags.add_choice("weights-strict", o.weights_strict, {"yes", "no"},
                   "no: what FILE lacks, or has in another shape, keeps its random start, and is listed");
  flags.add("weights-prefix", o.weights_prefix, "take only names that begin so, without it, such as backbone.");
  flags.add("weights-key", o.weights_key, "which dict of a PyTorch file, which part of a checkpoint; '': found");
  flags.add("export", o.export_file, "write the final weights to FILE.safetensors (PyTorch's names and shapes)");
  flags.add("eval-only", o.eval_only, "evaluate on the validation part and stop; needs only that part of the set");
  flags.add("summary", o.summary, "print the table of layers before training");
  flags.group("Augmentation");
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
  flags.group("Training");
  flags.add("lr", o.lr, "peak learning rate", {.min = 0});
  flags.add_choice("optimizer", o.optimizer,
                   {"sgd", "adam", "adamw", "adadelta", "rmsprop", "adagrad", "lion", "lars", "lamb"},
                   "how weights are updated (sgd: Nesterov momentum; lars, lamb: for large batches, each parameter by "
                   "its norm, those that do not decay as by sgd and adamw)");
  flags.add("momentum", o.momentum, "of sgd, lars and rmsprop", {.min = 0, .max = 1});
  flags.add_choice("schedule", o.schedule, {"constant", "cosine", "step", "polynomial", "onecycle"},
                   "of the learning rate, after the warm-up; cosine and polynomial (see --power) fall to 0, step "
                   "multiplies by 0.1 at --milestones");
  flags.add("milestones", o.milestones, 0, "shares of the run at which --schedule step lowers the rate");
  flags.add("power", o.power, "of --schedule polynomial: lr (1 - share of the run)^power", {.min = 0});
  flags.add("warmup", o.warmup, "epochs of linear warm-up", {.min = 0});
  flags.add("weight-decay", o.weight_decay, "L2 (adamw: decoupled)", {.min = 0});
  flags.add("label-smoothing", o.label_smoothing, "share of the target spread over all classes", {.min = 0, .max = 1});
  support::add_run_flags(
      flags, o,
      "epochs batch-size clip-norm recompute ema fp8 graph device workers profile parallel backend bucket-mb "
      "grad-compression sync-batch-norm fsdp-strategy fsdp-min-params fsdp-shard-size "
      "fsdp-offload fsdp-checkpoints seed out overwrite resume keep max-steps log-interval save-interval usr1 dry-run");
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
