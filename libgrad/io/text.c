/* text.c - checks UTF-8 in names from files, and quotes names for messages. */
#include "text.h"
#include <string.h>

int lg__utf8_length(lg__span text)
{
        const unsigned char *s = (const unsigned char *)text.s;
        if (!text.bytes || (s[0] >= 0x80 && s[0] < 0xc2) || s[0] > 0xf4)
                return 0;
        int n = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
        if ((size_t)n > text.bytes)
                return 0;
        for (int i = 1; i < n; i++)
                if ((s[i] & 0xc0) != 0x80)
                        return 0;
        if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90)) /* rejects overlong encodings */
                return 0;
        if ((s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f)) /* surrogates; beyond U+10FFFF */
                return 0;
        return n;
}

bool lg__is_utf8(const char *s)
{
        for (size_t left = strlen(s); left;) {
                int n = lg__utf8_length((lg__span){s, left});
                if (!n)
                        return false;
                s += n;
                left -= (size_t)n;
        }
        return true;
}

lg__quote lg__quoted(const char *name)
{
        lg__quote q = {"\""};
        size_t bytes = strlen(name), used = 1;
        for (size_t i = 0; i < bytes;) {
                int n = lg__utf8_length((lg__span){name + i, bytes - i});
                if (used + 4 > sizeof q.s - 6) {
                        memcpy(q.s + used, "...", 3);
                        used += 3;
                        break;
                }
                if (n <= 1) /* n is 0 for a byte that is not UTF-8 */
                        q.s[used] = n == 1 && name[i] >= 0x20 && name[i] != 0x7f ? name[i] : '?';
                else
                        memcpy(q.s + used, name + i, (size_t)n);
                used += n > 1 ? (size_t)n : 1;
                i += n > 1 ? (size_t)n : 1;
        }
        q.s[used] = '"';
        return q;
}
