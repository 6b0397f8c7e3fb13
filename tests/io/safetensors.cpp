// SPDX-License-Identifier: Apache-2.0
#include "io/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

#include "tests/io/random_state.h"
#include "tests/train/temporary_folder.h"

namespace weft {
namespace {

using test::error_of;
using test::read_file;
using test::TemporaryFolder;
using test::write_file;

/// A file of this header and data, with the length in front.
std::string file_of(const std::string& header, const std::string& data = "") {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

TEST(Safetensors, RoundTripIsBitwise) {
  std::mt19937_64 random(std::random_device{}());
  const TemporaryFolder folder;
  const StateDict state = test::random_state(random);
  write_safetensors(folder / "a.safetensors", state, {{"model", "resnet20"}, {"umlaut", "ä"}});
  const SafetensorsFile file = read_safetensors(folder / "a.safetensors");
  test::expect_same_tensors(state, file.state);
  EXPECT_EQ(file.metadata, (std::map<std::string, std::string>{{"model", "resnet20"}, {"umlaut", "ä"}}));
  EXPECT_EQ(folder.files(), 1u);
}

TEST(Safetensors, WritesWhatOthersRead) {
  const TemporaryFolder folder;
  StateDict state;
  state.tensors.push_back({"b", Tensor::from(std::vector<float>{1, 2}, Shape{2, 1})});
  state.tensors.push_back({"a", Tensor::from(std::vector<double>{3})});
  write_safetensors(folder / "a", state);
  const std::string bytes = read_file(folder / "a");
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  EXPECT_EQ(header["a"], nlohmann::json::parse(R"({"dtype":"F64","shape":[1],"data_offsets":[0,8]})"));
  EXPECT_EQ(header["b"], nlohmann::json::parse(R"({"dtype":"F32","shape":[2,1],"data_offsets":[8,16]})"));
  EXPECT_EQ(bytes.size(), 8 + length + 16);
  float second = 0;
  std::memcpy(&second, bytes.data() + 8 + length + 12, 4);
  EXPECT_EQ(second, 2);
}

TEST(Safetensors, ComplexNumbersAreTheirParts) {
  const TemporaryFolder folder;
  const StateDict state{{{"z", Tensor::from<float>({1, 2, 3, 4}, {2, 2})},
                         {"w", Tensor::from<double>({5, 6}, {2})},
                         {"x", Tensor::from<float>({7, 8}, {2})}},
                        {}};
  write_safetensors(folder / "c", state, {}, {"z", "w"});
  const std::string bytes = read_file(folder / "c");
  EXPECT_NE(bytes.find(R"("z":{"dtype":"C64","shape":[2],"data_offsets":[16,32]})"), bytes.npos) << bytes;
  EXPECT_NE(bytes.find(R"("w":{"dtype":"C128","shape":[],"data_offsets":[0,16]})"), bytes.npos);
  EXPECT_NE(bytes.find(R"("x":{"dtype":"F32","shape":[2])"), bytes.npos);
  test::expect_same_tensors(state, read_safetensors(folder / "c").state);
  EXPECT_THAT(error_of([&] { write_safetensors(folder / "c", {{{"z", Tensor::zeros({3})}}, {}}, {}, {"z"}); }),
              testing::HasSubstr("expected the parts [..., 2] of complex numbers in f32 or f64 as 'z', got f32[3]"));
  EXPECT_THAT(error_of([&] { write_safetensors(folder / "c", state, {}, {"y", "z"}); }),
              testing::HasSubstr("expected tensors of all 2 complex names, got 1"));
}

TEST(Safetensors, StridedTensorsAreWrittenInOrder) {
  const TemporaryFolder folder;
  StateDict state;
  state.tensors.push_back({"t", Tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6}, Shape{2, 3}).transpose(0, 1)});
  write_safetensors(folder / "a", state);
  const Tensor read = read_safetensors(folder / "a").state.tensor("t");
  EXPECT_EQ(read.sizes(), (Shape{3, 2}));
  EXPECT_EQ(read.to_vector<float>(), (std::vector<float>{1, 4, 2, 5, 3, 6}));
}

// Types that Weft lacks are widened, value by value.
TEST(Safetensors, NarrowDTypesAreWidened) {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& dtype, int64_t n, const std::string& data) {
    write_file(folder / "a", file_of(str("{\"t\":{\"dtype\":\"", dtype, "\",\"shape\":[", n, "],\"data_offsets\":[0,",
                                         data.size(), "]}}"),
                                     data));
    return read_safetensors(folder / "a").state.tensor("t");
  };
  using namespace std::string_literals;
  EXPECT_EQ(read("I8", 3, "\x01\xff\x80").to_vector<int32_t>(), (std::vector<int32_t>{1, -1, -128}));
  EXPECT_EQ(read("I16", 3, "\1\0\xff\xff\0\x80"s).to_vector<int32_t>(), (std::vector<int32_t>{1, -1, -32768}));
  EXPECT_EQ(read("U16", 2, "\1\0\xff\xff"s).to_vector<int32_t>(), (std::vector<int32_t>{1, 65535}));
  EXPECT_EQ(read("U32", 2, "\1\0\0\0\xff\xff\xff\xff"s).to_vector<int64_t>(), (std::vector<int64_t>{1, 4294967295}));
  EXPECT_EQ(read("I8", 0, "").dtype(), DType::i32);

  // Every byte of both 8-bit formats against the formula.
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  const auto value = [](int byte, int mantissa_bits, int bias) {
    const int exponent = (byte & 127) >> mantissa_bits, mantissa = byte & ((1 << mantissa_bits) - 1);
    const double fraction = (exponent == 0 ? 0.0 : 1.0) + std::ldexp(mantissa, -mantissa_bits);
    return std::ldexp(byte & 128 ? -fraction : fraction, std::max(exponent, 1) - bias);
  };
  const auto e4m3 = read("F8_E4M3", 256, bytes).to_vector<double>(),
             e5m2 = read("F8_E5M2", 256, bytes).to_vector<double>();
  for (int i = 0; i < 256; ++i) {
    const auto n = static_cast<size_t>(i);
    if ((i & 127) == 127)
      EXPECT_TRUE(std::isnan(e4m3[n])) << i;
    else
      EXPECT_EQ(e4m3[n], value(i, 3, 7)) << i;
    if ((i & 127) > 124)
      EXPECT_TRUE(std::isnan(e5m2[n])) << i;
    else if ((i & 127) == 124)
      EXPECT_TRUE(std::isinf(e5m2[n])) << i;
    else
      EXPECT_EQ(e5m2[n], value(i, 2, 15)) << i;
  }
}

// Opening reads the header only; tensors are read in any order, each from its own place.
TEST(Safetensors, ReadOnDemand) {
  std::mt19937_64 random(std::random_device{}());
  const TemporaryFolder folder;
  const StateDict state = test::random_state(random);
  write_safetensors(folder / "a", state);
  const SafetensorsReader file(folder / "a");
  ASSERT_EQ(file.entries().size(), state.tensors.size());
  for (size_t i = file.entries().size(); i-- > 0;)
    EXPECT_TRUE(test::same_bits(file.read(i), state.tensor(file.entries()[i].name)));
}

// 5 GiB with nothing between: offsets beyond 32 bits. The file is sparse and takes some kilobytes of disk.
TEST(Safetensors, OffsetsBeyond32Bits) {
  const TemporaryFolder folder;
  const std::string header = R"({"big":{"dtype":"U8","shape":[5368709120],"data_offsets":[0,5368709120]},)"
                             R"("last":{"dtype":"F32","shape":[2],"data_offsets":[5368709120,5368709128]}})";
  write_file(folder / "a", file_of(header));
  const auto start = std::filesystem::file_size(folder / "a");
  std::filesystem::resize_file(folder / "a", start + 5368709128);
  {
    std::fstream out(folder / "a", std::ios::binary | std::ios::in | std::ios::out);
    const float values[] = {1.5f, -2};
    out.seekp(static_cast<std::streamoff>(start + 5368709120));
    out.write(reinterpret_cast<const char*>(values), sizeof values);
  }
  const SafetensorsReader file(folder / "a");
  EXPECT_EQ(file.entries()[0].sizes, (Shape{5368709120}));
  EXPECT_EQ(file.read(1).to_vector<float>(), (std::vector<float>{1.5f, -2}));
}

TEST(Safetensors, AnEmptyFileOfTensors) {
  const TemporaryFolder folder;
  write_safetensors(folder / "a", {});
  EXPECT_TRUE(read_safetensors(folder / "a").state.tensors.empty());
}

TEST(Safetensors, DamagedFilesAreNamed) {
  const TemporaryFolder folder;
  const std::string path = (folder / "a").string();
  const auto error = [&](const std::string& bytes) {
    write_file(path, bytes);
    std::string text = error_of([&] { static_cast<void>(read_safetensors(path)); });
    const std::string start = "safetensors: " + path + ": ";
    return text.starts_with(start) ? text.substr(start.size()) : text;
  };
  const auto tensor = [](const std::string& name, const std::string& dtype, const std::string& shape,
                         const std::string& offsets) {
    return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
  };
  const std::string data(16, 'x');

  EXPECT_EQ(error("abc"), "expected at least 8 bytes, got 3. Is the file cut short?");
  EXPECT_EQ(error("garbage!garbage!"),
            "expected a header of at most 100000000 bytes, got 2406443243860549991. Is it a safetensors file?");
  EXPECT_EQ(error(file_of("{}").substr(0, 9)), "expected a header of 2 bytes, got 1. Is the file cut short?");
  EXPECT_EQ(error(file_of("[]")), "expected a header that begins with '{'. Is it a safetensors file?");
  EXPECT_EQ(error(file_of("")), "expected a header that begins with '{'. Is it a safetensors file?");
  EXPECT_EQ(error(file_of("{\"a\":")), "expected a JSON header, got damaged text");
  EXPECT_EQ(error(file_of(R"({"a":{"dtype":"U8","shape":)" + std::string(1'000'000, '['))),
            "expected a header that nests at most 8 levels deep, got 1000002");
  EXPECT_EQ(error(file_of(R"({"[[[[[[[[[[\\\"[":1})")),  // brackets of a name do not count
            R"(tensor '[[[[[[[[[[\"[': expected an object with dtype, shape and data_offsets)");
  EXPECT_EQ(error(file_of(R"({"a\nb\u007f":1})")),
            "tensor 'a\\x0ab\\x7f': expected an object with dtype, shape and data_offsets");
  EXPECT_EQ(error(file_of(R"({"a":1})")), "tensor 'a': expected an object with dtype, shape and data_offsets");
  EXPECT_EQ(error(file_of(R"({"a":{"shape":[]}})")), "tensor 'a': expected a dtype, got none");
  EXPECT_EQ(error(file_of(R"({"a":{"dtype":"U8"}})")), "tensor 'a': expected a shape, got none");
  EXPECT_EQ(error(file_of(R"({"a":{"dtype":"U8","shape":[]}})")), "tensor 'a': expected data_offsets [begin, end]");
  EXPECT_EQ(
      error(file_of("{" + tensor("a", "U64", "[1]", "[0,2]") + "}", "xx")),
      "tensor 'a': expected dtype F32, F64, C64, C128, BF16, F16, F8_E4M3, F8_E5M2, I64, I32, I16, I8, U32, U16, U8 or BOOL, "
      "got 'U64'");
  EXPECT_EQ(error(file_of("{" + tensor("a", "U8", "[-1]", "[0,2]") + "}", "xx")),
            "tensor 'a': expected sizes that are whole numbers, got shape [-1]");
  EXPECT_EQ(error(file_of("{" + tensor("a", "U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]") + "}", "x")),
            "tensor 'a': expected at most 8 dimensions, got 9");
  EXPECT_EQ(error(file_of("{" + tensor("a", "F32", "[1152921504606846976,1152921504606846976]", "[0,2]") + "}", "xx")),
            "tensor 'a': expected a size that fits memory, got shape [1152921504606846976,1152921504606846976]");
  // An empty tensor of such sizes has strides that overflow.
  for (const char* sizes : {"[0,1152921504606846976,1152921504606846976]", "[1152921504606846976,16,0]"})
    EXPECT_EQ(error(file_of("{" + tensor("a", "F32", sizes, "[0,0]") + "}")),
              str("tensor 'a': expected a size that fits memory, got shape ", sizes));
  EXPECT_EQ(error(file_of("{" + tensor("a", "F32", "[4]", "[0,16]") + "}", data.substr(1))),
            "tensor 'a': expected a range within 15 bytes of data, got [0, 16). Is the file cut short?");
  EXPECT_EQ(error(file_of("{" + tensor("a", "F32", "[4]", "[16,0]") + "}", data)),
            "tensor 'a': expected a range within 16 bytes of data, got [16, 0). Is the file cut short?");
  EXPECT_EQ(error(file_of("{" + tensor("a", "F32", "[3]", "[0,16]") + "}", data)),
            "tensor 'a': expected 12 bytes for F32[3], got a range of 16");
  EXPECT_EQ(
      error(file_of("{" + tensor("a", "U8", "[10]", "[0,10]") + "," + tensor("b", "U8", "[8]", "[8,16]") + "}", data)),
      "tensor 'b' begins at byte 8 of the data, expected 10 (two tensors overlap)");
  EXPECT_EQ(
      error(file_of("{" + tensor("a", "U8", "[6]", "[0,6]") + "," + tensor("b", "U8", "[8]", "[8,16]") + "}", data)),
      "tensor 'b' begins at byte 8 of the data, expected 6 (a hole)");
  EXPECT_EQ(error(file_of("{" + tensor("a", "U8", "[8]", "[0,8]") + "}", data)),
            "the tensors end at byte 8 of the data, expected 16 (bytes of no tensor)");
  EXPECT_EQ(
      error(file_of("{" + tensor("a", "U8", "[8]", "[0,8]") + "," + tensor("a", "U8", "[8]", "[8,16]") + "}", data)),
      "tensor 'a' occurs twice");
  EXPECT_EQ(error(file_of("{" + tensor("a", "BOOL", "[16]", "[0,16]") + "}", data)),
            "tensor 'a': expected 0 or 1 for each BOOL, got another byte");
  EXPECT_EQ(error(file_of(R"({"__metadata__":[]})")), "expected __metadata__ to be an object of strings");
  EXPECT_EQ(error(file_of(R"({"__metadata__":{"a":1}})")),
            "expected __metadata__ to hold strings, got another value for 'a'");
  EXPECT_EQ(error(file_of("{" + tensor("a", "U8", "[16]", "[0,16]") + "}   ", data)), "(no error)");  // padding
}

TEST(Safetensors, MissingFilesAndFolders) {
  const TemporaryFolder folder;
  const std::string path = (folder / "none").string();
  EXPECT_EQ(error_of([&] { read_safetensors(path); }),
            "safetensors: " + path + ": expected to open it, got 'No such file or directory'");
  EXPECT_EQ(error_of([&] { read_safetensors(folder.path()); }),
            "safetensors: " + folder.path().string() + ": expected a file, got a folder");
}

TEST(Safetensors, AnyTruncationIsAnError) {
  std::mt19937_64 random(std::random_device{}());
  const TemporaryFolder folder;
  write_safetensors(folder / "a", test::random_state(random));
  const std::string whole = read_file(folder / "a");
  for (int i = 0; i < 100; ++i) {
    write_file(folder / "b", whole.substr(0, random() % whole.size()));
    EXPECT_THROW(read_safetensors(folder / "b"), Error);
  }
}

TEST(Safetensors, ManyTensorsAreReadInReasonableTime) {
  std::string header = "{";
  for (int i = 0; i < 100000; ++i)
    header += str(i ? "," : "", "\"t", i, R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})");
  const TemporaryFolder folder;
  write_file(folder / "a", file_of(header + "}"));
  EXPECT_EQ(read_safetensors(folder / "a").state.tensors.size(), 100000u);
}

TEST(Safetensors, ManyTensorsAreWrittenInReasonableTime) {
  const TemporaryFolder folder;
  StateDict state;
  const Tensor value = Tensor::ones({1});
  for (int i = 0; i < 60000; ++i) state.tensors.push_back({str("layer.", i, ".weight"), value});
  const std::clock_t begin = std::clock();  // time of this process alone: others do not count
  write_safetensors(folder / "a", state);
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 5);
  EXPECT_EQ(SafetensorsReader(folder / "a").entries().size(), 60000u);
}

/// The bytes by which `body`, in a process of its own, raises the memory in use.
template <class Body>
int64_t growth(Body&& body) {
  int ends[2];
  if (::pipe(ends) != 0) return -1;
  const pid_t child = ::fork();
  if (child == 0) {
    rusage before{}, after{};
    ::getrusage(RUSAGE_SELF, &before);
    body();
    ::getrusage(RUSAGE_SELF, &after);
    const int64_t bytes = (after.ru_maxrss - before.ru_maxrss) * 1024;
    ::_exit(::write(ends[1], &bytes, sizeof bytes) == sizeof bytes ? 0 : 1);
  }
  int64_t bytes = -1;
  ::close(ends[1]);
  if (::read(ends[0], &bytes, sizeof bytes) != sizeof bytes) bytes = -1;
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return bytes;
}

TEST(Safetensors, AHeaderTakesAFewTimesItsSizeOfMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "counts resident memory, of which sanitizers take several times the program's";
#endif
  const TemporaryFolder folder;
  std::string header = "{";
  for (int i = 0; i < 400'000; ++i)
    header += str(i ? "," : "", "\"", i, R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})");
  header += "}";
  write_file(folder / "a", file_of(header));
  const int64_t bytes = growth([&] { SafetensorsReader file(folder / "a"); });
  ASSERT_GT(bytes, 0);
  EXPECT_LT(bytes, static_cast<int64_t>(12 * header.size())) << header.size();
}

// Descriptions of empty tensors take more memory than the file has bytes; all files of a load share one budget for
// that.
TEST(Safetensors, DescriptionsComeOutOfTheLoadsBudget) {
  const TemporaryFolder folder;
  std::string header = "{";
  for (int i = 0; i < 50'000; ++i)
    header += str(i ? "," : "", "\"", i, R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})");
  write_file(folder / "a", file_of(header + "}"));
  MemoryBudget memory;
  EXPECT_EQ(error_of([&] { SafetensorsReader(folder / "a", memory); }), "(no error)");
  ASSERT_TRUE(memory.take(uint64_t{220} << 20));  // memory that other files of the load have taken
  EXPECT_THAT(error_of([&] { SafetensorsReader(folder / "a", memory); }),
              testing::ContainsRegex("a: expected descriptions of tensors that fit about eight times the [0-9]+ bytes "
                                     "of all files opened, got more"));
}

TEST(Safetensors, WhatAHeaderKeepsBesideNamesIsBounded) {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& header) {
    write_file(folder / "a", file_of(header));
    MemoryBudget memory;
    EXPECT_TRUE(memory.take(uint64_t{250} << 20));
    return error_of([&] { SafetensorsReader(folder / "a", memory); });
  };
  std::string words, numbers;
  for (int i = 0; i < 100'000; ++i) words += str(i ? "," : "", "\"", i, "\":\"\""), numbers += i ? ",0" : "0";
  EXPECT_THAT(error("{\"__metadata__\":{" + words + "}}"),
              testing::ContainsRegex("a: expected metadata that fit about eight times the [0-9]+ bytes of all files"));
  EXPECT_EQ(error("{\"__metadata__\":{\"a\":\"" + std::string(1'000'000, 'x') + "\"}}"), "(no error)");
  for (const std::string& inside : {"\"shape\":[" + numbers + "]", words})
    EXPECT_THAT(error("{\"w\":{" + inside + "}}"),
                testing::EndsWith("a: tensor 'w': expected dtype, shape and data_offsets, got more than 100 values"));
}

TEST(Safetensors, WhatCannotBeWritten) {
  const TemporaryFolder folder;
  StateDict numbers;
  numbers.scalars.push_back({"step", 3});
  EXPECT_EQ(error_of([&] { write_safetensors(folder / "a", numbers); }),
            "safetensors: expected tensors only, got the number 'step'. A checkpoint holds numbers too");
  StateDict undefined;
  undefined.tensors = {{"w", Tensor()}};
  EXPECT_EQ(error_of([&] { write_safetensors(folder / "a", undefined); }),
            "safetensors: expected a tensor as 'w', got none");
  StateDict twice;
  twice.tensors = {{"w", Tensor::zeros({1})}, {"w", Tensor::zeros({1})}};
  EXPECT_EQ(error_of([&] { write_safetensors(folder / "a", twice); }),
            "safetensors: expected each name once, got 'w' twice");
  StateDict latin;  // both would be read as U+FFFD
  latin.tensors = {{"\xe4", Tensor::zeros({1})}, {"\xf6", Tensor::zeros({1})}};
  EXPECT_EQ(error_of([&] { write_safetensors(folder / "a", latin); }),
            "safetensors: expected names in UTF-8, got '\\xe4'");
  EXPECT_EQ(folder.files(), 0u);
}

}  // namespace
}  // namespace weft
