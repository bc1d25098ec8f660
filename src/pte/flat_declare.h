/* Included before a .def of flatbuffer tables: makes C structs, and declares
   the function that gives each one's rows. No include guard: flat_define.h
   takes the macros back. */
#define PPH_TABLE(type, label, fields)                                         \
  typedef struct type {                                                        \
    fields                                                                     \
  } type;                                                                      \
  const pph_flat_table *type##_schema(void);
#define PPH_EMPTY_TABLE(type, label)                                           \
  typedef struct type {                                                        \
    char nothing;                                                              \
  } type;                                                                      \
  const pph_flat_table *type##_schema(void);
#define PPH_MEMBERS(set, label, members)                                       \
  const pph_flat_members *set##_members(void);
#define PPH_MEMBER(type)

#define PPH_SCALAR_U8(slot, name, flags) uint8_t name;
#define PPH_SCALAR_I8(slot, name, flags) int8_t name;
#define PPH_SCALAR_I16(slot, name, flags) int16_t name;
#define PPH_SCALAR_I32(slot, name, flags) int32_t name;
#define PPH_SCALAR_U32(slot, name, flags) uint32_t name;
#define PPH_SCALAR_I64(slot, name, flags) int64_t name;
#define PPH_SCALAR_U64(slot, name, flags) uint64_t name;
#define PPH_SCALAR_F32(slot, name, flags) float name;
#define PPH_SCALAR_F64(slot, name, flags) double name;
#define PPH_TEXT(slot, name, flags) pph_flat_text name;
#define PPH_SPAN_OF(type, name)                                                \
  struct {                                                                     \
    type *at;                                                                  \
    uint32_t count;                                                            \
  } name;
#define PPH_VECTOR_U8(slot, name, flags) PPH_SPAN_OF(const uint8_t, name)
#define PPH_VECTOR_U16(slot, name, flags) PPH_SPAN_OF(const uint16_t, name)
#define PPH_VECTOR_I32(slot, name, flags) PPH_SPAN_OF(const int32_t, name)
#define PPH_VECTOR_U32(slot, name, flags) PPH_SPAN_OF(const uint32_t, name)
#define PPH_VECTOR_I64(slot, name, flags) PPH_SPAN_OF(const int64_t, name)
#define PPH_VECTOR_U64(slot, name, flags) PPH_SPAN_OF(const uint64_t, name)
#define PPH_VECTOR_F32(slot, name, flags) PPH_SPAN_OF(const float, name)
#define PPH_VECTOR_F64(slot, name, flags) PPH_SPAN_OF(const double, name)
#define PPH_ONE_TABLE(slot, name, type, flags) type *name;
#define PPH_TABLES(slot, name, type, flags) PPH_SPAN_OF(type, name)
#define PPH_UNION(slot, name, set, flags) pph_flat_choice name;
