/*
 * Texts from outside (command lines, device names, files) may hold any bytes; what goes into
 * JSON, XML or HTML must be UTF-8.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>

/* Length of the valid UTF-8 sequence at `s`, 1 to 4; 0 when there is none (RFC 3629:
   overlong forms, surrogates and values above U+10FFFF are none). 1 for the NUL. */
size_t utf8_length(const char *s);

/* Number of characters: a valid sequence counts one, any other byte counts one. */
size_t utf8_count(const char *s);

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD, for what is no UTF-8 */

#endif
