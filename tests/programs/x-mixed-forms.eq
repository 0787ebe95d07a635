-- Follows thesis §6.11 (both forms in one program): a swimming pool whose rules read each other's events across the
-- two forms.

EVENT entered(card: string, lane: int);
EVENT left(card: string);
EVENT chlorine(milligrams: float);

-- an arrow rule over declared events, asked by its positions …
long-swim(c, l) <- e: entered(c, l), x: left(c), e before x, {e, x} within 3h, duration(e) < 1 sec;

-- … in a block rule
DETECT
  swimmer { card { var C }, lane { var L } }
ON
  event s: long-swim(var C, var L) where { var L != 8 }
END

-- and a block rule's terms, asked by their names and as terms in arrow rules
swum(l, count(c)) <- t: timer:datetime {{ time { "21:00" } }}, w: from-end-backward(t, 12h),
  while w: collect swimmer(card: c, lane: l);
fast-lane(c) <- s: swimmer {{ card { var c }, lane { 1 } }};
clean(m) <- c: chlorine(m), w: from-end(c, 1 hour), while w: not swimmer {{ }}, m > 0.3;

-- everything that happens, as messages
RAISE to(recipient="log", transport="console") { log { var X } } ON event e: var X END
RAISE to(recipient="log", transport="console") { cards { kind { var L }, card { var C } } }
ON event e: var L {{ desc card { var C } }}
END
RAISE to(recipient="http://localhost:8099/pool", transport="http") { lane { nr { var L }, swimmers { var N } } }
ON event e: swum(var L, var N)
END
