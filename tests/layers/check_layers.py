#!/usr/bin/env python3
# tests/layers/check_layers.py: arrows between modules point down, and only to what a module declares.
"""Reads every #include under tandem/ and fails on an arrow that the tables below, or a module's CMakeLists.txt, do not allow.

A module may include lower layers and itself; a module of its own layer only if its CMakeLists.txt declares it; and none that its
declared dependencies do not bring. Tests and benchmarks beside the sources keep to the layers too, but declare their own needs.
With --self-test, first proves on made-up trees that each kind of wrong arrow is found.
"""
import argparse
import re
import sys
import tempfile
from pathlib import Path

# Low to high. A module that is on no layer is an error, so that a new one is placed by decision.
LAYERS = [
    {"base"},
    {"clock", "trace", "trace_read", "model"},
    {"comm", "analysis"},
    {"runtime"},
    {"dist"},
    {"sim_rank"},
    {"sim"},
    {"api"},
    {"linalg"},
]

# What each part of the runtime may include besides itself. `(root)` is the files of tandem/runtime itself, its core.
# data and task know each other: a handle lists the tasks that use it, a task the handles it uses. Submission hands tasks to a
# recorder, and a recorded graph submits itself to the core.
RUNTIME_PARTS = {
    "data": {"task"},
    "task": {"data"},
    "memory": {"data", "task"},
    "machine": {"data", "task"},
    "sched": {"data", "task", "machine"},
    "exec": {"data", "task", "memory", "sched"},
    "device": {"data", "task", "memory", "exec"},
    "worker": {"data", "task", "machine", "memory", "sched", "exec", "device"},
    "submit": {"data", "task", "memory", "sched", "exec", "record"},
    "event": {"data", "task", "exec", "submit", "worker"},
    "wait": {"data", "task", "exec", "submit", "worker"},
    "record": {"data", "task", "memory", "sched", "exec", "worker", "submit", "event", "wait", "(root)"},
    "(root)": {"data", "task", "machine", "memory", "sched", "exec", "device", "worker", "submit", "event", "wait", "record"},
}

# Folders inside a room, low to high; "" is the files that stand in the room itself. None includes a later one; tests may.
FOLDERS = {
    "runtime/sched": ["", "queues", "contention", "policies", "placing"],
    "analysis": ["tables", "history", "bounds", "verdict", ""],
}

# The parts of comm's engine, low to high, with their files in tandem/comm/engine. To call a part, a file must name its class, or keep the
# `EngineParts` that a constructor takes its references from. It may name parts before its own. The owners of all parts name any, and other
# files there, which hold state, none.
ENGINE_PARTS = {
    "Completions": {"completions"},
    "Peers": {"peers"},
    "PortPacing": {"port_pacing"},
    "PeerQueues": {"peer_queues"},
    "IncomingTransfers": {"incoming_transfers"},
    "Arrivals": {"arrivals", "arrivals_inline"},
    "Deferral": {"deferral"},
    "BroadcastPlanner": {"broadcast_planner"},
    "BroadcastChildren": {"broadcast_children"},
    "BroadcastRecipient": {"broadcast_recipient", "broadcast_ends"},
    "BroadcastRoot": {"broadcast_root"},
    "OutgoingTransfers": {"outgoing_transfers"},
    "Departures": {"departures"},
    "PacketSender": {"packets"},
    "Sends": {"sends", "sends_inline"},
}
ENGINE_OWNERS = {"context", "parts", "engine", "check_invariants", "describe"}

# The headers that users include stand in tandem/ itself, and belong to these modules.
UMBRELLAS = {"tandem.hpp": "api", "trace.hpp": "api", "scheduling.hpp": "api", "device.hpp": "api", "opencl.hpp": "api",
             "cuda.hpp": "api", "comm.hpp": "comm", "linalg.hpp": "linalg"}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<(tandem/[^>]+)>)', re.MULTILINE)
NAMED_PART = re.compile(rf"//.*|\b({'|'.join(ENGINE_PARTS)}|EngineParts(?!& parts[,)]))\b")
MODULE = re.compile(r"tandem_module\(\s*(\w+)([^)]*)\)")
KEYWORDS = {"SOURCES", "DEPENDS", "LIBRARIES", "PRIVATE_LIBRARIES"}


def module_of(path):
    """The module of a path below tandem/: ("runtime", "task") for runtime/task/flow.hpp, the part being None elsewhere."""
    parts = Path(path).parts
    if len(parts) == 1:
        return UMBRELLAS.get(parts[0]), None
    if parts[0] != "runtime":
        return parts[0], None
    return "runtime", parts[1] if len(parts) > 2 else "(root)"


def layer_of(module):
    return next((number for number, modules in enumerate(LAYERS) if module in modules), None)


def declared_dependencies(tandem):
    """module -> what its tandem_module(... DEPENDS ...) names."""
    declared = {}
    for lists in sorted(tandem.glob("*/CMakeLists.txt")):
        text = re.sub(r"#.*", "", lists.read_text(encoding="utf-8"))
        for name, arguments in MODULE.findall(text):
            words, keyword = declared.setdefault(name, set()), None
            for word in arguments.split():
                if word in KEYWORDS:
                    keyword = word
                elif keyword == "DEPENDS":
                    words.add(word)
    return declared


def reachable(module, declared):
    found, ahead = set(), [module]
    while ahead:
        for dependency in declared.get(ahead.pop(), ()):
            if dependency not in found:
                found.add(dependency)
                ahead.append(dependency)
    return found


def judge(source, target, declared, is_test):
    """Why this arrow is wrong, or None. Source and target are (module, part)."""
    (module, part), (other, other_part) = source, target
    if layer_of(module) is None or layer_of(other) is None:
        return f"module {other if layer_of(module) is not None else module} is on no layer"
    if module == other:
        if part == other_part or other_part in RUNTIME_PARTS.get(part, ()):
            return None
        return f"{module}/{part} may not include {other}/{other_part}"
    if layer_of(other) > layer_of(module):
        return f"{module} (layer {layer_of(module)}) may not include {other} (layer {layer_of(other)}) above it"
    if layer_of(other) == layer_of(module) and other not in declared.get(module, ()):
        return f"{module} includes {other} of its own layer, which its CMakeLists.txt does not declare"
    if not is_test and other not in reachable(module, declared):
        return f"{module} includes {other}, which its CMakeLists.txt does not bring in by DEPENDS"
    return None


def is_folder_above(inside, target):
    """Whether a file includes one of a later folder of its room; both are paths below tandem/."""
    for room, folders in FOLDERS.items():
        places = [path.relative_to(room).parts[:-1] for path in (inside, target) if path.is_relative_to(room)]
        if len(places) == 2:
            own, other = ("/".join(place) for place in places)
            return folders.index(other) > folders.index(own)
    return False


def parts_above(inside, text):
    """The parts that a file of the engine names and that are above its own, with their places in the text."""
    if inside.parent != Path("comm/engine") or inside.stem in ENGINE_OWNERS or inside.stem.endswith("_test"):
        return
    parts = [*ENGINE_PARTS, "EngineParts"]
    own = next((number for number, files in enumerate(ENGINE_PARTS.values()) if inside.stem in files), -1)
    for match in NAMED_PART.finditer(text):
        if match.group(1) and parts.index(match.group(1)) > own:
            yield match.group(1), match.start()


def wrong_arrows(root):
    tandem = root / "tandem"
    declared = declared_dependencies(tandem)
    complaints, count = [], 0
    for module, dependencies in declared.items():
        for other in dependencies:
            count += 1
            if layer_of(other) is None or layer_of(module) is None or layer_of(other) > layer_of(module):
                complaints.append(f"tandem/{module}/CMakeLists.txt: {module} declares {other}, which is not below it")
    for file in sorted(path for path in tandem.rglob("*") if path.suffix in (".hpp", ".cpp", ".h", ".c", ".cu")):
        inside = file.relative_to(tandem)
        source = module_of(inside)
        is_test = file.stem.endswith(("_test", "_bench"))
        text = file.read_text(encoding="utf-8")
        for name, place in parts_above(inside, text):
            line = text.count("\n", 0, place) + 1
            complaints.append(f"tandem/{inside}:{line}: {inside.stem} may not name {name}, a part of the engine above it")
        for match in INCLUDE.finditer(text):
            count += 1
            name = match.group(1) or match.group(2)
            line = text.count("\n", 0, match.start(match.lastindex)) + 1
            if name.startswith("tandem/"):
                target = name.removeprefix("tandem/")
                reason = judge(source, module_of(target), declared, is_test)
                if not is_test and is_folder_above(inside, Path(target)):
                    reason = f"{inside.parent} may not include {Path(target).parent}, which is above it"
            else:
                reason = f'"{name}" is not named from the include root, as "tandem/..."'
            if reason:
                complaints.append(f"tandem/{inside}:{line}: {reason}")
    return complaints, count


def self_test():
    """Each made-up tree has one wrong arrow, which is found; the last has none."""
    sound = {
        "base/CMakeLists.txt": "tandem_module(base SOURCES a.cpp)",
        "clock/CMakeLists.txt": "tandem_module(clock DEPENDS base)",
        "trace/CMakeLists.txt": "tandem_module(trace DEPENDS base)",
        "runtime/CMakeLists.txt": "tandem_module(runtime SOURCES\n  core.cpp  # the core\n  DEPENDS clock)",
        "api/CMakeLists.txt": "tandem_module(api DEPENDS runtime)",
        "runtime/core.cpp": '#include "tandem/base/a.hpp"\n#include "tandem/runtime/worker/w.hpp"\n',
        "runtime/task/t.hpp": '#include <tandem/clock/c.hpp>\n#include "tandem/runtime/data/d.hpp"\n',
        "tandem.hpp": '#include "tandem/api/r.hpp"\n',
        "comm/engine/peers.hpp": "// Below Sends.\nclass Peers {};\n",
        "comm/engine/sends.hpp": "class Sends { explicit Sends(EngineParts& parts); Peers& peers_; };\n",
        "comm/engine/parts.hpp": "struct EngineParts { Peers peers; Sends sends; };\n",
    }
    cases = {
        "upward": {"base/a.cpp": '#include "tandem/clock/c.hpp"\n'},
        "upward in angle brackets": {"base/a.cpp": "# include <tandem/clock/c.hpp>\n"},
        "upward to an umbrella header": {"runtime/core.cpp": '#include "tandem/tandem.hpp"\n'},
        "upward in a test": {"base/a_test.cpp": '#include "tandem/clock/c.hpp"\n'},
        "own layer, undeclared": {"clock/c.cpp": '#include "tandem/trace/t.hpp"\n'},
        "lower layer, undeclared": {"api/r.cpp": '#include "tandem/trace/t.hpp"\n'},
        "declared upward": {"clock/CMakeLists.txt": "tandem_module(clock DEPENDS base runtime)"},
        "inside the runtime": {"runtime/task/t.cpp": '#include "tandem/runtime/worker/w.hpp"\n'},
        "from a part to the core": {"runtime/sched/s.cpp": '#include "tandem/runtime/core.hpp"\n'},
        "to a module on no layer": {"api/r.cpp": '#include "tandem/new/n.hpp"\n'},
        "from a module on no layer": {"new/n.cpp": '#include "tandem/base/a.hpp"\n'},
        "between the folders of a room": {"runtime/sched/queues/q.hpp": '#include "tandem/runtime/sched/placing/p.hpp"\n'},
        "inside the engine": {"comm/engine/peers.hpp": "class Peers { Sends& sends_; };\n"},
        "past the references of a part": {"comm/engine/peers.hpp": "class Peers { EngineParts& parts_; };\n"},
        "from the engine's state to a part": {"comm/engine/peer.hpp": "struct Peer { Peers* all; };\n"},
        "relative": {"base/b.cpp": '#include "a.hpp"\n'},
        None: {},
    }
    for name, change in cases.items():
        with tempfile.TemporaryDirectory() as folder:
            for path, text in {**sound, **change}.items():
                file = Path(folder) / "tandem" / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            complaints, _ = wrong_arrows(Path(folder))
        if len(complaints) != (1 if name else 0):
            sys.exit(f"self-test '{name or 'sound'}': {complaints or 'nothing found'}")
    print(f"self-test: {len(cases) - 1} kinds of wrong arrows are found")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=Path, help="the root of the project")
    parser.add_argument("--self-test", action="store_true", help="first prove that wrong arrows are found")
    arguments = parser.parse_args()
    if arguments.self_test:
        self_test()
    complaints, count = wrong_arrows(arguments.root)
    if count == 0:
        sys.exit(f"{arguments.root} has no includes to look at")
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    print(f"{count} arrows, {len(complaints)} wrong")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
