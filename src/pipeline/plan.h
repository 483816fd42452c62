#pragma once
// A request with every default filled in and every value checked, before anything is computed.
#include <string>
#include <vector>

#include "pipeline/latents.h"
#include "pipeline/model.h"
#include "pipeline/request.h"

namespace sfumato {

struct Plan {
  explicit Plan(sampling::Schedule s) : schedule(std::move(s)) {}
  Size size;
  LatentSize latent;
  int steps = 0;
  float guidance = 1;
  bool guided = false;  ///< two network passes a step: guidance > 1
  sampling::ScheduleKind schedule_kind;
  sampling::Schedule schedule;       ///< whole, or its last part for image to image
  std::vector<std::string> prompts;  ///< one a picture
  int batch_size = 1;                ///< pictures a pass, at most
};

/// Errors are usage errors that name the field, the value and what would do.
Result<Plan> make_plan(const Model& model, const Request& request);

/// Requests with the same key may share batches: they differ in prompts, seeds and guidance only. Empty: this one is
/// drawn alone, for it starts from a picture.
std::string batch_key(const Plan& plan, const Request& request);

}  // namespace sfumato
