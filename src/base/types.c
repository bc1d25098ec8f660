/* Small public facts: element types, versions, default limits. */
#include "polyphase/memory.h"
#include "polyphase/tensor.h"
#include "polyphase/version.h"

size_t pph_dtype_size(pph_dtype type) {
  switch (type) {
  case PPH_U8:
  case PPH_I8:
  case PPH_BOOL:
    return 1;
  case PPH_U16:
  case PPH_I16:
  case PPH_F16:
    return 2;
  case PPH_F32:
  case PPH_I32:
  case PPH_U32:
    return 4;
  case PPH_I64:
  case PPH_F64:
  case PPH_U64:
    return 8;
  case PPH_DTYPE_NONE:
    break;
  }
  return 0;
}

const char *pph_dtype_name(pph_dtype type) {
  static const char *const names[] = {
      "none", "f32", "u8",   "i8",  "u16", "i16", "i32",
      "i64",  "none", "bool", "f16", "f64", "u32", "u64"};
  unsigned index = (unsigned)type;
  return index < sizeof names / sizeof *names ? names[index] : "none";
}

void pph_limits_init(pph_limits *limits) {
  const uint64_t gib = (uint64_t)1 << 30;
  *limits = (pph_limits){.struct_size = sizeof *limits,
                         .file_bytes = 4 * gib,
                         .tensor_bytes = 4 * gib,
                         .heap_bytes = 16 * gib,
                         .nodes = 1000000,
                         .nesting = 64};
}

#define TEXT(x) #x
#define JOIN(a, b, c) TEXT(a) "." TEXT(b) "." TEXT(c)

const char *pph_version(void) {
  return JOIN(PPH_VERSION_MAJOR, PPH_VERSION_MINOR, PPH_VERSION_PATCH);
}
