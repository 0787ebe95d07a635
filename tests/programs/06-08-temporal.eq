-- Follows thesis §6.8 (temporal relationships): a car leaves a garage soon after it came and pays less than the
-- tariff it saw at the gate.

DETECT
  short-stay {
    plate { var C },
    garage { var S }
  }
ON
  and {
    event i: entered {{
      plate { var C },
      garage { var S },
      tariff { var P1 }
    }},
    event o: left {{
      plate { var C },
      garage { var S },
      paid { var P2 }
    }}
  } where { i before o, {i,o} within 20 min, var P1 > var P2 }
END
