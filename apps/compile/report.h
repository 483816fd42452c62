#pragma once
// What `sfumato compile` says.
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/pjrt/ahead_of_time.h"
#include "pipeline/request.h"

namespace sfumato {

/// A chip's published peak figures.
struct Chip {
  std::string_view kind;  ///< as PJRT calls it
  double flops = 0;       ///< a second, bfloat16
  double bandwidth = 0;   ///< of its memory, bytes a second
  double memory = 0;      ///< bytes
};
/// Nothing: no chip of that name is known here.
std::optional<Chip> find_chip(std::string_view kind);

struct CompiledProgram {
  std::string name;
  int batch = 0;    ///< pictures a chip that it works on at once; 0: it takes them one by one
  double runs = 1;  ///< to make those pictures, or that one; 0: it is no part of the system, only beside it
  pjrt::ProgramCost cost;
};

struct CompileReport {
  std::string topology, device_kind, model;
  int devices = 1;
  Precision precision = Precision::kBF16;
  Size size;
  std::vector<int> batches;  ///< pictures a chip at once
  int steps = 0;
  double price = 0;  ///< dollars a chip-hour
  std::vector<CompiledProgram> programs;

  /// With `batch` pictures at once, all programs' weights stay on the chip, and one at a time runs.
  double memory(int batch) const;
  /// No chip of this kind can be faster than this: of every program, the longer of its FLOPs at the peak rate and its
  /// arguments and results at the memory's rate. Not a measurement, and not a forecast.
  std::optional<double> bound_seconds_per_image(int batch) const;
};

std::string to_markdown(const CompileReport& report);
std::string to_json(const CompileReport& report);

}  // namespace sfumato
