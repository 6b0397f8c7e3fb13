// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>

#include "io/checkpoint_index.h"
#include "io/safetensors.h"
#include "tests/io/random_checkpoint.h"

namespace weft {
namespace {

using test::error_of;
using test::expect_same;
using test::random_checkpoint;
using test::read_file;
using test::TemporaryFolder;
using test::write_file;
using test::write_sealed;

class CheckpointFile : public testing::Test {
 protected:
  std::string load_error() const { return test::load_error(path); }
  std::mt19937_64 random{std::random_device{}()};
  TemporaryFolder folder;
  std::string path = (folder / "checkpoint_last.safetensors").string();
};

TEST_F(CheckpointFile, RoundTripIsBitwise) {
  const Checkpoint saved = random_checkpoint(random);
  save_checkpoint(path, saved);
  expect_same(saved, load_checkpoint(path));
  EXPECT_EQ(folder.files(), 1u);
}

TEST_F(CheckpointFile, EntriesByName) {
  Checkpoint c;
  c.parts = {{"model", {}}};
  c.integers["step"] = 3;
  c.numbers["best"] = 0.5;
  c.texts["model"] = "resnet20";
  EXPECT_EQ(c.integer("step"), 3);
  EXPECT_EQ(c.number("best"), 0.5);
  EXPECT_EQ(c.text("model"), "resnet20");
  EXPECT_TRUE(c.part("model").tensors.empty());
  EXPECT_EQ(error_of([&] { static_cast<void>(c.integer("epoch")); }),
            "checkpoint: expected an entry 'epoch', got none. Was it written by another program?");
  EXPECT_EQ(error_of([&] { static_cast<void>(c.part("optimizer")); }),
            "checkpoint: expected a part 'optimizer', got none. Was it written by another program?");
}

TEST_F(CheckpointFile, NumbersAndTextsComeBackWhateverTheyAre) {
  Checkpoint c;
  c.parts = {{"z", {}}, {"a", {}}};
  c.parts[0].second.scalars = {{"tiny", 5e-324}, {"next", std::nextafter(1.0, 2.0)}};
  c.integers = {{"least", INT64_MIN}, {"most", INT64_MAX}, {"odd", (int64_t{1} << 53) + 1}};
  c.numbers = {{"third", 1.0 / 3}, {"zero", -0.0}, {"infinite", INFINITY}, {"large", 1.7976931348623157e308}};
  c.texts = {{"zero byte", std::string("a\0b", 3)}, {"no UTF-8", "\xff\xfe/\x80"}, {"json", "{\"a\": \\\n}"}};
  save_checkpoint(path, c);
  const Checkpoint got = load_checkpoint(path);
  expect_same(c, got);
  EXPECT_TRUE(std::signbit(got.number("zero")));
  c.numbers = {{"none", std::nan("")}};
  save_checkpoint(path, c);
  EXPECT_TRUE(std::isnan(load_checkpoint(path).number("none")));
}

TEST_F(CheckpointFile, ANumberWithADecimalCommaIsNoOther) {
  CheckpointIndex index;
  index.numbers["loss"] = 1.5;
  const std::string text = index_text(index);
  EXPECT_THAT(text, testing::HasSubstr("\"loss\":\"0x1.8p+0\""));
  EXPECT_EQ(parse_index(text, "here", "index").numbers.at("loss"), 1.5);
  for (const std::string other : {"0x1,8p+0", "1.5", "0x1.8p+0 ", "0x", "-", "0xinf", ""}) {
    std::string wrong = text;
    wrong.replace(wrong.find("0x1.8p+0"), 8, other);
    EXPECT_EQ(error_of([&] { parse_index(wrong, "here", "index"); }),
              "here: index is damaged: expected a number such as 0x1.8p+1, got '" + other + "'");
  }
}

// Others read the file as it is: names, shapes and order of elements are those of the state dict.
TEST_F(CheckpointFile, IsPlainSafetensors) {
  const Checkpoint saved = random_checkpoint(random);
  save_checkpoint(path, saved);
  StateDict all = read_safetensors(path).state;
  EXPECT_EQ(all.tensors.back().name, "seal");
  EXPECT_EQ(all.tensors.back().tensor.sizes(), Shape{kSealBytes});
  all.tensors.pop_back();
  StateDict expected;
  for (const auto& [part, state] : saved.parts)
    for (const NamedTensor& entry : state.tensors) expected.tensors.push_back({part + '/' + entry.name, entry.tensor});
  test::expect_same_tensors(expected, all);
}

TEST_F(CheckpointFile, WhatIsNoCheckpoint) {
  EXPECT_EQ(load_error(), "expected a checkpoint, got no such file");
  write_file(path, "not at all safetensors");
  EXPECT_EQ(load_error(), "expected a checkpoint, got another format");
  write_file(path, "");
  EXPECT_EQ(load_error(), "it is an empty file, expected a checkpoint. Was it copied or downloaded in whole?");
  write_safetensors(path, test::random_state(random));
  EXPECT_EQ(load_error(), "expected a checkpoint, got safetensors that hold weights alone");
  const std::string inside = path;
  path = folder.path().string();
  EXPECT_EQ(load_error(), "it is a folder, expected a checkpoint. Name a file in it: " + inside);
  std::filesystem::rename(inside, folder / "text");
  EXPECT_EQ(load_error(), "sharded checkpoint " + path +
                              ": it has no index.json. Was it written by another program, or not finished?");
}

TEST_F(CheckpointFile, IsFoundUnderItsOtherNames) {
  EXPECT_EQ(find_checkpoint(path), "");
  const std::filesystem::path sharded = folder / "checkpoint_last";
  std::filesystem::create_directory(sharded);
  EXPECT_EQ(find_checkpoint(path), sharded);
  save_checkpoint(path, {});
  EXPECT_EQ(find_checkpoint(path), path) << "what this version writes comes first";
}

TEST_F(CheckpointFile, CutShort) {
  save_checkpoint(path, random_checkpoint(random));
  const std::string whole = read_file(path);
  for (int i = 0; i < 50; ++i) {
    write_file(path, whole.substr(0, random() % whole.size()));
    EXPECT_THROW(load_checkpoint(path), Error);
  }
  write_file(path, whole.substr(0, whole.size() - 1));
  EXPECT_EQ(load_error(), "damaged or cut short: it does not end with a seal. Resume from another checkpoint");
  write_sealed(path, whole.substr(0, whole.size() / 2));  // sealed by another program: the reader's own check
  EXPECT_THAT(load_error(), testing::HasSubstr("Is the file cut short?"));
}

// A sealed and whole file that save_checkpoint() does not write.
TEST_F(CheckpointFile, AnIndexThatDoesNotFitTheTensors) {
  StateDict tensors;
  tensors.tensors = {{"model/w", Tensor::ones({2, 3})}};
  const CheckpointIndex::Part model{{{"w", DType::f32, {2, 3}}}, {}};
  const auto error = [&](const std::function<void(CheckpointIndex&)>& change) {
    CheckpointIndex index;
    index.files = {{0, 0, {{"model", "w", 0, 6}}}};
    index.parts = {{"model", model}};
    change(index);
    write_sealed_safetensors(path, "test", tensors, {{CheckpointIndex::kMetadataKey, index_text(index)}});
    const std::string text = error_of([&] { load_checkpoint(path); }), start = "checkpoint";
    EXPECT_TRUE(text.starts_with(start) || text == "(no error)") << text;
    return text;
  };
  EXPECT_EQ(error([](CheckpointIndex&) {}), "(no error)");
  const auto expect = [&](const std::string& text, const std::function<void(CheckpointIndex&)>& change) {
    EXPECT_THAT(error(change), testing::HasSubstr(text));
  };
  expect("its index is damaged", [](CheckpointIndex& i) { i.files[0].pieces[0].count = 7; });
  expect("its index is damaged", [](CheckpointIndex& i) { i.files[0].pieces[0].begin = -1; });
  expect("its index is damaged", [](CheckpointIndex& i) { i.files[0].pieces[0].name = "v"; });
  expect("its index is damaged", [](CheckpointIndex& i) { i.parts[0].second.tensors[0].sizes = {2, -3}; });
  expect("its index is damaged", [](CheckpointIndex& i) {
    i.parts[0].second.tensors[0].sizes = {int64_t{1} << 40, int64_t{1} << 40};
  });
  expect("its index is damaged", [](CheckpointIndex& i) { i.parts[0].second.tensors[0].is_ohwi = true; });
  expect("file does not hold 5 elements of 'model/w'", [](CheckpointIndex& i) { i.files[0].pieces[0].count = 5; });
  expect("only 0 of 6 elements of 'model/w'", [](CheckpointIndex& i) { i.files[0].pieces.clear(); });
  expect("only 0 of 6 elements of 'model/w'", [](CheckpointIndex& i) { i.files.clear(); });
  expect("only 12 of 6 elements", [](CheckpointIndex& i) { i.files[0].pieces.push_back(i.files[0].pieces[0]); });
  write_sealed_safetensors(path, "test", tensors, {{CheckpointIndex::kMetadataKey, "[[{]"}});
  EXPECT_EQ(load_error(), "its index is not one of a sharded checkpoint");
}

TEST_F(CheckpointFile, AnyFlippedBitIsFound) {
  Checkpoint saved;
  saved.parts = {{"model", {}}};
  saved.parts[0].second.tensors = {{"a", test::random_bits({5}, DType::f32, random)},
                                   {"b", test::random_bits({3, 2}, DType::i64, random)}};
  saved.integers = {{"step", 60}};
  saved.texts = {{"model", "resnet20"}};
  save_checkpoint(path, saved);
  const std::string whole = read_file(path);
  int found = 0;
  for (int i = 0; i < 300; ++i) {
    std::string bytes = whole;
    bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    write_file(path, bytes);
    found += error_of([&] { load_checkpoint(path); }) != "(no error)" ? 1 : 0;
  }
  EXPECT_EQ(found, 300);
}

TEST_F(CheckpointFile, NamesThatCannotBe) {
  const auto error = [&](const std::string& name) {
    Checkpoint c;
    c.parts = {{"model", {}}};
    c.parts[0].second.tensors = {{name, Tensor::zeros({1})}};
    return error_of([&] { save_checkpoint(path, c); });
  };
  EXPECT_EQ(error("a/b"), "checkpoint: expected a name without '/', got 'a/b'");
  EXPECT_EQ(error(""), "checkpoint: expected a name without '/', got ''");
  Checkpoint c;
  c.parts = {{"model", {}}};
  c.parts[0].second.tensors = {{"w", Tensor::zeros({1})}, {"w", Tensor::zeros({1})}};
  EXPECT_EQ(error_of([&] { save_checkpoint(path, c); }), "checkpoint: expected each name once in model, got 'w' twice");
  c.parts[0].second.tensors = {{"w", Tensor()}};
  EXPECT_EQ(error_of([&] { save_checkpoint(path, c); }), "checkpoint: expected a tensor for 'w', got none");
  path = (folder / "none/a.safetensors").string();
  EXPECT_THAT(error("w"), testing::HasSubstr("expected an existing folder"));
}

/// Runs the body in a child process and returns its exit code: limits and mounts stay there.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_F(CheckpointFile, AFileLimitLeavesTheOldCheckpoint) {
  Checkpoint small, large;
  small.integers["step"] = 1;
  large.parts = {{"model", {}}};
  large.parts[0].second.tensors = {{"w", Tensor::zeros({1 << 20})}};
  save_checkpoint(path, small);
  // In a child, as the limit cannot be raised again: too large a file fails with EFBIG, as a full disk with ENOSPC.
  EXPECT_EQ(in_child([&] {
              signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{1 << 20, 1 << 20};
              setrlimit(RLIMIT_FSIZE, &limit);
              const std::string text = error_of([&] { save_checkpoint(path, large); });
              const bool told = text == "checkpoint: expected to write " + path +
                                            ", got 'File too large'. The old file is unchanged. Raise the limit on "
                                            "file sizes (ulimit -f).";
              if (!told) std::fprintf(stderr, "%s\n", text.c_str());
              return told ? 0 : 1;
            }),
            0);
  EXPECT_EQ(load_checkpoint(path).integer("step"), 1);
  EXPECT_EQ(folder.files(), 1u);
}

TEST_F(CheckpointFile, AFullDiskLeavesTheOldCheckpoint) {
  if (mount("weft", folder.path().c_str(), "tmpfs", 0, "size=2m") != 0)
    GTEST_SKIP() << "cannot mount a small disk here";
  Checkpoint small, large;
  small.integers["step"] = 1;
  large.parts = {{"model", {}}};
  large.parts[0].second.tensors = {{"w", Tensor::zeros({1 << 20})}};
  save_checkpoint(path, small);
  EXPECT_THAT(error_of([&] { save_checkpoint(path, large); }),
              testing::MatchesRegex("checkpoint: expected to write " + path +
                                    ", got 'No space left on device'. The old file is unchanged. Free some space "
                                    "\\([0-9.]+ [KM]iB are left\\) or write elsewhere."));
  EXPECT_EQ(load_checkpoint(path).integer("step"), 1);
  EXPECT_EQ(folder.files(), 1u);
  save_checkpoint(path, small);  // and the next small one succeeds
  EXPECT_EQ(umount(folder.path().c_str()), 0) << "a file of the full disk is still open";
}

TEST(RequireMatch, ListsAtMostFiveOfEach) {
  const auto state = [](const std::vector<std::string>& names, const Shape& sizes) {
    StateDict s;
    for (const std::string& name : names) s.tensors.push_back({name, Tensor::zeros(sizes)});
    return s;
  };
  require_match("x", state({"a", "b"}, {2}), state({"b", "a"}, {2}));
  EXPECT_EQ(error_of([&] {
              require_match("x", state({"a", "b"}, {2}), state({"b", "c"}, {3}));
            }),
            "x: the tensors do not fit: 1 missing (a); 1 unexpected (c); 1 different (b: expected f32[2], got f32[3]). "
            "Does it belong to another model?");
  EXPECT_EQ(error_of([&] {
              require_match("x", state({"1", "2", "3", "4", "5", "6", "7"}, {2}), {});
            }),
            "x: the tensors do not fit: 7 missing (1, 2, 3, 4, 5, …). Does it belong to another model?");
}

}  // namespace
}  // namespace weft
