"""This module shows what the formatter makes of programs: where comments go, where long lines break, what stays."""

from __future__ import annotations

import pytest

from ephemera.base.diagnostic import render_text
from ephemera.base.span import Source
from ephemera.syntax.format import format
from ephemera.syntax.layout import WIDTH
from ephemera.syntax.parser import parse


def formatted(text: str) -> str:
    """The text in its layout, in which it is the same program and stays as it is."""
    before = parse(Source("program.eq", text))
    assert not before.report.diagnostics, render_text(before.report)
    written = format(before.program, before.comments, text)
    after = parse(Source("program.eq", written))
    assert not after.report.diagnostics, f"{written}\n{render_text(after.report)}"
    assert after.program == before.program
    assert sorted(c.text for c in after.comments) == sorted(c.text for c in before.comments)
    assert format(after.program, after.comments, written) == written
    return written


# ---- comments ----------------------------------------------------------------------------------------------


def test_nothing_follows_a_comment_to_the_end_of_the_line() -> None:
    assert formatted("p(x) <- a(x) -- one\n  , /* two\n  three */ b(x);") == (
        "p(x) <-\n    a(x),  -- one\n    /* two\n  three */\n    b(x);\n"
    )
    assert formatted("p(x) <- a(x) /* one */, /* two */ -- three\n b(x);") == (
        "p(x) <-\n    a(x),  /* one */  /* two */  -- three\n    b(x);\n"
    )
    assert formatted("p(x) <- a(x); /* one\n */ q(x) <- a(x);") == "p(x) <- a(x);\n/* one\n */\nq(x) <- a(x);\n"


@pytest.mark.parametrize("comment", ["-- c\n", "/* c */", "/* c */\n"])
@pytest.mark.parametrize("having", ["", " having { x > 1 }"])
def test_a_comment_before_the_semicolon_stands_behind_it(comment: str, having: str) -> None:
    rule = f"p(x) <- a(x), b(x){having}"
    expected = f"p(x) <- a(x), b(x){',' if having else ''}{having};  {comment.strip()}\n"
    assert formatted(f"{rule} {comment};") == expected
    assert formatted(f"STRATUM {rule} {comment}; END") == f"STRATUM\n  {expected}END\n"


def test_comments_before_and_behind_a_semicolon_do_not_run_into_each_other() -> None:
    assert formatted("p(x) <- a(x) -- one\n; -- two\nq(x) <- a(x);") == (
        "p(x) <- a(x);  -- one\n-- two\nq(x) <- a(x);\n"
    )
    assert formatted("p(x) <- a(x) /* one */; -- two\n") == "p(x) <- a(x);  /* one */  -- two\n"
    assert formatted("TIME UNIT 1 sec -- one\n; -- two\n") == "TIME UNIT 1 sec;  -- one\n-- two\n"


def test_a_comment_on_its_own_line_before_the_semicolon_stands_before_the_last_item() -> None:
    assert formatted("p(x) <- a(x), b(x)\n  -- , c(x)\n;") == "p(x) <-\n    a(x),\n    -- , c(x)\n    b(x);\n"
    assert formatted("p(x) <- a(x), (x > 1 /* c */);") == "p(x) <-\n    a(x),\n    /* c */\n    x > 1;\n"


def test_a_comment_behind_a_head_stays_with_the_head() -> None:
    text = """\
DETECT
  a { var X }  -- head
  -- after the head
ON
  -- before the body
  event e: b {{ var X }}  -- body
  -- after the body
END  -- end
"""
    assert formatted(text) == text
    text = """\
RAISE
  to(recipient="a", transport="console") {
    a { var X }  -- term
    -- after the term
  }  -- head
ON
  event e: b {{ var X }} having { var X > 1 }  -- body
END
"""
    assert formatted(text) == text
    assert formatted("DETECT a { } ON -- on\n event e: b { } END") == (
        "DETECT\n  a { }\nON\n  -- on\n  event e: b { }\nEND\n"
    )


def test_a_comment_of_an_attribute_or_argument_stays_with_it() -> None:
    text = """\
EVENT order(
  id: string,  -- its number
  -- how many
  qty: int FROM "how many",  -- as the file says
  rest: any
) LASTS AT MOST 2 min;
TABLE price(
  product: string  -- its name
) FROM "prices.csv";

late(
  id,  -- of the order
  q
) <-
    o: order(
      id,  -- the number
      q  /* how many */
    );
"""
    assert formatted(text) == text


def test_a_comment_in_the_middle_moves_in_front() -> None:
    assert formatted("p(x) <- a(x), o: /* c */ b(x);") == "p(x) <-\n    a(x),\n    /* c */\n    o: b(x);\n"
    assert formatted("p(x) <- a(x), x > 1 -- c\n or x < 0, b(x);") == (
        "p(x) <-\n    a(x),\n    -- c\n    x > 1 or x < 0,\n    b(x);\n"
    )
    assert formatted("EVENT /* c */ order(id: int);") == "/* c */\nEVENT order(id: int);\n"


def test_a_comment_in_an_algebra_expression_keeps_the_indentation() -> None:
    assert (
        formatted("p(x) <- a(x), e: algebra ((a { -- why\n var X }; b())[2s] - c {{ var Y }});")
        == """\
p(x) <-
    a(x),
    e: algebra (
      (
        a {
          -- why
          var X
        };
        b()
      )[2s]
      - c {{ var Y }}
    );
"""
    )


# ---- empty lines -------------------------------------------------------------------------------------------


def test_empty_lines_between_rules_are_kept_in_strata_too() -> None:
    text = """\
STRATUM
  p(x) <- a(x);
  q(x) <- a(x);

  r(x) <- a(x);  -- r

  -- A group of rules.

  -- The first.
  s(x) <- a(x);

  -- The end.
END
"""
    assert formatted(text) == text
    assert formatted(text.replace("\n\n", "\n\n\n\n")) == text


def test_block_rules_stand_apart_in_strata_too() -> None:
    block = "DETECT a { } ON event e: b { } END "
    assert formatted(f"STRATUM {block * 2} END").count("\n\n") == 1


# ---- long lines --------------------------------------------------------------------------------------------

LONG = [f"a-rather-long-name-{number}" for number in range(8)]


@pytest.mark.parametrize(
    "text",
    [
        f"p({', '.join(LONG)}) <- a({', '.join(LONG)});",
        f"p() <- a({', '.join(f'{name}: x' for name in LONG)});",
        f"p() <- a(x), {' or '.join(f'{name} = 1' for name in LONG)};",
        f"p() <- a(x), x = 1 and ({' or '.join(f'{name} = 1' for name in LONG)});",
        f"p() <- a(x), not ({' and '.join(f'{name} = 1' for name in LONG)});",
        f"p() <- a(x), concat({', '.join(LONG)}) = concat({', '.join(LONG)});",
        f"p() <- a(x), x > {' + '.join(LONG)};",
        f"p() <- a(x), x > 2 * ({' - '.join(LONG)});",
        f"p(sum(all {' + '.join(LONG)})) <- a(x);",
        f"p() <- a(x), {{{', '.join(LONG)}}} within 2h;",
        f"p() <- e: algebra ({'; '.join(f'{name}(x)' for name in LONG)});",
        f"p() <- e: algebra (a | ({' + '.join(f'{name}(x)' for name in LONG)})[2s]);",
        f"EVENT order({', '.join(f'{name}: int' for name in LONG)}) RATE 3 per sec;",
        f'TABLE order({", ".join(f"{name}: int" for name in LONG)}) FROM "orders.csv";',
        f'STREAM s FROM "s.jsonl" CARRIES {", ".join(LONG)} TIME begin, end;',
        f"DETECT a {{ all b {{ }} group by {{ {', '.join(f'var {n}' for n in LONG)} }} }} ON event e: b {{ }} END",
    ],
)
def test_no_line_is_too_long_that_can_break(text: str) -> None:
    assert max(map(len, formatted(text).splitlines())) <= WIDTH


def test_lists_break_one_a_line_with_the_closing_bracket_below() -> None:
    assert (
        formatted(f"p({', '.join(LONG[:5])}) <- o: order(x, y);")
        == f"""\
p(
  {LONG[0]},
  {LONG[1]},
  {LONG[2]},
  {LONG[3]},
  {LONG[4]}
) <-
    o: order(x, y);
"""
    )


def test_conditions_break_before_the_operator() -> None:
    names = [f"quantity-{n}" for n in range(7)]
    assert (
        formatted(f"p(x) <- o: a(x), x = 1 or x = 2 and ({' or '.join(f'{n} > 10' for n in names)});")
        == """\
p(x) <-
    o: a(x),
    x = 1
      or x = 2
        and (
          quantity-0 > 10
          or quantity-1 > 10
          or quantity-2 > 10
          or quantity-3 > 10
          or quantity-4 > 10
          or quantity-5 > 10
          or quantity-6 > 10
        );
"""
    )


def test_what_fits_stays_on_one_line() -> None:
    text = "p(x) <- a(x), b(x, y), x > 1 or y < 1, c(z);\n"
    widest = text.replace("z", "z" * (WIDTH + 2 - len(text)))
    assert formatted(widest) == widest
    assert formatted(widest.replace("z", "zz", 1)).startswith("p(x) <-\n    a(x),\n    b(x, y),\n    x > 1 or y < 1,\n")


def test_the_sign_behind_an_item_counts() -> None:
    name = "z" * (WIDTH - len("    a(x, );"))
    assert f"    a(x, {name});\n" in formatted(f"p(x) <- a(x, {name}), a(x, {name});")
    assert f"    a(x, {name}z);\n" not in formatted(f"p(x) <- a(x, {name}z), a(x, {name}z);")


# ---- numbers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("1e6", "1e6"),
        ("1000000.0", "1e6"),
        ("1.5E+7", "1.5e7"),
        ("-2.5e6", "-2.5e6"),
        ("1234567.0", "1234567.0"),
        ("1234567.5", "1234567.5"),
        ("1e+16", "1e16"),
        ("12345678901234567890.0", "1.2345678901234567e19"),
        ("1e308", "1e308"),
        ("100.0", "100.0"),
        ("1e2", "100.0"),
        ("0.0001", "0.0001"),
        ("0.00001", "1e-5"),
        ("5e-324", "5e-324"),
        ("0.0", "0.0"),
        ("1000000", "1000000"),
    ],
)
def test_numbers_are_short_and_read_back_equal(written: str, kept: str) -> None:
    assert formatted(f"p(x) <- a(x, {written});") == f"p(x) <- a(x, {kept});\n"


def test_equal_amounts_are_written_alike() -> None:
    assert formatted("EVENT a LASTS AT MOST 1.0 hours RATE 2.50 per sec;") == (
        "EVENT a LASTS AT MOST 1 hour RATE 2.5 per sec;\n"
    )
    assert formatted("p(x) <- a(x), w: extend(a, 0.0h10.20s);") == "p(x) <- a(x), w: extend(a, 0h10.2s);\n"
