// SPDX-License-Identifier: Apache-2.0
#include "apps/jsc/load_measure.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "apps/jsc/elapsed.h"
#include "apps/jsc/raw_jpeg.h"
#include "core/file_reader.h"
#include "data/parallel_for.h"

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

}  // namespace

Pass read_pictures(const data::EncodedDataset& set, const data::Sampler& order, int64_t epoch, int threads) {
  std::atomic<uint64_t> bytes{0};
  const Stopwatch watch;
  in_pieces(order.size(), kPiece, threads, [&](const auto& next) {
    std::vector<uint8_t> buffer;
    uint64_t own = 0;
    for (auto [i, end] = next(); i < end; std::tie(i, end) = next())
      for (; i < end; ++i) own += set.encoded(order.index(epoch, i), buffer).size();
    bytes += own;
  });
  return {order.size(), bytes, watch.seconds()};
}

Pass decode_pictures(const data::EncodedDataset& set, const data::Sampler& order, int64_t epoch, int threads) {
  const Stopwatch watch;
  in_pieces(order.size(), kPiece, threads, [&](const auto& next) {
    for (auto [i, end] = next(); i < end; std::tie(i, end) = next())
      for (; i < end; ++i) static_cast<void>(set.get(order.index(epoch, i)));
  });
  return {order.size(), 0, watch.seconds()};
}

RawRead::RawRead(const std::string& storage, const std::string& place, const data::EncodedDataset& set) {
  if (storage != "fs")
    files_.push_back(place);
  else
    for (int64_t i = 0; i < set.size(); ++i) files_.push_back(set.origin(i));
}

Pass RawRead::run(int threads) const {
  constexpr uint64_t kBlock = 128 << 10;
  std::atomic<uint64_t> bytes{0};
  const Stopwatch watch;
  if (files_.size() == 1) {
    const FileReader file(files_[0], "--raw");
    const auto blocks = static_cast<int64_t>((file.size() + kBlock - 1) / kBlock);
    in_pieces(blocks, 32, threads, [&](const auto& next) {
      std::vector<char> buffer(kBlock);
      for (auto [i, end] = next(); i < end; std::tie(i, end) = next())
        for (; i < end; ++i)
          file.read(static_cast<uint64_t>(i) * kBlock, buffer.data(),
                    std::min(kBlock, file.size() - static_cast<uint64_t>(i) * kBlock));
    });
    return {0, file.size(), watch.seconds()};
  }
  in_pieces(static_cast<int64_t>(files_.size()), kPiece, threads, [&](const auto& next) {
    std::vector<char> buffer(kBlock);
    uint64_t own = 0;
    for (auto [i, end] = next(); i < end; std::tie(i, end) = next())
      for (; i < end; ++i) {
        const int fd = ::open(files_[static_cast<size_t>(i)].c_str(), O_RDONLY | O_CLOEXEC);
        for (ssize_t got; fd >= 0 && (got = ::read(fd, buffer.data(), kBlock)) > 0;) own += static_cast<uint64_t>(got);
        if (fd >= 0) ::close(fd);
      }
    bytes += own;
  });
  return {static_cast<int64_t>(files_.size()), bytes, watch.seconds()};
}

DecodePeers::DecodePeers(const data::EncodedDataset& set, const data::Sampler& order) {
  constexpr uint64_t kMost = uint64_t{256} << 20;
  RawJpeg trial;
  std::vector<uint8_t> buffer;
  for (int64_t i = 0; i < order.size() && bytes_ < kMost; ++i) {
    const std::span<const uint8_t> bytes = set.encoded(order.index(0, i), buffer);
    if (trial.decode(bytes) == 0) continue;
    pictures_.emplace_back(bytes.begin(), bytes.end());
    bytes_ += bytes.size();
  }
  WEFT_CHECK(!pictures_.empty(), "--raw: expected JPEG pictures to decode, got none");
}

Pass DecodePeers::own(int threads) const {
  const Stopwatch watch;
  const auto count = static_cast<int64_t>(pictures_.size());
  in_pieces(count, kPiece, threads, [&](const auto& next) {
    for (auto [i, end] = next(); i < end; std::tie(i, end) = next())
      for (; i < end; ++i) static_cast<void>(data::decode(pictures_[static_cast<size_t>(i)], "a picture in memory"));
  });
  return {count, bytes_, watch.seconds()};
}

Pass DecodePeers::raw(int threads) const {
  const Stopwatch watch;
  const auto count = static_cast<int64_t>(pictures_.size());
  in_pieces(count, kPiece, threads, [&](const auto& next) {
    RawJpeg jpeg;
    for (auto [i, end] = next(); i < end; std::tie(i, end) = next())
      for (; i < end; ++i) jpeg.decode(pictures_[static_cast<size_t>(i)]);
  });
  return {count, bytes_, watch.seconds()};
}

}  // namespace weft::jsc
