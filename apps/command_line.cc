#include "apps/command_line.h"

#include <algorithm>
#include <cctype>
#include <iostream>
#include <numeric>

#include "base/strings.h"

namespace sfumato {
namespace {

/// Levenshtein's distance.
size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::string closest(const CLI::App& app, const std::string& flag) {
  std::string best;
  size_t least = 4;  // farther is no help
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames())
      if (const size_t d = distance("--" + name, flag); d < least) {
        least = d;
        best = "--" + name;
      }
  return best;
}

/// Two things that CLI11 gets wrong: it takes "-1" and "-0.5" for flags, and the word after "--option=" for its value.
Words untangle(const CLI::App& app, const Words& words) {
  Words out;
  for (const std::string& word : words) {
    if (word.starts_with("--") && word.ends_with("=") && app.get_option_no_throw(word.substr(0, word.size() - 1))) {
      out.insert(out.end(), {word.substr(0, word.size() - 1), ""});
      continue;
    }
    const bool is_negative =
        word.size() > 1 && word[0] == '-' && (std::isdigit(static_cast<unsigned char>(word[1])) || word[1] == '.');
    if (is_negative && !out.empty() && out.back().starts_with("-") && app.get_option_no_throw(out.back()))
      out.back() += (out.back().starts_with("--") ? "=" : "") + word;
    else
      out.push_back(word);
  }
  return out;
}

bool is_in(const Option& option, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), option.names[0]) != names.end();
}

Error unknown_word(const CLI::App& app, const std::string& word) {
  if (!word.starts_with("-"))
    return usage_error(str("[cli] got \"", word, "\" too much; put a text of several words in quotes"));
  const std::string known = closest(app, word.substr(0, word.find('=')));
  return usage_error(
      str("[cli] unknown option ", word, known.empty() ? "; see --help" : "; did you mean " + known + "?"));
}

}  // namespace

void Command::take(std::initializer_list<std::string_view> names) {
  for (const Option& option : all_options())
    if (names.size() == 0 || is_in(option, names)) add(option);
}

void Command::take_all_but(std::initializer_list<std::string_view> names) {
  for (const Option& option : all_options())
    if (!is_in(option, names)) add(option);
}

void Command::add(const Option& option) {
  std::string spelled = join(option.names, ",");
  if (option.names[0] == "--prompt") spelled += ",prompt";  // by position too
  const auto set = [this, &option](const std::string& value) {
    const Result<void> done = option.set(run, value);
    if (!done && !fault_) fault_ = done.error();
  };
  CLI::Option* added =
      option.value.empty()
          ? app.add_flag_callback(
                spelled, [set] { set("true"); }, option.help)
          : app.add_option_function<Words>(
                   spelled, [set](const Words& values) { std::for_each(values.begin(), values.end(), set); },
                   option.help)
                ->type_name(option.value)
                ->expected(1)
                ->allow_extra_args(false);
  using Policy = CLI::MultiOptionPolicy;
  added->multi_option_policy(option.repeats ? Policy::TakeAll : Policy::TakeLast);
  added->group(std::string(group_name(option.group)));
}

Result<bool> Command::parse(Words words) {
  run.request.prompts.clear();
  words = untangle(app, words);
  std::reverse(words.begin(), words.end());  // as CLI11 wants them
  try {
    app.parse(words);
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return false;
  } catch (const CLI::CallForVersion& version) {
    std::cout << version.what() << "\n";
    return false;
  } catch (const CLI::ExtrasError&) {
    return unknown_word(app, app.remaining().front());
  } catch (const CLI::ParseError& error) {
    return usage_error(str("[cli] ", error.what(), "; see --help"));
  }
  if (fault_) return *fault_;
  return true;
}

}  // namespace sfumato
