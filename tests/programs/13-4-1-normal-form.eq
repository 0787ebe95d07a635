-- Follows thesis §13.4.1, fig. 13.2 and 13.3 (normal form): rules about a ski lift that use every kind of literal, in
-- an order and a nesting that normalization has to undo.

-- all kinds of literals, the last first
DETECT
  crowded { lift { var L }, rides { count(all var R) } }
ON
  and {
    while h: not stopped { lift { var L } },
    while w: collect ride {{ lift { var L }, pass { var R } }},
    event h: timer:extend-begin[event w, 5 min],
    event w: timer:from-end-backward[event q, 15 min],
    event q: queue {{ lift { var L }, people { var N } }}
  } where { var N > 40, var L != "nursery slope" }
END

-- `or` at the root, with a condition for all its branches
DETECT
  halted { var L }
ON
  or {
    event s: stopped { lift { var L } },
    event e: emergency {{ lift { var L } }},
    and {
      event s: storm {{ force { var F } }},
      event o: open {{ lift { var L } }}
    } where { {s,o} within 10 min, var F >= 8 }
  } where { var L != "nursery slope" }
END

-- `or` in `and`
DETECT
  resumed { lift { var L }, by { var G } }
ON
  and {
    event s: stopped { lift { var L } },
    or {
      event g: repaired {{ lift { var L }, guard { var G } }},
      event g: released {{ lift { var L }, guard { var G } }}
    },
    event m: moving {{ lift { var L } }}
  } where { s before g, g before m, {s,m} within 2 hours }
END

-- `and` in `and` in `and`, with conditions inside
DETECT
  first-ride { var L }
ON
  and {
    event o: open {{ lift { var L } }},
    and {
      event r: ride {{ lift { var L }, pass { var P } }},
      and {
        event c: checked {{ pass { var P } }}
      }
    } where { c before r, {c,r} within 5 min }
  } where { o before c, {o,r} within 1 hour }
END

-- a simple query alone, and within an `and` of one
DETECT calm { var L } ON queue {{ lift { var L }, people { 0 } }} END
DETECT idle { var L } ON and { queue {{ lift { var L }, people { 0 } }} } END

-- conditions between the items
DETECT
  rush { var L }
ON
  and {
    event a: queue {{ lift { var L }, people { var N1 } }},
    event b: queue {{ lift { var L }, people { var N2 } }},
    a before b,
    {a,b} within 10 min,
    var N2 > 2 * var N1
  }
END
