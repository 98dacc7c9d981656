"""List all messages of the program, so that somebody can read them.

``python -m scripts.list_messages`` prints them, each with the first place where it stands.

A message is a text of two words or more that is raised, warned of, logged, written to the
terminal or shown by help; what stands in braces is filled in when it is said.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("sim", "predictors", "workloads", "hydra_plugins")


def text_of(node: ast.expr) -> str:
    """Return a literal's text, with braces for what is filled in; empty for anything else."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(text_of(one) if isinstance(one, ast.Constant) else "{}" for one in parts)
        case ast.BinOp(left=left, right=right):
            return text_of(left) + text_of(right)
    return ""


def documented(tree: ast.Module) -> set[ast.AST]:
    """Return the nodes of docstrings, and of texts below assignments that say what these are."""
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines and texts of a module's messages."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    left, inside = documented(tree), set()
    for node in ast.walk(tree):
        if node in left or node in inside or not isinstance(node, ast.Constant | ast.JoinedStr):
            continue
        inside.update(ast.walk(node))
        text = " ".join(text_of(node).split())
        if len(text.split()) > 1 and sum(map(str.isalpha, text)) > len(text) // 2:
            yield node.lineno, text


def listed() -> list[str]:
    """Return all messages, each once, with the first place where it stands."""
    found: dict[str, str] = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for line, text in messages(path):
                found.setdefault(text, f"{path.relative_to(ROOT)}:{line}")
    return [f"{place}: {text}" for text, place in found.items()]


if __name__ == "__main__":
    print("\n".join(listed()))
