"""Mutation operators for C: generate small faults from a source text.

Faults change function bodies only. Comments, strings, preprocessor lines, assertions and memory
orders stay unchanged. The models in tests/models check memory orders.

No library has fitting operators: universalmutator changes lines by regular expressions, also
assertions and memory orders.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

TOKEN = re.compile(
    r"""(?P<skip>/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\s+
        |(?:(?<=\n)|\A)[ \t]*\#(?:[^\n\\]|\\.)*)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<number>0[xX][0-9a-fA-F]+[uUlL]*|\d+[uUlL]*)
    |(?P<sign><<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%&|^~!<>=?:;,.(){}\[\]])
    """,
    re.VERBOSE | re.DOTALL,
)

# Binary operators and their replacements.
BINARY = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
    "+": "-", "-": "+", "*": "/", "/": "*", "%": "/", "<<": ">>", ">>": "<<",
    "&": "|", "|": "&", "&&": "||", "||": "&&",
    "+=": "-=", "-=": "+=", "|=": "&=", "&=": "|=",
}  # fmt: skip
STEPS = {"++": "--", "--": "++"}
TRUTH = {"true": "false", "false": "true"}
KEYWORDS = {"return", "goto", "break", "continue", "case", "default", "if", "while", "for", "do"}
KEYWORDS |= {"else", "switch", "sizeof", "static", "const", "struct", "unsigned", "char"}
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
LEFT_ALONE = {"MEMRT__ASSERT", "MEMRT__ASSERT_HELD", "MEMRT__HOLDS", "_Static_assert"}


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True)
class Fault:
    """A piece of the source text with its replacement, and a description of the fault."""

    start: int
    end: int
    text: str
    what: str


def tokens_of(source: str) -> list[Token]:
    found = (Token(m.lastgroup or "", m.group(), m.start()) for m in TOKEN.finditer(source))
    return [token for token in found if token.kind != "skip"]


def closing(tokens: list[Token], at: int) -> int:
    """Return the index of the bracket that closes the bracket at index `at`."""
    opens, closes = tokens[at].text, {"(": ")", "{": "}", "[": "]"}[tokens[at].text]
    depth = 0
    for index in range(at, len(tokens)):
        depth += (tokens[index].text == opens) - (tokens[index].text == closes)
        if depth == 0:
            return index
    return len(tokens) - 1


def bodies(tokens: list[Token]) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each function body: outermost braces after a parenthesis."""
    index = 0
    while index < len(tokens):
        if tokens[index].text != "{":
            index += 1
            continue
        end = closing(tokens, index)
        if tokens[index - 1].text == ")":
            yield index + 1, end
        index = end + 1


def constant(token: Token) -> Iterator[Fault]:
    digits = token.text.rstrip("uUlL")
    octal = digits.startswith("0") and digits.isdecimal()
    value = int(digits, 8 if octal else 0)
    suffix = token.text[len(digits) :]
    for other in {value + 1, value - 1} - {-1}:
        yield Fault(token.start, token.end, f"{other}{suffix}", f"{token.text} → {other}")


def is_between(source: str, token: Token) -> bool:
    """Return True for a binary operator: spaces surround it, unlike a pointer or unary sign."""
    return source[token.start - 1] == " " and source[token.end] in " \n"


def swaps(source: str, token: Token) -> Iterator[Fault]:
    """Yield the faults of one token."""
    if token.kind == "number":
        yield from constant(token)
    for table, applies in (
        (BINARY, token.kind == "sign" and is_between(source, token)),
        (STEPS, token.kind == "sign"),
        (TRUTH, token.kind == "word"),
    ):
        if applies and token.text in table:
            other = table[token.text]
            yield Fault(token.start, token.end, other, f"{token.text} → {other}")
    if token.text == "!":
        yield Fault(token.start, token.end, "", "! removed")


def negation(tokens: list[Token], at: int) -> Iterator[Fault]:
    """Yield the two edits that negate the condition of an `if`."""
    if tokens[at].text == "if" and tokens[at + 1].text == "(":
        opens, closes = tokens[at + 1], tokens[closing(tokens, at + 1)]
        yield Fault(opens.end, opens.end, "!(", "condition negated")
        yield Fault(closes.start, closes.start, ")", "condition negated")


def is_statement(tokens: list[Token], at: int) -> bool:
    """Return True if a call or an assignment begins at index `at`, and not a declaration."""
    begins = tokens[at - 1].text in {";", "{", "}"}
    token, following = tokens[at], tokens[at + 1].text
    if not begins or token.text in KEYWORDS | LEFT_ALONE:
        return False
    if token.text == "*":
        return True
    return token.kind == "word" and following in {"(", "->", ".", "[", "++", "--"} | ASSIGNMENTS


def removal(source: str, tokens: list[Token], at: int) -> Iterator[Fault]:
    if not is_statement(tokens, at):
        return
    index = at
    while tokens[index].text != ";":
        if tokens[index].text in "([{":
            index = closing(tokens, index)
        if tokens[index].text == "}" or index + 1 >= len(tokens):
            return
        index += 1
    start, end = tokens[at].start, tokens[index].start
    yield Fault(start, end, "(void)0", f"removed: {' '.join(source[start:end].split())}")


def faults_in(
    source: str, tokens: list[Token], begin: int, end: int
) -> Iterator[tuple[Fault, ...]]:
    """Yield the mutants of one function body."""
    index, heads_end = begin, begin
    while index < end:
        text = tokens[index].text
        if text in LEFT_ALONE:
            index = closing(tokens, index + 1)
        if text == "for":
            heads_end = closing(tokens, index + 1)
        yield from ((fault,) for fault in swaps(source, tokens[index]))
        pair = tuple(negation(tokens, index))
        if pair:
            yield pair
        if index > heads_end or index == begin:
            yield from ((fault,) for fault in removal(source, tokens, index))
        index += 1


def faults(source: str) -> Iterator[tuple[Fault, ...]]:
    """Yield all mutants of a source text, each as a tuple of faults to apply together."""
    tokens = tokens_of(source)
    for begin, end in bodies(tokens):
        yield from faults_in(source, tokens, begin, end)


def apply(source: str, mutant: tuple[Fault, ...]) -> str:
    for fault in sorted(mutant, key=lambda f: f.start, reverse=True):
        source = source[: fault.start] + fault.text + source[fault.end :]
    return source
