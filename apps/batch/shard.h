#pragma once
// Which part of the work is this process's, among those that a launcher started.
#include <optional>
#include <string>

#include "base/result.h"

namespace sfumato {

struct Shard {
  size_t index = 0, count = 1;
  std::string source = {};  ///< who said so, for the person who reads the log; empty: nobody, there is one process

  bool has(size_t unit) const { return unit % count == index; }
};

/// As flags say (both or none), else as the environment of Slurm arrays and steps, Kubernetes Indexed Jobs, Open MPI,
/// PMI launchers or torchrun does. Half a statement is a usage error: it would draw everything in every process.
Result<Shard> find_shard(std::optional<size_t> index, std::optional<size_t> count);

}  // namespace sfumato
