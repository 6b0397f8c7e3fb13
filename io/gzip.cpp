// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include <algorithm>

#include "io/file_reader.h"
#include "kernels/error.h"

namespace weft {

std::vector<uint8_t> gunzip(const std::vector<uint8_t>& packed, const std::string& path, uint64_t most) {
  WEFT_CHECK(packed.size() >= 2 && packed[0] == 0x1f && packed[1] == 0x8b, "gzip: ", path,
             " is not gzip (it does not begin with 1f 8b)");
  z_stream stream{};
  constexpr int kGzipWindow = 15 + 16;
  WEFT_CHECK(inflateInit2(&stream, kGzipWindow) == Z_OK, "gzip: no memory to unpack ", path);
  std::vector<uint8_t> out;
  std::vector<uint8_t> chunk(size_t{1} << 18);
  size_t taken = 0;
  int state = Z_OK;
  std::string message;
  while (true) {
    if (state == Z_STREAM_END) {
      // Another member may follow; trailing bytes that are no member are padding, as for gzip(1).
      const bool member = packed.size() - taken >= 2 && packed[taken] == 0x1f && packed[taken + 1] == 0x8b;
      if (!member) break;
      inflateReset(&stream);
    }
    const size_t piece = std::min(packed.size() - taken, size_t{1} << 30);
    stream.next_in = const_cast<Bytef*>(packed.data() + taken);
    stream.avail_in = static_cast<uInt>(piece);
    stream.next_out = chunk.data();
    stream.avail_out = static_cast<uInt>(chunk.size());
    state = inflate(&stream, Z_NO_FLUSH);
    if (stream.msg != nullptr) message = stream.msg;
    taken += piece - stream.avail_in;
    const uint64_t unpacked = std::min<uint64_t>(chunk.size() - stream.avail_out, most - out.size());
    out.insert(out.end(), chunk.data(), chunk.data() + unpacked);
    if (out.size() == most) {
      inflateEnd(&stream);
      return out;
    }
    if (state != Z_OK && state != Z_STREAM_END) break;
  }
  inflateEnd(&stream);
  WEFT_CHECK(state == Z_STREAM_END || state != Z_BUF_ERROR, "gzip: ", path, " is cut short after ", packed.size(),
             " bytes. Copy or download it again.");
  WEFT_CHECK(state == Z_STREAM_END, "gzip: ", path, " is corrupt at byte ", taken, " of ", packed.size(), ": ",
             message.empty() ? "broken stream" : message, ". Copy or download it again.");
  return out;
}

}  // namespace weft
