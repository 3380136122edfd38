"""tokenizer.py - small vocabularies of tokenizers (PyPI), and ids of texts, for test_tokenizer.c.

Run it with a Python that has tokenizers 0.20 or later: python3 tests/data/tokenizer.py > tests/data/tokenizer.txt
A line "file NAME JSON" is a file; a line "case NAME OPTIONS TEXT IDS..." a text in hexadecimal and its ids: OPTIONS has p
for .plain, a for .add_special, - for none.
"""
import json
import random
import re

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

CORPUS = ['Once upon a time there was a small tokenizer. It\'s said that they\'ll merge the most frequent pair.',
          'for (int i = 0; i < 100; i++)\n        sum += values[i];\n\n', 'the the then other mother, 1234 1999 2024 12',
          'Ünïcödé täglich über straße', '你好世界 你好 世界', 'привет мир, привет', '🙂🙂🎉 👍🏽', '    \t\n\n  \r\n'] * 3
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SPLITS = {
    'removed': pre_tokenizers.Split(Regex(r'\s+'), 'removed'),
    'kept': pre_tokenizers.Split(Regex(r'\p{L}+|\p{N}+'), 'removed', invert=True),
    'text': pre_tokenizers.Split('. ', 'isolated'),
    'nested': pre_tokenizers.Split(Regex(r'[^(\s|[.,!?])]+'), 'isolated'),
    'empty': pre_tokenizers.Split(Regex(r'x*'), 'isolated'),
}
ALPHABET = pre_tokenizers.ByteLevel.alphabet()


def trained(pre, size, special, alphabet=ALPHABET, **model):
    t = Tokenizer(models.BPE(**model))
    t.pre_tokenizer, t.decoder = pre, decoders.ByteLevel()
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=size, special_tokens=special, initial_alphabet=alphabet,
                                                      show_progress=False))
    return t


def tokenizers():
    byte_level = pre_tokenizers.ByteLevel
    yield 'gpt2', trained(byte_level(add_prefix_space=False), 340, ['<|endoftext|>'])
    t = trained(pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), 'isolated'), byte_level(False, use_regex=False)]), 330,
                ['<s>', '</s>', '<|eot|>'], ignore_merges=True)
    t.add_tokens([AddedToken('<mask>', lstrip=True, rstrip=True, normalized=False), AddedToken('word', single_word=True),
                  AddedToken('<|eot|><|eot|>', normalized=False), AddedToken('  ', normalized=True)])
    t.post_processor = processors.TemplateProcessing(single='<s> $A </s>', special_tokens=[('<s>', 0), ('</s>', 1)])
    yield 'llama', t
    t = trained(pre_tokenizers.Sequence([pre_tokenizers.Digits(True), byte_level(True)]), 20, ['<unk>'], alphabet=[],
                unk_token='<unk>', fuse_unk=True)
    t.post_processor = processors.RobertaProcessing(('<unk>', 0), ('<unk>', 0))
    yield 'unknown', t
    for name, split in SPLITS.items():
        yield name, trained(pre_tokenizers.Sequence([split, byte_level(False, use_regex=False)]), 280, [])


def texts():
    yield from ['', ' ', '\n', 'a', "It's THE time; they'LL 'x'ſ don't", 'Once upon a time\n\n\n    x  y   ', '0123456789 1 22 333',
                'word sword wordy word. word', 'a <mask>  b<mask><mask> c', '<|eot|><|eot|><|eot|> <|eo <s>x</s><|endoftext|>', '你好世界，12。 привет',
                '🙂🎉👍🏽 \u200d\ufe0f', ' \u180ea\u00a0\u0085b \u3000c\u2028', '\x01\x02\x7f tab\tnew\r\nline\r', ' the then  the', 'e\u0301 Ünï', 'xxaxx. yxx']
    draw = random.Random(4)
    for _ in range(12):
        yield ''.join(draw.choice([' ', '  ', '\n', "'s", 'the', 'Time', '1', '22', 'é', '界', '🙂', '<mask>', 'word', '<|eot|>', '.', '_', '\t', 'ß'])
                      for _ in range(24))


def main():
    for name, t in tokenizers():
        made = json.loads(t.to_str())
        print('file', name, json.dumps(made, ensure_ascii=False, separators=(',', ':')))
        for text in texts():
            for options in ('-', 'p', 'a'):
                if options != '-' and name not in ('llama', 'unknown'):
                    continue
                t.encode_special_tokens = options == 'p'
                ids = t.encode(text, add_special_tokens=options == 'a').ids
                print('case', name, options, text.encode().hex() or '-', *ids)


if __name__ == '__main__':
    main()
