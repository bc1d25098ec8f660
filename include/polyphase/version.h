/* Version of the Polyphase library. */
#ifndef POLYPHASE_VERSION_H
#define POLYPHASE_VERSION_H

#define PPH_VERSION_MAJOR 0
#define PPH_VERSION_MINOR 1
#define PPH_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the linked library as "major.minor.patch".
   The string is static; callable from any thread. */
const char *pph_version(void);

#ifdef __cplusplus
}
#endif

#endif
