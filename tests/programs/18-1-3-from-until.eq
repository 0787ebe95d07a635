-- Follows thesis §18.1.3 (syntactic sugar, from and until): no guard passed between the opening and the closing of a
-- gate, once with a helping rule for the window and once without.

DETECT
  open-time [ var G ]
ON
  and {
    event a: gate-opened { var G },
    event c: gate-closed { var G }
  } where { a before c }
END

DETECT
  unguarded [ var G ]
ON
  and {
    event w: open-time [ var G ]
    while w: not guard { var G }
  }
END

DETECT
  unguarded-too [ var G ]
ON
  and {
    event a: gate-opened { var G },
    event c: gate-closed { var G },
    from a until c: not guard { var G }
  }
END

-- the same window for a collection
DETECT
  traffic { gate { var G }, cars { count(all var P) } }
ON
  and {
    event a: gate-opened { var G },
    event c: gate-closed { var G },
    from a until c: collect car {{ gate { var G }, plate { var P } }}
  } where { {a,c} within 12 hours }
END

-- in arrow form, with a condition on what is looked for
quiet(g) <- a: opened(g), c: closed(g), from a until c: not noise(g, d) where { d > 60 }, {a, c} within 12h;
heard(g, count(*), max(d)) <- a: opened(g), c: closed(g), from a until c: collect noise(g, d), {a, c} within 12h;
maybe-heard(g, count(d)) <- a: opened(g), c: closed(g), from a until c: collect optional noise(g, d),
  {a, c} within 12h;
