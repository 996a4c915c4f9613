#!/usr/bin/env python3
"""PTX to C: what nvcc made of the kernels, as functions that the emulated device runs.

usage: translate.py MODULE.ptx FOLDER NAME [KERNEL]

Writes FOLDER/KERNEL.c for each kernel of the module and FOLDER/functions_NAME.c for its functions;
with KERNEL that one alone.
They include tests/ptx/ptx.h, which checks every load and store. Each instruction becomes one
statement; registers become variables that hold bits. An instruction, a form or an operand that is
not known here is refused by name: nothing is guessed.
"""
import re
import sys

WIDTHS = {"pred": 1, "b8": 8, "u8": 8, "s8": 8, "b16": 16, "u16": 16, "s16": 16, "b32": 32, "u32": 32,
          "s32": 32, "f32": 32, "f16x2": 32, "b64": 64, "u64": 64, "s64": 64}
SPECIAL = {"%tid.x": "thread_index()", "%ctaid.x": "block_index()", "%ctaid.y": "block_index_y()",
           "%ntid.x": "block_size()", "%nctaid.x": "grid_size()",
           "%globaltimer": "UINT64_C(0)"}
BINARY = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^", "div": "/"}
ORDERED = {"eq": "==", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


class Refused(Exception):
    pass


def statements(text):
    """Statements, labels and braces of a body; braces of operands belong to their statement."""
    at, found = "", []
    depth = 0
    for index, letter in enumerate(text):
        if letter == "{" and not at.strip():
            found.append("{")
        elif letter == "}" and depth == 0:
            found.append("}")
            at = ""
        elif letter == ";" and depth == 0:
            found.append(" ".join(at.split()))
            at = ""
        elif letter == ":" and re.fullmatch(r"\s*[\w$]+\s*", at) and text[index + 1] != ":":
            found.append(at.strip() + ":")
            at = ""
        else:
            depth += (letter == "{") - (letter == "}")
            at += letter
    return found


def operands(text):
    """Split at commas outside of brackets."""
    parts, depth, at = [], 0, ""
    for letter in text:
        depth += (letter in "{[(") - (letter in "}])")
        if letter == "," and depth == 0:
            parts.append(at.strip())
            at = ""
        else:
            at += letter
    return parts + [at.strip()] if at.strip() else parts


def plain(name):
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


class Module:
    def __init__(self, name, text):
        self.name = name
        self.arrays = {}   # of constant and global memory: bytes
        self.shared = {}   # of the module: offset, size
        self.functions = {}
        self.kernels = {}
        text = re.sub(r"//[^\n]*", "", text)
        self.read(text)

    def read(self, text):
        for match in re.finditer(r"\.(?:global|const) \.align \d+ \.b8 ([\w$]+)\[(\d+)\](?: = \{([^}]*)\})?;",
                                 text):
            values = [int(v) for v in match[3].split(",")] if match[3] else []
            self.arrays[match[1]] = values + [0] * (int(match[2]) - len(values))
        offset = 0
        for line in re.findall(r"^\.shared [^;]*;", text, re.M):
            offset = self.declare_shared(self.shared, line[:-1], offset)
        self.shared_used = offset
        heads = re.compile(r"^(?:\.visible |\.weak )?\.(entry|func)\s*(\([^)]*\))?\s*([\w$]+)\s*\(([^)]*)\)([^{;]*)([{;])",
                           re.M)
        for match in heads.finditer(text):
            if match[6] == ";":
                continue
            end = self.body_end(text, match.end())
            target = self.kernels if match[1] == "entry" else self.functions
            target[match[3]] = (match[4], text[match.end():end])

    @staticmethod
    def body_end(text, at):
        depth = 1
        while depth:
            depth += (text[at] == "{") - (text[at] == "}")
            at += 1
        return at - 1

    @staticmethod
    def declare_shared(table, line, offset):
        match = re.fullmatch(r"\.shared \.align (\d+) \.(\w+) ([\w$]+)(?:\[(\d+)\])?", line)
        if not match:
            raise Refused("a declaration of shared memory: " + line)
        align, size = int(match[1]), WIDTHS[match[2]] // 8 * int(match[4] or 1)
        offset = (offset + align - 1) // align * align
        table[match[3]] = offset
        return offset + size

    def symbol(self, name):
        return f"ptx_{self.name}_{plain(name)}"


class Body:
    """One kernel or function, as C."""

    def __init__(self, module, name, params, text, is_kernel):
        self.module, self.name, self.is_kernel = module, name, is_kernel
        self.scopes = [{}]
        self.shared = dict(module.shared)
        self.shared_used = module.shared_used
        self.depots = {}
        self.out = []
        self.products = None  # registers of the last group's product
        self.count = 0
        self.params = {}
        for at, param in enumerate(p for p in params.split(",") if p.strip()):
            self.params[param.split()[-1].split("[")[0]] = at
        for statement in statements(text):
            self.statement(statement)

    # ---- operands

    def register(self, name):
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        match = re.fullmatch(r"(%[a-z]+)(\d+)", name)
        for scope in reversed(self.scopes):
            if match and match[1] in scope and int(match[2]) < scope[match[1]][1]:
                return scope[match[1]][0]
        return None

    def value(self, text, kind):
        """Bits of an operand, as an unsigned number of its width."""
        width = WIDTHS[kind]
        if text in SPECIAL:
            return SPECIAL[text]
        if text.startswith("%") or self.register(text):
            have = self.register(text)
            if have is None or have != width and not (width == 8 or have == 64 and width == 32):
                raise Refused(f"the operand {text} as .{kind}")
            return plain(text)
        if re.fullmatch(r"0f[0-9A-Fa-f]{8}", text) and kind in ("f32", "b32"):
            return f"UINT32_C(0x{text[2:]})"
        if re.fullmatch(r"-?(0x[0-9A-Fa-f]+|\d+)", text):
            number = int(text, 0) & (1 << width) - 1
            return f"UINT64_C({number})" if width == 64 else f"UINT32_C({number})"
        if width in (32, 64):
            return f"(uint{width}_t)({self.address_of(text)})"
        raise Refused(f"the operand {text}")

    def address_of(self, text):
        name, _, offset = text.partition("+")
        if name == "dynamic_memory":
            base = "PTX_DYNAMIC"
        elif name in self.shared:
            base = f"(PTX_STATIC + {self.shared[name]})"
        elif name in self.module.arrays:
            base = f"(uint64_t)(uintptr_t){self.module.symbol(name)}"
        elif name in self.depots:
            base = f"(uint64_t)(uintptr_t){plain(name)}"
        elif name in self.params and self.is_kernel:
            base = "(uint64_t)(uintptr_t)arguments"
        elif name in self.module.functions:
            base = f"(uint64_t)(uintptr_t){self.module.symbol(name)}"
        else:
            raise Refused("the symbol " + text)
        return base + (f" + {int(offset, 0)}" if offset else "")

    def address(self, text):
        """[a], [a+4], [a+-4]: a number of 64 bits."""
        match = re.fullmatch(r"\[\s*([%\w$.]+?)\s*(?:\+\s*(-?\w+))?\s*\]", text)
        if not match:
            raise Refused("the address " + text)
        name, offset = match[1], int(match[2] or "0", 0)
        if self.register(name):
            base = f"(uint64_t){plain(name)}"
        else:
            base = f"(uint64_t)({self.address_of(name)})"
        return f"{base} + (uint64_t)INT64_C({offset})" if offset else base

    @staticmethod
    def number(text, kind):
        """As the C type that computes as the PTX type does."""
        if kind == "f32":
            return f"ptx_real({text})"
        width = WIDTHS[kind]
        return f"({'int' if kind[0] == 's' else 'uint'}{width}_t)({text})"

    def set(self, target, expression, kind):
        if target == "_":
            self.emit(f"(void)({expression});")
            return
        width = self.register(target)
        if width is None or width < WIDTHS[kind]:
            raise Refused(f"the result {target} of .{kind}")
        if kind == "f32":
            self.emit(f"{plain(target)} = ptx_bits({expression});")
        elif width == 1:
            self.emit(f"{plain(target)} = {expression};")
        elif kind[0] == "s":
            self.emit(f"{plain(target)} = (uint{width}_t)(int64_t)(int{WIDTHS[kind]}_t)({expression});")
        else:
            self.emit(f"{plain(target)} = (uint{WIDTHS[kind]}_t)({expression});")

    def emit(self, text):
        self.out.append(text)

    # ---- statements

    def statement(self, text):
        if text in ("{", "}"):
            self.scopes.append({}) if text == "{" else self.scopes.pop()
            self.emit(text)
        elif text.endswith(":"):
            if not text.startswith("prototype_"):
                self.emit(plain(text[:-1]) + ":;")
        elif text.startswith(".") and not text.startswith(".pragma") and not text.startswith(".callprototype"):
            self.declaration(text)
        elif not text.startswith("."):
            self.instruction(text)

    def declaration(self, text):
        match = re.fullmatch(r"\.reg \.(\w+) (%?[\w]+)(?:<(\d+)>)?", text)
        if match:
            width = WIDTHS[match[1]]
            ctype = "bool" if width == 1 else f"uint{width}_t"
            if match[3]:
                self.scopes[-1][match[2]] = (width, int(match[3]))
                names = [f"{plain(match[2])}{i}" for i in range(int(match[3]))]
            else:
                self.scopes[-1][match[2]] = width
                names = [plain(match[2])]
            self.emit(f"{ctype} " + ", ".join(f"{name} = 0" for name in names) + ";")
            return
        match = re.fullmatch(r"\.local \.align (\d+) \.b8 ([\w$]+)\[(\d+)\]", text)
        if match:
            self.depots[match[2]] = int(match[3])
            self.emit(f"uint8_t {plain(match[2])}[{match[3]}] __attribute__((aligned({max(16, int(match[1]))})));")
            return
        match = re.fullmatch(r"\.param (?:\.align \d+ )?\.(\w+) (\w+)(?:\[(\d+)\])?", text)
        if match:
            size = WIDTHS[match[1]] // 8 * int(match[3] or 1)
            self.scopes[-1]["param " + match[2]] = size
            self.emit(f"uint8_t {match[2]}[{max(size, 8)}] __attribute__((aligned(16)));")
            return
        if text.startswith(".shared"):
            self.shared_used = Module.declare_shared(self.shared, text, self.shared_used)
            return
        raise Refused("the declaration " + text)

    def instruction(self, text):
        guard = re.match(r"@(!?)([%\w]+)\s+(.*)", text)
        if guard:
            self.emit(f"if ({guard[1]}{plain(guard[2])}) {{")
            self.instruction(guard[3])
            self.emit("}")
            return
        opcode, _, rest = text.partition(" ")
        parts = opcode.split(".")
        self.count += 1
        handler = getattr(self, "op_" + parts[0], None)
        if handler is None:
            raise Refused("the instruction " + opcode)
        handler(opcode, parts, operands(rest))

    def expect(self, condition, text):
        if not condition:
            raise Refused("the form " + text)

    # ---- arithmetic

    def binary(self, opcode, parts, args):
        kind = parts[-1]
        form = parts[1:-1]
        a, b = (self.value(x, kind) for x in args[1:])
        self.expect(len(args) == 3, opcode)
        if kind == "f16x2":
            self.expect(form == ["rn"] and parts[0] in ("add", "sub"), opcode)
            self.set(args[0], f"halves_{'add' if parts[0] == 'add' else 'subtract'}({a}, {b})", "b32")
        elif kind == "f32":
            self.expect(form == ["rn"] and parts[0] in ("add", "sub", "mul", "div"), opcode)
            self.set(args[0], f"ptx_real({a}) {BINARY[parts[0]]} ptx_real({b})", kind)
        elif form == ["wide"]:
            wide = kind[0] + str(2 * WIDTHS[kind])
            cast = f"({'int' if kind[0] == 's' else 'uint'}{2 * WIDTHS[kind]}_t)"
            self.set(args[0], f"{cast}{self.number(a, kind)} * {cast}{self.number(b, kind)}", wide)
        elif parts[0] == "div":
            self.expect(form == [], opcode)
            self.emit(f"ptx_divisor({b} != 0);")
            self.set(args[0], f"{self.number(a, kind)} / {self.number(b, kind)}", kind)
        else:
            self.expect(form in ([], ["lo"]), opcode)
            wide = "uint64_t" if WIDTHS[kind] == 64 else "uint32_t"
            if kind == "pred":
                wide = "bool"
            self.set(args[0], f"({wide})({a}) {BINARY[parts[0]]} ({wide})({b})", kind)

    op_add = op_sub = op_mul = op_and = op_or = op_xor = op_div = binary

    def op_rem(self, opcode, parts, args):
        kind = parts[-1]
        a, b = (self.value(x, kind) for x in args[1:])
        self.expect(len(parts) == 2, opcode)
        self.emit(f"ptx_divisor({b} != 0);")
        self.set(args[0], f"{self.number(a, kind)} % {self.number(b, kind)}", kind)

    def op_mad(self, opcode, parts, args):
        kind = parts[-1]
        a, b = (self.value(x, kind) for x in args[1:3])
        if parts[1] == "wide":
            wide = kind[0] + str(2 * WIDTHS[kind])
            c = self.value(args[3], wide)
            cast = f"(uint64_t)(int64_t)" if kind[0] == "s" else "(uint64_t)"
            self.expect(WIDTHS[kind] == 32, opcode)
            self.set(args[0], f"{cast}{self.number(a, kind)} * {cast}{self.number(b, kind)} + {c}", wide)
        else:
            self.expect(parts[1:-1] == ["lo"], opcode)
            c = self.value(args[3], kind)
            self.set(args[0], f"{a} * {b} + {c}", kind)

    def op_fma(self, opcode, parts, args):
        self.expect(parts[1:] == ["rn", "f32"], opcode)
        a, b, c = (f"ptx_real({self.value(x, 'f32')})" for x in args[1:])
        self.set(args[0], f"fmaf({a}, {b}, {c})", "f32")

    def shift(self, opcode, parts, args):
        kind = parts[-1]
        a, by = self.value(args[1], kind), self.value(args[2], "u32")
        self.expect(len(parts) == 2 and WIDTHS[kind] in (32, 64), opcode)
        name = "left" if parts[0] == "shl" else "right_signed" if kind[0] == "s" else "right"
        self.set(args[0], f"ptx_{name}_{WIDTHS[kind]}({a}, {by})", kind)

    op_shl = op_shr = shift

    def op_shf(self, opcode, parts, args):
        self.expect(parts[1:] == ["l", "wrap", "b32"], opcode)
        a, b, c = (self.value(x, "b32") for x in args[1:])
        self.set(args[0], f"ptx_funnel({a}, {b}, {c})", "b32")

    def op_not(self, opcode, parts, args):
        kind = parts[-1]
        self.set(args[0], f"{'!' if kind == 'pred' else '~'}{self.value(args[1], kind)}", kind)

    def op_neg(self, opcode, parts, args):
        kind = parts[-1]
        a = self.value(args[1], kind)
        if kind == "f32":
            self.set(args[0], f"{a} ^ UINT32_C(0x80000000)", "b32")
        else:
            self.set(args[0], f"0 - {a}", kind)

    def op_abs(self, opcode, parts, args):
        kind = parts[-1]
        a = self.value(args[1], kind)
        if kind == "f32":
            self.set(args[0], f"{a} & UINT32_C(0x7fffffff)", "b32")
        else:
            self.set(args[0], f"{self.number(a, kind)} < 0 ? 0 - {a} : {a}", kind)

    def op_copysign(self, opcode, parts, args):
        sign, size = (self.value(x, "f32") for x in args[1:])
        self.set(args[0], f"({sign} & UINT32_C(0x80000000)) | ({size} & UINT32_C(0x7fffffff))", "b32")

    def extreme(self, opcode, parts, args):
        kind = parts[-1]
        a, b = (self.number(self.value(x, kind), kind) for x in args[1:])
        self.expect(len(parts) == 2 and kind != "f32", opcode)
        self.set(args[0], f"{a} {'<' if parts[0] == 'min' else '>'} {b} ? {a} : {b}", kind)

    op_min = op_max = extreme

    def op_clz(self, opcode, parts, args):
        a = self.value(args[1], parts[1])
        self.set(args[0], f"ptx_zeros_{WIDTHS[parts[1]]}({a})", "u32")

    def op_sqrt(self, opcode, parts, args):
        self.expect(parts[1:] == ["rn", "f32"], opcode)
        self.set(args[0], f"sqrtf(ptx_real({self.value(args[1], 'f32')}))", "f32")

    def op_rcp(self, opcode, parts, args):
        self.expect(parts[1:] == ["rn", "f32"], opcode)
        self.set(args[0], f"1.0f / ptx_real({self.value(args[1], 'f32')})", "f32")

    def op_prmt(self, opcode, parts, args):
        self.expect(parts[1:] == ["b32"], opcode)
        a, b, c = (self.value(x, "b32") for x in args[1:])
        self.set(args[0], f"ptx_permute({a}, {b}, {c})", "b32")

    def op_bfi(self, opcode, parts, args):
        kind = parts[1]
        a, b = (self.value(x, kind) for x in args[1:3])
        at, size = (self.value(x, "u32") for x in args[3:])
        self.set(args[0], f"ptx_insert({a}, {b}, {at}, {size}, {WIDTHS[kind]})", kind)

    def op_setp(self, opcode, parts, args):
        kind, how = parts[-1], parts[1]
        a, b = (self.number(self.value(x, kind), kind) for x in args[1:])
        self.expect(len(parts) == 3 and len(args) == 3, opcode)
        if kind == "f32" and how in ("num", "nan"):
            text = f"{'!' if how == 'num' else ''}(isnan({a}) || isnan({b}))"
        elif kind == "f32" and how[:-1] in ("eq", "ne", "lt", "le", "gt", "ge") and how[-1] == "u":
            inside = f"{a} != {b}" if how == "neu" else f"{a} {ORDERED[how[:-1]]} {b}"
            text = f"isnan({a}) || isnan({b}) || {inside}"
        elif how == "ne":
            text = f"{a} != {b}" if kind != "f32" else f"!isnan({a}) && !isnan({b}) && {a} != {b}"
        else:
            self.expect(how in ORDERED, opcode)
            text = f"{a} {ORDERED[how]} {b}"
        self.set(args[0], text, "pred")

    def op_selp(self, opcode, parts, args):
        kind = "b" + str(WIDTHS[parts[1]])
        a, b = (self.value(x, kind) for x in args[1:3])
        self.set(args[0], f"{self.value(args[3], 'pred')} ? {a} : {b}", kind)

    def op_cvt(self, opcode, parts, args):
        to, of, form = parts[-2], parts[-1], parts[1:-2]
        width = self.register(args[1])
        a = self.value(args[1], "b" + str(width) if width else of)
        if of == "f32" and to == "s32" and form in (["rni"], ["rzi"]):
            self.set(args[0], f"ptx_integer(ptx_real({a}), {'true' if form == ['rni'] else 'false'})", "s32")
        elif of == "f32" and to == "u32" and form == ["rzi"]:
            self.set(args[0], f"ptx_natural(ptx_real({a}))", "u32")
        elif to == "f32" and form == ["rn"] and of != "f32":
            self.set(args[0], f"(float){self.number(a, of)}", "f32")
        else:
            self.expect(form == [] and "f32" not in (to, of), opcode)
            self.set(args[0], self.number(a, of), to)

    def op_mov(self, opcode, parts, args):
        kind = parts[-1]
        self.expect(len(parts) == 2 and len(args) == 2, opcode)
        if args[0].startswith("{"):
            names = operands(args[0][1:-1])
            size = WIDTHS[kind] // len(names)
            a = self.value(args[1], kind)
            for at, name in enumerate(names):
                self.set(name, f"{a} >> {at * size}", f"b{size}")
        elif args[1].startswith("{"):
            names = operands(args[1][1:-1])
            size = WIDTHS[kind] // len(names)
            parts = [f"(uint{WIDTHS[kind]}_t){self.value(name, f'b{size}')} << {at * size}"
                     for at, name in enumerate(names)]
            self.set(args[0], " | ".join(parts), kind)
        elif kind == "f32":
            self.set(args[0], self.value(args[1], "f32"), "b32")
        elif kind == "pred" and not self.register(args[1]):
            self.set(args[0], "true" if int(args[1], 0) != 0 else "false", "pred")
        else:
            self.set(args[0], self.value(args[1], kind), kind)

    # ---- memory

    def op_cvta(self, opcode, parts, args):
        a = self.value(args[1], "b64")
        form = ".".join(parts[1:])
        self.expect(form in ("to.global.u64", "global.u64", "local.u64", "param.u64", "shared.u64"), opcode)
        self.set(args[0], f"ptx_generic_of_shared(statics, {a})" if form == "shared.u64" else a, "b64")

    def place(self, parts, text, size):
        """The host's pointer of what is read or written, looked at."""
        name = re.match(r"\[\s*([\w$]+)", text)
        if "param" in parts and name and "param " + name[1] in self.flat():
            offset = int((re.search(r"\+(-?\w+)", text) or [0, "0"])[1], 0)
            self.expect(0 <= offset and offset + size <= max(8, self.flat()["param " + name[1]]), text)
            return f"{name[1]} + {offset}"
        if "param" in parts and name and name[1] == "func_retval0":
            return "result"
        if "param" in parts and name and name[1] in self.params and not self.is_kernel:
            offset = int((re.search(r"\+(-?\w+)", text) or [0, "0"])[1], 0)
            return f"parameters[{self.params[name[1]]}] + {offset}"
        at = self.address(text)
        if "shared" in parts:
            return f"ptx_shared(statics, {at}, {size})"
        return f"ptx_place({at}, {size})"

    def flat(self):
        return {k: v for scope in self.scopes for k, v in scope.items()}

    def access(self, opcode, parts):
        vector = [p for p in parts if p in ("v2", "v4")]
        known = {"ld", "st", "global", "shared", "local", "param", "const", "nc", "volatile", "cg", parts[-1]}
        self.expect(all(p in known or p in vector for p in parts), opcode)
        return int(vector[0][1]) if vector else 1

    def op_ld(self, opcode, parts, args):
        kind = parts[-1]
        count = self.access(opcode, parts)
        size = WIDTHS[kind] // 8
        self.expect("cg" not in parts or opcode == "ld.global.cg.u64", opcode)
        if "cg" in parts:
            self.set(args[0], f"load_fresh(ptx_place({self.address(args[1])}, 8))", "u64")
            return
        names = operands(args[0][1:-1]) if count > 1 else [args[0]]
        self.expect(len(names) == count, opcode)
        self.emit("{")
        self.emit(f"const uint8_t *at_ = {self.place(parts, args[1], size * count)};")
        for at, name in enumerate(names):
            bits = "b32" if kind == "f32" else kind
            self.set(name, f"ptx_load_{WIDTHS[kind]}(at_ + {at * size})", bits)
        self.emit("}")

    def op_st(self, opcode, parts, args):
        kind = parts[-1]
        count = self.access(opcode, parts)
        size = WIDTHS[kind] // 8
        names = operands(args[1][1:-1]) if count > 1 else [args[1]]
        self.expect(len(names) == count, opcode)
        self.emit("{")
        self.emit(f"uint8_t *at_ = {self.place(parts, args[0], size * count)};")
        for at, name in enumerate(names):
            width = self.register(name) # which may be wider than what is stored of it
            value = self.value(name, f"b{max(width, WIDTHS[kind])}" if width else "b" + str(WIDTHS[kind]))
            self.emit(f"ptx_store_{WIDTHS[kind]}(at_ + {at * size}, {value});")
        self.emit("}")

    def op_atom(self, opcode, parts, args):
        size = WIDTHS[parts[-1]] // 8
        at, value = self.place(parts, args[1], size), self.value(args[2], parts[-1])
        calls = {"atom.global.add.u64": "atomic_add_wide", "atom.global.add.u32": "atomic_add",
                 "atom.shared.add.u32": "atomic_add", "atom.global.exch.b32": "atomic_swap",
                 "atom.shared.max.u32": "atomic_max"}
        self.expect(opcode in calls, opcode)
        call = f"{calls[opcode]}((void *){at}, {value})"
        if calls[opcode] in ("atomic_add", "atomic_swap"):
            self.set(args[0], call, "u32")
        else:
            self.emit(call + ";")  # whose result nobody reads, or it does not compile
            if args[0] != "_":
                self.emit(f"{plain(args[0])} = 0;")

    def op_prefetch(self, opcode, parts, args):
        self.expect(opcode == "prefetch.global.L2", opcode)

    def op_membar(self, opcode, parts, args):
        self.expect(opcode == "membar.gl", opcode)
        self.emit("device_fence();")

    # ---- control

    def op_bra(self, opcode, parts, args):
        self.emit(f"goto {plain(args[0])};")

    def op_ret(self, opcode, parts, args):
        self.emit("return;")

    def op_trap(self, opcode, parts, args):
        self.emit('emulator_give_up("a trap");')

    def op_call(self, opcode, parts, args):
        result = "NULL"
        if args[0].startswith("("):
            result = args.pop(0)[1:-1].strip()
        target = args[0]
        given = operands(args[1][1:-1].strip()) if len(args) > 1 else []
        if target == "__assertfail":
            self.emit('emulator_give_up("an assertion of the device failed");')
            return
        self.emit("{")
        self.emit(f"uint8_t *given_[] = {{{', '.join(given) or 'NULL'}}};")
        if target.startswith("%"):
            self.emit(f"((ptx_function *)(uintptr_t){plain(target)})({result}, given_);")
        else:
            self.expect(target in self.module.functions, "call " + target)
            self.emit(f"{self.module.symbol(target)}({result}, given_);")
        self.emit("}")

    # ---- what threads do together

    def op_shfl(self, opcode, parts, args):
        self.expect(parts[1] == "sync" and parts[3] == "b32", opcode)
        target = args[0].split("|")[0]
        a, b, clamp, mask = (self.value(x, "b32") for x in args[1:])
        self.set(target, f"ptx_shuffle_{parts[2]}({a}, {b}, {clamp}, {mask})", "b32")

    def op_bar(self, opcode, parts, args):
        if opcode == "bar.warp.sync":
            self.emit(f"ptx_whole({self.value(args[0], 'b32')});")
            self.emit("warp_barrier();")
        elif opcode == "bar.sync" and args == ["0"]:
            self.emit("barrier();")
        else:
            self.expect(opcode == "bar.sync" and args in (["1", "128"], ["2", "128"]), f"{opcode} {args}")
            self.emit(f"group_barrier({int(args[0]) - 1});")

    def op_ldmatrix(self, opcode, parts, args):
        self.expect(opcode == "ldmatrix.sync.aligned.m8n8.x4.shared.b16", opcode)
        self.emit("{")
        self.emit(f"uint32_t words_[4];")
        self.emit(f"load_matrices(words_, ptx_shared(statics, {self.address(args[1])}, 16));")
        for at, name in enumerate(operands(args[0][1:-1])):
            self.set(name, f"words_[{at}]", "b32")
        self.emit("}")

    def op_mma(self, opcode, parts, args):
        match = re.fullmatch(r"mma\.sync\.aligned\.m16n8k32\.row\.col\.s32\.([su])8\.([su])8\.s32", opcode)
        halves = opcode == "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
        self.expect(match or halves, opcode)
        d, a, b, c = (operands(x[1:-1]) for x in args)
        self.expect((len(d), len(a), len(b), len(c)) == (4, 4, 2, 4), opcode)
        words = lambda names: ", ".join(self.value(x, "b32") for x in names)
        self.emit("{")
        self.emit(f"const uint32_t a_[4] = {{{words(a)}}}, b_[2] = {{{words(b)}}};")
        self.emit(f"int32_t sums_[4] = {{{', '.join('(int32_t)' + self.value(x, 'b32') for x in c)}}};")
        self.emit(f"multiply_{'halves' if halves else match[1] + match[2]}(sums_, a_, b_);")
        for at, name in enumerate(d):
            self.set(name, f"(uint32_t)sums_[{at}]", "b32")
        self.emit("}")

    # ---- copies, and barriers that count

    def op_cp(self, opcode, parts, args):
        if opcode == "cp.async.cg.shared.global":
            self.expect(args[2] == "16" and (len(args) == 3 or args[3] in ("0", "16")), f"{opcode} {args}")
            there = len(args) == 3 or args[3] == "16"
            source = f"ptx_place({self.address(args[1])}, 16)" if there else "NULL"
            self.emit(f"copy_async(ptx_shared(statics, {self.address(args[0])}, 16), {source}, "
                      f"{'true' if there else 'false'});")
        elif opcode == "cp.async.commit_group":
            self.emit("copy_commit();")
        elif opcode == "cp.async.wait_group":
            self.expect(args[0] in ("0", "1", "2"), f"{opcode} {args}")
            self.emit(f"copy_wait({args[0]});")
        else:
            bulk = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
            self.expect(opcode == bulk, opcode)
            size = self.value(args[2], "u32")
            self.emit(f"bring_bulk(ptx_shared_of(statics, {self.address(args[0])}, {size}, 16), "
                      f"ptx_place_of({self.address(args[1])}, {size}, 16), {size}, "
                      f"(void *)ptx_shared(statics, {self.address(args[3])}, 8));")

    def op_mbarrier(self, opcode, parts, args):
        if opcode == "mbarrier.init.shared::cta.b64":
            self.emit(f"bring_init((void *)ptx_shared(statics, {self.address(args[0])}, 8), "
                      f"{self.value(args[1], 'u32')});")
        elif opcode == "mbarrier.arrive.shared::cta.b64":
            self.emit(f"bring_arrive((void *)ptx_shared(statics, {self.address(args[1])}, 8));")
        elif opcode == "mbarrier.expect_tx.relaxed.cta.shared::cta.b64":
            self.emit(f"bring_expect((void *)ptx_shared(statics, {self.address(args[0])}, 8), "
                      f"{self.value(args[1], 'u32')});")
        else:
            self.expect(opcode == "mbarrier.try_wait.parity.shared::cta.b64", opcode)
            self.emit(f"bring_wait((void *)ptx_shared(statics, {self.address(args[1])}, 8), "
                      f"{self.value(args[2], 'u32')}, 0);")
            self.set(args[0], "true", "pred")

    def op_fence(self, opcode, parts, args):
        self.expect(opcode in ("fence.mbarrier_init.release.cluster", "fence.proxy.async.shared::cta"), opcode)
        if "mbarrier_init" in opcode:
            self.emit("bring_init_fence();")

    def op_setmaxnreg(self, opcode, parts, args):
        self.expect(parts[1] in ("inc", "dec"), opcode)
        self.emit("registers_raise();" if parts[1] == "inc" else "registers_lower();")

    def op_wgmma(self, opcode, parts, args):
        """Products begin at a fence and are done at the wait; between them their sums are tokens."""
        if opcode == "wgmma.fence.sync.aligned":
            self.emit("ptx_group_fence(&group_);")
        elif opcode == "wgmma.commit_group.sync.aligned":
            self.emit("ptx_group_commit(&group_);")
        elif opcode == "wgmma.wait_group.sync.aligned":
            self.expect(args == ["0"] and self.products, opcode)
            self.emit("{")
            self.emit(f"int32_t sums_[64] = {{{', '.join('(int32_t)' + plain(x) for x in self.products)}}};")
            self.emit(f"ptx_group_wait(&group_, sums_, {2 * len(self.products)});")
            for at, name in enumerate(self.products):
                self.set(name, f"(uint32_t)sums_[{at}]", "b32")
            self.emit("}")
        else:
            match = re.fullmatch(r"wgmma\.mma_async\.sync\.aligned\.m64n(64|128)k32\.s32\.s8\.s8", opcode)
            self.expect(match, opcode)
            self.products = operands(args[0][1:-1])
            columns = int(match[1])
            self.expect(len(self.products) == columns // 2, opcode)
            self.emit("{")
            self.emit(f"int32_t sums_[64] = {{{', '.join('(int32_t)' + plain(x) for x in self.products)}}};")
            self.emit(f"ptx_group_multiply(&group_, sums_, {self.value(args[1], 'b64')}, "
                      f"{self.value(args[2], 'b64')}, {self.value(args[3], 'pred')}, "
                      f"{columns});")
            for at, name in enumerate(self.products):
                self.set(name, f"(uint32_t)sums_[{at}]", "b32")
            self.emit("}")

    def text(self):
        head = []
        if self.is_kernel:
            head.append(f"void {self.name}(const void *given)")
            head.append("{")
            head.append("struct ptx_arguments arguments_copy;")
            head.append("const uint8_t *const arguments = ptx_arguments_of(&arguments_copy, given);")
            size = (self.shared_used + 15) // 16 * 16
            head.append(f"uint8_t *const statics = {f'ptx_statics({size})' if size else 'NULL'};")
        else:
            head.append(f"void {self.module.symbol(self.name)}(uint8_t *result, uint8_t *const *parameters)")
            head.append("{")
            head.append("uint8_t *const statics = NULL;")
        head.append("struct ptx_group group_ = {.fenced = false};")
        return "\n".join(head + self.out + ["}"]) + "\n"


def write(path, text):
    """A file that is as it was stays as it is: what was made of it need not be made again."""
    try:
        with open(path, encoding="ascii") as file:
            if file.read() == text:
                return
    except OSError:
        pass
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def main():
    path, folder, name = sys.argv[1:4]
    wanted = sys.argv[4:]
    with open(path, encoding="ascii") as file:
        module = Module(name, file.read())
    head = f'/* Made of {name} by tests/ptx/translate.py. */\n#include "tests/ptx/ptx.h"\n\n'
    for symbol, values in module.arrays.items():
        head += f"extern const uint8_t {module.symbol(symbol)}[{len(values)}];\n"
    for symbol in module.functions:
        head += f"ptx_function {module.symbol(symbol)};\n"
    counts = 0
    try:
        for symbol, (params, text) in module.kernels.items():
            if wanted and symbol not in wanted:
                continue
            body = Body(module, symbol, params, text, True)
            counts += body.count
            write(f"{folder}/{symbol}.c", head + body.text())
        if wanted:
            return 0
        text = head
        for symbol, values in module.arrays.items():
            text += (f"const uint8_t {module.symbol(symbol)}[{len(values)}] __attribute__((aligned(16))) = "
                     f"{{{', '.join(map(str, values))}}};\nPTX_ARRAY({module.symbol(symbol)})\n")
        for symbol, (params, source) in module.functions.items():
            body = Body(module, symbol, params, source, False)
            counts += body.count
            text += body.text()
        write(f"{folder}/functions_{name}.c", text)
    except Refused as refused:
        print(f"translate: {path}: {symbol}: not known here: {refused}", file=sys.stderr)
        return 1
    print(f"{name}: {len(module.kernels)} kernels, {counts} instructions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
