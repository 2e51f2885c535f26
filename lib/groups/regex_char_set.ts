/**
 * Sets of ASCII characters, one byte per character. Topic names have no others, so a character beyond ASCII is in no set
 * that matters.
 */

/** Whether a character is in the set, by its code; 0 or 1. */
export type CharSet = Uint8Array;

const SIZE = 128;

export function noChars(): CharSet {
  return new Uint8Array(SIZE);
}

/** Codes from `low` to `high`, both included. */
export function charRange(low: number, high: number): CharSet {
  return noChars().fill(1, Math.min(low, SIZE), Math.min(high + 1, SIZE));
}

export function allBut(set: CharSet): CharSet {
  return set.map((has) => 1 - has);
}

export function addChars(to: CharSet, more: CharSet): void {
  for (let code = 0; code < SIZE; code++) to[code] |= more[code];
}

/** The set with the other case of each of its letters. */
export function inBothCases(set: CharSet): CharSet {
  const both = set.slice();
  for (let lower = 0x61; lower <= 0x7a; lower++) both[lower] = both[lower - 0x20] = set[lower] | set[lower - 0x20];
  return both;
}

function charsOf(...ranges: string[]): CharSet {
  const set = noChars();
  for (const range of ranges) addChars(set, charRange(range.charCodeAt(0), range.charCodeAt(range.length - 1)));
  return set;
}

/** The set behind `\d`, `\s` or `\w`; capital letters for what is outside; null for any other letter. */
export function perlClass(letter: string): CharSet | null {
  const set = perlClasses.get(letter.toLowerCase());
  if (set === undefined) return null;
  return letter === letter.toLowerCase() ? set : allBut(set);
}

/** The set behind `[:name:]`, or null. */
export function posixClass(name: string): CharSet | null {
  return posixClasses.get(name) ?? null;
}

/** The set behind `\p{name}`: a general category or a script; null if there is none of this name. */
export function unicodeClass(name: string): CharSet | null {
  if (!/^[A-Za-z_]{1,40}$/.test(name)) return null;
  for (const property of [name, `Script=${name}`]) {
    try {
      const one = new RegExp(`^\\p{${property}}$`, "u");
      return noChars().map((_, code) => one.test(String.fromCharCode(code)) ? 1 : 0);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
  }
  return null;
}

const WORD = charsOf("09", "AZ", "_", "az");
const perlClasses = new Map([["d", charsOf("09")], ["s", charsOf("\t", "\n", "\f", "\r", " ")], ["w", WORD]]);
const posixClasses = new Map([
  ["alnum", charsOf("09", "AZ", "az")],
  ["alpha", charsOf("AZ", "az")],
  ["ascii", charRange(0, 127)],
  ["blank", charsOf("\t", " ")],
  ["cntrl", charsOf("\0\x1f", "\x7f")],
  ["digit", charsOf("09")],
  ["graph", charsOf("!~")],
  ["lower", charsOf("az")],
  ["print", charsOf(" ~")],
  ["punct", charsOf("!/", ":@", "[`", "{~")],
  ["space", charsOf("\t\r", " ")],
  ["upper", charsOf("AZ")],
  ["word", WORD],
  ["xdigit", charsOf("09", "AF", "af")],
]);

/** Whether `\b` sees a part of a word in the character of this code. */
export function isWordChar(code: number): boolean {
  return WORD[code] === 1;
}
