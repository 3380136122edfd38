/* near.c - finds the names most similar to an unknown name, for error messages. */
#include <string.h>
#include "core/core.h"

#define COMPARED 160 /* number of bytes of a name that are compared */

/* Returns how many bytes must be inserted, removed or replaced to turn a into b (Levenshtein distance). */
static size_t edits_between(const char *a, const char *b)
{
        const size_t n = strnlen(b, COMPARED);
        size_t row[COMPARED + 1];
        for (size_t k = 0; k <= n; k++)
                row[k] = k;
        for (size_t i = 0; i < COMPARED && a[i]; i++) {
                size_t replaced = row[0];
                row[0] = i + 1;
                for (size_t k = 0; k < n; k++) {
                        const size_t same = replaced + (a[i] != b[k]), above = row[k + 1];
                        const size_t more = (row[k] < above ? row[k] : above) + 1;
                        replaced = above;
                        row[k + 1] = same < more ? same : more;
                }
        }
        return row[n];
}

void lg__near_offer(lg__near *n, const char *candidate)
{
        const size_t edits = edits_between(n->name, candidate);
        int at = n->count < LG__NEAREST ? n->count++ : LG__NEAREST;
        for (; at > 0 && edits < n->edits[at - 1]; at--)
                if (at < LG__NEAREST) {
                        n->edits[at] = n->edits[at - 1];
                        memcpy(n->text[at], n->text[at - 1], sizeof n->text[at]);
                }
        if (at == LG__NEAREST)
                return;
        n->edits[at] = edits;
        snprintf(n->text[at], sizeof n->text[at], "\"%.80s\"", candidate);
}

const char *lg__near_words(lg__near *n)
{
        const char *one = n->text[0], *two = n->text[1], *three = n->text[2];
        if (n->count > 1)
                snprintf(n->words, sizeof n->words, "; the nearest are %s%s%s%s%s", one, n->count > 2 ? ", " : " and ",
                         two, n->count > 2 ? " and " : "", three);
        else if (n->count)
                snprintf(n->words, sizeof n->words, "; there is only %s", one);
        return n->words;
}
