"""header_comments - reads the public headers: their sections, and each declaration with the comments that describe it.

The headers must have the form of libgrad/grad/*.h: a comment is directly before the declarations that it describes, a
group of declarations ends with an empty line, a section begins with "/* ---- title ----". Code for C++ is skipped.
"""
import re
from dataclasses import dataclass, field


@dataclass
class Section:
    title: str
    text: str


@dataclass
class Declaration:
    kind: str  # function, macro, struct, enum, callback or type
    name: str
    code: str  # without comments, LG_API and LG_NEW
    comment: str  # the comment before the declaration
    trailing: str  # comments on the lines of the declaration, after its code
    line: int
    section: Section
    members: list = field(default_factory=list)  # of structs and enums: (code, comment)
    new: bool = False  # of functions: has LG_NEW, so it returns a new object


@dataclass
class Header:
    name: str
    title: str
    text: str
    sections: list = field(default_factory=list)
    declarations: list = field(default_factory=list)


COMMENT = re.compile(r'/\*(.*?)\*/', re.S)


def words(comment):
    """Returns the text of a comment, without its stars."""
    lines = re.sub(r'^\s*/\*|\*/\s*$', '', comment.strip()).split('\n')
    return '\n'.join([lines[0].strip()] + [re.sub(r'^\s*\* ?', '', line).rstrip() for line in lines[1:]]).strip()


def parts(text):
    """Splits the text of a comment into (is an example, lines): examples are indented, or begin with "Example:"."""
    found, example = [], False
    for line in text.split('\n'):
        begin = re.match(r'Examples?: ?(.*)', line)
        example = bool(begin) or (example and line.strip() != '')
        code = example or line.startswith('    ')
        if begin:
            line = begin.group(1)
        elif code:
            line = re.sub('^    ', '', line)
        if not found or found[-1][0] != code or begin:
            found.append((code, []))
        found[-1][1].append(line)
    return found


def for_c(lines):
    """Returns the numbered lines that a C compiler with GNU's extensions reads, without includes and guards."""
    kept, states = [], []
    for number, line in enumerate(lines, 1):
        if match := re.match(r'#\s*(ifdef|ifndef|if|else|endif)\b\s*(.*)', line):
            word, condition = match.groups()
            if word == 'endif':
                states.pop()
            elif word == 'else':
                states[-1] = not states[-1]
            else:
                states.append('__cplusplus' not in condition)
        elif all(states) and not re.match(r'#\s*include|LG_BEGIN$|LG_END_C$', line):
            kept.append((number, line))
    return kept


def read_until(lines, at, ended):
    """Returns the text from line `at` up to the line at which ended(text) is true, and the index of the next line."""
    text = lines[at][1]
    while not ended(text) and at + 1 < len(lines):
        at += 1
        text += '\n' + lines[at][1]
    return text, at + 1


def split_comments(text):
    return COMMENT.sub('', text), ' '.join(words(c.group(0)) for c in COMMENT.finditer(text))


def members(body, end):
    """Returns the members of a struct (end ';') or enum (end ',') with their comments, from the lines before or the same line."""
    body = re.sub(r'LG_(OPTIONS|FIELD|FIELDS|DEVICE)_HEAD\b', '', body.replace('LG_DEFAULT', ''))
    body = re.sub(r'LG_COUNT_HEAD\((\w+)\)', r'int \1;', body)
    found, before, code, depth, fresh = [], '', '', 0, True  # fresh: no code since the last line end
    for token in re.findall(r'/\*.*?\*/|[^/]|/', body, re.S):
        if token.startswith('/*'):
            if code.strip() or fresh or not found:
                before = (before + ' ' + words(token)).strip()
            else:
                found[-1] = (found[-1][0], (found[-1][1] + ' ' + words(token)).strip())
            continue
        depth += token.count('(') + token.count('{') - token.count(')') - token.count('}')
        if token == '\n':
            fresh = fresh or not code.strip()
        code += token
        if token == end and depth == 0:
            found.append((code, before))
            code, before, fresh = '', '', False
    if code.strip():
        found.append((code, before))
    return [(' '.join(c.split()).replace(' ;', ';'), comment) for c, comment in found if c.strip()]


def declaration(text, line, comment, section):
    code, trailing = split_comments(text)
    code = ' '.join(code.split())
    if code.startswith('#'):
        name = re.match(r'#\s*define (\w+)', code).group(1)
        return Declaration('macro', name, code, comment, trailing, line, section)
    bare = re.sub(r'\b(LG_API|LG_NEW|extern|LG_PRINTF\([^)]*\))\s*', '', code).strip()
    if code.startswith('LG_API') or 'LG_API' in code:
        name = re.search(r'(\w+)(?:\[\w*\])?\s*(?:\(|;)', bare).group(1)
        return Declaration('function', name, bare, comment, trailing, line, section, new='LG_NEW' in code)
    if re.match(r'(__extension__ )?typedef (struct|enum)\b[^;]*\{', code):
        kind = 'enum' if 'enum' in code.split('{')[0] else 'struct'
        body = text[text.index('{') + 1:text.rindex('}')]
        name = re.search(r'\}\s*(\w+)', code[code.rindex('}'):]).group(1)
        after = split_comments(text[text.rindex('}'):])[1]
        return Declaration(kind, name, bare, comment, after, line, section, members(body, ',' if kind == 'enum' else ';'))
    if match := re.search(r'typedef .*?(\w+)\(', bare):
        return Declaration('callback', match.group(1), bare, comment, trailing, line, section)
    name = re.search(r'(\w+)\s*;', bare)
    return Declaration('type', name.group(1) if name else '', bare, comment, trailing, line, section)


def read(path):
    lines = for_c(open(path, encoding='ascii').read().split('\n'))
    header, comment, at = None, '', 0
    section = Section('', '')
    while at < len(lines):
        number, line = lines[at]
        if not line.strip():
            comment, at = '', at + 1
        elif line.startswith('/*'):
            text, at = read_until(lines, at, lambda t: '*/' in t)
            text = words(text)
            if header is None:
                first, _, rest = text.partition('\n')
                if rest and not rest.startswith('\n'):  # the title has two lines
                    more, _, rest = rest.partition('\n\n')
                    first += ' ' + more
                name, _, title = first.partition(' - ')
                header = Header(name, title, ' ' and rest.strip())
                section = Section('', header.text)
            elif text.startswith('----'):
                first, _, rest = text.partition('\n')
                section = Section(first.strip('- '), rest.strip())
                header.sections.append(section)
                comment = ''
            else:
                comment = text
        elif line.startswith('#'):
            text, at = read_until(lines, at, lambda t: not t.endswith('\\') and t.count('/*') == t.count('*/'))
            text = text.replace('\\\n', '\n')
            if re.match(r'#\s*(pragma|define LG_\w+_H$)', line):
                continue
            header.declarations.append(declaration(text, number, comment, section))
        else:
            text, at = read_until(lines, at, lambda t: t.count('{') == t.count('}') and
                                  t.count('/*') == t.count('*/') and split_comments(t)[0].rstrip().endswith(';'))
            header.declarations.append(declaration(text, number, comment, section))
    return header
