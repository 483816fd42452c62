#include "base/numa.h"

#include <sched.h>

#include <charconv>
#include <fstream>
#include <string>

#include "base/strings.h"

namespace sfumato {

std::vector<int> parse_cpu_list(std::string_view text) {
  constexpr int kMost = 1 << 16;
  std::vector<int> cpus;
  for (const std::string& part : split(trim(text), ',')) {
    const char* end = part.data() + part.size();
    int first = 0, last = 0;
    const auto one = std::from_chars(part.data(), end, first);
    last = first;
    const bool is_range = one.ptr != end && *one.ptr == '-';
    const auto two = is_range ? std::from_chars(one.ptr + 1, end, last) : one;
    if (one.ec != std::errc() || two.ec != std::errc() || two.ptr != end || first < 0 || last < first || last >= kMost)
      return {};
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<std::vector<int>> numa_nodes() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::vector<std::vector<int>> nodes;
  for (int node = 0;; ++node) {
    std::ifstream list(str("/sys/devices/system/node/node", node, "/cpulist"));
    std::string text;
    if (!std::getline(list, text)) break;
    std::vector<int> cpus;
    for (const int cpu : parse_cpu_list(text))
      if (cpu < CPU_SETSIZE && CPU_ISSET(static_cast<size_t>(cpu), &allowed)) cpus.push_back(cpu);
    if (!cpus.empty()) nodes.push_back(std::move(cpus));
  }
  if (!nodes.empty()) return nodes;
  nodes.emplace_back();
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<size_t>(cpu), &allowed)) nodes[0].push_back(cpu);
  return nodes;
}

}  // namespace sfumato
