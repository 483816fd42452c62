#include "apps/compile/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/strings.h"

namespace sfumato {
namespace {

// Google Cloud's TPU pages (v4, v5e, v5p, v6e), peak per chip.
constexpr Chip kChips[] = {
    {"TPU v4", 275e12, 1228e9, 32e9},
    {"TPU v5 lite", 197e12, 819e9, 16e9},
    {"TPU v5", 459e12, 2765e9, 95e9},
    {"TPU v6 lite", 918e12, 1640e9, 32e9},
};

/// Of the system that draws `batch` pictures at once?
bool takes_part(const CompiledProgram& program, int batch) {
  return program.runs > 0 && (program.batch == 0 || program.batch == batch);
}

double images_per_dollar(const CompileReport& report, double seconds) {
  return 3600 / seconds / report.price;
}

}  // namespace

std::optional<Chip> find_chip(std::string_view kind) {
  for (const Chip& chip : kChips)
    if (chip.kind == kind) return chip;
  return {};
}

double CompileReport::memory(int batch) const {
  double arguments = 0, working = 0;
  for (const CompiledProgram& program : programs) {
    if (!takes_part(program, batch)) continue;
    const pjrt::ProgramCost& cost = program.cost;
    arguments += static_cast<double>(cost.argument_bytes + cost.code_bytes);
    working = std::max(working, static_cast<double>(cost.temp_bytes + cost.output_bytes));
  }
  return arguments + working;
}

std::optional<double> CompileReport::bound_seconds_per_image(int batch) const {
  const std::optional<Chip> chip = find_chip(device_kind);
  if (!chip) return {};
  double seconds = 0;
  for (const CompiledProgram& program : programs) {
    if (!takes_part(program, batch)) continue;
    const pjrt::ProgramCost& cost = program.cost;
    const auto moved = static_cast<double>(cost.argument_bytes + cost.output_bytes);
    const double pictures = std::max(program.batch, 1);
    seconds += program.runs / pictures * std::max(cost.flops / chip->flops, moved / chip->bandwidth);
  }
  return seconds;
}

std::string to_markdown(const CompileReport& report) {
  std::string text = str(report.model, ", ", report.size.width, "x", report.size.height, ", ", report.steps, " steps, ",
                         precision_name(report.precision), ", for ", report.topology, " (", report.devices, " x ",
                         report.device_kind, ")\n\n",
                         "| program | batch | runs | TFLOP | GB accessed | arguments GB | temporaries GB | peak GB | "
                         "code MB | compile s |\n|---|---|---|---|---|---|---|---|---|---|\n");
  const auto gigabytes = [](int64_t bytes) { return fixed(static_cast<double>(bytes) / 1e9, 3); };
  for (const CompiledProgram& program : report.programs) {
    const pjrt::ProgramCost& c = program.cost;
    const std::vector<std::string> cells = {program.name,
                                            program.batch > 0 ? str(program.batch) : "",
                                            program.runs > 0 ? str(program.runs) : "",
                                            fixed(c.flops / 1e12, 3),
                                            fixed(c.bytes_accessed / 1e9, 2),
                                            gigabytes(c.argument_bytes),
                                            gigabytes(c.temp_bytes),
                                            gigabytes(c.peak_bytes),
                                            fixed(static_cast<double>(c.code_bytes) / 1e6, 0),
                                            fixed(c.compile_seconds, 1)};
    text += str("| ", join(cells, " | "), " |\n");
  }
  const std::optional<Chip> chip = find_chip(report.device_kind);
  for (const int batch : report.batches) {
    const double memory = report.memory(batch);
    text += str("\nWith ", batch, batch == 1 ? " picture" : " pictures", " at once a chip holds ",
                fixed(memory / 1e9, 2), " GB");
    if (chip)
      text += str(" of ", fixed(chip->memory / 1e9, 0), " GB: ", memory <= chip->memory ? "fits" : "does not fit");
    text += ".\n";
    if (const auto bound = report.bound_seconds_per_image(batch))
      text += str("Roofline bound, not a measurement: at least ", fixed(*bound, 3), " s a picture a chip, at most ",
                  fixed(images_per_dollar(report, *bound), 0), " pictures a dollar at ", fixed(report.price, 2),
                  " $ a chip-hour.\n");
  }
  return text;
}

std::string to_json(const CompileReport& report) {
  nlohmann::ordered_json programs = nlohmann::ordered_json::array();
  for (const CompiledProgram& program : report.programs) {
    const pjrt::ProgramCost& c = program.cost;
    programs.push_back({{"name", program.name},
                        {"batch", program.batch},
                        {"runs", program.runs},
                        {"flops", c.flops},
                        {"bytes_accessed", c.bytes_accessed},
                        {"argument_bytes", c.argument_bytes},
                        {"output_bytes", c.output_bytes},
                        {"temp_bytes", c.temp_bytes},
                        {"peak_bytes", c.peak_bytes},
                        {"code_bytes", c.code_bytes},
                        {"compile_seconds", c.compile_seconds}});
  }
  const std::optional<Chip> chip = find_chip(report.device_kind);
  const auto or_null = [](auto optional) {
    return optional ? nlohmann::ordered_json(*optional) : nlohmann::ordered_json();
  };
  nlohmann::ordered_json totals = nlohmann::ordered_json::array();
  for (const int batch : report.batches) {
    const double memory = report.memory(batch);
    const std::optional<double> bound = report.bound_seconds_per_image(batch);
    totals.push_back({{"batch", batch},
                      {"memory_bytes", memory},
                      {"fits", or_null(chip ? std::optional<bool>(memory <= chip->memory) : std::nullopt)},
                      {"bound_seconds_per_image", or_null(bound)},
                      {"bound_images_per_dollar",
                       or_null(bound ? std::optional<double>(images_per_dollar(report, *bound)) : std::nullopt)}});
  }
  return nlohmann::ordered_json{{"topology", report.topology},
                                {"device_kind", report.device_kind},
                                {"devices", report.devices},
                                {"model", report.model},
                                {"precision", precision_name(report.precision)},
                                {"size", str(report.size.width, "x", report.size.height)},
                                {"steps", report.steps},
                                {"programs", programs},
                                {"totals", totals},
                                {"price_per_chip_hour", report.price}}
             .dump(2) +
         "\n";
}

}  // namespace sfumato
