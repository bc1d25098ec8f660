#include "geometry/problem.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"

enum { MAX_NUMBERS = 6 };

/* The keys of a descriptor in their order. Where a key has several numbers,
   `separator` stands between them; their targets are listed in order. A text
   without a depth leaves that axis's numbers out. */
typedef struct field_row {
  const char *key;
  char separator;
  bool optional;
  int count;
  size_t targets[MAX_NUMBERS]; /* offsets in pph_problem */
} field_row;

#define MEMBER(member) {offsetof(pph_problem, member)}
#define AXIS(index, member) offsetof(pph_problem, axes[index].member)
#define AXES(member)                                                           \
  {AXIS(PPH_DEPTH, member), AXIS(PPH_HEIGHT, member), AXIS(PPH_WIDTH, member)}
static const field_row fields[] = {
    {"n", 0, false, 1, MEMBER(batch)},
    {"g", 0, false, 1, MEMBER(group)},
    {"ci", 0, false, 1, MEMBER(in_channels)},
    {"co", 0, false, 1, MEMBER(out_channels)},
    {"i", 'x', false, 3, AXES(input)},
    {"k", 'x', false, 3, AXES(kernel)},
    {"s", 'x', false, 3, AXES(stride)},
    {"d", 'x', false, 3, AXES(dilation)},
    {"p",
     ',',
     false,
     6,
     {AXIS(PPH_DEPTH, pad_begin), AXIS(PPH_HEIGHT, pad_begin),
      AXIS(PPH_WIDTH, pad_begin), AXIS(PPH_DEPTH, pad_end),
      AXIS(PPH_HEIGHT, pad_end), AXIS(PPH_WIDTH, pad_end)}},
    {"op", 'x', true, 3, AXES(output_padding)},
};
#undef AXES
#undef AXIS
#undef MEMBER
enum { FIELD_COUNT = sizeof fields / sizeof fields[0] };

/* Whether number `index` of a field belongs to the depth axis. */
static bool is_depth(const field_row *field, int index) {
  return field->count > 1 && index % PPH_PROBLEM_AXES == PPH_DEPTH;
}

/* Where the reader is in the text. */
typedef struct text_reader {
  const char *text, *at;
  const char *key; /* of the field that is read, "" before */
  pph_error *error;
} text_reader;

static pph_status refuse(const text_reader *reader, const char *expected) {
  char where[48];
  snprintf(where, sizeof where, "problem, column %zu",
           (size_t)(reader->at - reader->text) + 1);
  if (!*reader->at && reader->key[0])
    return pph_fail(reader->error, PPH_INVALID_ARGUMENT, where,
                    "the text ends in \"%s\", %s is missing", reader->key,
                    expected);
  return pph_fail(reader->error, PPH_INVALID_ARGUMENT, where,
                  "found \"%.16s\", expected %s", reader->at, expected);
}

/* The text ends before the field `key`. */
static pph_status refuse_end(const text_reader *reader, const char *key) {
  char where[48];
  snprintf(where, sizeof where, "problem, column %zu",
           (size_t)(reader->at - reader->text) + 1);
  return pph_fail(reader->error, PPH_INVALID_ARGUMENT, where,
                  "the text ends, \"%s\" is missing: it must be \"[conv ]f32 "
                  "nN gN ciN coN iHxW kHxW sHxW dHxW pT,L,B,R[ opHxW]\"",
                  key);
}

/* Takes `word` if it is next and ends there. */
static bool take_word(text_reader *reader, const char *word) {
  size_t length = strlen(word);
  if (strncmp(reader->at, word, length) != 0 || reader->at[length] != ' ')
    return false;
  reader->at += length + 1;
  return true;
}

static pph_status read_number(text_reader *reader, int64_t *number) {
  if (*reader->at < '0' || *reader->at > '9')
    return refuse(reader, "a number of digits 0 to 9");
  int64_t value = 0;
  const char *at = reader->at;
  for (; *at >= '0' && *at <= '9'; at++)
    if (!pph_checked_mul_i64(value, 10, &value) ||
        !pph_checked_add_i64(value, *at - '0', &value))
      return refuse(reader, "a number below 2^63");
  reader->at = at;
  *number = value;
  return PPH_OK;
}

static pph_status read_field(text_reader *reader, const field_row *field,
                             bool deep, pph_problem *problem) {
  size_t length = strlen(field->key);
  if (strncmp(reader->at, field->key, length) != 0) {
    char expected[32];
    snprintf(expected, sizeof expected, "key \"%s\"", field->key);
    return refuse(reader, expected);
  }
  reader->at += length;
  bool first = true;
  for (int i = 0; i < field->count; i++) {
    int64_t number = 0;
    if (!deep && is_depth(field, i))
      continue;
    if (!first) {
      char expected[16];
      snprintf(expected, sizeof expected, "\"%c\"", field->separator);
      if (*reader->at != field->separator)
        return refuse(reader, expected);
      reader->at++;
    }
    first = false;
    PPH_TRY(read_number(reader, &number));
    memcpy((char *)problem + field->targets[i], &number, sizeof number);
  }
  return PPH_OK;
}

/* Two lengths after " i" or three? */
static bool has_depth(const char *text) {
  const char *lengths = strstr(text, " i");
  int separators = 0;
  for (const char *at = lengths ? lengths + 2 : ""; *at && *at != ' '; at++)
    separators += *at == 'x';
  return separators > 1;
}

static pph_status read_fields(text_reader *reader, pph_problem *problem) {
  bool deep = has_depth(reader->at);
  if (!deep)
    problem->axes[PPH_DEPTH] =
        (pph_axis){.input = 1, .kernel = 1, .stride = 1, .dilation = 1};
  for (size_t i = 0; i < FIELD_COUNT; i++) {
    if (i > 0) {
      if (*reader->at == 0 && fields[i].optional)
        continue;
      if (!*reader->at)
        return refuse_end(reader, fields[i].key);
      if (*reader->at != ' ')
        return refuse(reader, "a space");
      reader->at++;
    }
    reader->key = fields[i].key;
    PPH_TRY(read_field(reader, &fields[i], deep, problem));
  }
  return *reader->at == 0 ? PPH_OK : refuse(reader, "the end");
}

static pph_status check_count(const char *name, int64_t value,
                              pph_error *error) {
  return pph_check_range("problem", name, value, 1, INT32_MAX, error);
}

static pph_status check_channels(const pph_problem *problem, pph_error *error) {
  PPH_TRY(check_count("n", problem->batch, error));
  PPH_TRY(check_count("g", problem->group, error));
  PPH_TRY(check_count("ci", problem->in_channels, error));
  PPH_TRY(check_count("co", problem->out_channels, error));
  PPH_TRY(pph_check_multiple("problem", "ci", problem->in_channels, "g",
                             problem->group, error));
  return pph_check_multiple("problem", "co", problem->out_channels, "g",
                            problem->group, error);
}

static pph_status resolve_axis(pph_problem *problem, int index,
                               pph_error *error) {
  static const char *const places[] = {
      "problem, depth", "problem, height", "problem, width"};
  return pph_axis_resolve_argument(&problem->axes[index], problem->transposed,
                                   places[index], error);
}

static pph_status parse(text_reader *reader, pph_problem *problem) {
  problem->transposed = !take_word(reader, "conv");
  if (!take_word(reader, "f32"))
    return refuse(reader,
                  problem->transposed ? "\"f32\" or \"conv f32\"" : "\"f32\"");
  problem->type = PPH_F32;
  PPH_TRY(read_fields(reader, problem));
  PPH_TRY(check_channels(problem, reader->error));
  for (int i = 0; i < PPH_PROBLEM_AXES; i++) {
    if (!problem->transposed && problem->axes[i].output_padding != 0)
      return pph_fail(reader->error, PPH_INVALID_ARGUMENT, "problem",
                      "op is %lld, must be 0 for conv",
                      (long long)problem->axes[i].output_padding);
    PPH_TRY(resolve_axis(problem, i, reader->error));
  }
  return PPH_OK;
}

pph_status pph_problem_parse(const char *text, pph_problem *problem,
                             pph_error *error) {
  text_reader reader = {text, text, "", error};
  memset(problem, 0, sizeof *problem);
  pph_status status = parse(&reader, problem);
  if (status != PPH_OK)
    memset(problem, 0, sizeof *problem);
  return status;
}

/* An axis that came from output_shape may end in a negative pad. The same
   output comes from that much more output padding, which a text can hold. */
static void fold_negative_pads(pph_problem *problem) {
  for (int i = 0; i < PPH_PROBLEM_AXES; i++) {
    pph_axis *axis = &problem->axes[i];
    if (problem->transposed && axis->pad_end < 0) {
      axis->output_padding -= axis->pad_end;
      axis->pad_end = 0;
    }
  }
}

static size_t append(char *text, size_t size, size_t at, const char *piece) {
  if (at >= size)
    return at;
  int n = snprintf(text + at, size - at, "%s", piece);
  return at + (size_t)n;
}

/* An axis that changes nothing, as that of a problem without a depth. */
static bool is_flat(const pph_axis *axis) {
  return axis->input == 1 && axis->kernel == 1 && axis->stride == 1 &&
         axis->dilation == 1 && axis->pad_begin == 0 && axis->pad_end == 0 &&
         axis->output_padding == 0;
}

int pph_problem_count_axes(const pph_problem *problem) {
  return is_flat(&problem->axes[PPH_DEPTH]) ? 2 : 3;
}

static size_t append_field(const pph_problem *problem, const field_row *field,
                           char *text, size_t size, size_t at) {
  bool deep = pph_problem_count_axes(problem) == 3, first = true;
  at = append(text, size, at, " ");
  at = append(text, size, at, field->key);
  for (int i = 0; i < field->count; i++) {
    if (!deep && is_depth(field, i))
      continue;
    int64_t number;
    char piece[32];
    const char separator[2] = {first ? 0 : field->separator, 0};
    first = false;
    memcpy(&number, (const char *)problem + field->targets[i], sizeof number);
    snprintf(piece, sizeof piece, "%s%lld", separator, (long long)number);
    at = append(text, size, at, piece);
  }
  return at;
}

const char *pph_problem_print(const pph_problem *problem, char *text,
                              size_t size) {
  pph_problem folded = *problem;
  fold_negative_pads(&folded);
  if (size > 0)
    text[0] = 0;
  size_t at = append(text, size, 0, problem->transposed ? "" : "conv ");
  at = append(text, size, at, pph_dtype_name(problem->type));
  for (size_t i = 0; i < FIELD_COUNT; i++)
    if (problem->transposed || !fields[i].optional)
      at = append_field(&folded, &fields[i], text, size, at);
  return text;
}

double pph_problem_flops(const pph_problem *problem) {
  double flops = 2.0 * (double)problem->batch;
  for (int i = 0; i < PPH_PROBLEM_AXES; i++) {
    const pph_axis *axis = &problem->axes[i];
    flops *= (double)(problem->transposed ? axis->input : axis->output);
    flops *= (double)axis->kernel;
  }
  return flops * (double)problem->in_channels * (double)problem->out_channels /
         (double)problem->group;
}
