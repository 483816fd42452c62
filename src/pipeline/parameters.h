#pragma once
#include <string>

#include "pipeline/plan.h"

namespace sfumato {

/// What is written into the picture: image/parameters.h has the form.
std::string parameters_text(const ModelInfo& model, const Plan& plan, const Request& request, const Picture& picture);

}  // namespace sfumato
