// SPDX-License-Identifier: Apache-2.0
#include "train/record/tensorboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "tests/train/temporary_folder.h"

namespace weft::train {
namespace {

using test::read_file;
using test::TemporaryFolder;

/// CRC-32C bit by bit: as plain as can be, and not the code under test.
uint32_t slow_crc(const std::string& bytes) {
  uint32_t crc = 0xffffffff;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? (crc >> 1) ^ 0x82f63b78 : crc >> 1;
  }
  return ~crc;
}

uint32_t masked(const std::string& bytes) {
  const uint32_t crc = slow_crc(bytes);
  return (crc >> 15 | crc << 17) + 0xa282ead8;
}

template <class T>
T take(const std::string& bytes, size_t& at) {
  T value{};
  if (at + sizeof(T) > bytes.size()) throw std::runtime_error("record cut short");
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  at += sizeof(T);
  return value;
}

/// The messages of an event file, with both checksums checked.
std::vector<std::string> records(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  std::vector<std::string> out;
  for (size_t at = 0; at < bytes.size();) {
    const std::string length_bytes = bytes.substr(at, 8);
    const auto length = take<uint64_t>(bytes, at);
    EXPECT_EQ(take<uint32_t>(bytes, at), masked(length_bytes));
    out.push_back(bytes.substr(at, length));
    at += length;
    EXPECT_EQ(take<uint32_t>(bytes, at), masked(out.back()));
  }
  return out;
}

/// A message as field number -> raw values: bytes, or the eight bytes of a varint, or a fixed number's bytes.
std::multimap<int, std::string> fields(const std::string& message) {
  std::multimap<int, std::string> out;
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = take<uint8_t>(message, at);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.size()) {
    const uint64_t key = varint();
    const int field = static_cast<int>(key >> 3), type = key & 7;
    size_t length = type == 1 ? 8 : type == 5 ? 4 : 0;
    if (type == 0) {
      const uint64_t value = varint();
      out.emplace(field, std::string(reinterpret_cast<const char*>(&value), 8));
      continue;
    }
    if (type == 2) length = varint();
    out.emplace(field, message.substr(at, length));
    at += length;
  }
  return out;
}

std::string field(const std::string& message, int number) {
  const auto all = fields(message);
  EXPECT_EQ(all.count(number), 1u) << "field " << number;
  return all.count(number) ? all.find(number)->second : "";
}

template <class T>
T number(const std::string& raw) {
  T value{};
  EXPECT_GE(raw.size(), sizeof(T));
  std::memcpy(&value, raw.data(), std::min(sizeof(T), raw.size()));
  return value;
}

std::string value_of(const std::string& event) { return field(field(event, 5), 1); }

TEST(TensorBoard, ScalarsReadBack) {
  const TemporaryFolder folder;
  TensorBoard board(folder.path());
  board.scalar("loss/train", 0.125, 300);
  board.scalar("loss/val", -2, int64_t{1} << 40);
  EXPECT_THAT(board.path().filename().string(),
              testing::MatchesRegex("events.out.tfevents.[0-9]{10}\\..+\\.[0-9]+\\.[0-9]+"));
  const auto events = records(board.path());
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(field(events[0], 3), "brain.Event:2");
  EXPECT_GT(number<double>(field(events[0], 1)), 1.6e9);
  EXPECT_EQ(number<int64_t>(field(events[2], 2)), 300);
  EXPECT_EQ(field(value_of(events[2]), 1), "loss/train");
  EXPECT_EQ(number<float>(field(value_of(events[2]), 2)), 0.125f);
  EXPECT_EQ(number<int64_t>(field(events[3], 2)), int64_t{1} << 40);
  EXPECT_EQ(number<float>(field(value_of(events[3]), 2)), -2);
}

TEST(TensorBoard, HistogramsHaveTheirCounts) {
  const TemporaryFolder folder;
  TensorBoard board(folder.path());
  board.histogram("w", Tensor::from(std::vector<double>{-1, 0, 0.99, 1, 1}, {5}), 4);
  board.histogram("constant", Tensor::full({3}, 1e9), 4);
  const auto events = records(board.path());
  const std::string histogram = field(value_of(events[2]), 5);
  EXPECT_EQ(number<double>(field(histogram, 1)), -1);
  EXPECT_EQ(number<double>(field(histogram, 2)), 1);
  EXPECT_EQ(number<double>(field(histogram, 3)), 5);
  EXPECT_DOUBLE_EQ(number<double>(field(histogram, 4)), 1.99);
  EXPECT_DOUBLE_EQ(number<double>(field(histogram, 5)), 3 + 0.99 * 0.99);
  const std::string limits = field(histogram, 6), counts = field(histogram, 7);
  ASSERT_EQ(limits.size(), 64 * sizeof(double));
  ASSERT_EQ(counts.size(), limits.size());
  EXPECT_DOUBLE_EQ(number<double>(limits.substr(63 * 8)), 1);
  EXPECT_EQ(number<double>(counts), 1) << "-1";
  EXPECT_EQ(number<double>(counts.substr(63 * 8)), 3) << "0.99 and both 1";
  EXPECT_EQ(number<double>(field(field(value_of(events[3]), 5), 3)), 3);
}

TEST(TensorBoard, TextsAreTensorsOfThePlugin) {
  const TemporaryFolder folder;
  TensorBoard board(folder.path());
  board.text("notes", "**bold**", 2);
  const std::string value = value_of(records(board.path())[2]);
  EXPECT_EQ(field(field(value, 8), 8), "**bold**");
  EXPECT_EQ(number<int64_t>(field(field(value, 8), 1)), 7);
  EXPECT_EQ(field(field(field(value, 9), 1), 1), "text");
}

TEST(TensorBoard, RefusesTensorsThatItCannotShow) {
  const TemporaryFolder folder;
  TensorBoard board(folder.path());
  const auto text_of = [](auto&& call) {
    try {
      call();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(text_of([&] {
                board.image("i", Tensor::zeros({2, 2}), 0);
              }),
              testing::HasSubstr("expected an image [height, width, 1 or 3]"));
  EXPECT_THAT(text_of([&] { board.image("i", Tensor::zeros({2, 2, 4}), 0); }), testing::HasSubstr("got f32[2,2,4]"));
  EXPECT_THAT(text_of([&] { board.histogram("h", Tensor::full({2}, NAN), 0); }),
              testing::HasSubstr("for the histogram 'h', got some that are not"));
  EXPECT_THAT(text_of([&] { board.histogram("h", Tensor::zeros({0}), 0); }), testing::HasSubstr("got none"));
}

TEST(TensorBoard, TensorsAreImages) {
  if (!have_png()) GTEST_SKIP() << "needs a build with libspng; this one has its stub";
  const TemporaryFolder folder;
  TensorBoard board(folder.path());
  board.image("grey", Tensor::from(std::vector<float>{0, 0.5, 1, 2, -1, 0.25}, {2, 3, 1}), 0);
  Canvas same(3, 2);
  const uint8_t levels[] = {0, 128, 255, 255, 0, 64};
  for (size_t i = 0; i < 18; ++i) same.pixels[i] = levels[i / 3];
  board.image("same", same, 0);
  board.image("bytes", Tensor::full({2, 2, 3}, 7, DType::u8), 0);
  board.image("seven", Canvas(2, 2, {7, 7, 7}), 0);
  const auto events = records(board.path());
  EXPECT_EQ(field(field(value_of(events[2]), 4), 4), field(field(value_of(events[3]), 4), 4));
  EXPECT_EQ(field(field(value_of(events[4]), 4), 4), field(field(value_of(events[5]), 4), 4));
}

TEST(TensorBoard, ImagesArePng) {
  if (!have_png()) GTEST_SKIP() << "needs a build with libspng; this one has its stub";
  const TemporaryFolder folder;
  TensorBoard board(folder.path());
  board.image("samples", Canvas(20, 10, {1, 2, 3}), 7);
  const std::string image = field(value_of(records(board.path())[2]), 4);
  EXPECT_EQ(number<int64_t>(field(image, 1)), 10);
  EXPECT_EQ(number<int64_t>(field(image, 2)), 20);
  EXPECT_EQ(number<int64_t>(field(image, 3)), 3);
  EXPECT_EQ(field(image, 4).substr(0, 8), "\x89PNG\r\n\x1a\n");
}

TEST(TensorBoard, HyperParameters) {
  const TemporaryFolder folder;
  TensorBoard board(folder.path());
  board.hyper_parameters({{"lr", 0.1}, {"model", "resnet20"}, {"augment", true}});
  board.end(false);
  const auto events = records(board.path());
  ASSERT_EQ(events.size(), 4u);
  const auto content = [](const std::string& event) {
    const std::string plugin = field(field(value_of(event), 9), 1);
    EXPECT_EQ(field(plugin, 1), "hparams");
    return field(plugin, 2);
  };
  EXPECT_EQ(field(value_of(events[2]), 1), "_hparams_/session_start_info");
  const auto start = fields(field(content(events[2]), 3));
  std::map<std::string, std::string> values;
  for (auto [at, end] = start.equal_range(1); at != end; ++at) values[field(at->second, 1)] = field(at->second, 2);
  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(number<double>(field(values["lr"], 2)), 0.1);
  EXPECT_EQ(field(values["model"], 3), "resnet20");
  EXPECT_EQ(number<int64_t>(field(values["augment"], 4)), 1);
  EXPECT_EQ(field(value_of(events[3]), 1), "_hparams_/session_end_info");
  EXPECT_EQ(number<int64_t>(field(field(content(events[3]), 4), 1)), 2);
}

TEST(TensorBoard, AResumeForgetsLaterPoints) {
  const TemporaryFolder folder;
  const TensorBoard first(folder.path()), second(folder.path(), 60);
  EXPECT_NE(first.path(), second.path());
  const auto started = records(first.path()), events = records(second.path());
  ASSERT_EQ(started.size(), 2u);  // only the second such event of a run counts
  EXPECT_EQ(number<int64_t>(field(started[1], 2)), 0);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(number<int64_t>(field(events[1], 2)), 61);  // points from there on go
  EXPECT_EQ(number<int64_t>(field(field(events[1], 7), 1)), 1);
}

TEST(TensorBoard, AClockThatWasSetBackTakesNoFileAway) {
  const TemporaryFolder folder;
  const std::string name = TensorBoard(folder.path()).path().filename().string();
  const size_t second = name.find('.', 20),
               number = name.rfind('.');  // events.out.tfevents.SECONDS.HOST.PROCESS.NUMBER
  const int64_t now = std::stoll(name.substr(20, second - 20)), next = std::stoll(name.substr(number + 1)) + 1;
  for (int64_t later = 0; later < 30; ++later)
    test::write_file(
        folder.path() / str("events.out.tfevents.", now + later, name.substr(second, number - second), '.', next),
        "of an earlier run");
  EXPECT_EQ(records(TensorBoard(folder.path()).path()).size(), 2u);
}

TEST(TensorBoard, Errors) {
  const TemporaryFolder folder;
  test::write_file(folder.path() / "file", "");
  EXPECT_THAT(test::error_of([&] { TensorBoard board(folder.path() / "file/a"); }),
              testing::MatchesRegex("tensorboard: expected to create .*/file/a/events.* got 'Not a directory'"));
}

TEST(TensorBoard, MakesItsFolder) {
  const TemporaryFolder folder;
  EXPECT_EQ(records(TensorBoard(folder.path() / "runs/a").path()).size(), 2u);
}

}  // namespace
}  // namespace weft::train
