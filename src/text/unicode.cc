#include "text/unicode.h"

#include <utf8proc.h>

namespace sfumato::text {

bool is_letter(int32_t code) {
  const utf8proc_category_t category = utf8proc_category(code);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_number(int32_t code) {
  const utf8proc_category_t category = utf8proc_category(code);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool is_space(int32_t code) {
  if ((code >= 9 && code <= 13) || (code >= 0x1c && code <= 0x1f) || code == 0x85) return true;
  const utf8proc_category_t category = utf8proc_category(code);
  return category >= UTF8PROC_CATEGORY_ZS && category <= UTF8PROC_CATEGORY_ZP;
}

}  // namespace sfumato::text
