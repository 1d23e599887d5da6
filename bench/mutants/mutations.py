"""Small changes of a module, each of which a test should notice: operators, constants, negations, dropped calls."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change: where, what was there, what is there now, and the whole module with it.

    ``function`` has the lines of the outermost function around it; None for what is evaluated by an import.
    """

    line: int
    before: str
    after: str
    tree: ast.Module
    function: range | None

    @property
    def text(self) -> str:
        """The mutated module's source."""
        return ast.unparse(self.tree)


def count(source: str) -> int:
    """How many mutations a module has."""
    return len(list(_changes(ast.parse(source))))


def mutation(source: str, number: int) -> Mutation:
    """The mutation of that number, from 0. Raises IndexError when the module has fewer."""
    tree = ast.parse(source)
    node, change = list(_changes(tree))[number]
    before, around = ast.unparse(node), _function(tree.body, node)
    for name, value in change.items():
        setattr(node, name, value)
    ast.fix_missing_locations(tree)
    return Mutation(getattr(node, "lineno", 0), before, ast.unparse(node), tree, around)


def _function(body: Iterable[ast.stmt], node: ast.AST) -> range | None:
    """The lines of the outermost function, or method, whose body has the node."""
    for one in body:
        if isinstance(one, ast.ClassDef) and (found := _function(one.body, node)) is not None:
            return found
        if isinstance(one, ast.FunctionDef) and any(node in ast.walk(statement) for statement in one.body):
            first = min([one.lineno, *(decorator.lineno for decorator in one.decorator_list)])
            return range(first, (one.end_lineno or one.lineno) + 1)
    return None


def _changes(tree: ast.Module) -> Iterator[tuple[ast.AST, dict[str, object]]]:
    return ((node, change) for node in _nodes(tree) if (change := _change(node)))


def _nodes(tree: ast.Module) -> Iterator[ast.AST]:
    """Expressions and calls that decide something; annotations, decorators and texts do not."""
    skipped = set[ast.AST]()
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            skipped.update(ast.walk(node.annotation))
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            skipped.update(ast.walk(node.returns))
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            skipped.update(one for decorator in node.decorator_list for one in ast.walk(decorator))
        if isinstance(node, ast.JoinedStr):
            skipped.update(ast.walk(node))
    return (node for node in ast.walk(tree) if node not in skipped)


def _change(node: ast.AST) -> dict[str, object]:
    """The fields of a node that a mutation sets; empty where there is nothing to change."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in _COMPARISONS:
            return {"ops": [_COMPARISONS[type(op)]()]}
        case ast.BoolOp(op=op):
            return {"op": ast.Or() if isinstance(op, ast.And) else ast.And()}
        case ast.IfExp(body=body, orelse=orelse):
            return {"body": orelse, "orelse": body}
        case ast.Constant(value=bool() as value):
            return {"value": not value}
        case ast.Constant(value=int() as value):
            return {"value": value + 1}
        case ast.BinOp(op=op) if type(op) in _ARITHMETIC:
            return {"op": _ARITHMETIC[type(op)]()}
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return {"operand": ast.UnaryOp(ast.Not(), operand)}
        case ast.Expr(value=ast.Call()):
            return {"value": ast.Constant(None)}
    return {}
