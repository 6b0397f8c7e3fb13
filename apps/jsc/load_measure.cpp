// SPDX-License-Identifier: Apache-2.0
#include "apps/jsc/load_measure.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <tuple>

#include "apps/jsc/course.h"
#include "apps/jsc/raw_jpeg.h"
#include "data/parallel_for.h"
#include "io/file_reader.h"

namespace weft::jsc {
namespace {

/// Runs body(first, end) on `threads` threads, which share 0 … count - 1 out in pieces of `piece`.
template <class Body>
void in_pieces(int64_t count, int64_t piece, int threads, Body&& body) {
  std::atomic<int64_t> next{0};
  data::parallel_for(std::max(threads, 1), std::max(threads, 1), [&](int64_t) {
    body([&]() -> std::pair<int64_t, int64_t> {
      const int64_t first = next.fetch_add(piece);
      return {std::min(first, count), std::min(first + piece, count)};
    });
  });
}

constexpr int64_t kPiece = 8;
constexpr uint64_t kBlock = 128 << 10;

}  // namespace

Passes read_images(const data::EncodedDataset& set, const data::Sampler& order, Load load) {
  const int64_t size = order.size();
  std::atomic<uint64_t> bytes{0};
  const Stopwatch watch;
  in_pieces(size * load.count, kPiece, load.threads, [&](const auto& next) {
    std::vector<uint8_t> buffer;
    uint64_t own = 0;
    for (auto [i, end] = next(); i < end; std::tie(i, end) = next())
      for (; i < end; ++i) own += set.encoded(order.index(i / size, i % size), buffer).size();
    bytes += own;
  });
  return {size * load.count, bytes, watch.seconds()};
}

Passes decode_images(const data::EncodedDataset& set, const data::Sampler& order, Load load) {
  const int64_t size = order.size();
  const Stopwatch watch;
  in_pieces(size * load.count, kPiece, load.threads, [&](const auto& next) {
    for (auto [i, end] = next(); i < end; std::tie(i, end) = next())
      for (; i < end; ++i) static_cast<void>(set.get(order.index(i / size, i % size)));
  });
  return {size * load.count, 0, watch.seconds()};
}

RawRead::RawRead(const std::string& storage, const std::string& place, const data::EncodedDataset& set, uint64_t bytes)
    : bytes_(bytes) {
  if (storage != "fs")
    files_.push_back(place);
  else
    for (int64_t i = 0; i < set.size(); ++i) files_.push_back(set.origin(i));
}

Passes RawRead::run(Load load) const { return files_.size() == 1 ? read_file(load) : read_files(load); }

Passes RawRead::read_file(Load load) const {
  const FileReader file(files_[0], "--raw");
  const uint64_t size = std::min(bytes_, file.size());
  const auto blocks = static_cast<int64_t>((size + kBlock - 1) / kBlock);
  const Stopwatch watch;
  in_pieces(blocks * load.count, kPiece, load.threads, [&](const auto& next) {
    std::vector<char> buffer(kBlock);
    for (auto [i, end] = next(); i < end; std::tie(i, end) = next())
      for (; i < end; ++i) {
        const uint64_t at = static_cast<uint64_t>(i % blocks) * kBlock;
        file.read(at, buffer.data(), std::min(kBlock, size - at));
      }
  });
  return {0, size * static_cast<uint64_t>(load.count), watch.seconds()};
}

Passes RawRead::read_files(Load load) const {
  const auto size = static_cast<int64_t>(files_.size());
  std::atomic<uint64_t> bytes{0};
  const Stopwatch watch;
  in_pieces(size * load.count, kPiece, load.threads, [&](const auto& next) {
    std::vector<char> buffer(kBlock);
    uint64_t own = 0;
    for (auto [i, end] = next(); i < end; std::tie(i, end) = next())
      for (; i < end; ++i) {
        const int fd = ::open(files_[static_cast<size_t>(i % size)].c_str(), O_RDONLY | O_CLOEXEC);
        for (ssize_t got; fd >= 0 && (got = ::read(fd, buffer.data(), kBlock)) > 0;) own += static_cast<uint64_t>(got);
        if (fd >= 0) ::close(fd);
      }
    bytes += own;
  });
  return {size * load.count, bytes, watch.seconds()};
}

DecodePeers::DecodePeers(const data::EncodedDataset& set, const data::Sampler& order) {
  constexpr uint64_t kMost = uint64_t{256} << 20;
  RawJpeg trial;
  std::vector<uint8_t> buffer;
  for (int64_t i = 0; i < order.size() && bytes_ < kMost; ++i) {
    const std::span<const uint8_t> bytes = set.encoded(order.index(0, i), buffer);
    if (trial.decode(bytes) == 0) continue;
    images_.emplace_back(bytes.begin(), bytes.end());
    bytes_ += bytes.size();
  }
  WEFT_CHECK(!images_.empty(), "--raw: expected JPEG images to decode, got none");
}

Passes DecodePeers::own(Load load) const {
  const Stopwatch watch;
  const auto size = static_cast<int64_t>(images_.size());
  in_pieces(size * load.count, kPiece, load.threads, [&](const auto& next) {
    for (auto [i, end] = next(); i < end; std::tie(i, end) = next())
      for (; i < end; ++i)
        static_cast<void>(data::decode(images_[static_cast<size_t>(i % size)], "an image in memory"));
  });
  return {size * load.count, bytes_ * static_cast<uint64_t>(load.count), watch.seconds()};
}

Passes DecodePeers::raw(Load load) const {
  const Stopwatch watch;
  const auto size = static_cast<int64_t>(images_.size());
  in_pieces(size * load.count, kPiece, load.threads, [&](const auto& next) {
    RawJpeg jpeg;
    for (auto [i, end] = next(); i < end; std::tie(i, end) = next())
      for (; i < end; ++i) jpeg.decode(images_[static_cast<size_t>(i % size)]);
  });
  return {size * load.count, bytes_ * static_cast<uint64_t>(load.count), watch.seconds()};
}

}  // namespace weft::jsc
