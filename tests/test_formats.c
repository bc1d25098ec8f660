/* The command's file formats: what is written comes back, what is damaged is
   refused. Works in a folder of its own below the system's temporary one. */
#include "test_support.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jpeglib.h>
#include <png.h>

#include "base/checked.h"
#include "json.h"
#include "npy.h"
#include "picture.h"
#include "table.h"
#include "wav.h"

static char folder[256], path[320];

static int set_up(void **state) {
  (void)state;
  const char *base = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/test_formats.XXXXXX",
           base ? base : "/tmp");
  if (!mkdtemp(folder))
    return -1;
  snprintf(path, sizeof path, "%s/file", folder);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  unlink(path);
  /* Fails if any temporary file was left. */
  return rmdir(folder);
}

static void write_bytes(const void *bytes, size_t length) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, length, file), length);
  assert_int_equal(fclose(file), 0);
}

static size_t read_bytes(void *bytes, size_t capacity) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  size_t length = fread(bytes, 1, capacity, file);
  assert_true(length < capacity);
  fclose(file);
  return length;
}

/* npy */

/* Writes a file of `version` with that dictionary and `length` bytes. */
static void write_npy(int version, const char *header, const void *data,
                      size_t length) {
  char bytes[4096];
  size_t text = strlen(header), at = 8;
  memcpy(bytes, "\x93NUMPY", 6);
  bytes[6] = (char)version;
  bytes[7] = 0;
  for (int i = 0; i < (version > 1 ? 4 : 2); i++)
    bytes[at++] = (char)(text >> 8 * i & 255);
  memcpy(bytes + at, header, text);
  memcpy(bytes + at + text, data, length);
  write_bytes(bytes, at + text + length);
}

static void check_npy_round_trip(pph_dtype type, const pph_shape *shape,
                                 test_random *random) {
  pph_error error;
  unsigned char data[1024];
  size_t bytes;
  assert_true(pph_shape_bytes(shape, type, &bytes) && bytes <= sizeof data);
  for (size_t i = 0; i < bytes; i++)
    data[i] = (unsigned char)test_random_next(random) &
              (type == PPH_BOOL ? 1 : 255);
  pph_tensor tensor = {type, *shape, data}, back;
  test_assert_ok(npy_save(path, &tensor, &error), &error);
  test_assert_ok(npy_load(path, &back, &error), &error);
  assert_int_equal(back.type, type);
  assert_true(pph_shape_equal(&back.shape, shape));
  assert_memory_equal(back.data, data, bytes);
  free(back.data);
}

static void test_npy_round_trip(void **state) {
  (void)state;
  static const pph_shape shapes[] = {{0, {0}},
                                     {1, {5}},
                                     {2, {0, 4}},
                                     {2, {3, 4}},
                                     {4, {1, 3, 2, 5}},
                                     {8, {1, 2, 1, 2, 1, 2, 1, 2}}};
  test_random random = {test_seed("test_npy_round_trip")};
  for (int type = 1; type <= PPH_U64; type++)
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
      if (pph_dtype_size((pph_dtype)type))
        check_npy_round_trip((pph_dtype)type, &shapes[i], &random);
}

/* The bytes are NumPy's own. */
static void test_npy_bytes(void **state) {
  (void)state;
  pph_error error;
  float data[3] = {1, 2, 3};
  char bytes[256];
  pph_tensor tensor = {PPH_F32, {1, {3}}, data};
  test_assert_ok(npy_save(path, &tensor, &error), &error);
  assert_int_equal(read_bytes(bytes, sizeof bytes), 128 + 12);
  assert_memory_equal(bytes,
                      "\x93NUMPY\x01\0\x76\0"
                      "{'descr': '<f4', 'fortran_order': False, "
                      "'shape': (3,), }   ",
                      70);
  assert_int_equal(bytes[127], '\n');
  assert_memory_equal(bytes + 128, data, 12);
}

static void test_npy_variants(void **state) {
  (void)state;
  pph_error error;
  pph_tensor tensor;
  static const short columns[] = {1, 4, 2, 5, 3, 6};
  static const short rows[] = {1, 2, 3, 4, 5, 6};
  for (int version = 1; version <= 3; version++) {
    write_npy(version,
              "{\"shape\":(2L, 3L),'fortran_order':True,'descr': '<i2'}\n",
              columns, sizeof columns);
    test_assert_ok(npy_load(path, &tensor, &error), &error);
    assert_int_equal(tensor.shape.rank, 2);
    assert_int_equal(tensor.shape.dims[1], 3);
    assert_memory_equal(tensor.data, rows, sizeof rows);
    free(tensor.data);
  }
  write_npy(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}",
            "\0\x02\xff", 3);
  test_assert_ok(npy_load(path, &tensor, &error), &error);
  assert_memory_equal(tensor.data, "\0\1\1", 3);
  free(tensor.data);
}

/* Fortran order of three axes, against the definition. */
static void test_npy_fortran(void **state) {
  (void)state;
  pph_error error;
  pph_tensor tensor;
  unsigned char data[2 * 3 * 4];
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 3; j++)
      for (int k = 0; k < 4; k++)
        data[i + 2 * j + 6 * k] = (unsigned char)(100 * i + 10 * j + k);
  write_npy(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4), }",
            data, sizeof data);
  test_assert_ok(npy_load(path, &tensor, &error), &error);
  for (int i = 0; i < 24; i++)
    assert_int_equal(((unsigned char *)tensor.data)[i],
                     100 * (i / 12) + 10 * (i / 4 % 3) + i % 4);
  free(tensor.data);
}

#define NPY(descr, order, shape)                                               \
  "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }\n"

static const struct {
  const char *header;
  size_t bytes;
  pph_status status;
  const char *message;
} bad_npy[] = {
    {NPY("'<f4'", "False", "(2,)"), 7, PPH_BAD_MODEL, "needs 8"},
    {NPY("'<f4'", "False", "(2,)"), 9, PPH_BAD_MODEL, "has 9 bytes"},
    {NPY("'<f4'", "False", "(9223372036854775807, 3)"), 0, PPH_BAD_MODEL,
     "overflows"},
    {NPY("'<f4'", "False", "(9223372036854775808,)"), 0, PPH_BAD_MODEL,
     "below 2^63"},
    {NPY("'<f4'", "False", "(1000000000000,)"), 8, PPH_BAD_MODEL, "8 bytes"},
    {NPY("'<f4'", "False", "(-1,)"), 8, PPH_BAD_MODEL, "a dimension"},
    {NPY("'<f4'", "False", "(2)"), 8, PPH_BAD_MODEL, "','"},
    {NPY("'<f4'", "False", "2"), 8, PPH_BAD_MODEL, "'('"},
    {NPY("'<f4'", "False", "(,)"), 8, PPH_BAD_MODEL, "a dimension"},
    {NPY("'<f4'", "0", "(2,)"), 8, PPH_BAD_MODEL, "True or False"},
    {NPY("'>f4'", "False", "(2,)"), 8, PPH_UNSUPPORTED, "'>f4'"},
    {NPY("'<c8'", "False", "(1,)"), 8, PPH_UNSUPPORTED, "'<c8'"},
    {NPY("[('a', '<f4')]", "False", "(2,)"), 8, PPH_UNSUPPORTED, "plain"},
    {NPY("'<f4'", "False", "(1,1,1,1,1,1,1,1,1)"), 4, PPH_UNSUPPORTED, "rank"},
    {NPY("'<f4'", "False", "(2,)") "x", 8, PPH_BAD_MODEL, "the end"},
    {"{'descr': '<f4', 'shape': (2,)}", 8, PPH_BAD_MODEL, "all of"},
    {"{'descr': '<f4', 'descr': '<f4'}", 8, PPH_BAD_MODEL, "once"},
    {"{'descr': '<f4', 'more': 1}", 8, PPH_BAD_MODEL, "descr, fortran"},
    {"{'descr' '<f4'}", 8, PPH_BAD_MODEL, "':'"},
    {"{'descr': '<f4' 'shape': (2,)}", 8, PPH_BAD_MODEL, "',' or '}'"},
    {"{'descr: 1", 8, PPH_BAD_MODEL, "quoted key"},
    {"{", 8, PPH_BAD_MODEL, "quoted key"},
    {"", 8, PPH_BAD_MODEL, "'{'"},
};

static void assert_npy_fails(pph_status expected, const char *message) {
  pph_error error;
  pph_tensor tensor;
  pph_status status = npy_load(path, &tensor, &error);
  if (status != expected || !strstr(error.message, message))
    fail_msg("expected \"%s\", got %s: %s", message, pph_status_name(status),
             error.message);
  assert_null(tensor.data);
  assert_int_equal(tensor.type, PPH_DTYPE_NONE);
  assert_memory_equal(error.where, folder, strlen(folder));
}

static void test_npy_bad_headers(void **state) {
  (void)state;
  static const char zeros[16];
  for (size_t i = 0; i < sizeof bad_npy / sizeof *bad_npy; i++)
    for (int version = 1; version <= 2; version++) {
      write_npy(version, bad_npy[i].header, zeros, bad_npy[i].bytes);
      assert_npy_fails(bad_npy[i].status, bad_npy[i].message);
    }
}

static void test_npy_bad_starts(void **state) {
  (void)state;
  write_bytes("", 0);
  assert_npy_fails(PPH_BAD_MODEL, "no .npy file");
  write_bytes("\x93NUMPX\x01\0\0\0", 10);
  assert_npy_fails(PPH_BAD_MODEL, "no .npy file");
  write_bytes("\x93NUMPY\x04\0\0\0", 10);
  assert_npy_fails(PPH_BAD_MODEL, "version 4.0");
  write_bytes("\x93NUMPY\x01\1\0\0", 10);
  assert_npy_fails(PPH_BAD_MODEL, "version 1.1");
  write_bytes("\x93NUMPY\x02\0\xff\xff\xff\xff", 12);
  assert_npy_fails(PPH_BAD_MODEL, "4294967295 bytes");
  write_bytes("\x93NUMPY\x01\0\xff\xff{", 11);
  assert_npy_fails(PPH_BAD_MODEL, "cut off");
  write_bytes("\x93NUMPY\x01\0\x02\0{\0", 12);
  assert_npy_fails(PPH_BAD_MODEL, "cut off");
  unlink(path);
  assert_npy_fails(PPH_IO_FAILED, "cannot open");
}

static void test_npy_truncated(void **state) {
  (void)state;
  pph_error error;
  pph_tensor tensor = {PPH_I64, {2, {2, 3}}, (int64_t[6]){1, 2, 3, 4, 5, 6}};
  char bytes[512];
  test_assert_ok(npy_save(path, &tensor, &error), &error);
  size_t length = read_bytes(bytes, sizeof bytes);
  for (size_t cut = 0; cut < length; cut++) {
    write_bytes(bytes, cut);
    assert_npy_fails(PPH_BAD_MODEL, "");
  }
}

/* A file that cannot be written leaves the old one alone. */
static void test_replacing(void **state) {
  (void)state;
  pph_error error;
  char missing[400], link_path[400];
  float value = 1;
  pph_tensor tensor = {PPH_F32, {0, {0}}, &value};
  snprintf(missing, sizeof missing, "%s/nowhere/file", folder);
  assert_int_equal(npy_save(missing, &tensor, &error), PPH_IO_FAILED);
  assert_string_equal(error.where, missing);
  tensor.type = PPH_DTYPE_NONE;
  assert_int_equal(npy_save(path, &tensor, &error), PPH_INVALID_ARGUMENT);
  tensor.type = PPH_F32;
  test_assert_ok(npy_save("/dev/null", &tensor, &error), &error);
  struct stat info;
  assert_int_equal(stat("/dev/null", &info), 0);
  assert_true(S_ISCHR(info.st_mode));
  /* Through a link the link's target is replaced. */
  snprintf(link_path, sizeof link_path, "%s/link", folder);
  write_bytes("old", 3);
  assert_int_equal(symlink(path, link_path), 0);
  test_assert_ok(npy_save(link_path, &tensor, &error), &error);
  assert_int_equal(lstat(link_path, &info), 0);
  assert_true(S_ISLNK(info.st_mode));
  assert_int_equal(stat(path, &info), 0);
  assert_int_equal(info.st_size, 128 + 4);
  unlink(link_path);
}

/* Pictures */

static void test_png_round_trip(void **state) {
  (void)state;
  pph_error error;
  test_random random = {test_seed("test_png_round_trip")};
  static const uint32_t channels[] = {1, 3, 4};
  for (int i = 0; i < 12; i++) {
    unsigned char pixels[9 * 7 * 4];
    picture back, image = {(uint32_t)test_random_range(&random, 1, 9),
                           (uint32_t)test_random_range(&random, 1, 7),
                           channels[i % 3], pixels};
    size_t size = (size_t)image.width * image.height * image.channels;
    for (size_t p = 0; p < size; p++)
      pixels[p] = (unsigned char)test_random_next(&random);
    test_assert_ok(picture_save(path, &image, &error), &error);
    test_assert_ok(picture_load(path, &back, &error), &error);
    assert_int_equal(back.width, image.width);
    assert_int_equal(back.height, image.height);
    assert_int_equal(back.channels, image.channels);
    assert_memory_equal(back.pixels, pixels, size);
    picture_clear(&back);
  }
}

/* One row of two pixels of any PNG type. */
typedef struct png_kind {
  int type, depth, interlace;
  const char *row;
  bool transparent; /* palette entry or gray level 0 is */
  uint32_t channels;
  const char *pixels; /* expected */
} png_kind;

static void write_png_kind(const png_kind *kind) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  png_structp png =
      png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
  png_infop info = png_create_info_struct(png);
  png_init_io(png, file);
  png_set_IHDR(png, info, 2, 1, kind->depth, kind->type, kind->interlace, 0,
               0);
  const png_color colors[2] = {{10, 20, 30}, {40, 50, 60}};
  if (kind->type == PNG_COLOR_TYPE_PALETTE)
    png_set_PLTE(png, info, colors, 2);
  png_color_16 level = {.gray = 0};
  if (kind->transparent)
    png_set_tRNS(png, info, (png_const_bytep) "\0", 1, &level);
  png_write_info(png, info);
  unsigned char row[16];
  memcpy(row, kind->row, sizeof row);
  png_bytep rows[] = {row};
  png_write_image(png, rows);
  png_write_end(png, NULL);
  png_destroy_write_struct(&png, &info);
  fclose(file);
}

static void test_png_kinds(void **state) {
  (void)state;
  static const char row_ga[16] = "\x07\x08\x09\x0a";
  static const char row_wide[16] = "\x80\x80\xff\xff";
  static const char row_bits[16] = "\x40"; /* 0, 1 */
  static const char row_gray[16] = "\x00\x05";
  static const char row_rgb[16] = "\x01\x02\x03\x04\x05\x06";
  static const png_kind kinds[] = {
      {PNG_COLOR_TYPE_GRAY_ALPHA, 8, 0, row_ga, false, 4,
       "\x07\x07\x07\x08\x09\x09\x09\x0a"},
      {PNG_COLOR_TYPE_GRAY, 16, 0, row_wide, false, 1, "\x80\xff"},
      {PNG_COLOR_TYPE_GRAY, 1, 0, row_bits, false, 1, "\x00\xff"},
      {PNG_COLOR_TYPE_GRAY, 8, 0, row_gray, true, 4,
       "\x00\x00\x00\x00\x05\x05\x05\xff"},
      {PNG_COLOR_TYPE_PALETTE, 1, 0, row_bits, false, 3,
       "\x0a\x14\x1e\x28\x32\x3c"},
      {PNG_COLOR_TYPE_PALETTE, 1, 0, row_bits, true, 4,
       "\x0a\x14\x1e\x00\x28\x32\x3c\xff"},
      {PNG_COLOR_TYPE_RGB, 8, PNG_INTERLACE_ADAM7, row_rgb, false, 3,
       row_rgb}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    picture image;
    pph_error error;
    write_png_kind(&kinds[i]);
    test_assert_ok(picture_load(path, &image, &error), &error);
    assert_int_equal(image.channels, kinds[i].channels);
    assert_int_equal(image.width, 2);
    assert_memory_equal(image.pixels, kinds[i].pixels, 2 * image.channels);
    picture_clear(&image);
  }
}

static size_t encode_jpeg(int channels, bool progressive, unsigned char *bytes,
                          size_t capacity) {
  struct jpeg_compress_struct encoder;
  struct jpeg_error_mgr errors;
  unsigned char row[64 * 3], *out = NULL;
  unsigned long length = 0;
  encoder.err = jpeg_std_error(&errors);
  jpeg_create_compress(&encoder);
  jpeg_mem_dest(&encoder, &out, &length);
  encoder.image_width = 64;
  encoder.image_height = 48;
  encoder.input_components = channels;
  encoder.in_color_space = channels == 1 ? JCS_GRAYSCALE
                           : channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&encoder);
  jpeg_set_quality(&encoder, 95, TRUE);
  if (progressive)
    jpeg_simple_progression(&encoder);
  jpeg_start_compress(&encoder, TRUE);
  unsigned char wide[64 * 4];
  for (int y = 0; y < 48; y++) {
    for (int i = 0; i < 64 * channels; i++)
      wide[i] = (unsigned char)(i / channels * 2 + y + 20 * (i % channels));
    memcpy(row, wide, sizeof row);
    JSAMPROW rows[] = {channels == 4 ? wide : row};
    jpeg_write_scanlines(&encoder, rows, 1);
  }
  jpeg_finish_compress(&encoder);
  jpeg_destroy_compress(&encoder);
  assert_true(length <= capacity);
  memcpy(bytes, out, length);
  free(out);
  return length;
}

static void test_jpeg(void **state) {
  (void)state;
  unsigned char bytes[16384];
  picture image;
  pph_error error;
  for (int i = 0; i < 4; i++) {
    int channels = i % 2 ? 3 : 1;
    write_bytes(bytes, encode_jpeg(channels, i / 2, bytes, sizeof bytes));
    test_assert_ok(picture_load(path, &image, &error), &error);
    assert_int_equal(image.channels, channels);
    assert_int_equal(image.width, 64);
    assert_int_equal(image.height, 48);
    for (int p = 0; p < 64 * 48 * channels; p++) {
      int x = p / channels % 64, y = p / channels / 64, c = p % channels;
      assert_true(abs(image.pixels[p] - (2 * x + y + 20 * c)) <= 8);
    }
    picture_clear(&image);
  }
  write_bytes(bytes, encode_jpeg(4, false, bytes, sizeof bytes));
  assert_int_equal(picture_load(path, &image, &error), PPH_UNSUPPORTED);
  assert_non_null(strstr(error.message, "4 color components"));
}

static pph_error error_of_picture;

static pph_status load_picture(const void *bytes, size_t length) {
  picture image;
  pph_error error = {PPH_OK, "", ""};
  write_bytes(bytes, length);
  pph_status status = picture_load(path, &image, &error);
  if (status != PPH_OK) {
    assert_null(image.pixels);
    assert_true(error.where[0] && error.message[0]);
  }
  picture_clear(&image);
  error_of_picture = error;
  return status;
}

static size_t make_png(unsigned char *bytes, size_t capacity) {
  unsigned char pixels[32 * 32 * 3];
  pph_error error;
  picture image = {32, 32, 3, pixels};
  for (size_t i = 0; i < sizeof pixels; i++)
    pixels[i] = (unsigned char)(i * i / 7);
  test_assert_ok(picture_save(path, &image, &error), &error);
  return read_bytes(bytes, capacity);
}

static void test_pictures_truncated(void **state) {
  (void)state;
  unsigned char bytes[16384];
  size_t length = make_png(bytes, sizeof bytes);
  /* The end chunk has 12 bytes, all of them wanted. */
  for (size_t cut = 0; cut < length; cut += cut < 64 ? 1 : 37)
    assert_int_not_equal(load_picture(bytes, cut), PPH_OK);
  assert_int_equal(load_picture(bytes, length), PPH_OK);
  for (int progressive = 0; progressive < 2; progressive++) {
    length = encode_jpeg(3, progressive, bytes, sizeof bytes);
    for (size_t cut = 0; cut < length - 2; cut += cut < 64 ? 1 : 37)
      assert_int_not_equal(load_picture(bytes, cut), PPH_OK);
    assert_int_equal(load_picture(bytes, length), PPH_OK);
  }
}

static void test_pictures_damaged(void **state) {
  (void)state;
  unsigned char bytes[16384], copy[16384];
  test_random random = {test_seed("test_pictures_damaged")};
  for (int kind = 0; kind < 3; kind++) {
    size_t length = kind ? encode_jpeg(3, kind == 2, bytes, sizeof bytes)
                         : make_png(bytes, sizeof bytes);
    for (int i = 0; i < 150; i++) {
      memcpy(copy, bytes, length);
      /* Sides stay small: a JPEG's size is no matter of its length. */
      size_t at = (size_t)test_random_range(&random, i % 2 ? 200 : 24,
                                            (int64_t)length - 1);
      copy[at] = (unsigned char)test_random_next(&random);
      (void)load_picture(copy, length);
    }
  }
}

/* A short file that claims a large picture. */
static void test_pictures_huge(void **state) {
  (void)state;
  unsigned char bytes[16384];
  size_t length = encode_jpeg(3, false, bytes, sizeof bytes);
  for (size_t at = 0; at + 9 < length; at++)
    if (bytes[at] == 0xff && bytes[at + 1] == 0xc0)
      memcpy(bytes + at + 5, "\xff\xdc\xff\xdc", 4); /* 65500 x 65500 */
  assert_int_equal(load_picture(bytes, length), PPH_LIMIT_EXCEEDED);

  /* 60000 x 60000 gray: signature, IHDR with its right checksum. */
  static const unsigned char head[] = {
      0x89, 'P', 'N', 'G', 13, 10, 26, 10, 0, 0, 0, 13, 'I', 'H', 'D', 'R',
      0, 0, 0xea, 0x60, 0, 0, 0xea, 0x60, 8, 0, 0, 0, 0};
  memcpy(bytes, head, sizeof head);
  uint32_t crc = 0xffffffff;
  for (size_t i = 12; i < sizeof head; i++) {
    crc ^= head[i];
    for (int bit = 0; bit < 8; bit++)
      crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
  }
  for (int i = 0; i < 4; i++)
    bytes[sizeof head + (size_t)i] = (unsigned char)(~crc >> (24 - 8 * i));
  static const unsigned char data[] = {0, 0, 0, 0, 'I', 'D', 'A', 'T',
                                       0x35, 0xaf, 0x06, 0x1e};
  memcpy(bytes + sizeof head + 4, data, sizeof data);
  assert_int_equal(load_picture(bytes, sizeof head + 4 + sizeof data),
                   PPH_BAD_MODEL);
  assert_non_null(strstr(error_of_picture.message, "too short"));
}

static void test_pictures_refused(void **state) {
  (void)state;
  picture image = {1, 1, 2, (unsigned char[4]){0}};
  pph_error error;
  assert_int_equal(load_picture("", 0), PPH_UNSUPPORTED);
  assert_int_equal(load_picture("GIF89a..", 8), PPH_UNSUPPORTED);
  assert_int_equal(load_picture("\xff\xd8", 2), PPH_UNSUPPORTED);
  assert_int_equal(picture_save(path, &image, &error), PPH_INVALID_ARGUMENT);
  image.channels = 3;
  image.width = 0;
  assert_int_equal(picture_save(path, &image, &error), PPH_INVALID_ARGUMENT);
}

/* Sound */

static void test_wav(void **state) {
  (void)state;
  pph_error error;
  for (uint32_t channels = 1; channels <= 2; channels++) {
    enum { FRAMES = 70000 };
    wav back, sound = {48000, channels, FRAMES, NULL};
    sound.samples = malloc(FRAMES * channels * sizeof *sound.samples);
    assert_non_null(sound.samples);
    for (size_t i = 0; i < FRAMES * channels; i++)
      sound.samples[i] = sinf((float)i * 0.01f);
    test_assert_ok(wav_save(path, &sound, &error), &error);
    test_assert_ok(wav_load(path, &back, &error), &error);
    assert_int_equal(back.rate, 48000);
    assert_int_equal(back.channels, channels);
    assert_int_equal(back.frames, FRAMES);
    assert_memory_equal(back.samples, sound.samples,
                        FRAMES * channels * sizeof *sound.samples);
    wav_clear(&back);
    wav_clear(&sound);
  }
}

static void test_wav_refused(void **state) {
  (void)state;
  pph_error error;
  wav sound = {8000, 3, 0, NULL};
  assert_int_equal(wav_save(path, &sound, &error), PPH_INVALID_ARGUMENT);
  write_bytes("RIFF\xff\xff\xff\x7fWAVEfmt ", 16);
  assert_int_equal(wav_load(path, &sound, &error), PPH_BAD_MODEL);
  assert_null(sound.samples);
  write_bytes("", 0);
  assert_int_not_equal(wav_load(path, &sound, &error), PPH_OK);
  unlink(path);
  assert_int_equal(wav_load(path, &sound, &error), PPH_IO_FAILED);
}

/* A header that claims four gigabytes of sound. */
static void test_wav_huge(void **state) {
  (void)state;
  pph_error error;
  wav sound;
  static const char bytes[] = "RIFF\xf0\xff\xff\xffWAVEfmt \x10\0\0\0"
                              "\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0"
                              "data\xf0\xff\xff\x7f\0\x40\0\xc0";
  write_bytes(bytes, sizeof bytes - 1);
  test_assert_ok(wav_load(path, &sound, &error), &error);
  assert_int_equal(sound.frames, 2);
  assert_true(sound.samples[0] == 0.5f && sound.samples[1] == -0.5f);
  wav_clear(&sound);
}

/* Text */

static void test_json(void **state) {
  (void)state;
  char *text;
  size_t length;
  FILE *file = open_memstream(&text, &length);
  json_writer json;
  json_init(&json, file);
  json_begin_object(&json, NULL);
  json_text(&json, "t", "a\"\\\n\r\t\b\f\x01\x7f\xc3\xa9\xff\xed\xa0\x80");
  json_text(&json, "none", NULL);
  json_begin_array(&json, "n\n");
  json_number(&json, NULL, 0.1);
  json_number(&json, NULL, 1.0 / 3);
  json_number(&json, NULL, -1e300);
  json_number(&json, NULL, NAN);
  json_number(&json, NULL, -INFINITY);
  json_integer(&json, NULL, INT64_MIN);
  json_begin_object(&json, NULL);
  json_end_object(&json);
  json_begin_array(&json, NULL);
  json_end_array(&json);
  json_end_array(&json);
  json_bool(&json, "yes", true);
  json_bool(&json, "no", false);
  json_end_object(&json);
  json_null(&json, NULL);
  fclose(file);
  assert_string_equal(
      text,
      "{\"t\": \"a\\\"\\\\\\n\\r\\t\\b\\f\\u0001\\u007f\xc3\xa9\\ufffd\\ufffd"
      "\\ufffd\\ufffd\", \"none\": null, \"n\\n\": [0.1, 0.333333333333333"
      "3, -1e+300, null, null, -9223372036854775808, {}, []], \"yes\": true, "
      "\"no\": false}\nnull\n");
  free(text);
}

static void test_table(void **state) {
  (void)state;
  static const char *const heads[] = {"name", "us", "note"};
  char *text;
  size_t length;
  FILE *file = open_memstream(&text, &length);
  table rows;
  table_init(&rows, heads, "lrl");
  table_add(&rows, "conv\x1b[1m");
  table_add_format(&rows, "%d", 12345);
  table_add(&rows, NULL);
  table_add(&rows, "\xc3\xa9");
  table_add_format(&rows, "%.1f", 0.5);
  table_add(&rows, "slow");
  table_print(&rows, file);
  fclose(file);
  assert_string_equal(text, "name         us  note\n"
                            "conv?[1m  12345\n"
                            "\xc3\xa9           0.5  slow\n");
  table_clear(&rows);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_npy_round_trip),
      cmocka_unit_test(test_npy_bytes),
      cmocka_unit_test(test_npy_variants),
      cmocka_unit_test(test_npy_fortran),
      cmocka_unit_test(test_npy_bad_headers),
      cmocka_unit_test(test_npy_bad_starts),
      cmocka_unit_test(test_npy_truncated),
      cmocka_unit_test(test_replacing),
      cmocka_unit_test(test_png_round_trip),
      cmocka_unit_test(test_png_kinds),
      cmocka_unit_test(test_jpeg),
      cmocka_unit_test(test_pictures_truncated),
      cmocka_unit_test(test_pictures_damaged),
      cmocka_unit_test(test_pictures_huge),
      cmocka_unit_test(test_pictures_refused),
      cmocka_unit_test(test_wav),
      cmocka_unit_test(test_wav_refused),
      cmocka_unit_test(test_wav_huge),
      cmocka_unit_test(test_json),
      cmocka_unit_test(test_table),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
