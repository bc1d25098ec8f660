/* Included before a .def of flatbuffer tables: makes the rows that describe
   them. No include guard: it replaces flat_declare.h's macros. */
#undef PPH_TABLE
#undef PPH_EMPTY_TABLE
#undef PPH_MEMBERS
#undef PPH_MEMBER
#undef PPH_SCALAR_U8
#undef PPH_SCALAR_I8
#undef PPH_SCALAR_I16
#undef PPH_SCALAR_I32
#undef PPH_SCALAR_U32
#undef PPH_SCALAR_I64
#undef PPH_SCALAR_U64
#undef PPH_SCALAR_F32
#undef PPH_SCALAR_F64
#undef PPH_TEXT
#undef PPH_VECTOR_U8
#undef PPH_VECTOR_U16
#undef PPH_VECTOR_I32
#undef PPH_VECTOR_U32
#undef PPH_VECTOR_I64
#undef PPH_VECTOR_U64
#undef PPH_VECTOR_F32
#undef PPH_VECTOR_F64
#undef PPH_ONE_TABLE
#undef PPH_TABLES
#undef PPH_UNION

/* The rows live in a function so that `self` can name the struct. */
#define PPH_TABLE(type, label, list)                                           \
  const pph_flat_table *type##_schema(void) {                                  \
    typedef type self;                                                         \
    static const pph_flat_field rows[] = {list};                               \
    enum { ROWS = sizeof rows / sizeof *rows };                                \
    static const pph_flat_table table = {label, sizeof(self), rows, ROWS};     \
    return &table;                                                             \
  }
#define PPH_EMPTY_TABLE(type, label)                                           \
  const pph_flat_table *type##_schema(void) {                                  \
    static const pph_flat_table table = {label, sizeof(type), NULL, 0};        \
    return &table;                                                             \
  }
#define PPH_MEMBERS(set, label, list)                                          \
  const pph_flat_members *set##_members(void) {                                \
    static const pph_flat_schema tables[] = {NULL, list};                      \
    static const pph_flat_members members = {                                  \
        label, tables, sizeof tables / sizeof *tables};                        \
    return &members;                                                           \
  }
#define PPH_MEMBER(type) type##_schema,

#define PPH_FIELD(slot, name, flags, kind, table, members)                     \
  {#name, slot, flags, kind, offsetof(self, name), table, members},
#define PPH_PLAIN(slot, name, flags, kind)                                     \
  PPH_FIELD(slot, name, flags, kind, NULL, NULL)
#define PPH_SCALAR_U8(slot, name, flags)                                       \
  PPH_PLAIN(slot, name, flags, PPH_FLAT_U8)
#define PPH_SCALAR_I8(slot, name, flags)                                       \
  PPH_PLAIN(slot, name, flags, PPH_FLAT_I8)
#define PPH_SCALAR_I16(slot, name, flags)                                      \
  PPH_PLAIN(slot, name, flags, PPH_FLAT_I16)
#define PPH_SCALAR_I32(slot, name, flags)                                      \
  PPH_PLAIN(slot, name, flags, PPH_FLAT_I32)
#define PPH_SCALAR_U32(slot, name, flags)                                      \
  PPH_PLAIN(slot, name, flags, PPH_FLAT_U32)
#define PPH_SCALAR_I64(slot, name, flags)                                      \
  PPH_PLAIN(slot, name, flags, PPH_FLAT_I64)
#define PPH_SCALAR_U64(slot, name, flags)                                      \
  PPH_PLAIN(slot, name, flags, PPH_FLAT_U64)
#define PPH_SCALAR_F32(slot, name, flags)                                      \
  PPH_PLAIN(slot, name, flags, PPH_FLAT_F32)
#define PPH_SCALAR_F64(slot, name, flags)                                      \
  PPH_PLAIN(slot, name, flags, PPH_FLAT_F64)
#define PPH_TEXT(slot, name, flags) PPH_PLAIN(slot, name, flags, PPH_FLAT_TEXT)
#define PPH_SPAN(slot, name, flags, kind)                                      \
  PPH_PLAIN(slot, name, (flags) | PPH_FLAT_VECTOR, kind)
#define PPH_VECTOR_U8(slot, name, flags)                                       \
  PPH_SPAN(slot, name, flags, PPH_FLAT_U8)
#define PPH_VECTOR_U16(slot, name, flags)                                      \
  PPH_SPAN(slot, name, flags, PPH_FLAT_U16)
#define PPH_VECTOR_I32(slot, name, flags)                                      \
  PPH_SPAN(slot, name, flags, PPH_FLAT_I32)
#define PPH_VECTOR_U32(slot, name, flags)                                      \
  PPH_SPAN(slot, name, flags, PPH_FLAT_U32)
#define PPH_VECTOR_I64(slot, name, flags)                                      \
  PPH_SPAN(slot, name, flags, PPH_FLAT_I64)
#define PPH_VECTOR_U64(slot, name, flags)                                      \
  PPH_SPAN(slot, name, flags, PPH_FLAT_U64)
#define PPH_VECTOR_F32(slot, name, flags)                                      \
  PPH_SPAN(slot, name, flags, PPH_FLAT_F32)
#define PPH_VECTOR_F64(slot, name, flags)                                      \
  PPH_SPAN(slot, name, flags, PPH_FLAT_F64)
#define PPH_ONE_TABLE(slot, name, type, flags)                                 \
  PPH_FIELD(slot, name, flags, PPH_FLAT_TABLE, type##_schema, NULL)
#define PPH_TABLES(slot, name, type, flags)                                    \
  PPH_FIELD(slot, name, (flags) | PPH_FLAT_VECTOR, PPH_FLAT_TABLE,             \
            type##_schema, NULL)
#define PPH_UNION(slot, name, set, flags)                                      \
  PPH_FIELD(slot, name, flags, PPH_FLAT_UNION, NULL, set##_members)
