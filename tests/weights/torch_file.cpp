// SPDX-License-Identifier: Apache-2.0
// Files that PyTorch 1.13 wrote (write_golden.py), intact and damaged.
#include "tests/weights/fixture.h"

namespace weft {
namespace {

using test::error_of;
using test::golden;
using test::read_file;
using test::TemporaryFolder;
using test::without_path;
using test::write_file;
using Numbers = std::vector<double>;

Tensor tensor(const WeightsFile& file, const std::string& name) {
  const int64_t index = file.find(name);
  WEFT_CHECK(index >= 0, "test: no tensor '", name, "'");
  return file.read(static_cast<size_t>(index));
}

Numbers values(const WeightsFile& file, const std::string& name) { return tensor(file, name).to_vector<double>(); }

std::vector<std::string> names(const WeightsFile& file) {
  std::vector<std::string> result;
  for (const auto& info : file.tensors()) result.push_back(info.name);
  return result;
}

void expect_every_kind(const std::string& name) {
  SCOPED_TRACE(name);
  const auto file = open_torch(golden(name));
  for (const auto& [word, dtype] : std::map<std::string, DType>{{"f32", DType::f32},
                                                                {"f64", DType::f64},
                                                                {"f16", DType::f16},
                                                                {"bf16", DType::bf16},
                                                                {"i64", DType::i64},
                                                                {"i32", DType::i32},
                                                                {"i16", DType::i32},
                                                                {"i8", DType::i32},
                                                                {"u8", DType::u8}}) {
    const Tensor x = tensor(*file, "dtype." + word);
    EXPECT_EQ(x.dtype(), dtype) << word;
    EXPECT_EQ(x.sizes(), (Shape{2, 3})) << word;
    EXPECT_EQ(x.to_vector<double>(), (Numbers{0, 1, 2, 3, 4, 5})) << word;
  }
  EXPECT_EQ(file->tensors()[static_cast<size_t>(file->find("dtype.i16"))].stored, "I16");
  EXPECT_EQ(values(*file, "dtype.bool"), (Numbers{1, 0, 1}));
  const Tensor transposed = tensor(*file, "view.transposed");
  EXPECT_EQ(transposed.sizes(), (Shape{6, 4}));
  EXPECT_EQ(transposed.stride(0), 1);
  EXPECT_EQ(transposed.select(0, 1).to_vector<double>(), (Numbers{1, 7, 13, 19}));
  EXPECT_EQ(values(*file, "view.stepped"), (Numbers{3, 8, 13, 18, 23}));
  EXPECT_EQ(values(*file, "view.expanded"), (Numbers{7, 7, 7}));
  EXPECT_EQ(tensor(*file, "view.permuted").sizes(), (Shape{4, 2, 3}));
  EXPECT_EQ(tensor(*file, "view.permuted").select(0, 1).to_vector<double>(), (Numbers{1, 5, 9, 13, 17, 21}));
  EXPECT_EQ(tensor(*file, "view.base").storage()->data(), transposed.storage()->data()) << "shared memory stays shared";
  EXPECT_EQ(tensor(*file, "scalar").sizes(), Shape{});
  EXPECT_EQ(tensor(*file, "scalar").item(), 2.5);
  EXPECT_EQ(tensor(*file, "empty").sizes(), (Shape{0, 3}));
  EXPECT_EQ(values(*file, "parameter"), (Numbers{0.5, -0.5}));
  EXPECT_EQ(tensor(*file, "negative").to_vector<int64_t>(), (std::vector<int64_t>{-1, -(int64_t{1} << 40)}));
}

TEST(TorchFile, EveryDTypeAndView) {
  for (const std::string& name : test::both_formats("every_kind")) expect_every_kind(name);
  if (have_zip()) expect_every_kind("every_kind_protocol4.pt");
}

TEST(TorchFile, TheFormatIsNamed) {
  EXPECT_EQ(open_torch(golden("module_legacy.pt"))->format(), "pytorch (legacy)");
  NEEDS_ZIP();
  EXPECT_EQ(open_torch(golden("module.pt"))->format(), "pytorch");
}

TEST(TorchFile, StateDictOfAModule) {
  for (const std::string& name : test::both_formats("module")) {
    const auto file = open_torch(golden(name));
    EXPECT_EQ(names(*file), (std::vector<std::string>{"0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean",
                                                      "1.running_var", "1.num_batches_tracked", "2.weight", "2.bias"}));
    EXPECT_EQ(tensor(*file, "0.weight").sizes(), (Shape{3, 2, 3, 3}));
    EXPECT_EQ(values(*file, "1.running_var"), (Numbers{1, 1, 1}));
  }
}

TEST(TorchFile, StateDictsInsideOfCheckpointsAreFound) {
  for (const std::string& name : test::both_formats("nested")) {
    const auto file = open_torch(golden(name));
    EXPECT_EQ(file->tensors().size(), 9u);
    EXPECT_EQ(file->metadata(),
              (std::map<std::string, std::string>{
                  {"best", "0.5"}, {"done", "true"}, {"epoch", "3"}, {"name", "net"}, {"nothing", "none"}}));
    const auto optimizer = open_torch(golden(name), "optimizer");
    EXPECT_EQ(tensor(*optimizer, "state.0.exp_avg").sizes(), (Shape{3, 2, 3, 3}));
    EXPECT_EQ(optimizer->metadata().at("param_groups.0.lr"), "0.5");
    EXPECT_EQ(names(*open_torch(golden(name), "optimizer.state.0")),
              (std::vector<std::string>{"step", "exp_avg", "exp_avg_sq"}));
    EXPECT_EQ(without_path(error_of([&] { open_torch(golden(name), "modle"); }), golden(name)),
              "expected a dict under the key 'modle', got none. There are: state_dict, optimizer");
    EXPECT_EQ(without_path(error_of([&] { open_torch(golden(name), "epoch"); }), golden(name)),
              "expected a dict under the key 'epoch', got a whole number");
  }
  for (const std::string& name : test::both_formats("model_key"))
    EXPECT_EQ(names(*open_torch(golden(name))), (std::vector<std::string>{"module.w"}));
  for (const std::string& name : test::both_formats("lists"))
    EXPECT_EQ(names(*open_torch(golden(name))), (std::vector<std::string>{"0", "1.0", "1.1.a"}));
}

TEST(TorchFile, WhatIsNoWeightsIsRefusedByName) {
  NEEDS_ZIP();
  EXPECT_EQ(without_path(error_of([] { open_torch(golden("whole_module.pt")); }), golden("whole_module.pt")),
            "pickle: GLOBAL at byte 2: expected tensors, got a whole model (torch.save(model)), of which the file names "
            "'torch.nn.modules.linear.Linear'; nothing of it was run. If you trust the file, load it in PyTorch and "
            "torch.save(model.state_dict(), …)");
  EXPECT_EQ(
      without_path(error_of([] { open_torch(golden("torchscript.pt")); }), golden("torchscript.pt")),
      "expected weights, got a TorchScript program. In PyTorch: torch.save(torch.jit.load(FILE).state_dict(), …)");
  EXPECT_EQ(without_path(error_of([] { open_torch(golden("complex.pt")); }), golden("complex.pt")),
            "tensor 'c': expected a dtype that Weft has, got torch.ComplexFloatStorage");
}

TEST(TorchFile, OtherFiles) {
  const TemporaryFolder folder;
  write_file(folder / "a", "hello, world");
  EXPECT_EQ(without_path(error_of([&] { open_torch(folder / "a"); }), folder / "a"),
            "expected a file that torch.save wrote (a zip archive, or pickles), got something else");
  write_file(folder / "a", "");
  EXPECT_THAT(error_of([&] { open_torch(folder / "a"); }), testing::HasSubstr("it is an empty file, expected"));
  EXPECT_EQ(error_of([&] { open_torch(folder / "none"); }),
            "pytorch: " + (folder / "none").string() + ": expected to open it, got 'No such file or directory'");
}

/// Reads a whole file; its error, or "(no error)".
std::string error_of_reading(const std::filesystem::path& path) {
  return error_of([&] { static_cast<void>(open_torch(path)->read_all()); });
}

TEST(TorchFile, EveryTruncationIsAnError) {
  for (const std::string& name : test::both_formats("lists")) {
    const TemporaryFolder folder;
    const std::string whole = read_file(golden(name));
    for (size_t size = 0; size < whole.size(); ++size) {
      const auto path = folder / str(size);  // a new name each time: rewriting a file waits for the disk
      write_file(path, whole.substr(0, size));
      const std::string error = error_of_reading(path);
      EXPECT_THAT(error, testing::StartsWith("pytorch: " + path.string() + ": ")) << name << " at " << size;
      EXPECT_EQ(error.find('\n'), std::string::npos);
    }
  }
}

// A flipped bit anywhere: an error, or the same tensors (bits of names, of padding, of unused hints).
// In a zip archive never other numbers; the legacy format has no checksums.
TEST(TorchFile, EveryChangedByteIsAnErrorOrHarmless) {
  NEEDS_ZIP();
  const TemporaryFolder folder;
  const std::string whole = read_file(golden("lists.pt"));
  const StateDict good = open_torch(golden("lists.pt"))->read_all();
  int errors = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 1 << i % 8);
    write_file(folder / str(i), changed);
    try {
      const StateDict read = open_torch(folder / str(i))->read_all();
      ASSERT_EQ(read.tensors.size(), good.tensors.size()) << i;
      for (size_t t = 0; t < good.tensors.size(); ++t)
        EXPECT_TRUE(test::same_bits(read.tensors[t].tensor, good.tensors[t].tensor)) << "byte " << i;
    } catch (const Error&) {
      ++errors;
    }
  }
  EXPECT_GT(errors, static_cast<int>(whole.size()) / 4);
}

TEST(TorchFile, AWrongChecksumIsNamed) {
  NEEDS_ZIP();
  const TemporaryFolder folder;
  std::string whole = read_file(golden("lists.pt"));
  const size_t one = whole.find(std::string("\0\0\x80\x3f", 4));  // the 1.0 of the first tensor
  ASSERT_NE(one, std::string::npos);
  whole[one] = 1;
  write_file(folder / "a", whole);
  const auto file = open_torch(folder / "a");
  EXPECT_EQ(without_path(error_of([&] { file->read(0); }), folder / "a"),
            "zip entry 'lists/data/0': expected 4 bytes, got 'CRC error'");
}

}  // namespace
}  // namespace weft
