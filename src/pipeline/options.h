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

/// Is it said of one picture? Not what concerns the model, the machine, the output, or how the work is cut.
bool concerns_a_picture(const Option& option);

/// For requests without a seed: leaves room for seed + i.
uint32_t random_seed();

}  // namespace sfumato
