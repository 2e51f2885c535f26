/** Patterns that consumers subscribe by: RE2's syntax, whole names, linear time. */

import assert from "node:assert/strict";
import { SubscriptionRegex } from "../../../lib/groups/subscription_regex.ts";
import { SeededRandom } from "../../simulation/seeded_random.ts";

function regex(expression: string): SubscriptionRegex {
  const compiled = SubscriptionRegex.compile(expression);
  assert.ok(compiled instanceof SubscriptionRegex, `${expression}: ${JSON.stringify(compiled)}`);
  return compiled;
}

/** Names that match, and names that do not. */
const examples: [expression: string, matching: string[], other: string[]][] = [
  ["orders", ["orders"], ["orders2", "my-orders", "order", ""]],
  ["", [""], ["a"]],
  ["a|bc|", ["a", "bc", ""], ["b", "abc"]],
  ["foo.*", ["foo", "foo.bar", "foo_1"], ["fo", "xfoo"]],
  ["^foo$", ["foo"], ["foo2"]],
  ["\\Afoo\\z", ["foo"], ["foox"]],
  ["a+b*c?", ["a", "aab", "abbc"], ["b", "abcc"]],
  ["a{2}", ["aa"], ["a", "aaa"]],
  ["a{2,}", ["aa", "aaaa"], ["a"]],
  ["a{0,2}", ["", "a", "aa"], ["aaa"]],
  ["a{,2}", ["a{,2}"], ["a", "aa"]],
  ["a{x}", ["a{x}"], ["a"]],
  ["a*?b+?", ["aab", "bb"], ["a"]],
  ["(ab)+", ["ab", "abab"], ["aba"]],
  ["(?:a|b)c", ["ac", "bc"], ["c"]],
  ["(?P<name>a)(?<other>b)", ["ab"], ["a"]],
  ["[a-c]+", ["abc"], ["d", "-"]],
  ["[^a-c]", ["d", "-"], ["a"]],
  ["[]a]+", ["]a"], ["b"]],
  ["[^]a]", ["b"], ["]", "a"]],
  ["[a-]+", ["a-"], ["b"]],
  ["[\\d.-]+", ["1.2-3"], ["a"]],
  ["[[:alpha:]_]+", ["aZ_"], ["1"]],
  ["[[:^digit:]]", ["a"], ["1"]],
  ["\\d+\\D\\w\\W\\S", ["12aa-x"], ["aaaaa"]],
  ["topic\\.v\\d", ["topic.v1"], ["topicxv1"]],
  ["\\pL+\\p{Lu}\\P{N}", ["abCd"], ["abc1"]],
  ["\\p{^Lu}\\p{Latin}", ["aB"], ["Aa"]],
  ["(?i)orders", ["ORDERS", "Orders"], ["order"]],
  ["(?i:a)b", ["Ab", "ab"], ["AB"]],
  ["(?i)[^a]", ["b", "B"], ["a", "A"]],
  ["a(?i)b|c", ["aB", "C"], ["Ab"]],
  ["((?i)a)b", ["Ab"], ["aB"]],
  ["(?i-s)a(?-i)b", ["Ab"], ["aB"]],
  ["\\Qa.b\\E+", ["a.b", "a.bb"], ["axb"]],
  ["\\Qa+", ["a+"], ["aa"]],
  ["\\x41\\x{42}\\103", ["ABC"], ["abc"]],
  [".*\\bfoo\\b.*", ["a.foo-b", "foo"], ["a_foo", "foox"]],
  ["a\\Bb", ["ab"], ["a"]],
  ["(|a)+", ["", "aa"], ["b"]],
  ["(a*)*b", ["aaab", "b"], ["aaa"]],
  ["größe.*", [], ["gr", "grosse"]],
  ["(?:^a)b", ["ab"], ["b"]],
  ["a^b", [], ["ab"]],
];

for (const [expression, matching, other] of examples) {
  Deno.test(`the expression ${expression} matches what it should as a whole, and nothing else`, () => {
    const compiled = regex(expression);
    for (const name of matching) assert.ok(compiled.matches(name), name);
    for (const name of other) assert.ok(!compiled.matches(name), name);
  });
}

Deno.test("what RE2 does not know, or what is no expression, is a problem that is told", () => {
  const wrong = [
    ...["(", ")", "(a", "a)", "[a", "[", "*", "+a", "?", "a**", "a+*", "a{2}{3}", "a{1001}", "a{2,1}", "[b-a]", "\\"],
    ...["(?=a)", "(?!a)", "(?<=a)b", "(a)\\1", "\\k<a>", "[[:nope:]]", "\\p{Nope}", "\\pQ", "(?x)a", "(?P<>a)"],
    ...["\\x4", "\\x{110000}", "\\C", "\\Z", "(?i", "\\p{", "(?P<a b>c)"],
  ];
  for (const expression of wrong) {
    const compiled = SubscriptionRegex.compile(expression);
    assert.ok("problem" in compiled && compiled.problem !== "", expression);
  }
});

Deno.test("an expression has a bound in length, depth and size", () => {
  const large = [
    "a".repeat(40_000),
    "(".repeat(300) + ")".repeat(300),
    "((a{1000}){1000}){1000}",
    "(a?){1000}".repeat(6),
  ];
  for (const expression of large) {
    assert.ok("problem" in SubscriptionRegex.compile(expression), expression.slice(0, 20));
  }
});

Deno.test("expressions that make other matchers run for ever are matched in steps that the name's length bounds", () => {
  const name = "a".repeat(249);
  for (const expression of ["(a+)+$b", "(a|aa)+c", "(a*)*b", "(.*)*.*[b]", "(a?){200}a{200}b"]) {
    assert.equal(regex(expression).matches(name), false, expression);
  }
});

Deno.test("random expressions match what JavaScript's own matcher matches", () => {
  const random = new SeededRandom(7);
  const make = (depth: number): string => {
    if (depth === 0) return random.pick(["a", "b", ".", "[ab]", "[^a]", "\\w", "-"]);
    switch (random.below(5)) {
      case 0:
        return `(?:${make(depth - 1)}|${make(depth - 1)})`;
      case 1:
        return `(?:${make(depth - 1)})${random.pick(["*", "+", "?", "{2}", "{1,2}", "{0,1}"])}`;
      default:
        return make(depth - 1) + make(depth - 1);
    }
  };
  for (let round = 0; round < 300; round++) {
    const expression = make(random.between(0, 3));
    const own = regex(expression);
    const other = new RegExp(`^(?:${expression})$`);
    for (let count = 0; count < 20; count++) {
      const name = Array.from({ length: random.below(7) }, () => random.pick(["a", "b", "-", "1"])).join("");
      assert.equal(own.matches(name), other.test(name), `${expression} on ${name}`);
    }
  }
});
