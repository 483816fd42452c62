#pragma once
// Graph -> graph rewrites: same results up to rounding, less work. One function, one file, one test each.
//
// A rewrite never moves a node: it changes one in place so that it reads values that already exist before it; what
// is no longer used is dropped at the end by remove_unused.
#include <string_view>

#include "ir/graph.h"

namespace sfumato::passes {

/// Silu(GroupNorm(x)) -> GroupNorm with silu.
void fuse_group_norm_silu(ir::Graph& graph);
/// Geglu(Linear(x)) and activation(Conv2d/Linear(x)) -> epilogue; Conv2d/Linear + per-sample vector -> row_bias;
/// Conv2d/Linear + same shape -> residual.
void fuse_epilogues(ir::Graph& graph);
/// Conv2d(UpsampleNearest by exactly 2) -> Conv2d with upsample2x.
void fuse_upsample(ir::Graph& graph);
/// Drops nodes that no output needs; Input nodes stay.
void remove_unused(ir::Graph& graph);

struct Pass {
  std::string_view name;
  void (*run)(ir::Graph&);
};
/// Every pass, in the order in which they are run.
inline constexpr Pass kAll[] = {
    {"fuse_group_norm_silu", fuse_group_norm_silu},
    {"fuse_epilogues", fuse_epilogues},
    {"fuse_upsample", fuse_upsample},
    {"remove_unused", remove_unused},
};
/// Runs kAll, and verifies the graph after each: a broken graph is a bug.
void run_all(ir::Graph& graph);

}  // namespace sfumato::passes
