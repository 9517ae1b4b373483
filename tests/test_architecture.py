"""The shape of the package: which way imports point, what an import costs, which names are public."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import wsabi

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "wsabi"

# Data flows down these lists, so an import may point to the same line or to one above it, never below, and never in a
# circle. Every package and every module of the core has a line.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors",),
    ("_core",),
    ("priors", "gp"),
    ("settings", "ledger", "model"),
    ("quadrature",),
    ("posterior",),
    ("adaptive", "likelihood"),
    ("report",),
    ("strategies",),
    ("runs",),  # a run in a file and on workers: the integrator writes to it, and it knows nothing of the integrator
    ("course",),  # a run from its first event: logbook, strategy, values
    ("running", "replay", "conclusion"),
    ("run",),
    ("integrator",),
    ("comparison", "following"),
    ("integrate", "load"),
)
# The same inside the default engine, module by module: search and symmetry need each other's.
ADAPTIVE: tuple[tuple[str, ...], ...] = (
    ("tuning",),
    ("surrogate.interactions", "surrogate.students"),
    ("surrogate.theta",),
    ("surrogate.frame", "surrogate.model"),
    ("surrogate.learning",),
    ("search.ascent", "search.explorer"),
    ("search.ground", "search.hidden", "search.matching", "search.trust_region"),
    ("search.proposing", "symmetry.group"),
    ("search.known_regions", "symmetry.candidates"),
    ("search.leads", "search.search", "symmetry.proof"),
    ("purposes",),
    ("evaluations", "models"),
    ("check.crossfit", "check.left_out", "check.pareto", "check.proposal"),
    ("check.controls",),
    ("check.residuals",),
    ("check.combine", "bulk.tally"),
    ("bulk.population",),
    ("bulk.sample",),
    ("bulk.planning", "state"),
    ("estimate",),
    ("policy",),
    ("rebuilding", "searches", "told", "unasked"),
    ("batches",),
    ("algorithm",),
)
# They import the core. What `result.plot` needs of them is loaded by _core/edges.py when it is asked for.
EDGES = {"baselines", "bridges", "cli", "pages", "plots", "reproduce"}
UNRANKED = {*EDGES, "problems", "result"}  # result.py is bare data that anything may build
USERS_OF_PROBLEMS = {"cli", "reproduce"}
CORE_NEEDS = {"numpy", "scipy", "cma"}
OPTIONAL = {  # of use where installed: threads.py loses nothing but speed without, executors.py needs them for client=
    "threads.py": {"threadpoolctl"},
    "executors.py": {"distributed", "cloudpickle"},
    "display.py": {"rich"},
}
LIGHT = {"numpy", "scipy.linalg", "scipy.special"}  # all that a core module may import before it is used
HEAVY = ("numpy", "scipy", "matplotlib", "cma", "rich", "typer", "wsabi.integrator")
HEAVY_ENGINE = ("scipy.stats", "scipy.optimize", "scipy.spatial", "matplotlib", "cma", "rich", "typer")
MODERN_RANDOM = {"BitGenerator", "Generator", "PCG64", "Philox", "SeedSequence", "default_rng"}
STATE = {"get_state", "seed", "set_state"}  # not draws: a test looks at the global state, a benchmark seeds its peers'

Graph = dict[str, set[str]]
Layers = tuple[tuple[str, ...], ...]


def for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def statements(tree: ast.AST, *, lazy: bool) -> Iterator[ast.AST]:
    """Every node that can run; with ``lazy=False`` only those that run on import."""
    for node in ast.iter_child_nodes(tree):
        if for_types_only(node):
            continue
        yield node
        if lazy or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from statements(node, lazy=lazy)


def imports(path: Path, root: Path = PACKAGE, *, lazy: bool = True) -> set[str]:
    """Dotted names imported by a file, relative ones made absolute; ``from a import b`` gives a.b."""
    package = (root.name, *path.relative_to(root).parent.parts)
    found: set[str] = set()
    for node in statements(ast.parse(path.read_text(encoding="utf-8")), lazy=lazy):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            found |= {f"{module}.{alias.name}" for alias in node.names}
    return found


def unit(path: Path, root: Path = PACKAGE) -> str:
    """The top-level module or subpackage to which a file belongs."""
    return path.relative_to(root).parts[0].removesuffix(".py")


def package_graph(root: Path = PACKAGE) -> Graph:
    """What each unit imports of the same package. The package's own __init__ is the door and has no place in it."""
    files = [path for path in root.rglob("*.py") if path != root / "__init__.py"]
    graph: Graph = {unit(path, root): set() for path in files}
    for path in files:
        names = {name.split(".")[1] for name in imports(path, root) if name.startswith(f"{root.name}.")}
        graph[unit(path, root)] |= (names & graph.keys()) - {unit(path, root)}
    return graph


def module_graph(root: Path = PACKAGE, inside: str = "") -> Graph:
    """What each module of a package imports of the others, by dotted names; an __init__ that only lists is none."""
    folder = root / inside
    prefix = ".".join([root.name, *([inside] if inside else [])])
    files = {path: path.relative_to(folder).with_suffix("").parts for path in folder.rglob("*.py")}
    graph: Graph = {".".join(parts): set() for parts in files.values() if parts[-1] != "__init__"}
    for path, parts in files.items():
        if parts[-1] == "__init__":
            continue
        names = [name.removeprefix(f"{prefix}.") for name in imports(path, root) if name.startswith(f"{prefix}.")]
        # ``from a import b`` is seen as a.b: b is a module, or a name in the module a.
        used = {name if name in graph else name.rpartition(".")[0] for name in names}
        graph[".".join(parts)] = (used & graph.keys()) - {".".join(parts)}
    return graph


def reachable(graph: Graph, start: str) -> set[str]:
    """All units that importing ``start`` may load. result.py is bare data that anything may build: it ends a path."""
    seen: set[str] = set()
    todo = [start]
    while todo:
        for name in graph[todo.pop()] - seen - {"result"}:
            seen.add(name)
            todo.append(name)
    return seen


def wrong_arrows(graph: Graph, layers: Layers = LAYERS) -> list[str]:
    """The imports, direct or by way of others, that point against the flow of data, and the units without a place."""
    rank = {name: number for number, layer in enumerate(layers) for name in layer}
    wrong = [f"{name}: no rank" for name in sorted(graph.keys() - rank.keys() - UNRANKED)]
    for name in sorted(graph.keys() - EDGES - {"problems"}):
        for other in sorted(reachable(graph, name)):
            if other in EDGES:
                wrong.append(f"{name} -> {other}: the core imports an edge")
            elif other == name:
                wrong.append(f"{name} -> {other}: a circle")
            elif rank.get(other, -1) > rank.get(name, len(layers)):
                wrong.append(f"{name} -> {other}: against the flow of data")
    users = {name for name, used in graph.items() if "problems" in used}
    wrong += [f"{name} -> problems: for tests, benchmarks and docs" for name in sorted(users - USERS_OF_PROBLEMS)]
    return wrong


def core_files() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if unit(path) not in EDGES]


def covered_by(name: str, allowed: Iterable[str]) -> bool:
    return any(name == prefix or name.startswith(f"{prefix}.") for prefix in allowed)


def legacy_draws(source: str, allowed: Iterable[str] = ()) -> list[str]:
    """Uses of NumPy's global random state, as ``line: expression``."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in {"np.random", "numpy.random"}:
            names = [node.attr]
        elif isinstance(node, ast.ImportFrom) and node.module == "numpy.random":
            names = [alias.name for alias in node.names]
        else:
            continue
        found += [f"{node.lineno}: {ast.unparse(node)}" for name in names if name not in {*MODERN_RANDOM, *allowed}]
    return found


def test_imports_point_back_along_the_flow_of_data():
    assert wrong_arrows(package_graph()) == []


def test_imports_inside_the_engine_do_too():
    assert wrong_arrows(module_graph(inside="adaptive"), ADAPTIVE) == []


def test_what_is_ranked_exists():
    assert {name for layer in LAYERS for name in layer} | UNRANKED == package_graph().keys()
    assert {name for layer in ADAPTIVE for name in layer} == module_graph(inside="adaptive").keys()


def test_no_two_modules_need_each_other():
    graph = module_graph()
    assert [name for name in graph if name in reachable(graph, name)] == []


def test_no_package_does_more_than_list():
    """But for the public functions of embeddings, and for the hooks of the door that load a name when it is used.

    An __init__ has no place in the graphs.
    """
    files = [path for path in PACKAGE.rglob("__init__.py") if path.parent.name not in {*UNRANKED, "embeddings"}]
    code = {path: [node for node in ast.parse(path.read_text("utf-8")).body if is_definition(node)] for path in files}
    assert [str(path) for path, nodes in code.items() if nodes] == []


def is_definition(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("__")


def test_every_import_of_the_package_by_itself_is_seen():
    graph = package_graph()
    assert graph["priors"] == {"_core", "errors"}  # an empty graph would pass the tests above
    assert "surrogate.theta" in module_graph(inside="adaptive")["surrogate.frame"]
    assert "_core.types" in module_graph()["priors.gaussian"]


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({"priors": "from wsabi.quadrature import GP", "quadrature": ""}, "priors -> quadrature: against"),
        ({"priors": "from .quadrature import GP", "quadrature": ""}, "priors -> quadrature: against"),
        ({"priors": "def f():\n    from wsabi import quadrature", "quadrature": ""}, "priors -> quadrature: against"),
        ({"priors": "import wsabi.extra", "extra": "import wsabi.run", "run": ""}, "priors -> run: against"),
        ({"extra": ""}, "extra: no rank"),
        ({"gp": "import wsabi.priors", "priors": "import wsabi.gp"}, "gp -> gp: a circle"),
        ({"run": "from wsabi.plots import draw", "plots": ""}, "run -> plots: the core imports an edge"),
        ({"run": "import wsabi.problems", "problems": ""}, "run -> problems: for tests"),
        ({"baselines": "import wsabi.problems", "problems": ""}, "baselines -> problems: for tests"),
    ],
)
def test_an_arrow_the_wrong_way_is_caught(tmp_path, files, complaint):
    graph = package_graph(write_package(tmp_path, files))
    assert any(line.startswith(complaint) for line in wrong_arrows(graph)), wrong_arrows(graph)


@pytest.mark.parametrize(
    "files",
    [
        {"run": "from wsabi.gp import GP", "gp": "from wsabi.priors import SE", "priors": ""},
        {"quadrature": "from wsabi.result import Result", "result": "from wsabi.run import Step", "run": ""},
        {"priors": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import wsabi.run", "run": ""},
        {"cli": "import wsabi.problems, wsabi.run", "problems": "import wsabi.priors", "run": "", "priors": ""},
    ],
)
def test_an_arrow_the_right_way_is_allowed(tmp_path, files):
    assert wrong_arrows(package_graph(write_package(tmp_path, files))) == []


def test_an_arrow_the_wrong_way_inside_the_engine_is_caught(tmp_path):
    root = write_package(tmp_path, {})
    for name, text in {"policy": "from wsabi.adaptive import algorithm", "algorithm": "", "spare": ""}.items():
        path = root / "adaptive" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    wrong = wrong_arrows(module_graph(root, "adaptive"), ADAPTIVE)
    assert wrong == ["spare: no rank", "policy -> algorithm: against the flow of data"]


def write_package(folder: Path, files: dict[str, str]) -> Path:
    root = folder / "wsabi"
    root.mkdir()
    for name, text in files.items():
        (root / f"{name}.py").write_text(text, encoding="utf-8")
    return root


@pytest.mark.parametrize("path", core_files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_core_needs_numpy_scipy_and_cma_only(path):
    allowed = {*CORE_NEEDS, *OPTIONAL.get(path.name, ()), "wsabi", *sys.stdlib_module_names}
    assert {name for name in imports(path) if not covered_by(name, allowed)} == set()


@pytest.mark.parametrize("path", core_files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_core_imports_nothing_heavy_before_it_is_used(path):
    allowed = {*LIGHT, "wsabi", *sys.stdlib_module_names}
    assert {name for name in imports(path, lazy=False) if not covered_by(name, allowed)} == set()


def test_only_a_few_modules_ask_for_an_edge():
    """By name, where the imports that the tests above read cannot show it."""
    users = {str(path.relative_to(PACKAGE)) for path in core_files() if "_core.edges" in path.read_text("utf-8")}
    assert users == {"comparison.py", "result.py"}


@pytest.mark.parametrize(("module", "heavy"), [("wsabi", HEAVY), ("wsabi.integrator", HEAVY_ENGINE)])
def test_an_import_is_light(module, heavy):
    code = f"import sys, {module}; print(*[name for name in {heavy!r} if name in sys.modules])"
    environment = os.environ | {"PYTHONPATH": str(PACKAGE.parent)}
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.split() == []


@pytest.mark.parametrize("folder", ["src", "tests", "examples", "benchmarks"])
def test_no_draw_from_the_global_random_state(folder):
    allowed = STATE if folder in ("tests", "benchmarks") else ()
    files = {path.relative_to(ROOT): path.read_text("utf-8") for path in sorted((ROOT / folder).rglob("*.py"))}
    found = [f"{name}:{use}" for name, source in files.items() for use in legacy_draws(source, allowed)]
    assert found == []


def test_a_draw_from_the_global_random_state_is_caught():
    assert legacy_draws("import numpy as np\nx = np.random.normal(size=3)") == ["2: np.random.normal"]
    assert legacy_draws("from numpy.random import seed") == ["1: from numpy.random import seed"]
    assert legacy_draws("def f(rng: np.random.Generator): return rng.normal()") == []


def test_public_names_exist_and_are_listed_once():
    assert len(set(wsabi.__all__)) == len(wsabi.__all__)
    assert [name for name in wsabi.__all__ if not hasattr(wsabi, name)] == []
    assert set(wsabi.__all__) <= set(dir(wsabi))


def test_a_name_that_the_door_does_not_have_is_said_so():
    with pytest.raises(AttributeError, match="module 'wsabi' has no attribute 'evidence'"):
        _ = wsabi.evidence


def test_the_door_is_a_function_whatever_is_imported_first():
    """`wsabi.integrate` and `wsabi.load` are modules too, and Python gives their names to them when they are loaded."""
    code = "import wsabi.load, wsabi.integrate, wsabi; print(callable(wsabi.load) and callable(wsabi.integrate))"
    environment = os.environ | {"PYTHONPATH": str(PACKAGE.parent)}
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.split() == ["True"]


@pytest.mark.parametrize("path", core_files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_core_module_lists_its_names(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
