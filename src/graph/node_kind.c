/* The tables behind node kinds and attribute keys. */
#include <string.h>

#include "graph/graph.h"

static const pph_node_kind_info kinds[PPH_NODE_KIND_COUNT] = {
#define PPH_NODE_KIND(name, text, min_in, max_in, min_out, max_out, class)     \
  [PPH_NODE_##name] = {text, min_in, max_in, min_out, max_out,                 \
                       PPH_CLASS_##class},
#include "graph/node_kind.def"
#undef PPH_NODE_KIND
};

static const struct {
  const char *name;
  pph_attribute_type type;
} keys[PPH_ATTRIBUTE_KEY_COUNT] = {
#define PPH_ATTRIBUTE(key, text, type)                                         \
  [PPH_ATTR_##key] = {text, PPH_ATTRIBUTE_##type},
#include "graph/attribute.def"
#undef PPH_ATTRIBUTE
};

const pph_node_kind_info *pph_node_kind_find_info(pph_node_kind kind) {
  return &kinds[kind];
}

pph_node_kind pph_node_kind_find(const char *name) {
  for (int i = 0; i < PPH_NODE_KIND_COUNT; i++)
    if (strcmp(kinds[i].name, name) == 0)
      return (pph_node_kind)i;
  return PPH_NODE_KIND_COUNT;
}

pph_attribute_key pph_attribute_key_find(const char *name) {
  for (int i = 0; i < PPH_ATTRIBUTE_KEY_COUNT; i++)
    if (strcmp(keys[i].name, name) == 0)
      return (pph_attribute_key)i;
  return PPH_ATTRIBUTE_KEY_COUNT;
}

const char *pph_attribute_key_name(pph_attribute_key key) {
  return keys[key].name;
}

pph_attribute_type pph_attribute_key_type(pph_attribute_key key) {
  return keys[key].type;
}
