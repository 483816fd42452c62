#pragma once
// What `sfumato info` can tell about. Each subject as text for people and as JSON for programs.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "pipeline/options.h"

namespace sfumato {

struct Report {
  std::string text;  ///< whole lines
  nlohmann::ordered_json json;
  std::vector<std::string> notes = {};  ///< remarks, not part of the answer
};

Result<Report> machine_report();
/// The generation parameters of a picture.
Result<Report> picture_report(const std::filesystem::path& path);
Result<Report> model_report(const std::filesystem::path& path);
/// Ids with begin and end, one line a text encoder; without a model SD1.5's one.
Result<Report> tokens_report(const std::filesystem::path& model, const std::string& prompt);
/// One line a step: timestep and sigma (noise to signal). Without a model SD1.5's settings.
Result<Report> schedule_report(const std::filesystem::path& model, const Request& request);
/// One value a line.
Result<Report> noise_report(const Request& request, const Shape& shape);

}  // namespace sfumato
