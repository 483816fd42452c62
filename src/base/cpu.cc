#include "base/cpu.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "base/strings.h"

namespace sfumato {
namespace {

constexpr std::string_view kIsaNames[] = {"scalar", "avx2", "avx512", "avx512_bf16", "avx512_fp16", "amx"};

bool kernel_allows_amx() {
  constexpr int kArchReqXcompPerm = 0x1023, kXtileData = 18;
  return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXtileData) == 0;
}

// gcc 12's __builtin_cpu_supports knows no AMX and no FP16 names: read the kernel's flags, which also honour masks.
std::set<std::string> cpu_flags() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("flags", 0) == 0) {
      std::istringstream words(line.substr(line.find(':') + 1));
      std::set<std::string> flags;
      for (std::string word; words >> word;) flags.insert(word);
      return flags;
    }
  return {};
}

Isa detect_isa() {
  const std::set<std::string> flags = cpu_flags();
  const auto has_all = [&](std::initializer_list<const char*> names) {
    return std::all_of(names.begin(), names.end(), [&](const char* name) { return flags.count(name) > 0; });
  };
  if (!has_all({"avx2", "fma", "f16c"})) return Isa::kScalar;
  if (!has_all({"avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni"})) return Isa::kAvx2;
  if (!has_all({"avx512_bf16"})) return Isa::kAvx512;
  if (!has_all({"avx512_fp16"})) return Isa::kAvx512Bf16;
  if (!has_all({"amx_tile", "amx_bf16", "amx_int8"}) || !kernel_allows_amx()) return Isa::kAvx512Fp16;
  return Isa::kAmx;
}

Isa isa_from_environment() {
  const char* limit = std::getenv("SFUMATO_MAX_ISA");
  const std::optional<Isa> isa = limit ? parse_isa(limit) : std::nullopt;
  return isa ? std::min(*isa, machine_isa()) : machine_isa();
}

Isa& active() {
  static Isa isa = isa_from_environment();
  return isa;
}

int physical_cores(const cpu_set_t& allowed) {
  std::set<std::string> cores;  // a core is named by its siblings
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    std::ifstream in(str("/sys/devices/system/cpu/cpu", cpu, "/topology/thread_siblings_list"));
    std::string siblings;
    if (!std::getline(in, siblings)) siblings = str("cpu", cpu);
    cores.insert(siblings);
  }
  return std::max<int>(1, static_cast<int>(cores.size()));
}

// The quota of this process's own cgroup (v2), or of an ancestor, whichever is least.
std::optional<int> cgroup_quota() {
  std::ifstream self("/proc/self/cgroup");
  std::optional<int> least;
  for (std::string line; std::getline(self, line);) {
    if (line.rfind("0::", 0) != 0) continue;
    for (std::string group = line.substr(3);; group = group.substr(0, group.rfind('/'))) {
      std::ifstream in("/sys/fs/cgroup" + (group == "/" ? "" : group) + "/cpu.max");
      std::string text;
      if (std::getline(in, text))
        if (const auto quota = parse_cpu_quota(text)) least = std::min(*quota, least.value_or(*quota));
      if (group.empty() || group == "/") break;
    }
  }
  return least;
}

}  // namespace

std::string_view isa_name(Isa isa) {
  return kIsaNames[static_cast<int>(isa)];
}

std::optional<Isa> parse_isa(std::string_view name) {
  for (Isa isa : kAllIsas)
    if (isa_name(isa) == name) return isa;
  return std::nullopt;
}

Isa machine_isa() {
  static const Isa isa = detect_isa();
  return isa;
}

Isa active_isa() {
  return active();
}

void set_active_isa(Isa isa) {
  active() = std::min(isa, machine_isa());
}

Result<void> check_isa_environment() {
  const char* limit = std::getenv("SFUMATO_MAX_ISA");
  if (limit && !parse_isa(limit))
    return usage_error(
        str("[base.cpu] SFUMATO_MAX_ISA expected one of ", join(kIsaNames, ", "), ", got \"", limit, "\""));
  return {};
}

std::string cpu_model_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("model name", 0) == 0) return std::string(trim(line.substr(line.find(':') + 1)));
  return "unknown CPU";
}

std::optional<int> parse_cpu_quota(std::string_view cpu_max) {
  std::istringstream in{std::string(cpu_max)};
  double quota = 0, period = 0;
  if (!(in >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return std::max(1, static_cast<int>(std::ceil(quota / period)));
}

int default_threads() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  const int cores = physical_cores(allowed);
  return std::min(cores, cgroup_quota().value_or(cores));
}

}  // namespace sfumato
