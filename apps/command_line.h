#pragma once
// How the words of a command line become options.
#include <CLI/CLI.hpp>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/options.h"

namespace sfumato {

using Words = std::vector<std::string>;

/// One subcommand: takes options of the list in pipeline/options.h, and own ones (added to `app`).
class Command {
 public:
  Command(const std::string& name, const std::string& description) : app(description, name) {}
  Command(const Command&) = delete;

  /// Takes these options, by canonical name; all of them when none is named.
  void take(std::initializer_list<std::string_view> names = {});
  void take_all_but(std::initializer_list<std::string_view> names);
  /// False: there is nothing more to do (--help, --version). An unknown option is a usage error that names the closest
  /// known one; so is a value that is no good.
  Result<bool> parse(Words words);

  CLI::App app;
  RunOptions run;

 private:
  void add(const Option& option);
  std::optional<Error> fault_;  // of the first bad value
};

}  // namespace sfumato
