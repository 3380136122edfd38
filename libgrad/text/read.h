/* read.h - what the files that read a tokenizer share. Private. */
#ifndef LG_TEXT_READ_H
#define LG_TEXT_READ_H

#include "io/json.h"
#include "io/source.h"
#include "tokenizer.h"

#define LG__OPEN "lg_tokenizer_open"
#define LG__BYTE_CHARACTERS 324 /* characters from U+0000 on, of which 256 stand for bytes */

typedef struct lg__reader {
        lg_tokenizer *t;
        lg_ctx *c;
        const char *path;
        lg__whole file;
        char *scratch; /* decoded strings, as long as the file */
        lg__json top;  /* the object that the file is */
        int16_t byte_of[LG__BYTE_CHARACTERS];
        bool has_bytes; /* the pre_tokenizer ByteLevel was read */
} lg__reader;

/* Sets LG_ERR_FORMAT, with the path of the file. Returns false. */
bool lg__reader_bad(const lg__reader *r, const char *format, ...) LG_PRINTF(2, 3);
/* The same for a part of a tokenizer, p, whose member "type" libgrad does not know. */
bool lg__reader_lacks(const lg__reader *r, const char *part, lg__json p);
/* Returns whether p is at a string that equals `text`. p.s may be NULL. */
bool lg__json_is(lg__json p, const char *text);
/* Returns whether p is at a member that is there and not null. */
static inline bool lg__json_given(lg__json p)
{
        return p.s && *p.s != 'n';
}

/* Writes the bytes that a text of byte-level BPE means, unless `to` is NULL. Returns their number, or -1 if a character
 * means no byte. `to` may be s. */
int64_t lg__reader_bytes(const lg__reader *r, const char *s, size_t bytes, char *to);
/* Adds bytes to the texts of tokens, whose memory has room for all. */
const char *lg__reader_keep(lg_tokenizer *t, const char *s, int64_t bytes);

/* Read the parts of tokenizer.json after its vocabulary: config.c. m has the parts in the order of the enumeration. */
typedef enum lg__part {
        LG__MODEL,
        LG__ADDED_TOKENS,
        LG__NORMALIZER,
        LG__PRE_TOKENIZER,
        LG__POST_PROCESSOR,
        LG__PARTS
} lg__part;
bool lg__read_config(lg__reader *r, const lg__json *m);
/* Makes the stages of GPT-2, whose vocab.json has no more than the vocabulary. */
bool lg__make_config(lg__reader *r);
/* Reads bos and eos from tokenizer_config.json, r->top. */
void lg__read_ends(lg__reader *r);

#endif
