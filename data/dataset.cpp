// SPDX-License-Identifier: Apache-2.0
#include "data/dataset.h"

#include "core/nearest.h"
#include "data/cifar.h"
#include "data/hdf5_images.h"
#include "data/idx.h"
#include "data/image_folder.h"
#include "data/packed_images.h"
#include "data/random_images.h"
#include "data/shapes.h"
#include "kernels/error.h"

namespace weft::data {

const char* name(Split split) { return split == Split::train ? "train" : "val"; }

namespace {

using SetPtr = std::shared_ptr<const Dataset>;

/// A kind of set: its name, what its place is ("": it needs none), and how it is opened.
struct Kind {
  const char* name;
  const char* place;
  SetPtr (*open)(const std::string& place, Split split);
};

// clang-format off
const Kind kKinds[] = {
    {"shapes", "", [](const std::string& at, Split s) { return at.empty() ? shapes(s) : shapes(at, s); }},
    {"random", "", [](const std::string& at, Split s) { return random_images(parse_random_images(at), s); }},
    {"cifar10", "DIR", [](const std::string& at, Split s) { return cifar10(at, s); }},
    {"cifar100", "DIR", [](const std::string& at, Split s) { return cifar100(at, s); }},
    {"cifar100-coarse", "DIR", [](const std::string& at, Split s) { return cifar100(at, s, CifarLabels::coarse); }},
    {"idx", "DIR", [](const std::string& at, Split s) { return idx(at, s); }},
    {"folder", "DIR", [](const std::string& at, Split s) -> SetPtr { return image_folder(at, s); }},
    {"hdf5", "FILE", [](const std::string& at, Split s) -> SetPtr { return hdf5_images(at, name(s)); }},
    {"packed", "FILE", [](const std::string& at, Split s) -> SetPtr { return packed_images(at, name(s)); }},
};
// clang-format on

}  // namespace

SetPtr open_dataset(const std::string& text, Split split) {
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const std::string place = colon == std::string::npos ? "" : text.substr(colon + 1);
  std::vector<std::string> names;
  for (const Kind& known : kKinds) {
    names.emplace_back(known.name);
    if (kind != known.name) continue;
    WEFT_CHECK(!place.empty() || *known.place == 0, "data: expected ", kind, ":", known.place, ", got '", text, "'");
    return known.open(place, split);
  }
  fail("data: unknown kind '", kind, "'.", suggestion(kind, names));
}

}  // namespace weft::data
