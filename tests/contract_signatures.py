"""How docs/contract.md shows a name of the contract; run as a script to print the blocks for given names."""

import ast
import dataclasses
import inspect
import sys
import textwrap

import vsr_core.contract as contract


def signature_block(name):
    """The code block for a class or function: its header, fields or methods, without bodies and docstrings."""
    thing = getattr(contract, name)
    tree = ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]
    if isinstance(tree, ast.FunctionDef):
        return _function(tree)
    lines = [_class_header(tree)]
    for node in tree.body:
        if (isinstance(node, ast.AnnAssign) and not ast.unparse(node.target).startswith("_")) or isinstance(
            node, ast.Assign
        ):
            lines.append(f"    {ast.unparse(node)}")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            lines.extend(f"    {line}" for line in _function(node).splitlines())
    if len(lines) == 1:
        lines.append("    ...")
    return "\n".join(lines)


def _class_header(tree):
    bases = [ast.unparse(base) for base in tree.bases]
    return f"class {tree.name}({', '.join(bases)}):" if bases else f"class {tree.name}:"


def _function(node):
    decorators = [f"@{ast.unparse(item)}" for item in node.decorator_list]
    keyword = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    return "\n".join([*decorators, f"{keyword} {node.name}({ast.unparse(node.args)}){returns}"])


def described_names():
    """Every class and function of the contract that a document could show."""
    return [
        name
        for name in contract.__all__
        if inspect.isfunction(getattr(contract, name))
        or (
            inspect.isclass(getattr(contract, name))
            and getattr(contract, name).__module__.startswith("vsr_core.contract")
        )
    ]


def is_value(name):
    """Whether the name is a dataclass, that is a value that crosses borders."""
    return dataclasses.is_dataclass(getattr(contract, name))


if __name__ == "__main__":
    for each in sys.argv[1:] or described_names():
        print(f"```python\n{signature_block(each)}\n```\n")
