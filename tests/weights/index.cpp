// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "io/checkpoint.h"
#include "io/safetensors.h"
#include "io/weights/safetensors_shards.h"
#include "tests/weights/fixture.h"

namespace weft {
namespace {

using test::error_of;
using test::read_file;
using test::TemporaryFolder;
using test::without_path;
using test::write_file;

StateDict state_of(int count) {
  StateDict state;
  for (int i = 0; i < count; ++i) state.tensors.push_back({str("t", i), Tensor::full({10}, i)});  // 40 bytes each
  return state;
}

TEST(WeightsIndex, ShardsRoundTrip) {
  std::mt19937_64 random(std::random_device{}());
  const TemporaryFolder folder;
  const StateDict state = test::random_state(random);
  const auto written = write_safetensors_shards(folder / "model.safetensors", state, 500, {{"format", "pt"}});
  ASSERT_GT(written.size(), 3u);
  EXPECT_EQ(written.back(), folder / "model.safetensors.index.json");
  EXPECT_EQ(folder.files(), written.size());
  const auto file = open_weights(written.back());
  EXPECT_EQ(file->format(), "sharded");
  EXPECT_EQ(file->metadata().at("format"), "pt");
  test::expect_same_tensors(state, file->read_all());
}

TEST(WeightsIndex, NamesAndSizesAreHuggingFaces) {
  const TemporaryFolder folder;
  const auto written = write_safetensors_shards(folder / "model.safetensors", state_of(5), 100);
  EXPECT_EQ(written, (std::vector<std::filesystem::path>{
                         folder / "model-00001-of-00003.safetensors", folder / "model-00002-of-00003.safetensors",
                         folder / "model-00003-of-00003.safetensors", folder / "model.safetensors.index.json"}));
  const auto index = nlohmann::json::parse(read_file(written.back()));
  EXPECT_EQ(index["metadata"]["total_size"], 200);
  EXPECT_EQ(index["weight_map"]["t0"], "model-00001-of-00003.safetensors");
  EXPECT_EQ(index["weight_map"]["t4"], "model-00003-of-00003.safetensors");
  EXPECT_EQ(read_safetensors(written[0]).state.tensors.size(), 2u);
  // A small state is one file without an index; a tensor above the limit gets its own.
  EXPECT_EQ(write_safetensors_shards(folder / "one.safetensors", state_of(5), 200).size(), 1u);
  EXPECT_EQ(write_safetensors_shards(folder / "each.safetensors", state_of(5), 1).size(), 6u);
}

TEST(WeightsIndex, ShardsOfPyTorch) {
  const TemporaryFolder folder;
  std::filesystem::copy(test::golden("module_legacy.pt"), folder / "pytorch_model-1.bin");
  write_file(folder / "pytorch_model.bin.index.json", [] {
    nlohmann::json map;
    const auto file = open_weights(test::golden("module_legacy.pt"));
    for (const auto& info : file->tensors()) map[info.name] = "pytorch_model-1.bin";
    return nlohmann::json{{"weight_map", map}}.dump();
  }());
  EXPECT_EQ(open_weights(folder / "pytorch_model.bin.index.json")->tensors().size(), 9u);
}

TEST(WeightsIndex, Errors) {
  const TemporaryFolder folder;
  write_safetensors(folder / "a.safetensors", state_of(2));
  const auto path = folder / "index.json";
  const auto error = [&](const std::string& text) {
    write_file(path, text);
    return without_path(error_of([&] { static_cast<void>(open_weights(path)); }), path);
  };
  EXPECT_EQ(error("{"), "expected JSON, got damaged text");
  EXPECT_EQ(error("[]"), "expected JSON, got damaged text");
  EXPECT_EQ(error("{}"), "expected a weight_map of names and files, got none");
  EXPECT_EQ(error(R"({"weight_map": []})"), "expected a weight_map of names and files, got another value");
  EXPECT_EQ(error(R"({"weight_map": {"t0": 1}})"), "tensor 't0': expected a file name, got another value");
  for (const char* name : {"../a.safetensors", "/etc/passwd", "sub/a.safetensors", "..", "", ".hidden", "a\\u0000b"})
    EXPECT_THAT(error(str(R"({"weight_map": {"t0": ")", name, "\"}}")),
                testing::StartsWith("tensor 't0': expected the name of a file beside the index, got '"));
  EXPECT_EQ(error(R"({"weight_map": {"t0": "b.safetensors"}})"),
            error_of([&] { open_weights(folder / "b.safetensors"); }).replace(0, 7, "safetensors"));
  EXPECT_EQ(error(R"({"weight_map": {"x": "a.safetensors"}})"),
            "tensor 'x': expected it in a.safetensors, got none there");
  EXPECT_EQ(error(R"({"weight_map": {"t0": "a.safetensors"}})"),
            "tensor 't1' of a.safetensors: expected it in the index, got none");
  EXPECT_EQ(error(R"({"weight_map": {"t0": "a.safetensors", "t1": "a.safetensors"}, "metadata": )" +
                  std::string(100'000, '[') + std::string(100'000, ']') + "}"),
            "(no error)");
}

TEST(OpenWeights, TheContentDecides) {
  const TemporaryFolder folder;
  write_safetensors(folder / "weights.pt", state_of(2));
  EXPECT_EQ(open_weights(folder / "weights.pt")->format(), "safetensors");
  std::filesystem::copy(test::golden("lists_legacy.pt"), folder / "model.h5");
  EXPECT_EQ(open_weights(folder / "model.h5")->format(), "pytorch (legacy)");
  write_file(folder / "text", "hello, world: nothing that holds weights");
  EXPECT_EQ(without_path(error_of([&] { open_weights(folder / "text"); }), folder / "text"),
            "expected safetensors, a safetensors index, a PyTorch file or a Weft checkpoint, got something else");
  EXPECT_EQ(
      without_path(error_of([&] { open_weights(folder / "weights.pt", {.key = "model"}); }), folder / "weights.pt"),
      "expected no key for this format, which holds one dict, got 'model'");
  write_file(folder / "cut.safetensors", "cut");
  EXPECT_THAT(error_of([&] { open_weights(folder / "cut.safetensors"); }),
              testing::HasSubstr("Is the file cut short?"));
}

TEST(OpenWeights, PartsOfCheckpoints) {
  const TemporaryFolder folder;
  Checkpoint checkpoint;
  checkpoint.parts = {{"model", state_of(2)}, {"optimizer", state_of(3)}};
  checkpoint.integers["epoch"] = 7;
  save_checkpoint(folder / "a.safetensors", checkpoint);
  const auto file = open_weights(folder / "a.safetensors");
  EXPECT_EQ(file->format(), "weft checkpoint");
  EXPECT_EQ(file->metadata().at("epoch"), "7");
  test::expect_same_tensors(state_of(2), file->read_all());
  EXPECT_EQ(open_weights(folder / "a.safetensors", {.key = "optimizer"})->tensors().size(), 3u);
  EXPECT_EQ(error_of([&] { open_weights(folder / "a.safetensors", {.key = "ema"}); }),
            "checkpoint: expected a part 'ema', got model, optimizer. weft-weights --key and train_image --weights-key "
            "take one");
}

// A byte of a pickle may take a hundred of memory: all files of an index share one budget.
TEST(WeightsIndex, AllShardsShareOneBudgetOfMemory) {
  using namespace std::string_literals;
  const TemporaryFolder folder;
  std::string numbers;
  for (int i = 0; i < 1'000'000; ++i) numbers += "K\1";
  for (const char* name : {"a", "b"}) {
    const std::string tensor =
        "X\1\0\0\0"s + name +
        "ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0kX\3\0\0\0cpuK\1tQK\0K\1\x85K\1\x85\x89)tR"s;
    write_file(folder / str(name, ".bin"),
               "\x80\2\x8a\nl\xfc\x9c"
               "F\xf9 j\xa8P\x19.\x80\2M\xe9\3.\x80\2}.}("s +
                   tensor + "X\4\0\0\0junk]("s + numbers + "eu.](X\1\0\0\0ke."s + "\1\0\0\0\0\0\0\0"s +
                   std::string(4, '\0'));
  }
  write_file(folder / "one.index.json", R"({"weight_map": {"a": "a.bin"}})");
  write_file(folder / "two.index.json", R"({"weight_map": {"a": "a.bin", "b": "b.bin"}})");
  EXPECT_EQ(error_of([&] { open_weights(folder / "one.index.json"); }), "(no error)");
  EXPECT_THAT(
      error_of([&] { open_weights(folder / "two.index.json"); }),
      testing::ContainsRegex("b.bin: .*that fit about eight times the [0-9]+ bytes of all files opened, got more"));
}

}  // namespace
}  // namespace weft
