/**
 * Regular expressions that clients send, such as those that consumers subscribe by (KIP-848): RE2's syntax, held against a whole topic name.
 *
 * An expression becomes a small program of states, and all states that a name can be in are followed side by side. The
 * time for a name is at most its length times the size of the program, whatever the expression; the size has a bound.
 */

import { unreachable } from "../errors.ts";
import { type CharSet, isWordChar } from "./regex_char_set.ts";
import { parseRegex, type RegexNode, RegexProblem } from "./regex_parser.ts";

type Step =
  | { readonly op: "chars"; readonly set: CharSet }
  | { readonly op: "assert"; readonly what: "start" | "end" | "word-edge" | "no-word-edge" }
  /** Goes on at both places. */
  | { readonly op: "fork"; to: number; orTo: number }
  | { readonly op: "end" };

const MAX_STEPS = 10_000;

/** See the file's head. */
export class SubscriptionRegex {
  readonly #steps: Step[] = [];
  /** In which round a step was last entered, so that none is entered twice. */
  readonly #entered: Uint32Array;
  #round = 0;

  /** @throws {RegexProblem} */
  private constructor(tree: RegexNode) {
    this.#emit(tree);
    this.#add({ op: "end" });
    this.#entered = new Uint32Array(this.#steps.length);
  }

  /** The expression, or what is wrong with it. */
  static compile(expression: string): SubscriptionRegex | { readonly problem: string } {
    try {
      return new SubscriptionRegex(parseRegex(expression));
    } catch (error) {
      if (error instanceof RegexProblem) return { problem: error.message };
      throw error;
    }
  }

  /** Whether the whole name matches. */
  matches(name: string): boolean {
    let states = this.#enter([0], name, 0);
    for (let at = 0; at < name.length && states.length > 0; at++) {
      const code = name.charCodeAt(at);
      const next: number[] = [];
      for (const state of states) {
        const step = this.#steps[state];
        if (step.op === "chars" && step.set[code] === 1) next.push(state + 1);
      }
      states = this.#enter(next, name, at + 1);
    }
    return states.some((state) => this.#steps[state].op === "end");
  }

  /** Where one can be from these states on without reading: only states that read, or the end. */
  #enter(states: number[], name: string, at: number): number[] {
    if (this.#round === 0xffff_ffff) {
      this.#entered.fill(0);
      this.#round = 0;
    }
    const round = ++this.#round;
    const reached: number[] = [];
    while (states.length > 0) {
      const state = states.pop()!;
      if (this.#entered[state] === round) continue;
      this.#entered[state] = round;
      const step = this.#steps[state];
      switch (step.op) {
        case "chars":
        case "end":
          reached.push(state);
          break;
        case "fork":
          states.push(step.to, step.orTo);
          break;
        case "assert":
          if (holds(step.what, name, at)) states.push(state + 1);
          break;
        default:
          unreachable(step);
      }
    }
    return reached;
  }

  #add(step: Step): number {
    if (this.#steps.length >= MAX_STEPS) throw new RegexProblem("the expression is too large");
    return this.#steps.push(step) - 1;
  }

  #fork(): { to: number; orTo: number } {
    const step: Step = { op: "fork", to: 0, orTo: 0 };
    step.to = step.orTo = this.#add(step) + 1;
    return step;
  }

  #emit(node: RegexNode): void {
    switch (node.kind) {
      case "chars":
        this.#add({ op: "chars", set: node.set });
        break;
      case "assert":
        this.#add({ op: "assert", what: node.what });
        break;
      case "sequence":
        for (const part of node.parts) this.#emit(part);
        break;
      case "choice":
        this.#emitChoice(node.parts);
        break;
      case "repeat":
        this.#emitRepeat(node.part, node.min, node.max);
        break;
      default:
        unreachable(node);
    }
  }

  #emitChoice(parts: readonly RegexNode[]): void {
    const exits: { to: number; orTo: number }[] = [];
    for (const [index, part] of parts.entries()) {
      const isLast = index === parts.length - 1;
      const fork = isLast ? null : this.#fork();
      this.#emit(part);
      if (fork === null) continue;
      exits.push(this.#fork());
      fork.orTo = this.#steps.length;
    }
    for (const exit of exits) exit.to = exit.orTo = this.#steps.length;
  }

  #emitRepeat(part: RegexNode, min: number, max: number | null): void {
    for (let count = 0; count < min; count++) this.#emit(part);
    if (max === null) {
      const start = this.#steps.length;
      const fork = this.#fork();
      this.#emit(part);
      const back = this.#fork();
      back.to = back.orTo = start;
      fork.orTo = this.#steps.length;
      return;
    }
    const forks: { orTo: number }[] = [];
    for (let count = min; count < max; count++) {
      forks.push(this.#fork());
      this.#emit(part);
    }
    for (const fork of forks) fork.orTo = this.#steps.length;
  }
}

function holds(what: "start" | "end" | "word-edge" | "no-word-edge", name: string, at: number): boolean {
  if (what === "start") return at === 0;
  if (what === "end") return at === name.length;
  const before = at > 0 && isWordChar(name.charCodeAt(at - 1));
  const after = at < name.length && isWordChar(name.charCodeAt(at));
  return (before !== after) === (what === "word-edge");
}
