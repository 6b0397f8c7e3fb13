// SPDX-License-Identifier: Apache-2.0
#include "apps/linear_probe/features.h"

#include <iostream>
#include <memory>
#include <sstream>

#include "core/autograd.h"
#include "core/ops/concat.h"
#include "io/atomic_file.h"
#include "io/checkpoint.h"
#include "io/crc32c.h"
#include "train/progress.h"
#include "train/record/run_folder.h"

namespace weft::linear_probe {
namespace {

/// The ranks' rows in turn, [each, …] from every rank, as the rows of the set.
Tensor bring_together(const Tensor& own, int64_t images, const dist::World& ranks, const std::string& what) {
  if (ranks.size() == 1) return own;
  const bool on_host = ranks.group()->backend() != "nccl";
  const Tensor part = (on_host ? own.to(Device{}) : own).contiguous();
  Shape sizes = part.sizes();
  const int64_t each = sizes[0], world = ranks.size();
  sizes[0] = world * each;
  const Tensor all = Tensor::empty(sizes, part.dtype(), part.device());
  ranks.group()->all_gather(all.flatten(), part.flatten(), {.name = what})->wait();
  // Rank r had the images r, r + ranks, …
  const Tensor rows = all.reshape({world, each, all.numel() / (world * each)}).transpose(0, 1).contiguous();
  Shape of_set = own.sizes();
  of_set[0] = world * each;
  return rows.reshape(of_set).slice(0, 0, images).contiguous().to(own.device());
}

}  // namespace

Features compute_features(const Images& images, data::Split split, const dist::World& ranks,
                          const std::function<Tensor(const Tensor&)>& backbone) {
  const NoGrad no_grad;
  const auto loader = images.in_order(split, /*repeat=*/true);
  std::vector<Tensor> values, labels;
  std::unique_ptr<train::Progress> progress;
  if (ranks.is_first()) {
    progress = std::make_unique<train::Progress>();
    progress->begin(split == data::Split::train ? "features of the training part" : "features of the validation part",
                    loader->steps_per_epoch());
  }
  loader->start(0);
  while (const auto batch = loader->next()) {
    values.push_back(backbone(images.prepare(batch->images)).to(DType::f32));
    labels.push_back(batch->labels);
    if (progress) progress->step({.images = batch->count * ranks.size()});
  }
  if (progress) progress->end();
  const int64_t count = images.size(split);
  return {bring_together(concat(values), count, ranks, "features"),
          bring_together(concat(labels), count, ranks, "labels of features")};
}

namespace {

namespace fs = std::filesystem;

const char* const kKind = "features";

std::string checksums(const StateDict& state) {
  std::ostringstream text;
  for (const NamedTensor& entry : state.tensors) {
    const Tensor values = entry.tensor.detach().to(Device{}).contiguous();
    text << ' ' << entry.name << entry.tensor.sizes() << ' ' << std::hex << crc32c(values.raw_data(), values.nbytes())
         << std::dec;
  }
  return text.str();
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) result.push_back(line);
  return result;
}

/// `the weights`, `the images and the precision`: the first words of the lines that are not the same.
std::string differing(const std::string& wanted, const std::string& found) {
  const std::vector<std::string> a = lines(wanted), b = lines(found);
  std::string names;
  for (size_t i = 0; i < a.size(); ++i)
    if (i >= b.size() || a[i] != b[i]) names += (names.empty() ? "the " : ", the ") + a[i].substr(0, a[i].find(' '));
  return names;
}

Checkpoint packed(const FeatureSets& sets, const std::string& fingerprint) {
  const auto part = [](const Features& features) {
    StateDict state;
    state.tensors = {{"values", features.values}, {"labels", features.labels}};
    return state;
  };
  Checkpoint file;
  file.parts = {{"train", part(sets.training)}, {"val", part(sets.validation)}};
  file.texts = {{"kind", kKind}, {"fingerprint", fingerprint}};
  return file;
}

Features unpacked(const Checkpoint& file, const char* name) {
  const StateDict& part = file.part(name);
  return {part.tensor("values"), part.tensor("labels")};
}

/// Rank 0's result for the path: features that fit, or the reason to compute them.
struct Found {
  FeatureSets sets;
  std::string reason;
};

Found look(const fs::path& path, const std::string& fingerprint) {
  const AtomicFile place(path, "--cache-features");  // its folder must be there before the work begins
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return {{}, "computed"};
  Checkpoint file;
  try {
    file = load_checkpoint(path);
    WEFT_CHECK(file.text("kind") == kKind, "it holds something else");
  } catch (const Error& error) {
    fail("--cache-features ", path.string(), ": expected features that linear_probe wrote, got another file or a ",
         "damaged one, which is left as it is (", error.what(), "). Remove it, or give another name");
  }
  const std::string others = differing(fingerprint, file.text("fingerprint"));
  if (!others.empty()) return {{}, "recomputed, because these changed since they were stored: " + others};
  return {{unpacked(file, "train"), unpacked(file, "val")}, ""};
}

/// Rank 0's tensor on all ranks, there on `device`.
Tensor from_first(const Tensor& own, DType dtype, const dist::World& ranks, const std::string& what) {
  std::istringstream said(ranks.first_says(
      ranks.is_first() ? str(own.size(0), ' ', own.dim() > 1 ? own.size(1) : 0) : "", "size of " + what));
  int64_t rows = 0, width = 0;
  said >> rows >> width;
  const Device where = ranks.group()->backend() == "nccl" ? ranks.device() : Device{};
  const Tensor all = ranks.is_first() ? own.to(where).contiguous()
                                      : Tensor::empty(width > 0 ? Shape{rows, width} : Shape{rows}, dtype, where);
  ranks.group()->broadcast(all.flatten(), 0, {.name = what})->wait();
  return all.to(ranks.device());
}

Features from_first(const Features& own, const dist::World& ranks) {
  if (ranks.size() == 1) return {own.values.to(ranks.device()), own.labels.to(ranks.device())};
  return {from_first(own.values, DType::f32, ranks, "features"),
          from_first(own.labels, DType::i64, ranks, "labels of features")};
}

}  // namespace

std::string features_fingerprint(nn::Module& backbone, const Images& images, const std::string& model,
                                 const std::string& precision) {
  return str("weights ", model, checksums(backbone.state_dict()), "\nimages ", images.identity(), "\npreprocessing ",
             images.preprocessing(), "\nprecision ", precision, '\n');
}

FeatureSets features_of_file(const fs::path& path, const std::string& fingerprint, const dist::World& ranks,
                             const std::function<FeatureSets()>& compute) {
  Found found;
  const std::string reason = train::on_first(ranks, "whether the features are kept", [&] {
    found = look(path, fingerprint);
    return found.reason;
  });
  const auto say = [&](const auto&... words) {
    if (ranks.is_first()) std::cout << "features " << path.string() << ": " << str(words...) << std::endl;
  };
  if (reason.empty()) {
    const FeatureSets sets{from_first(found.sets.training, ranks), from_first(found.sets.validation, ranks)};
    say("read, ", sets.training.labels.numel(), " + ", sets.validation.labels.numel(), " images");
    return sets;
  }
  say(reason);
  FeatureSets sets = compute();
  if (!ranks.is_first()) return sets;
  try {
    save_checkpoint(path, packed(sets, fingerprint));
  } catch (const Error& full) {  // the run has its features
    say("not kept: ", full.what());
  }
  return sets;
}

std::shared_ptr<data::BatchQueue> make_loader(const Features& features, const data::Sampler& order,
                                              int64_t batch_size) {
  return std::make_shared<data::BatchQueue>(
      data::rows_of({features.values, features.labels}), order,
      data::LoaderOptions{.batch_size = batch_size, .workers = 0, .device = features.values.device()});
}

}  // namespace weft::linear_probe
