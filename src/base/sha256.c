#include "base/sha256.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 64, ROUNDS = 64, LENGTH_AT = 56 };

/* The first 32 bits of the fractional parts of the cube roots of the first 64
   primes. */
static const uint32_t round_constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, int by) {
  return (x >> by) | (x << (32 - by));
}

static void expand(const uint8_t *block, uint32_t *words) {
  for (int i = 0; i < 16; i++, block += 4)
    words[i] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 |
               (uint32_t)block[2] << 8 | block[3];
  for (int i = 16; i < ROUNDS; i++) {
    uint32_t a = words[i - 15], b = words[i - 2];
    words[i] = words[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ (a >> 3)) +
               words[i - 7] + (rotate(b, 17) ^ rotate(b, 19) ^ (b >> 10));
  }
}

static void mix(uint32_t *state, const uint8_t *block) {
  uint32_t w[ROUNDS], s[8];
  expand(block, w);
  memcpy(s, state, sizeof s);
  for (int i = 0; i < ROUNDS; i++) {
    uint32_t e = rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25);
    uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
    uint32_t first = s[7] + e + choice + round_constants[i] + w[i];
    uint32_t a = rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22);
    uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
    memmove(s + 1, s, 7 * sizeof *s);
    s[4] += first;
    s[0] = first + a + majority;
  }
  for (int i = 0; i < 8; i++)
    state[i] += s[i];
}

void pph_sha256_print(const void *bytes, size_t length,
                      char text[PPH_SHA256_TEXT]) {
  uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const uint8_t *next = bytes;
  uint8_t tail[2 * BLOCK] = {0};
  size_t rest = length % BLOCK;
  for (size_t i = 0; i < length / BLOCK; i++, next += BLOCK)
    mix(state, next);
  if (rest)
    memcpy(tail, next, rest);
  tail[rest] = 0x80;
  size_t blocks = rest < LENGTH_AT ? 1 : 2;
  uint64_t bits = (uint64_t)length * 8;
  for (size_t i = 0; i < 8; i++)
    tail[blocks * BLOCK - 1 - i] = (uint8_t)(bits >> (8 * i));
  for (size_t i = 0; i < blocks; i++)
    mix(state, tail + i * BLOCK);
  for (int i = 0; i < 8; i++)
    snprintf(text + 8 * (size_t)i, 9, "%08x", state[i]);
}
