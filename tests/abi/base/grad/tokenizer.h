/* tokenizer.h - byte-level BPE: texts to the ids of tokens, and back.
 *
 * Tokenizers of language models cut a text into tokens, each with a number, its id. lg_tokenizer_open() reads those of
 * GPT-2, Llama 3, Qwen 2, SmolLM and others, whose tokens are made of bytes, so that any text can be encoded:
 *
 *     lg_tokenizer *t = lg_tokenizer_open(c, "gpt2/tokenizer.json");
 *     lg_tensor *ids = lg_tokenizer_encode(t, "Once upon a time");
 *     printf("%s\n", lg_tokenizer_decode(t, ids));
 *
 * The ids are those that tokenizers (PyPI) computes. Letters and digits are those of PCRE2's version of Unicode, which
 * may be older than that of tokenizers: texts with newer characters may be cut in other places.
 */
#ifndef LG_TOKENIZER_H
#define LG_TOKENIZER_H

#include "grad/tensor.h"

LG_BEGIN

/* ---- files ---- */

/* Reads a tokenizer from a file tokenizer.json, from a file vocab.json with merges.txt beside it (GPT-2's first
 * format), or from a folder that has one of these. A file tokenizer_config.json beside it, if there is one, names bos
 * and eos.
 *
 * Fails with LG_ERR_IO, with LG_ERR_STATE if libgrad was built without PCRE2, and with LG_ERR_FORMAT if the file is
 * damaged or is another kind of tokenizer: the message names the part that libgrad lacks. Possible are the model BPE
 * without dropout, byte_fallback and affixes of words; the normalizer NFC (LG_ERR_STATE without utf8proc); the
 * pre_tokenizers ByteLevel, Split, Digits and Sequence; the post_processors ByteLevel, TemplateProcessing,
 * RobertaProcessing, BertProcessing and Sequence. The decoder is always ByteLevel. Truncation and padding are ignored.
 */
LG_API LG_NEW lg_tokenizer *lg_tokenizer_open(lg_ctx *c, const char *path);
LG_API void lg_tokenizer_free(lg_tokenizer *t);

/* ---- the vocabulary ---- */

/* Returns the largest id plus one: the number of rows that an embedding needs. */
LG_API int64_t lg_tokenizer_size(const lg_tokenizer *t);
/* Returns the id of a token, " the" or "<|endoftext|>", or -1 if there is none. */
LG_API int64_t lg_tokenizer_id(const lg_tokenizer *t, const char *token);
/* Returns the bytes of a token, which belong to the tokenizer and may be a part of a UTF-8 character, or NULL if there
 * is no token with this id. */
LG_API const char *lg_tokenizer_token(const lg_tokenizer *t, int64_t id);
/* Returns the id that begins texts, or ends them, or -1 if there is none. It is that of tokenizer_config.json, else the
 * first of the template (bos), else that of "<|endoftext|>". */
LG_API int64_t lg_tokenizer_bos(const lg_tokenizer *t);
LG_API int64_t lg_tokenizer_eos(const lg_tokenizer *t);

/* ---- from text to ids ---- */

typedef struct lg_tokenizer_encode_options {
        LG_OPTIONS_HEAD
        int64_t bytes LG_DEFAULT;    /* of the text, which then may have NULs; default: all up to its NUL */
        bool plain LG_DEFAULT;       /* special tokens in the text are read as any other text; default false */
        bool add_special LG_DEFAULT; /* adds the tokens of the file's template, such as bos; default false */
} lg_tokenizer_encode_options;
/* Returns the ids of a text, i64 (n) on the CPU. Tokens that the file adds to the vocabulary, such as "<|endoftext|>",
 * are found first. With .plain the special ones are not, for texts that nobody has checked. The text is UTF-8; bytes
 * that are not are encoded one by one, so that decoding gives them back. Bytes for which the vocabulary has neither a
 * token nor an unk_token are left out, as tokenizers does. Fails with LG_ERR_STATE if a regular expression of the file
 * exceeds PCRE2's limits.
 * Example: lg_tokenizer_encode(t, "Once upon a time", .add_special = true) */
#define lg_tokenizer_encode(...)                                                                                       \
        LG_CALL2(lg_tokenizer_encode_with, lg_tokenizer_encode_options, lg_tokenizer_encode_takes_t_text, V, V,        \
                 __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_tokenizer_encode_with(lg_tokenizer *t, const char *text,
                                                  const lg_tokenizer_encode_options *options);

/* Receives the progress of lg_tokenizer_encode_file(): the bytes of text that were encoded, and their tokens so far. */
typedef void lg_tokenizer_progress_fn(int64_t bytes, int64_t tokens, void *user);

typedef struct lg_tokenizer_encode_file_options {
        LG_OPTIONS_HEAD
        int bits LG_DEFAULT;     /* of a number in the file: 16 or 32; default: 16 if all ids fit, else 32 */
        bool plain LG_DEFAULT;   /* as of lg_tokenizer_encode(); default false */
        bool add_eos LG_DEFAULT; /* adds eos to the end; default false */
        lg_tokenizer_progress_fn *progress LG_DEFAULT; /* called after each part of about 1 MiB; default: none */
        void *user LG_DEFAULT;                         /* passed to .progress */
        int64_t *tokens LG_DEFAULT;                    /* receives the number of tokens; default: none */
} lg_tokenizer_encode_file_options;
/* Writes the ids of a text file to another file, as little-endian unsigned numbers without a header, the format of
 * lg_dataset_tokens(). The ids are those of the whole text, but only a part of it, at least its longest word, is in
 * memory at a time. The text may be compressed by gzip, if libgrad was built with zlib. It is normalised before added
 * tokens are found. An existing file is replaced only when the new one is whole. Fails with LG_ERR_IO, with
 * LG_ERR_STATE as lg_tokenizer_encode() and if the file's regular expressions look back, and with LG_ERR_ARGUMENT if an
 * id does not fit .bits or there is no eos.
 * Example: lg_tokenizer_encode_file(t, "book.txt", "book.bin", .add_eos = true) */
#define lg_tokenizer_encode_file(...)                                                                                  \
        LG_CALL3(lg_tokenizer_encode_file_with, lg_tokenizer_encode_file_options,                                      \
                 lg_tokenizer_encode_file_takes_t_from_to, V, V, V, __VA_ARGS__)
LG_API bool lg_tokenizer_encode_file_with(lg_tokenizer *t, const char *from, const char *to,
                                          const lg_tokenizer_encode_file_options *options);

/* ---- from ids to text ---- */

typedef struct lg_tokenizer_decode_options {
        LG_OPTIONS_HEAD
        bool skip_special LG_DEFAULT; /* leaves out special tokens; default false */
        int64_t *bytes LG_DEFAULT;    /* receives the bytes of the text, which may have NULs; default: none */
} lg_tokenizer_decode_options;
/* Returns the text of ids, a tensor i64 or i32 of any shape on any device, followed by a NUL. The text belongs to the
 * tokenizer and lasts until its next call of lg_tokenizer_decode() or lg_tokenizer_next(). It is not UTF-8 where ids
 * begin or end within a character. An id without a token is LG_ERR_ARGUMENT.
 * Example: lg_tokenizer_decode(t, ids, .skip_special = true) */
#define lg_tokenizer_decode(...)                                                                                       \
        LG_CALL2(lg_tokenizer_decode_with, lg_tokenizer_decode_options, lg_tokenizer_decode_takes_t_ids, V, V,         \
                 __VA_ARGS__)
LG_API const char *lg_tokenizer_decode_with(lg_tokenizer *t, lg_tensor *ids,
                                            const lg_tokenizer_decode_options *options);

/* The state of a text that is decoded token by token: {0} at its beginning. */
typedef struct lg_text_stream {
        int64_t bytes;         /* of the text that lg_tokenizer_next() returned last */
        int32_t count;         /* bytes in `held` */
        unsigned char held[4]; /* the beginning of a character that later tokens complete */
} lg_text_stream;
/* Returns the text that one more id adds, as whole UTF-8 characters, followed by a NUL: "" if the id only begins a
 * character. Bytes that cannot become a character are U+FFFD. An id of -1 ends the text and returns what is left. The
 * text belongs to the tokenizer until its next call of lg_tokenizer_decode() or lg_tokenizer_next(). An id without a
 * token is LG_ERR_ARGUMENT.
 * Example: fputs(lg_tokenizer_next(t, &stream, id), stdout); */
LG_API const char *lg_tokenizer_next(lg_tokenizer *t, lg_text_stream *stream, int64_t id);

LG_END_C
#endif
