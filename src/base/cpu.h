#pragma once
// What this machine is: instruction set, name, and how many threads may run.
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sfumato {

/// Instruction-set levels, each containing the ones before it.
enum class Isa {
  kScalar,      ///< x86-64 baseline
  kAvx2,        ///< AVX2, FMA, F16C
  kAvx512,      ///< AVX-512 F, BW, VL, DQ, VNNI
  kAvx512Bf16,  ///< and BF16 (AMD from Zen 4 on, where its products are twice as fast as float ones)
  kAvx512Fp16,  ///< and FP16 (Intel from Sapphire Rapids on, where BF16 products are half as fast as float ones)
  kAmx,         ///< and AMX tiles with BF16 and INT8, allowed by the kernel
};
inline constexpr Isa kAllIsas[] = {Isa::kScalar,     Isa::kAvx2,       Isa::kAvx512,
                                   Isa::kAvx512Bf16, Isa::kAvx512Fp16, Isa::kAmx};

/// "scalar", "avx2", "avx512", "avx512_bf16", "avx512_fp16", "amx".
std::string_view isa_name(Isa isa);
std::optional<Isa> parse_isa(std::string_view name);

/// The highest level this machine can run; asks the kernel for AMX once.
Isa machine_isa();
/// The level in use: machine_isa(), forced down by SFUMATO_MAX_ISA. Read once.
Isa active_isa();
/// For tests and benchmarks: use `isa` (at most machine_isa()) from now on.
void set_active_isa(Isa isa);
/// Is SFUMATO_MAX_ISA, if set, one of the names? Programs call this first.
Result<void> check_isa_environment();

/// "Intel(R) Xeon(R) Processor", from /proc/cpuinfo.
std::string cpu_model_name();

/// Threads worth starting: physical cores of the affinity mask, at most the cgroup's CPU quota rounded up.
int default_threads();
/// Parses cgroup v2 `cpu.max`: "400000 100000" -> 4, "150000 100000" -> 2, "max 100000" -> nothing.
std::optional<int> parse_cpu_quota(std::string_view cpu_max);

}  // namespace sfumato
