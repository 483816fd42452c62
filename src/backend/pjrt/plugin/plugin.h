#pragma once
// A PJRT plugin: a shared library with one function table. Calls go through call(), which checks that the plugin has
// the function and turns its errors into ours.
#include <pjrt_c_api.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"

namespace sfumato::pjrt {

class Plugin {
 public:
  /// Loads the library at `path`, checks its version, initialises it. It stays loaded until the process ends, as
  /// plugins start threads.
  static Result<std::shared_ptr<const Plugin>> open(const std::string& path);

  /// One call: `slot` is the entry of the table, `name` what to call it in messages.
  template <class Args>
  Result<void> call(std::string_view name, PJRT_Error* (*PJRT_Api::*slot)(Args*), Args& args) const {
    if (!has(reinterpret_cast<const std::byte*>(&(api_->*slot)))) return missing(name);
    return check(name, (api_->*slot)(&args));
  }
  /// Destructors of PJRT objects do not fail in any way a caller could mend.
  template <class Args>
  void destroy(PJRT_Error* (*PJRT_Api::*slot)(Args*), Args args) const {
    if (PJRT_Error* error = (api_->*slot)(&args)) (void)take_message(error);
  }

  const std::string& path() const { return path_; }
  /// Everything that tells this plugin's machine code from another's: API version and the plugin's attributes.
  std::string version() const;

 private:
  Plugin(std::string path, const PJRT_Api* api) : path_(std::move(path)), api_(api) {}
  bool has(const std::byte* slot) const {
    return slot + sizeof(void*) <= reinterpret_cast<const std::byte*>(api_) + api_->struct_size &&
           *reinterpret_cast<void* const*>(slot) != nullptr;
  }
  Error missing(std::string_view name) const;
  Result<void> check(std::string_view name, PJRT_Error* error) const;
  std::string take_message(PJRT_Error* error) const;
  Result<void> check_version() const;

  std::string path_;
  const PJRT_Api* api_;
};

/// An args struct with its size filled in and the rest zero: `auto args = PJRT_ARGS(Client_Create);`
#define PJRT_ARGS(function)                                 \
  ([] {                                                     \
    PJRT_##function##_Args args_{};                         \
    args_.struct_size = PJRT_##function##_Args_STRUCT_SIZE; \
    return args_;                                           \
  }())
/// Result<void> of one call.
#define PJRT_CALL(plugin, function, args) (plugin).call("PJRT_" #function, &PJRT_Api::PJRT_##function, args)

/// An object of the plugin's, destroyed with its holder.
template <class T, class Args, PJRT_Error* (*PJRT_Api::*kDestroy)(Args*), T* Args::*kMember, size_t kSize>
struct Destroyer {
  std::shared_ptr<const Plugin> plugin;
  void operator()(T* object) const {
    Args args{};
    args.struct_size = kSize;
    args.*kMember = object;
    plugin->destroy(kDestroy, args);
  }
};
#define PJRT_OWNED(T, member)                                                                           \
  std::unique_ptr<PJRT_##T, Destroyer<PJRT_##T, PJRT_##T##_Destroy_Args, &PJRT_Api::PJRT_##T##_Destroy, \
                                      &PJRT_##T##_Destroy_Args::member, PJRT_##T##_Destroy_Args_STRUCT_SIZE>>
using ClientHandle = PJRT_OWNED(Client, client);
using BufferHandle = PJRT_OWNED(Buffer, buffer);
using EventHandle = PJRT_OWNED(Event, event);
using ExecutableHandle = PJRT_OWNED(Executable, executable);
using LoadedExecutableHandle = PJRT_OWNED(LoadedExecutable, executable);
using TopologyHandle = PJRT_OWNED(TopologyDescription, topology);
#undef PJRT_OWNED

/// Waits for it.
Result<void> await(const Plugin& plugin, EventHandle event);

/// StableHLO text as the compiler takes it; points into `text`.
PJRT_Program program_of(const std::string& text);

/// Compile options: one program on `replicas` devices, 0 to replicas - 1, with these flags of the compiler switched
/// off. A serialized xla.CompileOptionsProto.
std::string compile_options(int replicas, const std::vector<std::string>& off = {});

/// The same for `graph`, without the flags of XLA's TPU compiler that it does better without (docs/pjrt.md has the
/// figures). Excess precision keeps values of 16 bits in 32 wherever that saves a conversion, twice the bytes. Space to
/// batch cuts images into rows with borders, which are computed twice; an image alone needs it, or half of its memory
/// would be padding.
std::string compile_options(int replicas, const ir::Graph& graph, bool is_tpu);

}  // namespace sfumato::pjrt
