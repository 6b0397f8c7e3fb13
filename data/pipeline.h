// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/draw.h"
#include "data/transforms/color.h"
#include "data/transforms/crop.h"
#include "data/transforms/normalize.h"
#include "data/transforms/resize.h"

namespace weft::data {

/// The steps of an image between the set and the model, up to normalisation. Both parts are pure functions of the
/// image and the draw; the draw of `place` continues where `prepare` left off.
struct Pipeline {
  std::string name = "none";
  /// Size of what the model sees; 0: the image's own.
  int64_t height = 0;
  int64_t width = 0;
  /// Changes pixels (resize, colours). Absent: the stored image is used as it is, without a copy.
  std::function<Image(Image, Draw&)> prepare;
  /// Chooses window and mirroring, which cost nothing beside the normalisation. Absent: the upper left, not mirrored.
  std::function<Place(Draw&)> place;
};

/// Settings beyond a pipeline's name; for training alone, but for the filter.
struct PipelineOptions {
  RandomResizedCropOptions crop = {};  ///< areas, ratios and filter of imagenet; its size comes from the name
  ColorJitterOptions jitter = {};      ///< after the policy
  RandomErasingOptions erasing = {.probability = 0};  ///< last, in the image as the model sees it
};

/// A pipeline by name, GEOMETRY or GEOMETRY+POLICY, for training with random changes, for validation without:
///   none                 the image as it is.
///   flip                 mirrored half of the time; validation: as it is.
///   cifar                4 black pixels around, a random window of the old size, mirrored half of the time.
///   shapes               as cifar, with 2 pixels.
///   imagenet[:SIZE]      random resized crop to SIZE (224), mirrored half of the time; validation: shortest edge to
///                        SIZE * 8 / 7 (256), centre crop.
///   NAME:SIZE            none, flip, cifar and shapes after stretching the image to SIZE x SIZE.
///   resize:SIZE          another name of flip:SIZE.
/// and the policies of policy.h: cifar+randaugment:2,9. A policy works on the resized image before windows and
/// mirroring are chosen, which fall into the normalisation; the policies are the same under mirroring. Errors: an
/// unknown name (the text suggests the nearest), a SIZE that is no positive number, those of make_policy.
Pipeline make_pipeline(const std::string& text, Split split, const PipelineOptions& options = {});
std::vector<std::string> pipeline_names();

/// The default for a set: shapes for the embedded set, cifar for CIFAR, none for others in memory, imagenet for images
/// of varying size.
std::string default_pipeline(const std::string& dataset);

/// A user's choice as GEOMETRY[+POLICY]: `auto` and `standard` are default_pipeline(dataset), as is what a policy alone
/// leaves open; autoaugment without a policy takes cifar10's for CIFAR, else imagenet's. Errors: see make_pipeline.
std::string resolve_pipeline(const std::string& text, const std::string& dataset);

}  // namespace weft::data
