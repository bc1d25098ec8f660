/* Einsum of two operands as a matrix product. Its letters fall into four
   groups: batch (in both operands and the result), rows (first operand and
   result), columns (second and result), sums (both operands only). Then
     [batch,rows,sums] x [batch,1...,sums,columns] = [batch,rows,columns]
   with transpositions around it. */
#include <ctype.h>
#include <string.h>

#include "base/fail.h"
#include "onnx/import.h"

typedef char letters[PPH_MAX_RANK + 1];

typedef struct einsum {
  letters a, b, out;
  letters batch, rows, sums, columns;
  pph_id left, right;
} einsum;

static bool add_letter(char *list, char letter) {
  size_t length = strlen(list);
  if (length == PPH_MAX_RANK || strchr(list, letter))
    return false;
  list[length] = letter;
  list[length + 1] = 0;
  return true;
}

/* "ab,bc->ac"; dots, repeated letters and a result that is not told are not
   taken. */
static bool parse(const char *text, einsum *sum) {
  char *const lists[] = {sum->a, sum->b, sum->out};
  size_t part = 0;
  for (; *text; text++) {
    if (*text == ' ')
      continue;
    bool comma = *text == ',' && part == 0;
    bool arrow = text[0] == '-' && text[1] == '>' && part == 1;
    if (comma || arrow) {
      part++;
      text += arrow;
    } else if (!isalpha((unsigned char)*text) ||
               !add_letter(lists[part], *text)) {
      return false;
    }
  }
  return part == 2;
}

/* False when a letter is in one operand only. */
static bool classify(einsum *sum) {
  for (const char *at = sum->a; *at; at++) {
    bool in_b = strchr(sum->b, *at), in_out = strchr(sum->out, *at);
    if (!in_b && !in_out)
      return false;
    add_letter(in_b ? (in_out ? sum->batch : sum->sums) : sum->rows, *at);
  }
  for (const char *at = sum->b; *at; at++) {
    bool in_out = strchr(sum->out, *at);
    if (strchr(sum->a, *at))
      continue;
    if (!in_out)
      return false;
    add_letter(sum->columns, *at);
  }
  for (const char *at = sum->out; *at; at++)
    if (!strchr(sum->a, *at) && !strchr(sum->b, *at))
      return false;
  return true;
}

static void swap_operands(einsum *sum) {
  einsum old = *sum;
  memcpy(sum->a, old.b, sizeof old.a);
  memcpy(sum->b, old.a, sizeof old.b);
  memcpy(sum->rows, old.columns, sizeof old.rows);
  memcpy(sum->columns, old.rows, sizeof old.columns);
  sum->left = old.right;
  sum->right = old.left;
}

/* Where `from`'s dimensions go to be in the order of `to`. */
static uint32_t find_perm(const char *from, const char *to, int64_t *perm) {
  uint32_t count = 0;
  for (; to[count]; count++)
    perm[count] = strchr(from, to[count]) - from;
  return count;
}

static pph_status set_perm(pph_import_op *op, pph_node *node, const char *from,
                           const char *to) {
  int64_t perm[PPH_MAX_RANK];
  uint32_t count = find_perm(from, to, perm);
  return pph_node_set_ints(op->import->graph, node, PPH_ATTR_PERM, perm, count,
                           op->import->error);
}

static pph_status arrange(pph_import_op *op, const char *from,
                          const char *first, const char *second,
                          const char *third, pph_id *id) {
  char to[3 * PPH_MAX_RANK + 1];
  strcpy(to, first);
  strcat(to, second);
  strcat(to, third);
  if (strcmp(from, to) == 0)
    return PPH_OK;
  pph_node *node;
  PPH_TRY(pph_import_insert(op, PPH_NODE_TRANSPOSE, id, 1, &node, id));
  return set_perm(op, node, from, to);
}

/* `count` dimensions of 1 from `first` on. */
static pph_status widen(pph_import_op *op, size_t first, size_t count,
                        pph_id *id) {
  int64_t axes[PPH_MAX_RANK];
  pph_id ids[2] = {*id};
  if (count == 0)
    return PPH_OK;
  for (size_t i = 0; i < count; i++)
    axes[i] = (int64_t)(first + i);
  PPH_TRY(pph_graph_add_ints(op->import->graph, NULL, axes, count, &ids[1],
                             op->import->error));
  return pph_import_insert(op, PPH_NODE_UNSQUEEZE, ids, 2, NULL, id);
}

static pph_status prepare(pph_import_op *op, einsum *sum) {
  size_t batch = strlen(sum->batch), rows = strlen(sum->rows);
  PPH_TRY(arrange(op, sum->a, sum->batch, sum->rows, sum->sums, &sum->left));
  PPH_TRY(
      arrange(op, sum->b, sum->batch, sum->sums, sum->columns, &sum->right));
  PPH_TRY(widen(op, batch, rows == 0, &sum->left));
  size_t row_end = batch + (rows ? rows : 1);
  PPH_TRY(widen(op, row_end, !sum->sums[0], &sum->left));
  PPH_TRY(widen(op, batch, !sum->sums[0], &sum->right));
  PPH_TRY(widen(op, batch + 1, !sum->columns[0], &sum->right));
  return widen(op, batch, rows > 1 ? rows - 1 : 0, &sum->right);
}

/* The last step writes the node's own output. */
static pph_status step(pph_import_op *op, pph_node_kind kind, pph_id *ids,
                       uint32_t count, bool last, pph_node **node) {
  if (!last)
    return pph_import_insert(op, kind, ids, count, node, &ids[0]);
  op->input_count = count;
  memcpy(op->inputs, ids, count * sizeof *ids);
  return pph_import_emit_bare(op, kind, node);
}

static pph_status multiply(pph_import_op *op, const einsum *sum) {
  char product[3 * PPH_MAX_RANK + 1];
  int64_t ones[2];
  size_t one_count = 0, batch = strlen(sum->batch);
  size_t rows = strlen(sum->rows);
  strcpy(product, sum->batch);
  strcat(product, sum->rows);
  strcat(product, sum->columns);
  if (!rows)
    ones[one_count++] = (int64_t)batch;
  if (!sum->columns[0])
    ones[one_count++] = (int64_t)(batch + (rows ? rows : 1));
  bool turned = strcmp(product, sum->out) != 0;
  pph_id ids[2] = {sum->left, sum->right};
  pph_node *node;
  PPH_TRY(step(op, PPH_NODE_MATMUL, ids, 2, !one_count && !turned, &node));
  if (one_count) {
    PPH_TRY(pph_graph_add_ints(op->import->graph, NULL, ones, one_count,
                               &ids[1], op->import->error));
    PPH_TRY(step(op, PPH_NODE_SQUEEZE, ids, 2, !turned, &node));
  }
  if (!turned)
    return PPH_OK;
  PPH_TRY(step(op, PPH_NODE_TRANSPOSE, ids, 1, true, &node));
  return set_perm(op, node, product, sum->out);
}

/* Ranks in between that no tensor may have. */
static bool fits(const einsum *sum) {
  size_t rows = strlen(sum->rows);
  size_t whole = strlen(sum->batch) + (rows ? rows : 1);
  return strlen(sum->sums) <= 1 && strlen(sum->columns) <= 1 &&
         whole + 1 <= PPH_MAX_RANK;
}

pph_status pph_convert_einsum(pph_import_op *op) {
  const char *equation = "";
  einsum sum = {.left = pph_import_input(op, 0),
                .right = pph_import_input(op, 1)};
  PPH_TRY(pph_import_get_text(op, "equation", &equation, NULL));
  bool known = op->input_count == 2 && sum.left != PPH_NO_VALUE &&
               parse(equation, &sum) && classify(&sum);
  if (known && strlen(sum.columns) > 1)
    swap_operands(&sum);
  if (!known || !fits(&sum))
    return pph_import_fail(op, PPH_UNSUPPORTED,
                           "equation \"%.80s\" of %u operands is no matrix "
                           "product and is not supported",
                           equation, op->input_count);
  PPH_TRY(prepare(op, &sum));
  return multiply(op, &sum);
}
