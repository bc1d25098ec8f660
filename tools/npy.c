#include "npy.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/fail.h"
#include "output_file.h"

enum { MAX_HEADER = 65535, ALIGNMENT = 64, SLACK = 64 };

static const struct {
  const char *descr;
  pph_dtype type;
} dtypes[] = {{"<f4", PPH_F32}, {"<f8", PPH_F64}, {"<f2", PPH_F16},
              {"|i1", PPH_I8},  {"|u1", PPH_U8},  {"<i2", PPH_I16},
              {"<u2", PPH_U16}, {"<i4", PPH_I32}, {"<u4", PPH_U32},
              {"<i8", PPH_I64}, {"<u8", PPH_U64}, {"|b1", PPH_BOOL},
              {"<i1", PPH_I8},  {"<u1", PPH_U8},  {"<b1", PPH_BOOL}};

/* The header's text, a Python dictionary, and what it said. */
typedef struct header {
  const char *path;
  const char *text; /* ends in 0 */
  const char *at;
  bool has_descr, has_order, has_shape;
  bool fortran;
  pph_dtype type;
  pph_shape shape;
  pph_error *error;
} header;

static pph_status fail_header(const header *head, const char *what) {
  return pph_fail(head->error, PPH_BAD_MODEL, head->path,
                  "header at byte %d: expected %s",
                  (int)(head->at - head->text), what);
}

static bool take(header *head, char c) {
  while (*head->at == ' ')
    head->at++;
  if (*head->at != c)
    return false;
  head->at++;
  return true;
}

/* 'text' or "text" without escapes. */
static bool take_string(header *head, const char **start, size_t *length) {
  char quote = take(head, '\'') ? '\'' : take(head, '"') ? '"' : 0;
  if (!quote)
    return false;
  const char *end = strchr(head->at, quote);
  if (!end)
    return false;
  *start = head->at;
  *length = (size_t)(end - head->at);
  head->at = end + 1;
  return true;
}

static bool take_word(header *head, const char *word) {
  take(head, ' ');
  if (strncmp(head->at, word, strlen(word)) != 0)
    return false;
  head->at += strlen(word);
  return true;
}

static pph_status read_descr(header *head) {
  const char *start;
  size_t length;
  if (!take_string(head, &start, &length))
    return pph_fail(head->error, PPH_UNSUPPORTED, head->path,
                    "the elements are no plain numbers");
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
    if (strlen(dtypes[i].descr) == length &&
        memcmp(dtypes[i].descr, start, length) == 0) {
      head->type = dtypes[i].type;
      return PPH_OK;
    }
  return pph_fail(head->error, PPH_UNSUPPORTED, head->path,
                  "element type '%.*s' is not supported; legal are "
                  "little-endian f2 f4 f8 i1..i8 u1..u8 b1",
                  (int)(length < 20 ? length : 20), start);
}

static pph_status read_order(header *head) {
  head->fortran = take_word(head, "True");
  if (!head->fortran && !take_word(head, "False"))
    return fail_header(head, "True or False");
  return PPH_OK;
}

static pph_status read_dim(header *head) {
  take(head, ' ');
  if (*head->at < '0' || *head->at > '9')
    return fail_header(head, "a dimension");
  if (head->shape.rank == PPH_MAX_RANK)
    return pph_fail(head->error, PPH_UNSUPPORTED, head->path,
                    "the rank is above %d", PPH_MAX_RANK);
  char *end;
  errno = 0;
  long long dim = strtoll(head->at, &end, 10);
  if (errno)
    return fail_header(head, "a dimension below 2^63");
  head->at = end + (*end == 'L'); /* as Python 2 wrote them */
  head->shape.dims[head->shape.rank++] = dim;
  return PPH_OK;
}

/* (), (3,) or (3, 4) with or without a last comma; (3) is no tuple. */
static pph_status read_shape(header *head) {
  if (!take(head, '('))
    return fail_header(head, "'('");
  for (;;) {
    if (take(head, ')'))
      return PPH_OK;
    PPH_TRY(read_dim(head));
    if (take(head, ','))
      continue;
    if (head->shape.rank < 2 || !take(head, ')'))
      return fail_header(head, "','");
    return PPH_OK;
  }
}

static pph_status read_entry(header *head) {
  static const char *const names[] = {"descr", "fortran_order", "shape"};
  pph_status (*const readers[])(header *) = {read_descr, read_order,
                                             read_shape};
  bool *const seen[] = {&head->has_descr, &head->has_order, &head->has_shape};
  const char *start;
  size_t length;
  if (!take_string(head, &start, &length))
    return fail_header(head, "a quoted key");
  for (int i = 0; i < 3; i++) {
    if (strlen(names[i]) != length || memcmp(names[i], start, length) != 0)
      continue;
    if (*seen[i])
      return fail_header(head, "each key once");
    *seen[i] = true;
    return take(head, ':') ? readers[i](head) : fail_header(head, "':'");
  }
  return fail_header(head, "descr, fortran_order or shape");
}

static pph_status read_header(header *head) {
  if (!take(head, '{'))
    return fail_header(head, "'{'");
  while (!take(head, '}')) {
    PPH_TRY(read_entry(head));
    if (take(head, ','))
      continue;
    if (!take(head, '}'))
      return fail_header(head, "',' or '}'");
    break;
  }
  take(head, '\n');
  if (*head->at)
    return fail_header(head, "the end");
  if (!head->has_descr || !head->has_order || !head->has_shape)
    return fail_header(head, "all of descr, fortran_order and shape");
  return PPH_OK;
}

/* Reads magic, version and the header's text, which the caller frees. */
static pph_status read_text(FILE *file, const char *path, char **text,
                            pph_error *error) {
  unsigned char start[12];
  size_t length = 0, bytes = 2;
  if (fread(start, 1, 8, file) != 8 || memcmp(start, "\x93NUMPY", 6) != 0)
    return pph_fail(error, PPH_BAD_MODEL, path, "this is no .npy file");
  if (start[6] < 1 || start[6] > 3 || start[7] != 0)
    return pph_fail(error, PPH_BAD_MODEL, path,
                    "version %d.%d, must be 1.0, 2.0 or 3.0", start[6],
                    start[7]);
  if (start[6] > 1)
    bytes = 4;
  if (fread(start + 8, 1, bytes, file) != bytes)
    return pph_fail(error, PPH_BAD_MODEL, path, "the header is cut off");
  for (size_t i = bytes; i-- > 0;)
    length = length << 8 | start[8 + i];
  if (length > MAX_HEADER)
    return pph_fail(error, PPH_BAD_MODEL, path,
                    "the header has %zu bytes, must be at most %d", length,
                    MAX_HEADER);
  *text = calloc(length + 1, 1);
  if (!*text)
    return pph_fail_memory(error);
  if (fread(*text, 1, length, file) != length ||
      memchr(*text, 0, length) != NULL)
    return pph_fail(error, PPH_BAD_MODEL, path, "the header is cut off");
  return PPH_OK;
}

/* From first index fastest to last index fastest. */
static void reorder(const pph_tensor *from, void *to) {
  const pph_shape *shape = &from->shape;
  size_t size = pph_dtype_size(from->type), strides[PPH_MAX_RANK];
  size_t index[PPH_MAX_RANK] = {0}, count = 1, at = 0;
  for (int32_t axis = 0; axis < shape->rank; axis++) {
    strides[axis] = count;
    count *= (size_t)shape->dims[axis];
  }
  for (size_t i = 0; i < count; i++) {
    memcpy((char *)to + i * size, (const char *)from->data + at * size, size);
    for (int32_t axis = shape->rank - 1; axis >= 0; axis--) {
      at += strides[axis];
      if (++index[axis] < (size_t)shape->dims[axis])
        break;
      at -= strides[axis] * (size_t)shape->dims[axis];
      index[axis] = 0;
    }
  }
}

static pph_status make_c_order(pph_tensor *tensor, size_t bytes,
                               pph_error *error) {
  void *ordered = calloc(bytes + SLACK, 1);
  if (!ordered)
    return pph_fail_memory(error);
  if (bytes)
    reorder(tensor, ordered);
  free(tensor->data);
  tensor->data = ordered;
  return PPH_OK;
}

/* Bytes between here and the file's end; false if it is no plain file. */
static bool measure_rest(FILE *file, uint64_t *rest) {
  struct stat info;
  off_t at = ftello(file);
  if (at < 0 || fstat(fileno(file), &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_size < at)
    return false;
  *rest = (uint64_t)(info.st_size - at);
  return true;
}

static pph_status read_data(FILE *file, const header *head,
                            pph_tensor *tensor) {
  size_t bytes;
  uint64_t rest;
  if (!pph_shape_bytes(&head->shape, head->type, &bytes))
    return pph_fail(head->error, PPH_BAD_MODEL, head->path,
                    "the shape's size overflows");
  if (!measure_rest(file, &rest))
    return pph_fail(head->error, PPH_IO_FAILED, head->path,
                    "this is no plain file");
  if (rest != bytes)
    return pph_fail(head->error, PPH_BAD_MODEL, head->path,
                    "the file has %llu bytes of elements, the shape needs %zu",
                    (unsigned long long)rest, bytes);
  *tensor = (pph_tensor){head->type, head->shape, calloc(bytes + SLACK, 1)};
  if (!tensor->data)
    return pph_fail_memory(head->error);
  if (fread(tensor->data, 1, bytes, file) != bytes)
    return pph_fail(head->error, PPH_IO_FAILED, head->path,
                    "cannot read the file: %s", strerror(errno));
  unsigned char *flags = tensor->data;
  for (size_t i = 0; tensor->type == PPH_BOOL && i < bytes; i++)
    flags[i] = flags[i] != 0;
  return head->fortran ? make_c_order(tensor, bytes, head->error) : PPH_OK;
}

static pph_status load_file(FILE *file, const char *path, pph_tensor *tensor,
                            pph_error *error) {
  char *text = NULL;
  pph_status status = read_text(file, path, &text, error);
  header head = {.path = path, .text = text, .at = text, .error = error};
  if (status == PPH_OK)
    status = read_header(&head);
  if (status == PPH_OK)
    status = read_data(file, &head, tensor);
  free(text);
  return status;
}

pph_status npy_load(const char *path, pph_tensor *tensor, pph_error *error) {
  *tensor = (pph_tensor){PPH_DTYPE_NONE, {0, {0}}, NULL};
  FILE *file = fopen(path, "rb");
  if (!file)
    return pph_fail(error, PPH_IO_FAILED, path, "cannot open the file: %s",
                    strerror(errno));
  pph_status status = load_file(file, path, tensor, error);
  fclose(file);
  if (status != PPH_OK) {
    free(tensor->data);
    *tensor = (pph_tensor){PPH_DTYPE_NONE, {0, {0}}, NULL};
  }
  return status;
}

static const char *find_descr(pph_dtype type) {
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
    if (dtypes[i].type == type)
      return dtypes[i].descr;
  return NULL;
}

static void write_header(FILE *file, const char *descr,
                         const pph_shape *shape) {
  char text[512], dims[32 * PPH_MAX_RANK] = "";
  for (int32_t i = 0; i < shape->rank; i++)
    snprintf(dims + strlen(dims), 32, i ? ", %lld" : "%lld",
             (long long)shape->dims[i]);
  int length = snprintf(text, sizeof text,
                        "{'descr': '%s', 'fortran_order': False, "
                        "'shape': (%s%s), }",
                        descr, dims, shape->rank == 1 ? "," : "");
  /* 10 bytes stand before the text, a line's end is its last. */
  int total = (10 + length + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  int size = total - 10;
  fwrite("\x93NUMPY\x01\x00", 1, 8, file);
  fputc(size & 255, file);
  fputc(size >> 8, file);
  fprintf(file, "%-*s\n", size - 1, text);
}

pph_status npy_save(const char *path, const pph_tensor *tensor,
                    pph_error *error) {
  size_t bytes;
  const char *descr = find_descr(tensor->type);
  if (!descr || tensor->shape.rank < 0 || tensor->shape.rank > PPH_MAX_RANK ||
      !pph_shape_bytes(&tensor->shape, tensor->type, &bytes))
    return pph_fail(error, PPH_INVALID_ARGUMENT, path,
                    "a tensor without a known type and shape");
  output_file output;
  PPH_TRY(output_file_open(path, &output, error));
  write_header(output.file, descr, &tensor->shape);
  if (bytes)
    fwrite(tensor->data, 1, bytes, output.file);
  return output_file_close(&output, PPH_OK, error);
}
