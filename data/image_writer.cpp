// SPDX-License-Identifier: Apache-2.0
#include "data/image_writer.h"

#include <algorithm>
#include <limits>

#include "kernels/error.h"

namespace weft::data {

PartCount::PartCount(std::string what, const std::vector<std::string>& classes)
    : what_(std::move(what)), classes_(static_cast<int64_t>(classes.size())) {
  WEFT_CHECK(!classes.empty(), what_, ": expected at least one class, got none");
  std::vector<std::string> names = classes;
  std::sort(names.begin(), names.end());
  WEFT_CHECK(!names.front().empty(), what_, ": expected classes with names, got ''");
  constexpr size_t kLongest = 4096;  // packed_images.cpp reads no longer names
  for (const std::string& name : names)
    WEFT_CHECK(name.size() <= kLongest, what_, ": expected names of at most ", kLongest, " bytes, got one of ",
               name.size());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  WEFT_CHECK(twice == names.end(), what_, ": expected each class once, got '", *twice, "' twice");
}

void PartCount::begin_part(const std::string& name, int64_t count) {
  finish();
  WEFT_CHECK(!name.empty() && name.size() <= 255 && name.find('/') == name.npos && name != ".", what_,
             ": expected a part's name of 1 to 255 bytes without '/', got '", name, "'");
  WEFT_CHECK(std::find(parts_.begin(), parts_.end(), name) == parts_.end(), what_, ": expected each part once, got '",
             name, "' twice");
  WEFT_CHECK(count > 0, what_, ": expected at least one image in part '", name, "', got ", count);
  parts_.push_back(name);
  wanted_ = count;
  got_ = 0;
}

void PartCount::add(std::span<const uint8_t> bytes, int64_t label) {
  WEFT_CHECK(!parts_.empty(), what_, ": expected begin_part() before add()");
  WEFT_CHECK(got_ < wanted_, what_, ": expected ", wanted_, " images in part '", parts_.back(), "', got one more");
  WEFT_CHECK(!bytes.empty() && bytes.size() <= std::numeric_limits<uint32_t>::max(), what_,
             ": expected an image of 1 byte to 4 GiB, got ", bytes.size(), " bytes");
  WEFT_CHECK(label >= 0 && label < classes_, what_, ": expected labels 0 to ", classes_ - 1, ", got ", label);
  ++got_;
}

void PartCount::finish() const {
  WEFT_CHECK(got_ == wanted_, what_, ": expected ", wanted_, " images in part '", parts_.back(), "', got ", got_);
}

}  // namespace weft::data
