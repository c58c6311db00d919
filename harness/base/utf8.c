#include "base/utf8.h"

static size_t length_by_first(unsigned char c)
{
    if (c < 0x80)
        return 1;
    if (c < 0xc2)
        return 0;
    if (c < 0xe0)
        return 2;
    if (c < 0xf0)
        return 3;
    return c < 0xf5 ? 4 : 0;
}

size_t utf8_length(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n = length_by_first(s[0]);

    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f))
        return 0;
    if ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

size_t utf8_count(const char *s)
{
    size_t count = 0;

    while (*s) {
        size_t n = utf8_length(s);

        s += n ? n : 1;
        count++;
    }
    return count;
}
