// SPDX-License-Identifier: Apache-2.0
// Checkpoints as training programs lay them out (write_checkpoints.py), and what is no file of weights at all.
#include "io/checkpoint.h"
#include "io/safetensors.h"
#include "io/torch/torch_object.h"
#include "nn/models/make_model.h"
#include "tests/weights/fixture.h"
#include "train/load_weights.h"

namespace weft {
namespace {

using test::error_of;
using test::golden;
using test::TemporaryFolder;
using test::write_file;
using testing::HasSubstr;
using Numbers = std::vector<double>;
using namespace std::string_literals;

/// The golden files' conv.weight and conv.bias under these names, values and all.
void expect_weights(const WeightsFile& file, double first = 1) {
  const StateDict read = file.read_all();
  ASSERT_EQ(read.tensors.size(), 2u);
  EXPECT_EQ(read.tensor("conv.weight").to_vector<double>(), (Numbers{first, -2, 0.5, 4}));
  EXPECT_EQ(read.tensor("conv.bias").to_vector<double>(), (Numbers{3, first}));
}

std::unique_ptr<WeightsFile> opened(const std::filesystem::path& path, const std::string& key = "") {
  return renamed_weights(open_weights(path, {.key = key}), {});
}

TEST(OtherPrograms, WeightsBesideTensorsAndNumbers) {
  NEEDS_ZIP();
  const auto imagenet = opened(golden("program_imagenet_2_15.pt"));
  expect_weights(*imagenet);
  EXPECT_EQ(imagenet->metadata(), (std::map<std::string, std::string>{{"arch", "resnet18"}, {"epoch", "3"}}));
  const auto nano_gpt = opened(golden("program_nanogpt_2_15.pt"));
  expect_weights(*nano_gpt);
  EXPECT_EQ(nano_gpt->metadata().at("iter_num"), "7");
  for (const char* name : {"program_mae_2_15.pt", "program_mae_protocol5_2_15.pt"}) {
    SCOPED_TRACE(name);
    const auto mae = opened(golden(name));
    expect_weights(*mae);
    EXPECT_EQ(mae->metadata(), (std::map<std::string, std::string>{{"best", "0.5"},
                                                                   {"epoch", "3"},
                                                                   {"flag", "true"},
                                                                   {"half", "-0.25"},
                                                                   {"rng", "a NumPy array of u4"},
                                                                   {"root", "/a/b"},
                                                                   {"word", "a NumPy array of U2"}}));
  }
}

TEST(OtherPrograms, NamespacesAreDicts) {
  NEEDS_ZIP();
  const auto timm = open_torch(golden("program_timm_2_15.pt"), "state_dict_ema");
  expect_weights(*timm, 1.5);
  const auto args = open_torch(golden("program_timm_2_15.pt"), "args");
  EXPECT_TRUE(args->tensors().empty());
  EXPECT_EQ(args->metadata(),
            (std::map<std::string, std::string>{{"data_dir", "/data/imagenet"}, {"lr", "0.5"}, {"opt", "adamw"}}));
  EXPECT_EQ(open_torch(golden("program_mae_2_15.pt"), "args.nested")->metadata().at("a"), "1");
}

TEST(OtherPrograms, SeveralDictsOfWeightsAreNamed) {
  NEEDS_ZIP();
  EXPECT_THAT(error_of([] { open_weights(golden("program_timm_2_15.pt")); }),
              testing::EndsWith("the file holds several dicts of weights: state_dict, state_dict_ema. Choose one: "
                                "--weights-key state_dict (weft-weights: --key state_dict), or write it alone: "
                                "weft-weights convert --key state_dict FILE NEW.safetensors"));
}

TEST(OtherPrograms, ArraysOfNumPyAreTensors) {
  NEEDS_ZIP();
  const auto file = opened(golden("program_arrays_2_15.pt"));
  const StateDict read = file->read_all();
  ASSERT_EQ(read.tensors.size(), 4u);
  EXPECT_EQ(read.tensor("conv.weight").to_vector<double>(), (Numbers{1, -2, 0.5, 4}));  // its columns come first
  EXPECT_EQ(read.tensor("conv.weight").sizes(), (Shape{2, 2}));
  EXPECT_EQ(read.tensor("conv.bias").to_vector<double>(), (Numbers{3, 1}));  // big-endian
  EXPECT_EQ(read.tensor("mask").dtype(), DType::boolean);
  EXPECT_EQ(read.tensor("mask").sizes(), (Shape{2, 1}));
  EXPECT_EQ(read.tensor("small").item(), -3);
  EXPECT_EQ(file->tensors()[static_cast<size_t>(file->find("conv.bias"))].stored, "F64");
  EXPECT_EQ(file->metadata().at("names"), "a NumPy array of U1");
  EXPECT_THAT(error_of([] { open_torch(golden("program_arrays_2_15.pt"), "others"); }),
              testing::EndsWith("array 'large': expected a dtype that Weft has, got NumPy's u8"));
}

StateDict weights(const std::string& prefix = "") {
  StateDict state;
  state.tensors = {{prefix + "conv.weight", Tensor::from(std::vector<float>{1, -2, 0.5f, 4}, Shape{2, 2})},
                   {prefix + "conv.bias", Tensor::from(std::vector<float>{3, 1}, Shape{2})}};
  return state;
}

// One program each; the key is found.
TEST(OtherPrograms, UsualKeys) {
  NEEDS_ZIP();
  const TemporaryFolder folder;
  const TorchObject scalar{Tensor::full({}, 2)}, inner = TorchObject::of(weights());
  for (const char* key : {"state_dict", "model_state_dict", "model", "net", "network", "module", "weights", "params",
                          "params_ema", "model_ema", "ema_state_dict", "ema", "teacher", "student", "model_state"}) {
    SCOPED_TRACE(key);
    write_torch(folder / "a.pt",
                TorchObject{TorchObject::Dict{{"acc", scalar}, {key, inner}, {"epoch", {int64_t{3}}}}});
    expect_weights(*opened(folder / "a.pt"));
    expect_weights(*opened(folder / "a.pt", key));
  }
  // A dict in a dict, and beside others that are no weights.
  const TorchObject optimizer{
      TorchObject::Dict{{"state", {TorchObject::Dict{{int64_t{0}, {TorchObject::Dict{{"exp_avg", scalar}}}}}}}}};
  write_torch(folder / "b.pt", TorchObject{TorchObject::Dict{{"optimizer", optimizer},
                                                             {"model", {TorchObject::Dict{{"state_dict", inner}}}},
                                                             {"meta", {TorchObject::Dict{{"epoch", {int64_t{1}}}}}}}});
  expect_weights(*opened(folder / "b.pt"));
  write_torch(folder / "c.pt",
              TorchObject{TorchObject::Dict{{"teacher", inner}, {"student", TorchObject::of(weights())}}});
  EXPECT_THAT(error_of([&] { open_weights(folder / "c.pt"); }),
              HasSubstr("several dicts of weights: teacher, student."));
  // Other names are kept as they are.
  write_torch(folder / "d.pt",
              TorchObject{TorchObject::Dict{{"encoder", inner}, {"decoder", TorchObject::of(weights())}}});
  EXPECT_GE(open_weights(folder / "d.pt")->find("encoder.conv.bias"), 0);
}

TEST(OtherPrograms, WrappersOfModulesLeaveNoNames) {
  const TemporaryFolder folder;
  for (const char* prefix : {"", "module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module.", "module.module.",
                             "_fsdp_wrapped_module.", "_fsdp_wrapped_module._checkpoint_wrapped_module."}) {
    SCOPED_TRACE(prefix);
    write_safetensors(folder / "a", weights(prefix));
    expect_weights(*opened(folder / "a"));
  }
  StateDict inside;
  inside.tensors = {{"conv._orig_mod.weight", weights().tensors[0].tensor},
                    {"conv._checkpoint_wrapped_module.bias", weights().tensors[1].tensor}};
  write_safetensors(folder / "a", inside);
  expect_weights(*opened(folder / "a"));
  StateDict averaged = weights("module.");
  averaged.tensors.push_back({"n_averaged", Tensor::full({}, 5)});
  write_safetensors(folder / "a", averaged);
  expect_weights(*opened(folder / "a"));
  // A module of this name, and a counter beside names without the wrapper, stay.
  StateDict own = weights("module.");
  own.tensors.push_back({"head.bias", Tensor::zeros({1})});
  write_safetensors(folder / "a", own);
  EXPECT_GE(opened(folder / "a")->find("module.conv.bias"), 0);
  StateDict counter = weights();
  counter.tensors.push_back({"n_averaged", Tensor::full({}, 5)});
  write_safetensors(folder / "a", counter);
  EXPECT_GE(opened(folder / "a")->find("n_averaged"), 0);
}

TEST(OtherPrograms, APrefixBeforeAllNamesIsFound) {
  const TemporaryFolder folder;
  const auto model = nn::make_model("resnet8", 10);
  const auto copy = [&] {
    StateDict state = model->state_dict();
    for (NamedTensor& entry : state.tensors) entry.tensor = entry.tensor.clone();
    return state;
  };
  const StateDict before = copy();
  const auto with = [&](const std::vector<std::string>& prefixes) {
    StateDict state;
    for (const std::string& prefix : prefixes)
      for (const NamedTensor& entry : before.tensors) state.tensors.push_back({prefix + entry.name, entry.tensor});
    return state;
  };
  for (const char* prefix : {"model.", "backbone.", "model.encoder.", "module.net."}) {
    SCOPED_TRACE(prefix);
    write_safetensors(folder / "a", with({prefix}));
    for (const NamedTensor& parameter : model->parameters()) parameter.tensor.detach().fill_(7);
    EXPECT_TRUE(train::load_weights(*model, folder / "a").is_whole());
    test::expect_same_tensors(before, copy());
  }
  write_safetensors(folder / "a", with({"encoder_k.", "encoder_q."}));
  EXPECT_THAT(error_of([&] { train::load_weights(*model, folder / "a"); }),
              testing::EndsWith("Of the names behind encoder_k., encoder_q. most fit: --weights-prefix encoder_k. "
                                "(weft-weights: --prefix)"));
  EXPECT_TRUE(train::load_weights(*model, folder / "a", {.rename = {.prefix = "encoder_q."}}).is_whole());
  StateDict more = with({"model."});
  more.tensors.push_back({"loss.weight", Tensor::zeros({3})});  // stripping would leave it out without a word
  write_safetensors(folder / "a", more);
  EXPECT_THAT(error_of([&] { train::load_weights(*model, folder / "a"); }), HasSubstr("--weights-prefix model."));
}

TEST(OtherPrograms, FoldersOfHuggingFace) {
  const TemporaryFolder folder;
  write_file(folder / "config.json", "{}");
  EXPECT_EQ(error_of([&] { open_weights(folder.path()); }),
            "weights: " + folder.path().string() +
                ": expected a file, or a folder with model.safetensors or pytorch_model.bin, got none of them in this "
                "folder");
  std::filesystem::copy(golden("module_legacy.pt"), folder / "pytorch_model.bin");
  EXPECT_EQ(open_weights(folder.path())->tensors().size(), 9u);
  write_safetensors(folder / "model.safetensors", weights());
  expect_weights(*open_weights(folder.path()));
}

TEST(OtherPrograms, CheckpointsWithoutAModelNameTheirParts) {
  const TemporaryFolder folder;
  Checkpoint features;
  features.parts = {{"train", weights()}, {"val", weights()}};
  features.texts["kind"] = "features";
  save_checkpoint(folder / "a.safetensors", features);
  EXPECT_EQ(error_of([&] { open_weights(folder / "a.safetensors"); }),
            "checkpoint: expected a part 'model', got train, val (features). weft-weights --key and train_image "
            "--weights-key take one");
  expect_weights(*open_weights(folder / "a.safetensors", {.key = "val"}));
}

// Every reader of weights gives one line with the file's kind and the cure.
TEST(OtherPrograms, FilesThatAreNoWeights) {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& name, const std::string& content) {
    write_file(folder / name, content);
    const std::string text = error_of([&] { open_weights(folder / name); });
    EXPECT_EQ(text.find('\n'), std::string::npos);
    EXPECT_THAT(text, HasSubstr((folder / name).string() + ": ")) << text;
    return test::without_path(text, folder / name);
  };
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, '0') + "\nsize 440449768\n";
  for (const char* name : {"a.safetensors", "a.pth", "a.bin", "a.h5", "a.json", "a"})
    EXPECT_EQ(error(name, pointer),
              "it is a Git LFS pointer, not the 440449768 bytes of data that it stands for. Fetch them with git lfs "
              "pull, or download the file itself");
  for (const char* name : {"b.safetensors", "b.pth", "b"}) {
    EXPECT_THAT(error(name, "\n<!DOCTYPE html>\n<html>"), testing::StartsWith("it is a web page (HTML), expected "));
    EXPECT_THAT(error(name, "<?xml version=\"1.0\"?><Error>"), testing::StartsWith("it is a text in XML, expected "));
    EXPECT_THAT(error(name, ""), testing::StartsWith("it is an empty file, expected "));
    EXPECT_THAT(error(name, "GGUF\3\0\0\0"s + std::string(16, '\0')),
                testing::StartsWith("it is a file of llama.cpp (GGUF), expected "));
    EXPECT_THAT(error(name, "\x1f\x8b\x08\0\0\0\0\0\0\0"s), testing::StartsWith("it is packed by gzip, expected "));
    EXPECT_THAT(error(name, "\x93NUMPY\1\0v\0"s), testing::StartsWith("it is an array of NumPy (.npy), expected "));
    EXPECT_THAT(error(name, "\x08\x07\x12\x07pytorch"), testing::StartsWith("it is a model in ONNX, expected "));
    std::string tar(512, '\0');
    tar.replace(0, 9, "model.pth").replace(257, 5, "ustar");
    EXPECT_THAT(error(name, tar), testing::StartsWith("it is a tar archive that begins with 'model.pth', expected "));
    tar.replace(0, 9, "sys_info\0"s);
    EXPECT_THAT(error(name, tar), testing::StartsWith("it is a file of PyTorch before version 0.2 (a tar archive), "));
    EXPECT_THAT(error(name, std::string(40, 'x') + "\x57\xfb\x80\x8b\x24\x75\x47\xdb"),
                testing::StartsWith("it is a checkpoint of TensorFlow, expected "));
    EXPECT_THAT(error(name, "\x80\4\x95\7\0\0\0\0\0\0\0}K\1K\2s."s),
                testing::StartsWith("it is a pickle that torch.save did not write, expected "));
    // pickle.dump() of a tensor: a file of torch.save's lies in it as bytes
    EXPECT_THAT(error(name, "\x80\2C\x60" + std::string(86, 'x') + "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."),
                testing::StartsWith("it is a pickle that torch.save did not write, expected "));
  }
  EXPECT_THAT(error("m.ckpt.data-00000-of-00001", "abcdefgh"), testing::StartsWith("it is a checkpoint of TensorFlow"));
  write_file(folder / "n.ckpt.index", "x");
  EXPECT_THAT(error_of([&] { open_weights(folder / "n.ckpt"); }),
              HasSubstr("is of a checkpoint of TensorFlow, expected"));
  EXPECT_THAT(error("a.msgpack", "\x81\xa6params\x80"),
              testing::StartsWith("it is a file of Flax (msgpack), expected"));
  EXPECT_THAT(error("__0_0.distcp", "abcdefgh"), testing::StartsWith("it is a part of a torch.distributed.checkpoint"));
  if (!have_zip()) return;
  test::write_zip(folder / "npz", {{"arr_0.npy", "x"}});
  EXPECT_THAT(error_of([&] { open_weights(folder / "npz"); }),
              HasSubstr("it is NumPy's archive of arrays (.npz), expected"));
  test::write_zip(folder / "keras", {{"metadata.json", "{}"}, {"model.weights.h5", "x"}});
  EXPECT_THAT(error_of([&] { open_weights(folder / "keras"); }),
              HasSubstr("it is a model of Keras (.keras), expected"));
  test::write_zip(folder / "zip", {{"weights/model.pth", "x"}});
  EXPECT_THAT(error_of([&] { open_weights(folder / "zip"); }),
              HasSubstr("it is a zip archive that begins with 'weights/model.pth', expected"));
}

TEST(OtherPrograms, KerasInHdf5) {
  const std::string path = WEFT_GOLDEN "/hdf5/keras.h5";
  EXPECT_EQ(
      error_of([&] { open_weights(path); }),
      "checkpoint: " + path +
          ": it is a file of Keras (HDF5), expected a checkpoint. In Python: load it in Keras and save its arrays "
          "as .safetensors");
}

TEST(OtherPrograms, CheckpointsOfBeforeTheFirstRelease) {
  const std::string path = WEFT_GOLDEN "/hdf5/checkpoint.h5";
  const std::string text =
      "checkpoint: " + path +
      ": it is a checkpoint of Weft before its first release (HDF5), expected a checkpoint. The Weft that wrote it "
      "converts it: weft-weights convert --checkpoint OLD.h5 NEW.safetensors";
  EXPECT_EQ(error_of([&] { open_weights(path); }), text);
  EXPECT_EQ(error_of([&] { load_checkpoint(path); }), text);
  const TemporaryFolder folder;
  std::filesystem::copy_file(path, folder / "cut.h5");
  std::filesystem::resize_file(folder / "cut.h5", 4000);
  EXPECT_EQ(error_of([&] { load_checkpoint(folder / "cut.h5"); }),
            "checkpoint: " + (folder / "cut.h5").string() + ": expected a checkpoint, got another format");
}

TEST(OtherPrograms, FoldersThatAreNoWeights) {
  const auto error = [](const std::vector<std::string>& names, bool resume) {
    const TemporaryFolder folder;
    for (const std::string& name : names) write_file(folder / name, "x");
    const std::string text =
        resume ? error_of([&] { load_checkpoint(folder.path()); }) : error_of([&] { open_weights(folder.path()); });
    return test::without_path(text, folder.path());
  };
  for (const bool resume : {false, true}) {
    EXPECT_THAT(error({}, resume), testing::StartsWith("it is an empty folder, expected"));
    EXPECT_THAT(error({".metadata", "__0_0.distcp"}, resume),
                testing::AllOf(testing::StartsWith("it is a folder of torch.distributed.checkpoint, expected"),
                               HasSubstr("python -m torch.distributed.checkpoint.format_utils dcp_to_torch /")));
    EXPECT_THAT(error({"latest", "zero_to_fp32.py"}, resume), testing::StartsWith("it is a checkpoint of DeepSpeed"));
    EXPECT_THAT(error({"mp_rank_00_model_states.pt"}, resume), testing::StartsWith("it is a checkpoint of DeepSpeed"));
    EXPECT_THAT(error({"saved_model.pb"}, resume), testing::StartsWith("it is a checkpoint of TensorFlow"));
    EXPECT_THAT(error({"_METADATA"}, resume), testing::StartsWith("it is a checkpoint of Orbax (JAX)"));
    EXPECT_THAT(error({"data", "data.pkl", "version"}, resume),
                testing::StartsWith("it is a file of PyTorch that was unpacked"));
    EXPECT_THAT(error({"adapter_config.json"}, resume), testing::StartsWith("it is an adapter (PEFT)"));
    EXPECT_THAT(error({"config.json", "tf_model.h5"}, resume),
                testing::StartsWith("it is a folder of Hugging Face with tf_model.h5 alone"));
    EXPECT_THAT(error({"checkpoint_best.safetensors", "checkpoint_last.safetensors"}, resume),
                testing::ContainsRegex("it is a folder, expected .*Name a file in it: .*/checkpoint_best.safetensors, "
                                       ".*/checkpoint_last.safetensors"));
  }
}

}  // namespace
}  // namespace weft
