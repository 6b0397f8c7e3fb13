// SPDX-License-Identifier: Apache-2.0
#include "data/dataset.h"

#include <algorithm>

#include "core/nearest.h"
#include "data/cifar.h"
#include "data/hdf5_pictures.h"
#include "data/idx.h"
#include "data/image_folder.h"
#include "data/packed_pictures.h"
#include "data/random_pictures.h"
#include "data/shapes.h"
#include "kernels/error.h"

namespace weft::data {

const char* name(Split split) { return split == Split::train ? "train" : "val"; }

std::shared_ptr<const Dataset> open_dataset(const std::string& text, Split split) {
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const std::string place = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (kind == "shapes") return place.empty() ? shapes(split) : shapes(place, split);
  if (kind == "random") return random_pictures(parse_random_pictures(place), split);

  const std::vector<std::string> kinds{"shapes", "random", "cifar10", "cifar100", "cifar100-coarse",
                                       "idx",    "folder", "hdf5",    "packed"};
  const bool known = std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  WEFT_CHECK(known, "data: unknown kind '", kind, "'.", suggestion(kind, kinds));
  WEFT_CHECK(!place.empty(), "data: expected ", kind, kind == "hdf5" || kind == "packed" ? ":FILE" : ":DIR", ", got '",
             text, "'");
  if (kind == "hdf5") return hdf5_pictures(place, name(split));
  if (kind == "packed") return packed_pictures(place, name(split));
  if (kind == "cifar10") return cifar10(place, split);
  if (kind == "cifar100") return cifar100(place, split);
  if (kind == "cifar100-coarse") return cifar100(place, split, CifarLabels::coarse);
  if (kind == "idx") return idx(place, split);
  return image_folder(place, split);
}

}  // namespace weft::data
