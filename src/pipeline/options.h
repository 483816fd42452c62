#pragma once
// Every option, described once. The command line and its help are made from this list; so are the other ways in.
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "pipeline/pipeline.h"

namespace sfumato {

/// What one run of `sfumato generate` is told.
struct RunOptions {
  PipelineOptions pipeline;
  Request request;
  bool is_seed_given = false;
  std::string output = "output.png";  ///< may hold one %d or %03d for the picture's number
  std::filesystem::path latents_output;
  bool quiet = false, json = false;
};

enum class OptionGroup { kModel, kPicture, kSampling, kInit, kXl, kMachine, kOutput };
std::string_view group_name(OptionGroup group);

/// Takes a value as text (flags without a value get "true"); faults name the option.
using SetOption = std::function<Result<void>(RunOptions&, const std::string&)>;

struct Option {
  OptionGroup group;
  std::vector<std::string> names;  ///< the canonical one first: "--steps", then aliases
  std::string value;               ///< what the value is called in the help; empty: a flag
  std::string help;
  SetOption set;
  bool repeats = false;
};

const std::vector<Option>& all_options();

}  // namespace sfumato
