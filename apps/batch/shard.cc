#include "apps/batch/shard.h"

#include <cstdlib>

#include "base/strings.h"
#include "pipeline/parse.h"

namespace sfumato {
namespace {

struct Launcher {
  const char *name, *index, *count;
  const char* first;  ///< the variable with the lowest index, where that is not 0
  const char* hint;   ///< what to do when the count is missing
};

// The first whose index is set decides: arrays and jobs before the launchers that may run inside of them.
constexpr Launcher kLaunchers[] = {
    {"Slurm array", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN", "it comes with sbatch"},
    {"Kubernetes Indexed Job", "JOB_COMPLETION_INDEX", "JOB_COMPLETION_COUNT", nullptr,
     "set it to the job's `completions` in the container's env"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr, "it comes with mpirun"},
    {"PMI", "PMI_RANK", "PMI_SIZE", nullptr, "it comes with mpiexec"},
    {"Slurm step", "SLURM_PROCID", "SLURM_NTASKS", nullptr, "it comes with srun"},
    {"torchrun", "RANK", "WORLD_SIZE", nullptr, "it comes with torchrun"},
};

Result<size_t> number_of(const char* variable, const char* text) {
  return static_cast<size_t>(TRY(parse_number<int64_t>(variable, text, 0, int64_t{1} << 31)));
}

Result<Shard> checked(Shard shard) {
  if (shard.index < shard.count) return shard;
  return usage_error(str("[batch.shard] expected an index below the count, got ", shard.index, " of ", shard.count,
                         " from ", shard.source, " (the first index is 0)"));
}

}  // namespace

Result<Shard> find_shard(std::optional<size_t> index, std::optional<size_t> count) {
  if (index.has_value() != count.has_value())
    return usage_error("[batch.shard] expected --shard-index and --shard-count together, got one of them");
  if (index) return checked({*index, *count, "the flags"});
  for (const Launcher& launcher : kLaunchers) {
    const char* own = std::getenv(launcher.index);
    if (!own) continue;
    const char* all = std::getenv(launcher.count);
    if (!all)
      return usage_error(str("[batch.shard] ", launcher.index, " is set and ", launcher.count,
                             " is not: ", launcher.hint, ", or use --shard-index and --shard-count"));
    Shard shard{TRY(number_of(launcher.index, own)), TRY(number_of(launcher.count, all)), launcher.name};
    const char* first = launcher.first ? std::getenv(launcher.first) : nullptr;
    if (const size_t lowest = first ? TRY(number_of(launcher.first, first)) : 0; lowest <= shard.index)
      shard.index -= lowest;
    return checked(shard);
  }
  return Shard{};
}

}  // namespace sfumato
