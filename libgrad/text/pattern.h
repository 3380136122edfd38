/* pattern.h - regular expressions of tokenizer files, by PCRE2. Private. */
#ifndef LG_TEXT_PATTERN_H
#define LG_TEXT_PATTERN_H

#include "tensor/tensor.h"

typedef struct lg__pattern lg__pattern;
/* Compiles an expression in the syntax that tokenizers uses, Oniguruma's; `file` is named in messages. *ret_looks_back
 * becomes true if matches may depend on the text before them. Returns NULL with an error: LG_ERR_FORMAT for a wrong
 * expression or one that PCRE2 reads in another way, LG_ERR_STATE if libgrad was built without PCRE2. */
lg__pattern *lg__pattern_new(lg_ctx *c, const char *op, const char *file, const char *expression, bool *ret_looks_back);
void lg__pattern_free(lg_ctx *c, lg__pattern *p);

typedef enum lg__found { LG__FOUND, LG__FOUND_NOTHING, LG__FOUND_PART, LG__FOUND_ERROR } lg__found;
/* Finds the first match at or after byte `from` of a text, which must be UTF-8. Unless `final`, returns LG__FOUND_PART
 * and the beginning of a match which depends on the text that follows. LG__FOUND_ERROR: an error is set. */
lg__found lg__pattern_find(lg__pattern *p, const char *op, const char *s, int64_t bytes, int64_t from, bool final,
                           int64_t *ret_begin, int64_t *ret_end);

#endif
