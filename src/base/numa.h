#pragma once
#include <string_view>
#include <vector>

namespace sfumato {

/// The CPUs that this process may use, by NUMA node; nodes without any are left out. One node where the kernel tells of
/// none.
std::vector<std::vector<int>> numa_nodes();

/// "0-3,8" -> {0, 1, 2, 3, 8}; what is no such list gives none.
std::vector<int> parse_cpu_list(std::string_view text);

}  // namespace sfumato
