-- Follows thesis §6.6 (disjunction): a car park owes its bank a share of every payment, however it was made.

DETECT
  charge {
    garage { var C },
    amount { mult(0.02, var P, var V) }
  }
ON
  or {
    card-payment {{
      garage { var C },
      price { var P },
      hours { var V }
    }},
    phone-payment {{
      garage { var C },
      price { var P },
      hours { var V }
    }}
  }
END

-- one rule with `or` …
DETECT
  opened { var G }
ON
  or {
    ticket {{ garage { var G } }},
    season-pass {{ garage { var G } }},
    guard-key {{ garage { var G }, shift { var N } }} where { var N >= 2 }
  }
  where { var G != "staff" }
END

-- … means the same as one rule for each branch
DETECT unlocked { var G } ON ticket {{ garage { var G } }} where { var G != "staff" } END
DETECT unlocked { var G } ON season-pass {{ garage { var G } }} where { var G != "staff" } END
DETECT unlocked { var G }
ON guard-key {{ garage { var G }, shift { var N } }} where { var N >= 2 } where { var G != "staff" }
END
