/**
 * Reads a regular expression of RE2's syntax into a tree: what consumers may subscribe by. RE2 has no back-references and
 * no look-around, which is why it can be matched in linear time. Only its meaning for ASCII text is kept.
 */

import {
  addChars,
  allBut,
  charRange,
  type CharSet,
  inBothCases,
  noChars,
  perlClass,
  posixClass,
  unicodeClass,
} from "./regex_char_set.ts";

export type RegexNode =
  | { readonly kind: "chars"; readonly set: CharSet }
  | { readonly kind: "assert"; readonly what: "start" | "end" | "word-edge" | "no-word-edge" }
  | { readonly kind: "sequence" | "choice"; readonly parts: readonly RegexNode[] }
  /** `max` null for without end. */
  | { readonly kind: "repeat"; readonly part: RegexNode; readonly min: number; readonly max: number | null };

/** What is wrong with an expression. */
export class RegexProblem extends Error {
  override readonly name = "RegexProblem";
}

const MAX_REPEAT = 1000;
const MAX_DEPTH = 200;
const MAX_LENGTH = 32 * 1024;
const EMPTY: RegexNode = { kind: "sequence", parts: [] };
const controls: Readonly<Record<string, number>> = { a: 7, f: 12, n: 10, r: 13, t: 9, v: 11 };

interface Flags {
  readonly ignoresCase: boolean;
  readonly dotIsAll: boolean;
}

/** The tree of an expression. @throws {RegexProblem} */
export function parseRegex(expression: string): RegexNode {
  if (expression.length > MAX_LENGTH) throw new RegexProblem("the expression is too long");
  return new Parser(expression).parse();
}

class Parser {
  readonly #chars: readonly string[];
  #at = 0;
  #depth = 0;
  #flags: Flags = { ignoresCase: false, dotIsAll: false };

  constructor(expression: string) {
    this.#chars = [...expression];
  }

  parse(): RegexNode {
    const tree = this.#choice();
    if (this.#at < this.#chars.length) throw new RegexProblem("unexpected )");
    return tree;
  }

  #choice(): RegexNode {
    if (++this.#depth > MAX_DEPTH) throw new RegexProblem("the expression nests too deeply");
    const parts = [this.#sequence()];
    while (this.#take("|")) parts.push(this.#sequence());
    this.#depth--;
    return parts.length === 1 ? parts[0] : { kind: "choice", parts };
  }

  #sequence(): RegexNode {
    const parts: RegexNode[] = [];
    while (this.#at < this.#chars.length && this.#chars[this.#at] !== "|" && this.#chars[this.#at] !== ")") {
      if (this.#takeText("\\Q")) parts.push(...this.#quoted());
      else parts.push(this.#repeated(this.#atom()));
    }
    return parts.length === 1 ? parts[0] : { kind: "sequence", parts };
  }

  #repeated(part: RegexNode): RegexNode {
    const range = this.#repetition();
    if (range === null) return part;
    // Greedy or not: the same names match.
    this.#take("?");
    if (this.#repetition() !== null) throw new RegexProblem("a repetition is repeated");
    const [min, max] = range;
    return { kind: "repeat", part, min, max };
  }

  #repetition(): [min: number, max: number | null] | null {
    if (this.#take("*")) return [0, null];
    if (this.#take("+")) return [1, null];
    if (this.#take("?")) return [0, 1];
    if (this.#chars[this.#at] !== "{") return null;
    const match = /^\{(\d{1,9})(,(\d{1,9})?)?\}/.exec(this.#chars.slice(this.#at, this.#at + 24).join(""));
    if (match === null) return null;
    this.#at += match[0].length;
    const min = Number(match[1]);
    const max = match[2] === undefined ? min : match[3] === undefined ? null : Number(match[3]);
    if (min > MAX_REPEAT || (max !== null && (max > MAX_REPEAT || max < min))) {
      throw new RegexProblem(`bad repetition ${match[0]}`);
    }
    return [min, max];
  }

  #atom(): RegexNode {
    const char = this.#next();
    switch (char) {
      case "(":
        return this.#group();
      case "[":
        return this.#withCase(this.#class());
      case ".":
        return { kind: "chars", set: this.#flags.dotIsAll ? charRange(0, 127) : allBut(charRange(10, 10)) };
      case "^":
        return { kind: "assert", what: "start" };
      case "$":
        return { kind: "assert", what: "end" };
      case "*":
      case "+":
      case "?":
        throw new RegexProblem(`nothing to repeat before ${char}`);
      case "\\":
        return this.#escape();
      default:
        return this.#literal(char);
    }
  }

  #group(): RegexNode {
    const outer = this.#flags;
    if (this.#take("?")) {
      if (this.#takeText("P<") || this.#takeText("<")) this.#groupName();
      else if (this.#groupFlags() === "for the rest") return EMPTY;
    }
    const tree = this.#choice();
    if (!this.#take(")")) throw new RegexProblem("missing )");
    this.#flags = outer;
    return tree;
  }

  #groupName(): void {
    const end = this.#chars.indexOf(">", this.#at);
    const name = end < 0 ? "" : this.#chars.slice(this.#at, end).join("");
    if (!/^\w+$/.test(name)) throw new RegexProblem("bad group name");
    this.#at = end + 1;
  }

  /** `(?i)` holds for the rest of the group around it, `(?i:…)` for what it encloses. */
  #groupFlags(): "for the rest" | "for the group" {
    const flags = { ...this.#flags };
    let value = true;
    for (;;) {
      const char = this.#next();
      if (char === "i") flags.ignoresCase = value;
      else if (char === "s") flags.dotIsAll = value;
      else if (char === "-" && value) value = false;
      else if (char === ")" || char === ":") {
        this.#flags = flags;
        return char === ")" ? "for the rest" : "for the group";
      } else if (char !== "m" && char !== "U") throw new RegexProblem(`(?${char} is not supported`);
    }
  }

  #quoted(): RegexNode[] {
    const parts: RegexNode[] = [];
    while (this.#at < this.#chars.length && !this.#takeText("\\E")) parts.push(this.#literal(this.#next()));
    const last = parts.pop();
    return last === undefined ? [] : [...parts, this.#repeated(last)];
  }

  #escape(): RegexNode {
    const char = this.#next();
    switch (char) {
      case "A":
        return { kind: "assert", what: "start" };
      case "z":
        return { kind: "assert", what: "end" };
      case "b":
        return { kind: "assert", what: "word-edge" };
      case "B":
        return { kind: "assert", what: "no-word-edge" };
      default: {
        const set = this.#escapedSet(char);
        return set === null ? this.#literal(String.fromCodePoint(this.#escapedCode(char))) : this.#withCase(set);
      }
    }
  }

  /** The class that an escape stands for; null if it stands for one character. */
  #escapedSet(char: string): CharSet | null {
    if (char !== "p" && char !== "P") return perlClass(char);
    let name = this.#next();
    if (name === "{") {
      const end = this.#chars.indexOf("}", this.#at);
      if (end < 0) throw new RegexProblem("missing }");
      name = this.#chars.slice(this.#at, end).join("");
      this.#at = end + 1;
    }
    const isNegated = name.startsWith("^");
    const set = unicodeClass(isNegated ? name.slice(1) : name);
    if (set === null) throw new RegexProblem(`unknown character class ${name}`);
    return isNegated !== (char === "P") ? allBut(set) : set;
  }

  #escapedCode(char: string): number {
    if (controls[char] !== undefined) return controls[char];
    if (char === "x") return this.#hexCode();
    if (char === "0" || (/[1-7]/.test(char) && /[0-7]/.test(this.#chars[this.#at] ?? ""))) {
      let digits = char;
      while (digits.length < 3 && /[0-7]/.test(this.#chars[this.#at] ?? "")) digits += this.#next();
      return parseInt(digits, 8);
    }
    if (/[A-Za-z0-9]/.test(char)) throw new RegexProblem(`\\${char} is not supported`);
    return char.codePointAt(0)!;
  }

  #hexCode(): number {
    const text = this.#chars.slice(this.#at, this.#at + 10).join("");
    const match = /^\{([0-9A-Fa-f]{1,6})\}/.exec(text) ?? /^([0-9A-Fa-f]{2})/.exec(text);
    if (match === null || parseInt(match[1], 16) > 0x10ffff) throw new RegexProblem("bad \\x");
    this.#at += match[0].length;
    return parseInt(match[1], 16);
  }

  #class(): CharSet {
    const set = noChars();
    const isNegated = this.#take("^");
    for (let isFirst = true; isFirst || this.#chars[this.#at] !== "]"; isFirst = false) {
      const named = this.#namedClass();
      if (named !== null) {
        addChars(set, named);
        continue;
      }
      const char = this.#next();
      const escaped = char === "\\" ? this.#next() : null;
      const group = escaped === null ? null : this.#escapedSet(escaped);
      if (group !== null) {
        addChars(set, group);
        continue;
      }
      const low = escaped === null ? char.codePointAt(0)! : this.#escapedCode(escaped);
      addChars(set, charRange(low, this.#rangeEnd(low)));
    }
    this.#at++;
    // What case is ignored in must be known before it is turned around.
    const folded = this.#flags.ignoresCase ? inBothCases(set) : set;
    return isNegated ? allBut(folded) : folded;
  }

  #namedClass(): CharSet | null {
    if (this.#chars[this.#at] !== "[" || this.#chars[this.#at + 1] !== ":") return null;
    const match = /^\[:(\^?)(\w+):\]/.exec(this.#chars.slice(this.#at, this.#at + 16).join(""));
    if (match === null) return null;
    const set = posixClass(match[2]);
    if (set === null) throw new RegexProblem(`unknown character class ${match[0]}`);
    this.#at += match[0].length;
    return match[1] === "" ? set : allBut(set);
  }

  #rangeEnd(low: number): number {
    const isRange = this.#chars[this.#at] === "-" && (this.#chars[this.#at + 1] ?? "]") !== "]";
    if (!isRange) return low;
    this.#at++;
    const char = this.#next();
    const high = char === "\\" ? this.#escapedCode(this.#next()) : char.codePointAt(0)!;
    if (high < low) throw new RegexProblem("bad character range");
    return high;
  }

  #literal(char: string): RegexNode {
    const code = char.codePointAt(0)!;
    return this.#withCase(charRange(code, code));
  }

  #withCase(set: CharSet): RegexNode {
    return { kind: "chars", set: this.#flags.ignoresCase ? inBothCases(set) : set };
  }

  #next(): string {
    if (this.#at >= this.#chars.length) throw new RegexProblem("the expression ends too early");
    return this.#chars[this.#at++];
  }

  #take(char: string): boolean {
    if (this.#chars[this.#at] !== char) return false;
    this.#at++;
    return true;
  }

  #takeText(text: string): boolean {
    if (![...text].every((char, index) => this.#chars[this.#at + index] === char)) return false;
    this.#at += text.length;
    return true;
  }
}
