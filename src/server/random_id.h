#pragma once
#include <string>

namespace sfumato::server {

/// 32 hexadecimal digits that nobody can guess: whoever knows a job's id may see its pictures.
std::string random_id();

}  // namespace sfumato::server
